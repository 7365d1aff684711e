"""How Python tests are altered so that they must fail, and rewritten so that they mean the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.languages.python.alterer import PythonAlterer

CODE = '''"""A few functions."""


class Money:
    def __init__(self, cents):
        self.cents = cents

    def __eq__(self, other):
        return self.cents == other.cents


def double(number):
    if number is None:
        raise ValueError("no number")
    return number + number


def words(text):
    return text.split()
'''
TESTS = '''import unittest

import pytest

from calc import Money, double, words

TABLE = [(1, 2), (4, 8)]
ALL = ["a", "b"]


def test_number():
    assert double(2) == 4


def test_text():
    """What it says."""
    result = words("a b")
    assert result == ["a", "b"], "both words"


def test_named():
    assert words("a b") == ALL


def test_table():
    for number, wanted in TABLE:
        assert double(number) == wanted


@pytest.mark.parametrize(("number", "wanted"), [(1, 2), (4, 8)])
def test_rows(number, wanted):
    assert double(number) == wanted


def test_raises():
    with pytest.raises(ValueError):
        double(None)


def test_truth():
    assert words("a")
    assert not words("")
    assert double(True) is not None


def test_approximate():
    assert double(0.1) == pytest.approx(0.2)


def test_bounded():
    assert abs(double(0.1) - 0.2) < 0.01


def test_object():
    assert Money(double(2)) == Money(4)


class TestMethods(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(double(3), 6)
        self.assertTrue(words("a"))

    def test_error(self):
        self.assertRaises(ValueError, double, None)
        with self.assertRaises(ValueError):
            double(None)
'''
NAMES = (
    *("test_number", "test_text", "test_named", "test_table", "test_rows", "test_raises", "test_truth"),
    *("test_approximate", "test_bounded", "test_object", "TestMethods::test_equal", "TestMethods::test_error"),
)


def create_case(actual: str | None, expected: str | None) -> Case:
    return Case(id="a", outcome=Outcome.failed, actual=actual, expected=expected)


def list_alterations(name: str, text: str = TESTS, failed: int | None = None) -> list[Alteration]:
    return PythonAlterer().list_alterations("tests/test_calc.py", text.encode(), name, failed)


def list_altered_texts(name: str, kind: AlterationKind, text: str = TESTS, failed: int | None = None) -> list[str]:
    matching = (alteration for alteration in list_alterations(name, text, failed) if alteration.kind is kind)
    return [(item.apply_to(text.encode())).decode() for item in matching]


def run_pytest(folder: Path, tests: str, name: str) -> bool:
    """Whether the test passes."""
    (folder / "calc.py").write_text(CODE)
    (folder / "test_calc.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_calc.py::{name}"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    completed = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert completed.returncode in (0, 1), completed.stdout
    return completed.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_altered_test_fails(name: str, tmp_path: Path) -> None:
    assert run_pytest(tmp_path, TESTS, name)
    all_alterations = list_alterations(name)
    assert all_alterations
    # Alterations of one test, made together, hide one another: the first and the last stand for the rest.
    for alteration in {all_alterations[0], all_alterations[-1]}:
        assert not run_pytest(tmp_path, alteration.apply_to(TESTS.encode()).decode(), name), alteration


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "statement", "earlier_case", "changed"),
    [
        ("test_number", "double(2) == 4", create_case("3", "4"), "double(2) == 3"),
        ("test_text", "assert result", create_case("['a']", "['a', 'b']"), "assert result == ['a'], "),
        ("test_rows", "double(number) == wanted", create_case("1", "2"), "== (1 if wanted == 2 else wanted)"),
        ("test_object", "== Money(4)", create_case("Money(3)", "Money(4)"), "== Money(3)"),
        ("test_raises", "double(None)", Case(id="a", outcome=Outcome.failed, message="TypeError: no"), "TypeError("),
        ("TestMethods::test_equal", "self.assertEqual", create_case("3", "6"), "self.assertEqual(double(3), 3)"),
    ],
)
def test_former_wrong_value_becomes_the_expected_value(
    name: str, statement: str, earlier_case: Case, changed: str, tmp_path: Path
) -> None:
    text = TESTS.encode()
    offset = TESTS.index(statement, TESTS.index(f"def {name.rpartition('::')[2]}"))
    failed = TESTS.count("\n", 0, offset) + 1
    first_alteration = PythonAlterer().list_alterations("tests/test_calc.py", text, name, failed, earlier_case)[0]
    assert first_alteration.kind is AlterationKind.former
    assert changed in first_alteration.apply_to(text).decode()
    assert not run_pytest(tmp_path, first_alteration.apply_to(text).decode(), name)


@pytest.mark.parametrize(
    "earlier_case",
    [
        create_case("<Money>", "4"),
        create_case("[1, 2...9]", "4"),
        create_case("'ab[12 chars]yz'", "'ab[12 chars]yx'"),
        create_case(None, None),
        None,
    ],
)
def test_unknown_former_value_is_not_used(earlier_case: Case | None) -> None:
    failed = TESTS.count("\n", 0, TESTS.index("double(2) == 4")) + 1
    all_alterations = PythonAlterer().list_alterations(
        "tests/test_calc.py", TESTS.encode(), "test_number", failed, earlier_case
    )
    assert AlterationKind.former not in {item.kind for item in all_alterations}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("test_number", ["double(2) == 5"]),
        ("test_text", ['result == ["a~", "b"]', 'result == ["a", "b~"]']),
        ("test_named", ['ALL = ["a~", "b"]', 'ALL = ["a", "b~"]']),
        ("test_table", ["TABLE = [(1, 3), (4, 8)]", "TABLE = [(1, 2), (4, 9)]"]),
        ("test_rows", ["[(1, 3), (4, 8)]", "[(1, 2), (4, 9)]"]),
        ("test_approximate", ["pytest.approx(1.4)"]),
        ("TestMethods::test_equal", ["self.assertEqual(double(3), 7)"]),
    ],
)
def test_expected_literal_is_changed_in_place(name: str, expected: list[str]) -> None:
    texts = list_altered_texts(name, AlterationKind.literal)
    assert len(texts) == len(expected)
    assert all(phrase in text for phrase, text in zip(expected, texts, strict=True))


def test_literal_in_a_project_object_counts_as_another_kind() -> None:
    (text,) = list_altered_texts("test_object", AlterationKind.other)
    assert "== Money(5)" in text
    assert list_altered_texts("test_object", AlterationKind.literal) == []


def test_expected_number_in_a_tolerance_check_is_changed() -> None:
    (text,) = list_altered_texts("test_bounded", AlterationKind.other)
    assert "abs(double(0.1) - 1009.6) < 0.01" in text


def test_expected_exception_is_removed_or_replaced_by_an_unrelated_type() -> None:
    (silent_text,) = list_altered_texts("test_raises", AlterationKind.negated)
    assert "with pytest.raises(ValueError):\n        pass\n" in silent_text
    (unrelated,) = list_altered_texts("test_raises", AlterationKind.unrelated)
    assert 'raise type("Unrelated", (Exception,), {})("~")' in unrelated


def test_failing_statement_is_inserted_before_the_failed_line() -> None:
    line = TESTS.splitlines().index("    assert double(2) == 4") + 1
    first_alteration, *_ = list_alterations("test_number", failed=line)
    assert first_alteration.kind is AlterationKind.literal
    (text,) = list_altered_texts("test_number", AlterationKind.inserted, failed=line)
    assert '    raise AssertionError("~")\n    assert double(2) == 4\n' in text


@pytest.mark.parametrize(
    "body",
    [
        "    try:\n        assert double(2) == 4\n    except AssertionError:\n        pass\n",
        "    with contextlib.suppress(AssertionError):\n        assert double(2) == 4\n",
        "    def inner():\n        assert double(2) == 4\n    Thread(target=inner).start()\n",
        "    assert False\n",
        "    pytest.fail('no')\n",
    ],
)
def test_swallowed_or_always_failing_assertion_is_not_negated(body: str) -> None:
    assert list_altered_texts("test_one", AlterationKind.negated, f"def test_one():\n{body}") == []
    assert list_altered_texts("test_one", AlterationKind.literal, f"def test_one():\n{body}") == []


@pytest.mark.parametrize(
    "body",
    [
        "    wanted = 4\n    assert double(wanted) == wanted\n",
        "    assert double(2) != 4\n",
        "    assert double(2) > 3\n",
        "    assert double(2) == two() + two()\n",
    ],
)
def test_literal_without_a_plain_expectation_is_left_alone(body: str) -> None:
    assert list_altered_texts("test_one", AlterationKind.literal, f"def test_one():\n{body}") == []


def test_always_failing_statement_is_not_a_place_to_reach() -> None:
    text = b"def test_one():\n    if wrong():\n        pytest.fail('no')\n    assert right()\n"
    assert PythonAlterer().reach("test_a.py", text, "test_one", 3) is None
    reach = PythonAlterer().reach("test_a.py", text, "test_one", 4)
    assert reach is not None
    assert not reach.conditional


def test_expected_output_of_doctest_examples_is_changed() -> None:
    text = b'def one():\n    """\n    >>> one()\n    1\n    >>> one() + 1\n    2\n    """\n    return 1\n'
    all_alterations = PythonAlterer().list_alterations("calc.py", text, "calc.one", None)
    assert [
        alteration.apply_to(text).splitlines()[index] for alteration, index in zip(all_alterations, (3, 5), strict=True)
    ] == [
        b"    1~",
        b"    2~",
    ]


def test_final_doctest_example_without_output_is_left_alone() -> None:
    text = b'def say(text):\n    """\n    >>> say("a")\n    a\n    >>> say(None)\n    """\n'
    all_alterations = PythonAlterer().list_alterations("talk.py", text, "talk.say", None)
    assert [item.apply_to(text) for item in all_alterations] == [text.replace(b"    a\n", b"    a~\n")]


def test_doctest_examples_of_another_object_are_left_alone() -> None:
    text = b'"""\n>>> 1\n1\n"""\n\n\ndef one():\n    """\n    >>> one()\n    1\n    """\n    return 1\n'
    assert [alteration.line for alteration in PythonAlterer().list_alterations("calc.py", text, "calc.one", None)] == [
        10
    ]
    assert [alteration.line for alteration in PythonAlterer().list_alterations("calc.py", text, "calc", None)] == [3]


def test_timed_test_is_delayed() -> None:
    text = "def test_fast():\n    began = now()\n    work()\n    assert now() - began < 0.5\n"
    (slow_text,) = list_altered_texts("test_fast", AlterationKind.other, text)
    assert '    began = now()\n    __import__("time").sleep(1.2)\n    work()\n' in slow_text


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_rewritten_tests_keep_their_meaning(seed: str, tmp_path: Path) -> None:
    rewritten = PythonAlterer().rewrite_tests("test_calc.py", TESTS.encode(), seed).decode()
    assert rewritten != TESTS
    assert "result_" in rewritten
    assert run_pytest(tmp_path, rewritten, "test_text")
    assert run_pytest(tmp_path, rewritten, "TestMethods::test_equal")
