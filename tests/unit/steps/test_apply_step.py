"""`apply` returns a tree with every edit applied, or the reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from redstart.core.change import ApplyResult, Edit, EditFit, EditKind, EditList, Patch
from redstart.core.run import Attempt, Step
from redstart.steps.apply import PROPOSED, REJECTS, RUNGS, apply
from redstart.testing.states import spec, state
from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs

pytestmark = pytest.mark.slow

CODE = b"def f():\n    return 1\n\n\ndef g():\n    return 2\n"


class Bench:
    def __init__(self, folder: Path) -> None:
        self.blobs = MemoryBlobs()
        self.trees = GitTrees(folder, self.blobs)
        self.base = self.trees.write(self.trees.empty(), {"pkg/a.py": CODE, "tests/test_a.py": b"assert 1\n"})

    def applied(self, edits: Sequence[Edit], test_change: str = "") -> ApplyResult:
        kept = self.blobs.put(EditList(edits=tuple(edits)).model_dump_json().encode())
        now = Attempt(entry=Step.patch, patch=Patch(edits=kept, test_change=test_change))
        run = state(spec=spec(base=self.base), base=self.base, now=now)
        return asyncio.run(apply(run, cast(Any, self)))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "snapshots")
    yield made
    made.trees.close()


def block(search: str, text: str, path: str = "pkg/a.py", number: int = 1) -> Edit:
    return Edit(kind=EditKind.block, path=path, search=search, text=text, number=number)


def test_the_tree_the_diff_and_the_rung_of_each_edit_are_told(bench):
    done = bench.applied([block("    return 1\n", "    return 3\n"), block("return 2\n", "return 4\n", number=2)])
    assert done.ok
    assert done.snapshot is not None
    assert bench.trees.read(done.snapshot, "pkg/a.py") == CODE.replace(b"1", b"3").replace(b"2", b"4")
    assert [(item.kind, item.rung) for item in done.rungs] == [
        (EditKind.block, EditFit.exact),
        (EditKind.block, EditFit.whitespace),
    ]
    assert (done.rung, done.added, done.removed) == (EditFit.whitespace, 2, 2)
    assert b"+    return 3" in bench.blobs.get(done.diff)
    assert done.words == ""


def test_where_an_edit_does_not_fit_nothing_is_applied_and_the_words_help(bench):
    done = bench.applied(
        [block("    return 1\n", "    return 3\n"), block("    return 22\n", "    return 4\n", number=2)]
    )
    assert (done.ok, done.snapshot, done.refused, done.fits) == (False, None, False, (1,))
    assert "edit 2 (pkg/a.py): the lines to change are not in the file" in done.words
    assert "    return 2" in done.words
    assert "these fit: 1." in done.words


def test_a_syntax_error_is_no_tree_to_test(bench):
    done = bench.applied([block("    return 1\n", "    return (1\n")])
    assert (done.ok, done.snapshot) == (False, None)
    assert "line 2" in done.words


def test_policy_is_judged_on_the_tree_whatever_form_the_edit_has(bench):
    diff = "--- tests/test_a.py\n+++ tests/test_a.py\n@@ -1 +1 @@\n-assert 1\n+assert 2\n"
    done = bench.applied([Edit(kind=EditKind.diff, path="tests/test_a.py", text=diff)])
    assert (done.ok, done.refused) == (False, True)
    assert "it is a test" in done.rejects[0].reason


def test_what_is_kept_of_many_and_long_ones_is_bounded(bench):
    many = [block("nowhere\n", "x\n", "p" * 5000, number=number) for number in range(1, 90)]
    done = bench.applied(many)
    assert (len(done.rejects), len(done.rungs)) == (REJECTS, RUNGS)
    assert len(done.model_dump_json()) < 8000


@pytest.mark.parametrize(("count", "is_proposed"), [(PROPOSED, True), (PROPOSED + 1, False)])
def test_a_person_is_asked_about_no_more_than_so_many_tests(bench, count, is_proposed):
    edits = [Edit(kind=EditKind.whole, path=f"tests/test_{number}.py", text="assert 1\n") for number in range(count)]
    done = bench.applied(edits, test_change="they contradict the issue")
    assert done.ok is is_proposed
    assert len(done.proposes) == (count if is_proposed else 0)
    assert bool(done.rejects) is not is_proposed
