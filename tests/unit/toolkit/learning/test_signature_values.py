"""The values that a test compared are part of the bug's identity if the test itself names the expected value."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign

ROOT = "/work/repo"


def signed(message: str, detail: str = "", test: str = "tests/test_shop.py::test_total") -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: path.startswith("src/"), roots=[ROOT])


def found_wrong(line: str, said: str) -> Signature:
    """Sign a failure with pytest's message at `line` of a test."""
    return signed(
        said, f"    def test_total():\n>       {line}\nE       {said}\n\ntests/test_shop.py:3: AssertionError\n"
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
def test_the_style_of_the_traceback_makes_no_difference(style: str) -> None:
    said = "AssertionError: assert 4 == 3" if style == "native" else "assert 4 == 3"
    assert signed(said, STYLES[style]) == Signature(
        exception="AssertionError",
        message="assert 4 == 3",
        frame="tests/test_shop.py::test_total",
        kind="assert <n> == <n>",
        at="assert cart.total() == 3",
    )


def test_another_value_where_the_test_names_what_it_wants_is_another_bug_of_one_family() -> None:
    one = found_wrong("assert total() == 3", "assert 4 == 3")
    other = found_wrong("assert total() == 3", "assert 0 == 3")
    assert one.key != other.key
    assert one.family == other.family


@pytest.mark.parametrize(
    ("line", "one", "other"),
    [
        ("assert decoded == sent", "assert 17 == 42", "assert 9 == 8"),
        ("assert decoded == sent", "assert [1, 2, 3] == [3, 2]", "assert [7] == [8, 9]"),
        ("assert took < 0.5", "assert 0.713 < 0.5", "assert 0.622 < 0.5"),
        ("assert names() == {'a'}", "assert {'b', 'c'} == {'a'}", "assert {'c', 'b'} == {'a'}"),
        ("assert names() == {'a'}", "assert {'b', 'c', ...} == {'a'}", "assert {'x', 'b', ...} == {'a'}"),
        ("assert made() == 'x'", "assert <A at 0x7f01> == 'x'", "assert <A at 0x55aa> == 'x'"),
    ],
)
def test_values_of_chance_make_no_difference(line: str, one: str, other: str) -> None:
    assert found_wrong(line, one).key == found_wrong(line, other).key


def test_another_line_of_the_same_test_is_another_bug() -> None:
    assert (
        found_wrong("assert a() is None", "assert 1 is None").key
        != found_wrong("assert b() is None", "assert 1 is None").key
    )


def test_the_line_of_the_test_does_not_matter_where_the_source_is_to_blame() -> None:
    below = "src/cart.py:3: in total\n    return None.x\nE   AttributeError: 'NoneType' object has no attribute 'x'"
    said = "AttributeError: 'NoneType' object has no attribute 'x'"
    one = signed(said, f"tests/test_shop.py:3: in test_total\n    total()\n{below}")
    other = signed(
        said, f"tests/test_shop.py:9: in test_other\n    x = total(2)\n{below}", "tests/test_shop.py::test_other"
    )
    assert one.key == other.key


def test_the_head_of_a_test_that_is_wrapped_makes_no_difference() -> None:
    inner = "tests/test_a.py:9: in test_total\n    assert f(x) == 3\nE   assert 4 == 3"
    heads = ("@given(st.integers())", "def test_total(x):", "async def test_total(x):")
    assert (
        len({signed("assert 4 == 3", f"tests/test_a.py:5: in test_total\n    {head}\n{inner}").key for head in heads})
        == 1
    )


def test_what_was_cut_short_is_told_apart_by_its_difference() -> None:
    said = "AssertionError: assert [1, 2, ... 8, 9] == [1, 2, ... 8, 9]"
    detail = "tests/test_a.py:{}: in test_total\n    assert f() == WANTED\nE   {}\nE     \nE     At index 3 diff: '{}'"
    one, same, other = (
        signed(said, detail.format(line, said, value)).key for line, value in ((3, "a"), (9, "a"), (3, "b"))
    )
    assert one == same != other


def test_what_an_assertion_was_about_is_told_below_it() -> None:
    line = "assert ok(one)"
    assert found_wrong(line, "assert False\n +  where False = ok('a b')").key != (
        found_wrong(line, "assert False\n +  where False = ok('c d')").key
    )


def test_what_is_asserted_counts_below_what_the_test_says_about_it() -> None:
    line = "assert f(2) == 5, 'sums are wrong'"
    one, other = (found_wrong(line, f"AssertionError: sums are wrong\nassert {got} == 5") for got in (4, 6))
    assert one.key != other.key


def test_how_much_was_cut_from_a_value_makes_no_difference() -> None:
    said = "AssertionError: 'from /tmp/{}' != 'x[{} chars]'"
    assert found_wrong("self.assertEqual(a, b)", said.format("a1", 20)).key == (
        found_wrong("self.assertEqual(a, b)", said.format("other/b2", 31)).key
    )


def test_the_line_at_which_a_with_is_left_makes_no_difference() -> None:
    said = "Failed: DID NOT RAISE <class 'ValueError'>"
    assert found_wrong("with pytest.raises(ValueError):", said).key == found_wrong("parse('x')", said).key


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_versions_that_say_it_otherwise_mean_the_same(one: str, other: str) -> None:
    test = "test/a.test.js::parses" if "JSON" in one else "tests/test_shop.py::test_total"
    assert signed(one, test=test).key == signed(other, test=test).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TypeError: Can't instantiate abstract class A with abstract method f",
         "TypeError: Can't instantiate abstract class A without an implementation for abstract method 'g'"),
        ("AttributeError: can't set attribute 'a'", "AttributeError: property 'b' of 'Cart' object has no setter"),
    ],
)  # fmt: skip
def test_what_versions_say_of_something_else_does_not(one: str, other: str) -> None:
    assert signed(one).key != signed(other).key


