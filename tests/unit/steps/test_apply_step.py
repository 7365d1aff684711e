"""`apply` returns a tree with every edit applied, or the reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from redstart.core.change import ApplyResult, Edit, EditFit, EditKind, EditList, Patch
from redstart.core.run import Attempt, Step
from redstart.steps.apply import MAX_RECORDED_EDITS, MAX_TEST_CHANGES, REJECTS, apply
from redstart.testing.states import make_spec, make_state
from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs

pytestmark = pytest.mark.slow

CODE = b"def f():\n    return 1\n\n\ndef g():\n    return 2\n"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.blobs = MemoryBlobs()
        self.trees = GitTrees(folder, self.blobs)
        self.base = self.trees.write(self.trees.create_empty(), {"pkg/a.py": CODE, "tests/test_a.py": b"assert 1\n"})

    def apply_edits(self, edits: Sequence[Edit], test_change: str = "") -> ApplyResult:
        edits_blob = self.blobs.put(EditList(edits=tuple(edits)).model_dump_json().encode())
        attempt = Attempt(entry=Step.patch, patch=Patch(edits=edits_blob, test_change=test_change))
        run = make_state(spec=make_spec(base=self.base), base=self.base, now=attempt)
        return asyncio.run(apply(run, cast(Any, self)))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    test_bench = Bench(tmp_path / "snapshots")
    yield test_bench
    test_bench.trees.close()


def block(search: str, text: str, path: str = "pkg/a.py", number: int = 1) -> Edit:
    return Edit(kind=EditKind.block, path=path, search=search, text=text, number=number)


def test_apply_returns_the_tree_the_diff_and_the_fit_of_each_edit(bench):
    result = bench.apply_edits([block("    return 1\n", "    return 3\n"), block("return 2\n", "return 4\n", number=2)])
    assert result.ok
    assert result.snapshot is not None
    assert bench.trees.read(result.snapshot, "pkg/a.py") == CODE.replace(b"1", b"3").replace(b"2", b"4")
    assert [(item.kind, item.rung) for item in result.rungs] == [
        (EditKind.block, EditFit.exact),
        (EditKind.block, EditFit.whitespace),
    ]
    assert (result.rung, result.added, result.removed) == (EditFit.whitespace, 2, 2)
    assert b"+    return 3" in bench.blobs.get(result.diff)
    assert result.words == ""


def test_misfitting_edit_blocks_all_edits_and_shows_the_nearest_lines(bench):
    result = bench.apply_edits(
        [block("    return 1\n", "    return 3\n"), block("    return 22\n", "    return 4\n", number=2)]
    )
    assert (result.ok, result.snapshot, result.refused, result.fits) == (False, None, False, (1,))
    assert "edit 2 (pkg/a.py): the lines to change are not in the file" in result.words
    assert "    return 2" in result.words
    assert "these fit: 1." in result.words


def test_syntax_error_prevents_a_snapshot(bench):
    result = bench.apply_edits([block("    return 1\n", "    return (1\n")])
    assert (result.ok, result.snapshot) == (False, None)
    assert "line 2" in result.words


def test_policy_checks_the_tree_whatever_the_edit_form(bench):
    diff = "--- tests/test_a.py\n+++ tests/test_a.py\n@@ -1 +1 @@\n-assert 1\n+assert 2\n"
    result = bench.apply_edits([Edit(kind=EditKind.diff, path="tests/test_a.py", text=diff)])
    assert (result.ok, result.refused) == (False, True)
    assert "it is a test" in result.rejects[0].reason


def test_number_and_length_of_stored_rejections_are_bounded(bench):
    edits = [block("nowhere\n", "x\n", "p" * 5000, number=number) for number in range(1, 90)]
    result = bench.apply_edits(edits)
    assert (len(result.rejects), len(result.rungs)) == (REJECTS, MAX_RECORDED_EDITS)
    assert len(result.model_dump_json()) < 8000


@pytest.mark.parametrize(("count", "is_proposed"), [(MAX_TEST_CHANGES, True), (MAX_TEST_CHANGES + 1, False)])
def test_number_of_test_changes_proposed_to_a_person_is_limited(bench, count, is_proposed):
    edits = [Edit(kind=EditKind.whole, path=f"tests/test_{number}.py", text="assert 1\n") for number in range(count)]
    result = bench.apply_edits(edits, test_change="they contradict the issue")
    assert result.ok is is_proposed
    assert len(result.proposes) == (count if is_proposed else 0)
    assert bool(result.rejects) is not is_proposed
