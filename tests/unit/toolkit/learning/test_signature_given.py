"""The parameters of a test are not part of the bug's identity: another parametrization shows the same bug."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign


def sign_failure(message: str, detail: str, test: str) -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: path.startswith("src/"), roots=["/work/repo"])


def sign_comparison(line: str, message: str, parameters: str) -> Signature:
    """Sign a failure with pytest's message at `line` of a test with these parameters."""
    return sign_failure(
        f"AssertionError: {message}",
        f"tests/test_a.py:3: in test_a\n    {line}\nE   AssertionError: {message}\n",
        f"tests/test_a.py::test_a[{parameters}]",
    )


WANTED = "assert size(value) == wanted"


@pytest.mark.parametrize(
    ("first_message", "first_parameters", "other_message", "other_parameters"),
    [
        ("assert '1.0 MB' == '1.0 kB'", "test_args1-1.0 kB", "assert '1.0 GB' == '1.0 MB'", "test_args3-1.0 MB"),
        ("assert 'a_b' == 'a-b'", "a_b-a-b", "assert 'x y' == 'x-y'", "x y-x-y"),
        ("assert 3 == 4", "2-4", "assert 8 == 9", "7-9"),
        ("assert Size(1) == Size(2)", "value0-wanted0", "assert Size(5) == Size(8)", "value1-wanted1"),
        ("assert \"V(a='x')\" == \"V(a='y')\"", "value0-V(a='y')", "assert 'V(1...2)' == 'V(3)'", "value1-V(3)"),
        ("assert [1] == [1, 2]", "value0-wanted0", "assert [] == [3]", "value1-wanted1"),
    ],
)
def test_values_of_another_parametrization_make_no_difference(
    first_message: str, first_parameters: str, other_message: str, other_parameters: str
) -> None:
    assert (
        sign_comparison(WANTED, first_message, first_parameters).key
        == sign_comparison(WANTED, other_message, other_parameters).key
    )


def test_difference_within_a_truncated_value_belongs_to_the_parameters() -> None:
    template = "assert 'a...z' == 'b...z'\nE     - {}"
    first_signature, other_signature = (
        sign_comparison(WANTED, template.format(difference), "value0-wanted0") for difference in ("b1", "b2")
    )
    assert first_signature.key == other_signature.key


def test_type_of_a_value_makes_a_difference() -> None:
    text_signature, none = (sign_comparison(WANTED, f"assert {value} == 'ab'", "a-ab") for value in ("'x'", "None"))
    assert text_signature.key != none.key


def test_another_line_of_a_parametrized_test_is_a_different_bug() -> None:
    message = "assert 3 == 4"
    assert (
        sign_comparison(WANTED, message, "2-4").key
        != sign_comparison("assert other(value) == wanted", message, "2-4").key
    )


@pytest.mark.parametrize(
    ("line", "parameters"), [("assert size() == 4", "memory"), (WANTED, "asyncio"), ("assert size() == 4", "value0")]
)
def test_values_not_set_by_a_parameter_are_part_of_the_bug(line: str, parameters: str) -> None:
    first_signature, other_signature = (
        sign_comparison(line, f"assert '{value}' == 4", parameters) for value in ("a", "b")
    )
    assert first_signature.key != other_signature.key


def in_source(message: str, test: str) -> Signature:
    frame = "src/a.js" if ".js" in test else "src/a.py"
    traceback = (
        f"{message}\n    at get ({frame}:3:4)" if ".js" in test else f"{frame}:3: in get\n    x()\nE   {message}\n"
    )
    return sign_failure(message, traceback, test)


@pytest.mark.parametrize(
    ("template", "test"),
    [
        ("ValueError: no unit '{}' here", "tests/test_a.py::test_a[{}-3]"),
        ("ValueError: no unit: {}", "tests/test_a.py::test_a[{}]"),
        ("KeyError: '{}'", "tests/test_a.py::test_a[{}]"),
        ("Error: Invalid token: {}", 'test/a.test.js > get > should work for "/{}"'),
        ("Error: Invalid token `{}`", "test/a.test.js::get > should work for '{}'"),
    ],
)
def test_value_given_by_the_test_does_not_change_the_exception_signature(template: str, test: str) -> None:
    first_signature, other_signature = (
        in_source(template.format(value), test.format(value)) for value in ("foo", "bar")
    )
    assert first_signature.key == other_signature.key
    assert first_signature.key != in_source(template.format("else"), test.format("foo")).key


@pytest.mark.parametrize("error", ["AttributeError", "NameError", "TypeError"])
def test_name_in_a_code_error_stays_part_of_the_fingerprint(error: str) -> None:
    first_signature, other_signature = (
        in_source(f"{error}: no '{name}'", f"tests/test_a.py::test_a[{name}]") for name in ("foo", "bar")
    )
    assert first_signature.key != other_signature.key


@pytest.mark.parametrize(
    "message",
    [
        "AttributeError: module 'shop' has no attribute 'totl'",
        "AttributeError: 'Cart' object has no attribute 'totl'",
        "NameError: name 'totl' is not defined",
        "TypeError: total() missing 1 required positional argument: 'of'",
        "TypeError: Can't instantiate abstract class Cart with abstract method f",
        "Error: it should not have thrown: cart.totl is not a function",
    ],
)
def test_missing_name_gives_one_fingerprint_for_all_tests_of_a_file(message: str) -> None:
    def sign_in_test(file: str, name: str) -> Signature:
        return sign_failure(message, f"{file}:3: in {name}\n    {name}.go()\nE   {message}\n", f"{file}::{name}")

    first_signature, other_signature, third_signature = (
        sign_in_test("test/a.py", "one"),
        sign_in_test("test/a.py", "other"),
        sign_in_test("test/b.py", "one"),
    )
    assert first_signature.key == other_signature.key != third_signature.key


@pytest.mark.parametrize(
    "message",
    [
        "AttributeError: 'NoneType' object has no attribute 'total'",
        "TypeError: undefined is not a function",
        "ValueError: no total",
    ],
)
def test_wrong_value_in_another_test_has_another_fingerprint(message: str) -> None:
    first_signature, other_signature = (
        sign_failure(message, f"test/a.py:3: in {name}\n    go()\nE   {message}\n", f"test/a.py::{name}")
        for name in "ab"
    )
    assert first_signature.key != other_signature.key


def test_unquoted_words_of_a_title_are_not_values() -> None:
    message = "Error: no unit: foo"
    assert in_source(message, "test/a.test.js > it has foo").message == "no unit: foo"
