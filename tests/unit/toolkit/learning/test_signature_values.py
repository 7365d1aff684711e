"""The values that a test compared are part of the bug's identity if the test itself names the expected value."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign

ROOT = "/work/repo"


def sign_failure(message: str, detail: str = "", test: str = "tests/test_shop.py::test_total") -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: path.startswith("src/"), roots=[ROOT])


def sign_assertion(line: str, message: str) -> Signature:
    """Sign a failure with pytest's message at `line` of a test."""
    return sign_failure(
        message, f"    def test_total():\n>       {line}\nE       {message}\n\ntests/test_shop.py:3: AssertionError\n"
    )


STYLES = {
    "long": "    def test_total():\n        cart = Cart()\n>       assert cart.total() == 3\n"
    "E       assert 4 == 3\n\ntests/test_shop.py:9: AssertionError\n",
    "short": "tests/test_shop.py:31: in test_total\n    assert cart.total() == 3\nE   assert 4 == 3\n",
    "short with carets": "tests/test_shop.py:2: in test_total\n    assert cart.total() == 3\n"
    "    ^^^^^^^^^^^^^^^^^^^^\nE   assert 4 == 3\n",
    "native": f'Traceback (most recent call last):\n  File "{ROOT}/tests/test_shop.py", line 7, in test_total\n'
    "    assert cart.total() == 3\nAssertionError: assert 4 == 3\n",
}


@pytest.mark.parametrize("style", sorted(STYLES))
def test_traceback_style_does_not_affect_the_fingerprint(style: str) -> None:
    message = "AssertionError: assert 4 == 3" if style == "native" else "assert 4 == 3"
    assert sign_failure(message, STYLES[style]) == Signature(
        exception="AssertionError",
        message="assert 4 == 3",
        frame="tests/test_shop.py::test_total",
        kind="assert <n> == <n>",
        at="assert cart.total() == 3",
    )


def test_another_wrong_value_is_another_failure_of_the_same_family() -> None:
    first_signature = sign_assertion("assert total() == 3", "assert 4 == 3")
    other_signature = sign_assertion("assert total() == 3", "assert 0 == 3")
    assert first_signature.key != other_signature.key
    assert first_signature.family == other_signature.family


@pytest.mark.parametrize(
    ("line", "first_message", "other_message"),
    [
        ("assert decoded == sent", "assert 17 == 42", "assert 9 == 8"),
        ("assert decoded == sent", "assert [1, 2, 3] == [3, 2]", "assert [7] == [8, 9]"),
        ("assert took < 0.5", "assert 0.713 < 0.5", "assert 0.622 < 0.5"),
        ("assert names() == {'a'}", "assert {'b', 'c'} == {'a'}", "assert {'c', 'b'} == {'a'}"),
        ("assert names() == {'a'}", "assert {'b', 'c', ...} == {'a'}", "assert {'x', 'b', ...} == {'a'}"),
        ("assert made() == 'x'", "assert <A at 0x7f01> == 'x'", "assert <A at 0x55aa> == 'x'"),
    ],
)
def test_random_values_do_not_affect_the_fingerprint(line: str, first_message: str, other_message: str) -> None:
    assert sign_assertion(line, first_message).key == sign_assertion(line, other_message).key


def test_another_line_of_the_same_test_has_another_fingerprint() -> None:
    assert (
        sign_assertion("assert a() is None", "assert 1 is None").key
        != sign_assertion("assert b() is None", "assert 1 is None").key
    )


def test_line_of_the_test_is_ignored_when_the_source_raises() -> None:
    source_frame = (
        "src/cart.py:3: in total\n    return None.x\nE   AttributeError: 'NoneType' object has no attribute 'x'"
    )
    message = "AttributeError: 'NoneType' object has no attribute 'x'"
    first_signature = sign_failure(message, f"tests/test_shop.py:3: in test_total\n    total()\n{source_frame}")
    other_signature = sign_failure(
        message,
        f"tests/test_shop.py:9: in test_other\n    x = total(2)\n{source_frame}",
        "tests/test_shop.py::test_other",
    )
    assert first_signature.key == other_signature.key


def test_header_of_a_wrapped_test_does_not_affect_the_fingerprint() -> None:
    inner_frame = "tests/test_a.py:9: in test_total\n    assert f(x) == 3\nE   assert 4 == 3"
    heads = ("@given(st.integers())", "def test_total(x):", "async def test_total(x):")
    assert (
        len(
            {
                sign_failure("assert 4 == 3", f"tests/test_a.py:5: in test_total\n    {head}\n{inner_frame}").key
                for head in heads
            }
        )
        == 1
    )


