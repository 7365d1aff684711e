from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.toolkit.honesty.verdict.hunks import compose, hunks_of, parses, says_the_same
from redstart.toolkit.honesty.verdict.shrink import ShrinkBudget, ShrinkResult, shrink

BEFORE: dict[str, bytes | None] = {
    "a.py": b"".join(b"a%d = %d\n" % (number, number) for number in range(20)),
    "b.py": b"import os\n\n\ndef keep():\n    return os\n",
}


def changed(*lines: int) -> dict[str, bytes | None]:
    """Return the files with these lines of `a.py` altered."""
    text = (BEFORE["a.py"] or b"").splitlines(keepends=True)
    for line in lines:
        text[line] = b"a%d = -%d\n" % (line, line + 1)
    return {**BEFORE, "a.py": b"".join(text)}


class Oracle:
    """Green if all the needed hunks are present; it records every query."""

    def __init__(self, needed: Iterable[int]) -> None:
        self.needed, self.asked = frozenset(needed), list[frozenset[int]]()

    async def __call__(self, kept: frozenset[int]) -> bool:
        self.asked.append(kept)
        return self.needed <= kept


def shrunk(after: dict[str, bytes | None], oracle: Oracle, budget: ShrinkBudget | None = None) -> ShrinkResult:
    hunks = hunks_of(BEFORE, after)
    return asyncio.run(shrink(BEFORE, hunks, oracle, budget=budget or ShrinkBudget(200, 1e9), clock=lambda: 0.0))


texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"def f():\n", b"    c\n", b"d"]), max_size=9).map(b"".join)


@settings(max_examples=300)
@given(st.one_of(st.none(), texts), st.one_of(st.none(), texts))
def test_all_hunks_make_the_new_file_and_none_the_old(old: bytes | None, new: bytes | None) -> None:
    before, after = {"x": old}, {"x": new}
    hunks = hunks_of(before, after)
    assert compose(before, hunks, range(len(hunks))) == ({"x": new} if old != new else {})
    assert compose(before, hunks, ()) == ({"x": old} if old != new else {})


def test_each_hunk_applies_alone() -> None:
    hunks = hunks_of(BEFORE, changed(2, 9, 15))
    assert len(hunks) == 3
    assert compose(BEFORE, hunks, {1}) == {"a.py": changed(9)["a.py"]}
    assert compose(BEFORE, hunks, {2, 0}) == {"a.py": changed(2, 15)["a.py"]}


def test_a_new_file_and_a_gone_one_are_a_hunk_each() -> None:
    after = {"a.py": BEFORE["a.py"], "b.py": None, "c.py": b"x = 1\ny = 2\n"}
    hunks = hunks_of(BEFORE, after)
    assert [(hunk.path, hunk.whole) for hunk in hunks] == [("b.py", True), ("c.py", True)]
    assert compose(BEFORE, hunks, {0}) == {"b.py": None, "c.py": None}
    assert compose(BEFORE, hunks, {1}) == {"b.py": BEFORE["b.py"], "c.py": b"x = 1\ny = 2\n"}


def test_a_function_added_beside_a_changed_line_is_a_hunk_of_its_own() -> None:
    before = {"a.py": b"def one():\n    return 2\n"}
    after = {"a.py": b"def one():\n    return 1\n\n\ndef two():\n    return 7\n\n    # done\n"}
    hunks = hunks_of(before, after)
    assert len(hunks) == 2
    assert compose(before, hunks, {0}) == {"a.py": b"def one():\n    return 1\n"}
    assert compose(before, hunks, {0, 1}) == after


@pytest.mark.parametrize("needed", [{0}, {3}, {7}, {1, 6}, {0, 3, 7}, set(range(8))])
def test_what_is_needed_is_kept_and_nothing_else(needed: set[int]) -> None:
    oracle = Oracle(needed)
    found = shrunk(changed(1, 3, 5, 7, 9, 11, 13, 15), oracle)
    assert found == ShrinkResult(frozenset(needed), len(oracle.asked), complete=True)
    assert len(set(oracle.asked)) == len(oracle.asked), "a part was asked for twice"
    assert frozenset(range(8)) not in oracle.asked, "the whole is known to be green"


