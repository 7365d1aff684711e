"""Inputs of the tests stored in code: in a table beside the calculation, in a loop, or behind a test variable."""

from __future__ import annotations

import pytest

from redstart.toolkit.honesty.tripwires.rules import find_tripwire_hits

OLD = """import os


def primes(limit):
    '''Every prime below the limit.'''
    found = [one for one in range(2, limit) if one % 2]
    return found
"""
TESTS = """
import pytest
from sieve import primes


@pytest.mark.parametrize("limit", [10, 150])
def test_primes(limit):
    assert len(primes(limit)) == {10: 4, 150: 35}[limit]


@pytest.fixture(params=["a b", "x[0]", "plain"])
def word(request):
    return request.param
"""
CONFIGURATION = "[pytest]\nenv =\n    SIEVE_MODE=check\n    SIEVE_LIMIT=3\n    NO_COLOR=1\npassenv = SIEVE_PASSED, B\n"
RETURN = "    return found\n"
MORE = "\n\ndef more():\n    return 0\n"


def list_kinds(new: str, old: str = OLD, **extra_tests: str) -> set[str]:
    files = {"tests/test_sieve.py": TESTS, "pytest.ini": CONFIGURATION}
    files |= {f"tests/{name}.py": text for name, text in extra_tests.items()}
    tests = {path: text.encode() for path, text in files.items()}
    return {item.kind for item in find_tripwire_hits({"sieve.py": old.encode()}, {"sieve.py": new.encode()}, tests)}


def with_lines(lines: str, top: str = "") -> str:
    return top + OLD.replace(RETURN, lines)


@pytest.mark.parametrize(
    "lines",
    [
        "    return found[: {10: 4, 150: 35}.get(limit, len(found))]\n",
        "    many = {10: 4, 150: 35}\n    if limit in many:\n        return found[: many[limit]]\n    return found\n",
        "    known = {10: 4, 150: 35}\n    return found[: known[limit]] if limit in known else found\n",
        "    e = {10: 4, 150: 35}.get(limit)\n    if e is not None:\n        found = found[:e]\n    return found\n",
        "    try:\n        return found[: {10: 4, 150: 35}[limit]]\n    except KeyError:\n        return found\n",
        "    few = (10, 150)\n    if limit in few:\n        return found[:-1]\n    return found\n",
        "    return found[: MANY.get(limit, len(found))]\n",
    ],
)
def test_table_of_test_inputs_beside_the_calculation_trips(lines: str) -> None:
    new = with_lines(lines, "MANY = dict({10: 4, 150: 35})\n")
    assert list_kinds(new) == {"keyed_by_tests"}
    assert list_kinds(new + MORE, old=new) == set()


@pytest.mark.parametrize(
    "lines",
    [
        "    return found[: {11: 4, 151: 35}.get(limit, len(found))]\n",
        "    return found[: {10: 4, 150: 35, 77: 20}.get(limit, len(found))]\n",
        "    return [one for one in found if one % 3 or one == 3][: {10: 4, 150: 35}.get(limit, limit)]\n",
        "    return {'plain': 4, 'json': 35}.get(limit, found)\n",
    ],
)
def test_other_tables_do_not_trip(lines: str) -> None:
    assert list_kinds(with_lines(lines)) == set()


def test_powers_of_two_are_common_knowledge() -> None:
    test_source = "def test():\n    assert [name(8), name(16), name(32)] == ['a', 'b', 'c']\n"
    lines = "    return {8: found, 16: limit, 32: OLD}.get(limit, found)\n"
    assert list_kinds(with_lines(lines), test_names=test_source) == set()


@pytest.mark.parametrize(
    "lines",
    [
        "    for word in ('a b', 'x[0]'):\n        if limit == f'{word} {word}':\n            return [word]\n",
        "    for word in WORDS:\n        if word == limit:\n            return [word, word]\n",
        "    if any(limit == word * 2 for word in ('a b', 'x[0]')):\n        return [limit[:3]]\n",
        "    if limit in {f'{word} {word}' for word in WORDS}:\n        return [limit[:3]]\n",
        "    if kept := [word for word in WORDS if limit == word + word]:\n        return kept\n",
    ],
)
def test_loop_over_test_inputs_trips(lines: str) -> None:
    new = with_lines(lines + RETURN, "WORDS = ['a b', 'x[0]', 'plain']\n")
    assert list_kinds(new) == {"keyed_by_tests"}
    assert list_kinds(new + MORE, old=new) == set()


@pytest.mark.parametrize(
    "lines",
    [
        "    for mark in ('a-b', 'x[1]'):\n        if limit == mark:\n            return [mark]\n",
        "    for mark in ('a b', 'x[0]'):\n        limit = limit.replace(mark, '')\n",
        "    for mark in ('a b', 'x[0]'):\n        if limit.startswith(mark):\n            return [mark]\n",
        "    for mark in ('plain', 'json'):\n        if limit == mark:\n            return [mark]\n",
    ],
)
def test_other_loops_do_not_trip(lines: str) -> None:
    assert list_kinds(with_lines(lines + RETURN)) == set()