def test_truncated_values_are_distinguished_by_their_diff() -> None:
    message = "AssertionError: assert [1, 2, ... 8, 9] == [1, 2, ... 8, 9]"
    detail = "tests/test_a.py:{}: in test_total\n    assert f() == WANTED\nE   {}\nE     \nE     At index 3 diff: '{}'"
    first_key, same_key, other_key = (
        sign_failure(message, detail.format(line, message, value)).key for line, value in ((3, "a"), (9, "a"), (3, "b"))
    )
    assert first_key == same_key != other_key


def test_explanation_below_an_assertion_is_part_of_the_fingerprint() -> None:
    line = "assert ok(one)"
    assert sign_assertion(line, "assert False\n +  where False = ok('a b')").key != (
        sign_assertion(line, "assert False\n +  where False = ok('c d')").key
    )


def test_compared_values_below_a_custom_message_count() -> None:
    line = "assert f(2) == 5, 'sums are wrong'"
    first_signature, other_signature = (
        sign_assertion(line, f"AssertionError: sums are wrong\nassert {value} == 5") for value in (4, 6)
    )
    assert first_signature.key != other_signature.key


def test_truncated_length_does_not_affect_the_fingerprint() -> None:
    template = "AssertionError: 'from /tmp/{}' != 'x[{} chars]'"
    assert sign_assertion("self.assertEqual(a, b)", template.format("a1", 20)).key == (
        sign_assertion("self.assertEqual(a, b)", template.format("other/b2", 31)).key
    )


def test_last_line_of_a_with_block_does_not_affect_the_fingerprint() -> None:
    message = "Failed: DID NOT RAISE <class 'ValueError'>"
    assert sign_assertion("with pytest.raises(ValueError):", message).key == sign_assertion("parse('x')", message).key


@pytest.mark.parametrize(
    ("first_message", "other_message"),
    [
        ("UnboundLocalError: local variable 'a' referenced before assignment",
         "UnboundLocalError: cannot access local variable 'a' where it is not associated with a value"),
        ("TypeError: add() missing 1 required positional argument: 'x'",
         "TypeError: Cart.add() missing 1 required positional argument: 'x'"),
        ("AttributeError: module 'a' has no attribute 'b'",
         "AttributeError: module 'a' has no attribute 'b'. Did you mean: 'c'?"),
        ("AttributeError: can't set attribute 'a'", "AttributeError: property 'a' of 'Cart' object has no setter"),
        ("RecursionError: maximum recursion depth exceeded",
         "RecursionError: maximum recursion depth exceeded while calling a Python object"),
        ("ImportError: cannot import name 'a' from 'b' (/x/b.py)",
         "ImportError: cannot import name 'a' from 'b' (/y/b.py)"),
        ("asyncio.exceptions.TimeoutError", "TimeoutError"),
        ("Failed: DID NOT RAISE <class 'shop.Refused'>", "Failed: DID NOT RAISE Refused"),
        ("TypeError: Cannot read property 'a' of undefined",
         "TypeError: Cannot read properties of undefined (reading 'a')"),
        ("re.error: missing ) at position 3", "re.PatternError: missing ) at position 3"),
        ("TypeError: Can't instantiate abstract class A with abstract methods f, g",
         "TypeError: Can't instantiate abstract class A without an implementation for abstract methods 'f', 'g'"),
        ("AttributeError: unreadable attribute 'a'", "AttributeError: property 'a' of 'Cart' object has no getter"),
        ("TypeError: string indices must be integers", "TypeError: string indices must be integers, not 'str'"),
        ("TypeError: descriptor 'f' of 'object' object needs an argument",
         "TypeError: unbound method object.f() needs an argument"),
        ("TypeError: %d format: a number is required, not str",
         "TypeError: %d format: a real number is required, not str"),
        ("TypeError: object NoneType can't be used in 'await' expression",
         "TypeError: 'NoneType' object can't be awaited"),
        ("TypeError: argument of type 'NoneType' is not iterable",
         "TypeError: argument of type 'NoneType' is not a container or iterable"),
        ("TypeError: super(type, obj): obj must be an instance or subtype of type",
         "TypeError: super(type, obj): obj (instance of A) is not an instance or subtype of type (B)."),
        ("TypeError: non-default argument 'b' follows default argument",
         "TypeError: non-default argument 'b' follows default argument 'a'"),
        ("TypeError: f() argument after * must be an iterable, not int",
         "TypeError: a.b.f() argument after * must be an iterable, not int"),
        ("ValueError: hour must be in 0..23", "ValueError: hour must be in 0..23, not 24"),
        ("ValueError: day is out of range for month",
         "ValueError: day 30 must be in range 1..29 for month 2 in year 2024"),
        ("ValueError: math domain error", "ValueError: expected a nonnegative input, got -1.0"),
        ("ZeroDivisionError: integer division or modulo by zero", "ZeroDivisionError: division by zero"),
        ("ZeroDivisionError: 0.0 cannot be raised to a negative power", "ZeroDivisionError: zero to a negative power"),
        ("argparse.ArgumentError: invalid choice: 'x' (choose from 'a', 'b')",
         "argparse.ArgumentError: invalid choice: 'x' (choose from a, b)"),
        ("AttributeError: module 'random' has no attribute 'x'",
         "AttributeError: module 'random' has no attribute 'x' (consider renaming '/x/random.py')"),
        ("UnicodeEncodeError: 'ascii' codec can't encode character '\\xc6' in position 0: ordinal not in range(128)",
         "UnicodeEncodeError: 'ascii' codec can't encode characters in position 3-4: ordinal not in range(128)"),
        ("SyntaxError: Unexpected token } in JSON at position 5",
         "SyntaxError: Expected ',' or '}' after property value in JSON at position 5 (line 1 column 6)"),
    ],
)  # fmt: skip
def test_wordings_of_different_versions_have_the_same_fingerprint(first_message: str, other_message: str) -> None:
    test = "test/a.test.js::parses" if "JSON" in first_message else "tests/test_shop.py::test_total"
    assert sign_failure(first_message, test=test).key == sign_failure(other_message, test=test).key