def test_one_needed_hunk_of_nine_takes_few_runs() -> None:
    for needed in range(9):
        assert shrunk(changed(1, 3, 5, 7, 9, 11, 13, 15, 17), Oracle({needed})).runs <= 8


def test_layout_is_left_out_at_once() -> None:
    text = BEFORE["a.py"] or b""
    after = {**BEFORE, "a.py": text.replace(b"a3 = 3\n", b"a3 = 33\n").replace(b"a9 = 9\n", b"# nine\na9 = 9\n")}
    oracle = Oracle({0})
    assert shrunk(after, oracle) == ShrinkResult(frozenset({0}), 1, complete=True)


def test_helpers_that_nothing_uses_are_left_out_together() -> None:
    text = (changed(4)["a.py"] or b"") + b"\n\ndef helper():\n    return 1\n"
    after = {"a.py": text, "b.py": b"import sys\n" + (BEFORE["b.py"] or b"")}
    oracle = Oracle({0})
    assert shrunk(after, oracle) == ShrinkResult(frozenset({0}), 1, complete=True)


def test_a_part_that_cannot_be_read_costs_no_run() -> None:
    before: dict[str, bytes | None] = {"a.py": b"x = 1\n5\ny = 2\n"}
    hunks, oracle = hunks_of(before, {"a.py": b"x = [\n5\n]\n"}), Oracle({0, 1})
    found = asyncio.run(shrink(before, hunks, oracle, budget=ShrinkBudget(), clock=lambda: 0.0))
    assert found == ShrinkResult(frozenset({0, 1}), 0, complete=True)


def test_a_file_that_could_not_be_read_before_need_not_be_readable_after() -> None:
    assert not parses({"a.py": b"x = 1\n"}, {"a.py": b"x = (\n"})
    assert not parses({}, {"a.py": b"x = (\n"})
    assert parses({"a.py": b"x = (\n"}, {"a.py": b"y = (\n"})
    assert parses({"a.txt": b"x"}, {"a.txt": b"x = ("})


def test_a_budget_of_runs_ends_with_the_smallest_green_so_far() -> None:
    oracle = Oracle({0, 7})
    found = shrunk(changed(1, 3, 5, 7, 9, 11, 13, 15), oracle, ShrinkBudget(runs=5, seconds=1e9))
    assert (found.runs, found.complete) == (5, False)
    assert {0, 7} <= found.kept


def test_a_budget_of_seconds_is_kept() -> None:
    hunks, oracle, clock = hunks_of(BEFORE, changed(1, 5, 9)), Oracle({1}), iter(range(0, 1000, 10))
    found = asyncio.run(
        shrink(BEFORE, hunks, oracle, budget=ShrinkBudget(runs=99, seconds=15), clock=lambda: float(next(clock)))
    )
    assert (found.runs, found.complete) == (1, False)


def test_a_trouble_of_the_runs_is_not_swallowed() -> None:
    async def broken(kept: frozenset[int]) -> bool:
        raise OSError(str(kept))

    with pytest.raises(OSError, match="frozenset"):
        asyncio.run(shrink(BEFORE, hunks_of(BEFORE, changed(1, 5)), broken, clock=lambda: 0.0))


def test_layout_says_the_same() -> None:
    old: dict[str, bytes | None] = {"a.py": b"x = 1\n", "t.txt": b"a"}
    assert says_the_same(old, {"a.py": b"# one\nx = (1)\n"})
    assert not says_the_same(old, {"a.py": b"x = 2\n"})
    assert not says_the_same(old, {"t.txt": b"b"})
    assert not says_the_same(old, {"new.py": b""})
