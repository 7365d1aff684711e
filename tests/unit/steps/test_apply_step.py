"""`apply` returns a tree with every edit applied, or the reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from redstart.core.change import ApplyResult, Edit, EditFit, EditKind, EditList, Patch, Snapshot
from redstart.core.packages import Packages
from redstart.core.run import Attempt, Step
from redstart.steps.apply import apply
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

    def apply_edits(self, edits: Sequence[Edit], test_change: str = "", **spec: Any) -> ApplyResult:
        edits_blob = self.blobs.put(EditList(edits=tuple(edits)).model_dump_json().encode())
        attempt = Attempt(entry=Step.patch, patch=Patch(edits=edits_blob, test_change=test_change))
        run = make_state(spec=make_spec(base=self.base, **spec), base=self.base, now=attempt)
        return asyncio.run(apply(run, cast(Any, self)))

    def apply_tree(self, tree: Snapshot) -> ApplyResult:
        """Judge a tree that a model submitted in a session."""
        attempt = Attempt(entry=Step.patch, patch=Patch(tree=tree))
        return asyncio.run(
            apply(make_state(spec=make_spec(base=self.base), base=self.base, now=attempt), cast(Any, self))
        )

    def apply_draft(self, files: dict[str, bytes]) -> ApplyResult:
        """Judge a program that exists as a draft: there is no patch yet."""
        draft = self.trees.write(self.trees.create_empty(), {**files})
        run = make_state(spec=make_spec(base=self.base), base=self.base, draft=draft, now=Attempt(entry=Step.apply))
        return asyncio.run(apply(run, cast(Any, self)))

    def read_all(self, snapshot: Snapshot | None) -> dict[str, bytes | None]:
        assert snapshot is not None
        return {path: self.trees.read(snapshot, path) for path in self.trees.list_files(snapshot)}


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
    assert (len(result.rejects), len(result.rungs)) == (5, 20)
    assert {len(reject.path.encode()) for reject in result.rejects} == {200}
    assert len(result.model_dump_json()) < 8000


def test_reason_of_a_rejection_is_clipped(bench):
    (reject,) = bench.apply_edits([block("    return 1\n", "    return 3\n")], scope=("elsewhere" * 100,)).rejects
    assert len(reject.reason.encode()) == 400


def test_stored_edits_of_an_applied_patch_are_bounded(bench):
    edits = [Edit(kind=EditKind.whole, path=f"pkg/new_{number}.py", text="x = 1\n") for number in range(30)]
    result = bench.apply_edits(edits)
    assert (result.ok, result.added, result.removed, len(result.rungs)) == (True, 30, 0, 20)


def test_numbers_of_fitting_edits_are_bounded(bench):
    edits = [block("    return 1\n", f"    return {number}\n", number=number) for number in range(1, 31)]
    result = bench.apply_edits([*edits, block("nowhere\n", "x\n", number=31)])
    assert (result.ok, len(result.fits) <= 20) == (False, True)


def test_only_changed_lines_are_counted(bench):
    """The names of the files in a diff begin with the same signs."""
    result = bench.apply_edits([block("    return 1\n", "    x = 1\n    return x\n")])
    assert (result.added, result.removed) == (2, 1)


def test_draft_keeps_its_program_and_gets_the_tests_of_the_run(bench):
    result = bench.apply_draft(
        {"pkg/a.py": b"x = 2\n", "tests/test_a.py": b"assert 2\n", "tests/test_own.py": b"assert 3\n"}
    )
    assert (result.ok, result.rungs) == (True, ())
    assert bench.read_all(result.snapshot) == {"pkg/a.py": b"x = 2\n", "tests/test_a.py": b"assert 1\n"}


def test_tree_of_a_session_is_judged_like_edits(bench):
    allowed, refused = (
        bench.trees.write(bench.base, files)
        for files in ({"pkg/a.py": b"x = 2\n"}, {"pkg/a.py": b"x = 2\n", "tests/test_a.py": b"assert 2\n"})
    )
    result = bench.apply_tree(allowed)
    assert (result.ok, result.snapshot, result.rungs) == (True, allowed, ())
    assert (result.added, result.removed) == (1, 6)
    assert b"+x = 2" in bench.blobs.get(result.diff)
    result = bench.apply_tree(refused)
    assert (result.ok, result.snapshot, result.refused) == (False, None, True)
    assert [reject.path for reject in result.rejects] == ["tests/test_a.py"]


def test_attempt_without_patch_or_draft_changes_nothing(bench):
    run = make_state(spec=make_spec(base=bench.base), base=bench.base, now=Attempt(entry=Step.apply))
    result = asyncio.run(apply(run, bench))
    assert (result.ok, result.snapshot, result.refused) == (False, None, False)


def test_new_packages_pass_only_if_the_run_may_install(bench):
    text = b'[project]\nname = "a"\ndependencies = []\n'
    bench.base = bench.trees.write(bench.base, {"pyproject.toml": text})
    edit = block("dependencies = []\n", 'dependencies = ["rich"]\n', "pyproject.toml")
    assert [bench.apply_edits([edit], packages=packages).ok for packages in (None, Packages())] == [False, True]
    settings = block('name = "a"\n', 'name = "a"\nversion = "1"\n', "pyproject.toml")
    assert bench.apply_edits([settings], packages=Packages()).refused


def test_refused_patch_keeps_its_diff_and_proposes_nothing(bench):
    edits = [block("assert 1\n", "assert 2\n", "tests/test_a.py"), block("    return 1\n", "    return 3\n", number=2)]
    edits.append(Edit(kind=EditKind.whole, path="conftest.py", text="x = 1\n", number=3))
    result = bench.apply_edits(edits, test_change="it contradicts the issue")
    assert (result.ok, result.snapshot, result.refused, result.proposes) == (False, None, True, ())
    assert [reject.path for reject in result.rejects] == ["conftest.py"]
    assert b"+assert 2" in bench.blobs.get(result.diff)


def test_openly_changed_test_is_proposed(bench):
    edit = block("assert 1\n", "assert 2\n", "tests/test_a.py")
    result = bench.apply_edits([edit], test_change="it contradicts the issue")
    assert (result.ok, result.refused, result.proposes) == (True, False, ("tests/test_a.py",))


@pytest.mark.parametrize(("count", "is_proposed"), [(10, True), (11, False)])
def test_number_of_test_changes_proposed_to_a_person_is_limited(bench, count, is_proposed):
    edits = [Edit(kind=EditKind.whole, path=f"tests/test_{number}.py", text="assert 1\n") for number in range(count)]
    result = bench.apply_edits(edits, test_change="they contradict the issue")
    assert result.ok is is_proposed
    assert len(result.proposes) == (count if is_proposed else 0)
    assert bool(result.rejects) is not is_proposed
