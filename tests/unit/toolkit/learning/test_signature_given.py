"""The parameters of a test are not part of the bug's identity: another parametrization shows the same bug."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign


def signed(message: str, detail: str, test: str) -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: path.startswith("src/"), roots=["/work/repo"])


def compared(line: str, said: str, given: str) -> Signature:
    """Sign a failure with pytest's message at `line` of a test with these parameters."""
    return signed(
        f"AssertionError: {said}",
        f"tests/test_a.py:3: in test_a\n    {line}\nE   AssertionError: {said}\n",
        f"tests/test_a.py::test_a[{given}]",
    )


WANTED = "assert size(value) == wanted"


@pytest.mark.parametrize(
    ("one", "given_one", "other", "given_other"),
    [
        ("assert '1.0 MB' == '1.0 kB'", "test_args1-1.0 kB", "assert '1.0 GB' == '1.0 MB'", "test_args3-1.0 MB"),
        ("assert 'a_b' == 'a-b'", "a_b-a-b", "assert 'x y' == 'x-y'", "x y-x-y"),
        ("assert 3 == 4", "2-4", "assert 8 == 9", "7-9"),
        ("assert Size(1) == Size(2)", "value0-wanted0", "assert Size(5) == Size(8)", "value1-wanted1"),
        ("assert \"V(a='x')\" == \"V(a='y')\"", "value0-V(a='y')", "assert 'V(1...2)' == 'V(3)'", "value1-V(3)"),
        ("assert [1] == [1, 2]", "value0-wanted0", "assert [] == [3]", "value1-wanted1"),
    ],
)
def test_values_of_another_parametrisation_make_no_difference(
    one: str, given_one: str, other: str, given_other: str
) -> None:
    assert compared(WANTED, one, given_one).key == compared(WANTED, other, given_other).key


def test_how_a_value_that_was_cut_differs_is_the_parameters_too() -> None:
    said = "assert 'a...z' == 'b...z'\nE     - {}"
    one, other = (compared(WANTED, said.format(differs), "value0-wanted0") for differs in ("b1", "b2"))
    assert one.key == other.key


def test_what_kind_of_value_it_is_makes_a_difference() -> None:
    wrong, none = (compared(WANTED, f"assert {got} == 'ab'", "a-ab") for got in ("'x'", "None"))
    assert wrong.key != none.key


def test_another_line_of_a_parametrised_test_is_another_bug() -> None:
    said = "assert 3 == 4"
    assert compared(WANTED, said, "2-4").key != compared("assert other(value) == wanted", said, "2-4").key


@pytest.mark.parametrize(
    ("line", "given"), [("assert size() == 4", "memory"), (WANTED, "asyncio"), ("assert size() == 4", "value0")]
)
def test_values_that_no_parameter_decides_are_part_of_the_bug(line: str, given: str) -> None:
    one, other = (compared(line, f"assert '{got}' == 4", given) for got in ("a", "b"))
    assert one.key != other.key


def in_source(said: str, test: str) -> Signature:
    frame = "src/a.js" if ".js" in test else "src/a.py"
    traceback = f"{said}\n    at get ({frame}:3:4)" if ".js" in test else f"{frame}:3: in get\n    x()\nE   {said}\n"
    return signed(said, traceback, test)


@pytest.mark.parametrize(
    ("said", "test"),
    [
        ("ValueError: no unit '{}' here", "tests/test_a.py::test_a[{}-3]"),
        ("ValueError: no unit: {}", "tests/test_a.py::test_a[{}]"),
        ("KeyError: '{}'", "tests/test_a.py::test_a[{}]"),
        ("Error: Invalid token: {}", 'test/a.test.js > get > should work for "/{}"'),
        ("Error: Invalid token `{}`", "test/a.test.js::get > should work for '{}'"),
    ],
)
def test_a_value_that_the_test_gave_makes_no_difference_to_what_an_exception_says(said: str, test: str) -> None:
    one, other = (in_source(said.format(value), test.format(value)) for value in ("foo", "bar"))
    assert one.key == other.key
    assert one.key != in_source(said.format("else"), test.format("foo")).key


@pytest.mark.parametrize("error", ["AttributeError", "NameError", "TypeError"])
def test_what_an_exception_says_of_the_code_stays(error: str) -> None:
    one, other = (in_source(f"{error}: no '{name}'", f"tests/test_a.py::test_a[{name}]") for name in ("foo", "bar"))
    assert one.key != other.key


@pytest.mark.parametrize(
    "said",
    [
        "AttributeError: module 'shop' has no attribute 'totl'",
        "AttributeError: 'Cart' object has no attribute 'totl'",
        "NameError: name 'totl' is not defined",
        "TypeError: total() missing 1 required positional argument: 'of'",
        "TypeError: Can't instantiate abstract class Cart with abstract method f",
        "Error: it should not have thrown: cart.totl is not a function",
    ],
)
def test_what_the_code_lacks_is_one_bug_for_all_tests_of_a_file(said: str) -> None:
    def found(file: str, name: str) -> Signature:
        return signed(said, f"{file}:3: in {name}\n    {name}.go()\nE   {said}\n", f"{file}::{name}")

    one, other, elsewhere = found("test/a.py", "one"), found("test/a.py", "other"), found("test/b.py", "one")
    assert one.key == other.key != elsewhere.key


@pytest.mark.parametrize(
    "said",
    [
        "AttributeError: 'NoneType' object has no attribute 'total'",
        "TypeError: undefined is not a function",
        "ValueError: no total",
    ],
)
def test_a_wrong_value_in_another_test_is_another_bug(said: str) -> None:
    one, other = (
        signed(said, f"test/a.py:3: in {name}\n    go()\nE   {said}\n", f"test/a.py::{name}") for name in "ab"
    )
    assert one.key != other.key


def test_words_of_a_title_that_are_not_quoted_are_no_values() -> None:
    said = "Error: no unit: foo"
    assert in_source(said, "test/a.test.js > it has foo").message == "no unit: foo"
