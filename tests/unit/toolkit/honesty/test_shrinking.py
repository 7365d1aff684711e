from __future__ import annotations

from collections.abc import Iterable

import pytest

from redstart.toolkit.honesty.verdict.hunk_groups import group_hunks
from redstart.toolkit.honesty.verdict.hunks import Files, compose, has_same_meaning, has_valid_syntax, split_hunks
from redstart.toolkit.honesty.verdict.shrink import ShrinkBudget, ShrinkResult, shrink

BEFORE: dict[str, bytes | None] = {
    "a.py": b"".join(b"a%d = %d\n" % (number, number) for number in range(20)),
    "b.py": b"import os\n\n\ndef keep():\n    return os\n",
}


def change_lines(*lines: int) -> dict[str, bytes | None]:
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


async def run_shrink(
    after: dict[str, bytes | None], oracle: Oracle, budget: ShrinkBudget | None = None
) -> ShrinkResult:
    hunks = split_hunks(BEFORE, after)
    return await shrink(BEFORE, hunks, oracle, budget=budget or ShrinkBudget(200, 1e9), clock=lambda: 0.0)


def test_each_hunk_can_be_applied_alone() -> None:
    hunks = split_hunks(BEFORE, change_lines(2, 9, 15))
    assert len(hunks) == 3
    assert compose(BEFORE, hunks, {1}) == {"a.py": change_lines(9)["a.py"]}
    assert compose(BEFORE, hunks, {2, 0}) == {"a.py": change_lines(2, 15)["a.py"]}


def test_added_and_deleted_files_are_one_hunk_each() -> None:
    after = {"a.py": BEFORE["a.py"], "b.py": None, "c.py": b"x = 1\ny = 2\n"}
    hunks = split_hunks(BEFORE, after)
    assert [(hunk.path, hunk.is_whole_file) for hunk in hunks] == [("b.py", True), ("c.py", True)]
    assert compose(BEFORE, hunks, {0}) == {"b.py": None, "c.py": None}
    assert compose(BEFORE, hunks, {1}) == {"b.py": BEFORE["b.py"], "c.py": b"x = 1\ny = 2\n"}


def test_function_added_beside_a_changed_line_is_a_separate_hunk() -> None:
    before = {"a.py": b"def one():\n    return 2\n"}
    after = {"a.py": b"def one():\n    return 1\n\n\ndef two():\n    return 7\n\n    # done\n"}
    hunks = split_hunks(before, after)
    assert len(hunks) == 2
    assert compose(before, hunks, {0}) == {"a.py": b"def one():\n    return 1\n"}
    assert compose(before, hunks, {0, 1}) == after


@pytest.mark.parametrize("needed", [{0}, {3}, {7}, {1, 6}, {0, 3, 7}, set(range(8))])
async def test_only_needed_hunks_are_kept(needed: set[int]) -> None:
    oracle = Oracle(needed)
    result = await run_shrink(change_lines(1, 3, 5, 7, 9, 11, 13, 15), oracle)
    assert result == ShrinkResult(frozenset(needed), len(oracle.asked), is_complete=True)
    assert len(set(oracle.asked)) == len(oracle.asked), "a part was asked for twice"
    assert frozenset(range(8)) not in oracle.asked, "the whole is known to be green"


async def test_finding_one_needed_hunk_of_nine_takes_few_runs() -> None:
    for needed in range(9):
        assert (await run_shrink(change_lines(1, 3, 5, 7, 9, 11, 13, 15, 17), Oracle({needed}))).runs <= 8


async def test_layout_changes_are_dropped_in_one_run() -> None:
    text = BEFORE["a.py"] or b""
    after = {**BEFORE, "a.py": text.replace(b"a3 = 3\n", b"a3 = 33\n").replace(b"a9 = 9\n", b"# nine\na9 = 9\n")}
    oracle = Oracle({0})
    assert await run_shrink(after, oracle) == ShrinkResult(frozenset({0}), 1, is_complete=True)


async def test_unused_helpers_are_dropped_together() -> None:
    text = (change_lines(4)["a.py"] or b"") + b"\n\ndef helper():\n    return 1\n"
    after = {"a.py": text, "b.py": b"import sys\n" + (BEFORE["b.py"] or b"")}
    oracle = Oracle({0})
    assert await run_shrink(after, oracle) == ShrinkResult(frozenset({0}), 1, is_complete=True)


async def test_candidate_with_a_syntax_error_costs_no_run() -> None:
    before: dict[str, bytes | None] = {"a.py": b"x = 1\n5\ny = 2\n"}
    hunks, oracle = split_hunks(before, {"a.py": b"x = [\n5\n]\n"}), Oracle({0, 1})
    result = await shrink(before, hunks, oracle, budget=ShrinkBudget(), clock=lambda: 0.0)
    assert result == ShrinkResult(frozenset({0, 1}), 0, is_complete=True)


async def test_candidate_that_is_not_acceptable_costs_no_run_and_is_not_kept() -> None:
    hunks, oracle = split_hunks(BEFORE, change_lines(1, 5, 9)), Oracle({0})

    def keeps_last_hunk(files: Files) -> bool:
        return b"a9 = -10" in (files["a.py"] or b"")

    result = await shrink(BEFORE, hunks, oracle, clock=lambda: 0.0, is_acceptable=keeps_last_hunk)
    assert result.needed_hunks == {0, 2}
    assert all(2 in part for part in oracle.asked)
    assert result.runs == len(oracle.asked)


