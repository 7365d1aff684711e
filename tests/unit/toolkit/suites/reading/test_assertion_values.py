from __future__ import annotations

import pytest

from redstart.toolkit.suites.reading.assertion_values import NOTHING_RAISED, ComparedValues, parse_comparison

NONE = ComparedValues(None, None)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("assert 3 == 4\n +  where 3 = add(1, 2)", ComparedValues("3", "4")),
        ("AssertionError: assert 'a == b' == 'c'\n  \n  - c\n  + a == b", ComparedValues("'a == b'", "'c'")),
        ("AssertionError: the sum is wrong\n  and more\nassert 3 == 4", ComparedValues("3", "4")),
        ("assert 'it\\'s' == \"it's\"", ComparedValues("'it\\'s'", '"it\'s"')),
        (
            "assert {'a': (1, [2])} == {'a': (1, [3])}\n  At index 0",
            ComparedValues("{'a': (1, [2])}", "{'a': (1, [3])}"),
        ),
        ("assert (1, 2) == (1, 3)", ComparedValues("(1, 2)", "(1, 3)")),
        ("assert 0.1 == 0.3 ± 3.0e-07", ComparedValues("0.1", "0.3 ± 3.0e-07")),
        ("assert None is True", ComparedValues("None", "True")),
        ("assert [1, (2...] == [3]", ComparedValues("[1, (2...]", "[3]")),
        ("assert (1 == 2 or 3 == 4)", NONE),
        ("assert (1 == 2 and [])", NONE),
        ("assert not 1 == 1", NONE),
        ("assert 1 in [2]", NONE),
        ("assert False\n +  where False = all([])", NONE),
        ("AssertionError: 1 != 2", ComparedValues("1", "2")),
        ("AssertionError: 'x : y' != 'z' : a note != nothing", NONE),
        ("AssertionError: 'x : y' != 'z' : a note", ComparedValues("'x : y'", "'z'")),
        ("AssertionError: Lists differ: [1] != [2]\n\nFirst differing element 0:\n1\n2", ComparedValues("[1]", "[2]")),
        ("AssertionError: False is not true : hint", ComparedValues("False", "True")),
        ("AssertionError: 3 is not None", ComparedValues("3", "None")),
        ("AssertionError: 1 not found in [2]", NONE),
        ("AssertionError: ValueError not raised by f", ComparedValues(NOTHING_RAISED, "ValueError")),
        ("Failed: DID NOT RAISE <class 'pkg.Odd'>", ComparedValues(NOTHING_RAISED, "pkg.Odd")),
        ("Failed: DID NOT RAISE ValueError", ComparedValues(NOTHING_RAISED, "ValueError")),
        (
            "AssertionError: Regex pattern did not match.\n  Expected regex: 'abc'\n  Actual message: 'x == y'",
            ComparedValues("'x == y'", "'abc'"),
        ),
        (
            "AssertionError: Regex pattern did not match.\n Regex: 'abc'\n Input: 'xyz'",
            ComparedValues("'xyz'", "'abc'"),
        ),
        ("KeyError: 'a'", NONE),
        ("", NONE),
    ],
)
def test_both_sides_are_extracted_from_the_message(message: str, expected: ComparedValues) -> None:
    assert parse_comparison(message) == expected