def test_the_attribute_that_python_3_9_does_not_name_is_read_from_its_line() -> None:
    detail = "src/cart.py:3: in __init__\n    self.{} = 3\nE   {}"
    old, old_other, new = (
        signed(said, detail.format(name, said)).key
        for name, said in (
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
def test_where_temporary_files_lie_makes_no_difference(folder: str) -> None:
    assert signed(f"OSError: no file '{folder}/a.db'").message == "no file '<tmp>'"


def test_items_that_differ_are_told_of_a_mapping_that_was_cut() -> None:
    said = "AssertionError: assert {'a': 1, ...} == {'a': 2, ...}"
    detail = (
        "tests/test_a.py:3: in test_total\n    assert f() == WANTED\nE   {}\nE     \nE     Differing items:\nE     {}"
    )
    one, other = (
        signed(said, detail.format(said, differs)).key
        for differs in ("{'a': 1} != {'a': 2}", "{'b': 'x'} != {'b': 'y'}")
    )
    assert one != other


def test_functions_that_call_each_other_without_end_have_one_name_wherever_the_stack_was_full() -> None:
    said = "RecursionError: maximum recursion depth exceeded"
    ping, pong = "src/a.py:3: in ping\n    pong()\n", "src/a.py:9: in pong\n    ping()\n"
    full = f"E   {said}"
    assert signed(said, (ping + pong) * 3 + full).key == signed(said, (ping + pong) * 3 + ping + full).key


def test_a_family_has_no_name_of_the_repo_but_those_of_python() -> None:
    said = "AttributeError: '{}' object has no attribute '{}'"
    assert signed(said.format("Cart", "total")).family == signed(said.format("Ledger", "sum")).family
    assert signed(said.format("NoneType", "total")).family != signed(said.format("Cart", "total")).family
    assert signed(said.format("Cart", "total")).key != signed(said.format("Cart", "sum")).key


def test_a_group_of_exceptions_is_read_through_its_margin() -> None:
    detail = (
        "  + Exception Group Traceback (most recent call last):\n"
        f'  |   File "{ROOT}/tests/test_a.py", line 3, in test_total\n  |     go()\n'
        "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n"
        f'    |   File "{ROOT}/src/a.py", line 3, in go\n    |     raise ValueError("x")\n    | ValueError: x\n'
    )
    assert signed("ExceptionGroup: some (1 sub-exception)", detail).frame == "src/a.py:go"