def test_file_with_an_earlier_syntax_error_need_not_parse() -> None:
    assert not has_valid_syntax({"a.py": b"x = 1\n"}, {"a.py": b"x = (\n"})
    assert not has_valid_syntax({}, {"a.py": b"x = (\n"})
    assert has_valid_syntax({"a.py": b"x = (\n"}, {"a.py": b"y = (\n"})
    assert has_valid_syntax({"a.txt": b"x"}, {"a.txt": b"x = ("})


async def test_run_budget_ends_with_the_smallest_passing_patch_so_far() -> None:
    oracle = Oracle({0, 7})
    result = await run_shrink(change_lines(1, 3, 5, 7, 9, 11, 13, 15), oracle, ShrinkBudget(runs=5, seconds=1e9))
    assert (result.runs, result.is_complete) == (5, False)
    assert {0, 7} <= result.needed_hunks


async def test_time_budget_is_respected() -> None:
    hunks, oracle, clock = split_hunks(BEFORE, change_lines(1, 5, 9)), Oracle({1}), iter(range(0, 1000, 10))
    result = await shrink(
        BEFORE, hunks, oracle, budget=ShrinkBudget(runs=99, seconds=15), clock=lambda: float(next(clock))
    )
    assert (result.runs, result.is_complete) == (1, False)


async def test_error_in_a_run_is_not_swallowed() -> None:
    async def raise_error(kept_hunks: frozenset[int]) -> bool:
        raise OSError(str(kept_hunks))

    with pytest.raises(OSError, match="frozenset"):
        await shrink(BEFORE, split_hunks(BEFORE, change_lines(1, 5)), raise_error, clock=lambda: 0.0)


def test_layout_change_keeps_the_meaning() -> None:
    old: dict[str, bytes | None] = {"a.py": b"x = 1\n", "t.txt": b"a"}
    assert has_same_meaning(old, {"a.py": b"# one\nx = (1)\n"})
    assert not has_same_meaning(old, {"a.py": b"x = 2\n"})
    assert not has_same_meaning(old, {"t.txt": b"b"})
    assert not has_same_meaning(old, {"new.py": b""})


SHOP = b"""import json


class Cart:
    def total(self, prices):
        result = sum(prices)
        self.seen = True
        if result:
            return result
        return 0

    def save(self, path):
        return self.write(path)

    def load(self, text):
        return json.loads(text)


class AsyncCart:
    async def load(self, text):
        return json.loads(text)


def unrelated(path):
    return path
"""


def group_edits(*edits: tuple[bytes, bytes], **other_files: bytes) -> list[list[bytes]]:
    """Return the added text of the hunks of each group, after these replacements in a shop."""
    after = SHOP
    for old, new in edits:
        assert old in after
        after = after.replace(old, new)
    paths = {name.replace("_", "."): text for name, text in other_files.items()}
    before: dict[str, bytes | None] = {"shop.py": SHOP, **dict.fromkeys(paths)}
    hunks = split_hunks(before, {"shop.py": after, **paths})
    return [
        [b"".join(hunks[number].lines or ()).strip() for number in sorted(group)]
        for group in group_hunks(before, hunks)
    ]


GUARD = (b"    if result:\n", b"    if result > 0:\n")
ROUND = (b"sum(prices)", b"round(sum(prices))")
OTHER = (b"    return path\n", b"    return str(path)\n")


def test_hunks_of_one_function_belong_together_and_those_of_others_do_not():
    assert group_edits(GUARD, ROUND, OTHER) == [
        [b"result = round(sum(prices))", b"if result > 0:"],
        [b"return str(path)"],
    ]


def test_line_added_at_the_end_of_a_function_belongs_to_it():
    note = (b"        return 0\n", b"        return 0\n        # never reached\n")
    assert group_edits(ROUND, note) == [[b"result = round(sum(prices))", b"# never reached"]]


def test_call_of_a_changed_function_belongs_to_it():
    call = (b"self.write(path)", b"self.write(path, self.total())")
    assert group_edits(ROUND, call, OTHER) == [
        [b"result = round(sum(prices))", b"return self.write(path, self.total())"],
        [b"return str(path)"],
    ]


def test_same_change_in_a_twin_belongs_together_but_short_lines_are_no_sign():
    assert group_edits((b"json.loads(text)", b'json.loads(text or "{}")')) == [
        [b'return json.loads(text or "{}")', b'return json.loads(text or "{}")']
    ]
    short = [(b"self.write(path)", b"1"), (b"return path", b"return 1")]
    assert group_edits(*short) == [[b"return 1"], [b"return 1"]]


def test_imports_new_files_and_docs_are_on_their_own():
    sizes = (b"import json\n", b"import json\n\nSIZES = (1, 2)\n")
    groups = group_edits(ROUND, sizes, new_py=b"from shop import total\n", notes_md=b"- `total` rounds\n")
    assert sorted(map(len, groups)) == [1, 1, 1, 1]


async def test_group_is_kept_or_left_out_as_one():
    hunks, oracle = split_hunks(BEFORE, change_lines(1, 5, 9, 13)), Oracle({1})
    groups = [frozenset({0, 1}), frozenset({2, 3})]
    result = await shrink(BEFORE, hunks, oracle, clock=lambda: 0.0, groups=groups)
    assert (result.needed_hunks, result.is_complete) == (frozenset({0, 1}), True)
    assert all(part in (frozenset({0, 1}), frozenset({2, 3})) for part in oracle.asked)