@pytest.mark.parametrize(
    ("first_message", "other_message"),
    [
        ("TypeError: Can't instantiate abstract class A with abstract method f",
         "TypeError: Can't instantiate abstract class A without an implementation for abstract method 'g'"),
        ("AttributeError: can't set attribute 'a'", "AttributeError: property 'b' of 'Cart' object has no setter"),
    ],
)  # fmt: skip
def test_different_names_in_version_wordings_differ(first_message: str, other_message: str) -> None:
    assert sign_failure(first_message).key != sign_failure(other_message).key


def test_attribute_that_python_3_9_omits_is_read_from_the_line() -> None:
    detail = "src/cart.py:3: in __init__\n    self.{} = 3\nE   {}"
    old, old_other, new = (
        sign_failure(message, detail.format(name, message)).key
        for name, message in (
            ("a", "AttributeError: can't set attribute"),
            ("b", "AttributeError: can't set attribute"),
            ("a", "AttributeError: property 'a' of 'Cart' object has no setter"),
        )
    )
    assert old == new != old_other


@pytest.mark.parametrize(
    "folder",
    ["/tmp/x1", "/data/pytest-of-me/pytest-0/test_a0", "/data/tmpk3_x9aa1", f"{ROOT}/out/tmpabcdefgh"],
)
def test_temporary_directory_does_not_affect_the_fingerprint(folder: str) -> None:
    assert sign_failure(f"OSError: no file '{folder}/a.db'").message == "no file '<tmp>'"


def test_differing_items_of_a_truncated_mapping_count() -> None:
    message = "AssertionError: assert {'a': 1, ...} == {'a': 2, ...}"
    detail = (
        "tests/test_a.py:3: in test_total\n    assert f() == WANTED\nE   {}\nE     \nE     Differing items:\nE     {}"
    )
    first_key, other_key = (
        sign_failure(message, detail.format(message, difference)).key
        for difference in ("{'a': 1} != {'a': 2}", "{'b': 'x'} != {'b': 'y'}")
    )
    assert first_key != other_key


def test_infinite_mutual_recursion_has_one_fingerprint_at_any_depth() -> None:
    message = "RecursionError: maximum recursion depth exceeded"
    ping, pong = "src/a.py:3: in ping\n    pong()\n", "src/a.py:9: in pong\n    ping()\n"
    full = f"E   {message}"
    assert (
        sign_failure(message, (ping + pong) * 3 + full).key
        == sign_failure(message, (ping + pong) * 3 + ping + full).key
    )


def test_family_omits_names_of_the_repo_but_keeps_those_of_python() -> None:
    template = "AttributeError: '{}' object has no attribute '{}'"
    assert (
        sign_failure(template.format("Cart", "total")).family == sign_failure(template.format("Ledger", "sum")).family
    )
    assert (
        sign_failure(template.format("NoneType", "total")).family
        != sign_failure(template.format("Cart", "total")).family
    )
    assert sign_failure(template.format("Cart", "total")).key != sign_failure(template.format("Cart", "sum")).key


def test_exception_group_is_read_through_its_margin() -> None:
    detail = (
        "  + Exception Group Traceback (most recent call last):\n"
        f'  |   File "{ROOT}/tests/test_a.py", line 3, in test_total\n  |     go()\n'
        "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n"
        f'    |   File "{ROOT}/src/a.py", line 3, in go\n    |     raise ValueError("x")\n    | ValueError: x\n'
    )
    assert sign_failure("ExceptionGroup: some (1 sub-exception)", detail).frame == "src/a.py:go"
