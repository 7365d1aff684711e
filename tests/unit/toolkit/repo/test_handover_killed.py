"""Apply and undo, killed or disturbed in the middle: either command finishes the work, and no byte is lost."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from handover_states import NEW, OLD, TEXT, Repo

from redstart.core.errors import StoreError
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.handover import (
    HandoverContext,
    HandoverEvent,
    changes_between,
)
from support.sample import short_form

pytestmark = pytest.mark.slow

KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo import handover

what, seed = sys.argv[1], Path(sys.argv[2])
sys.path.insert(0, str(seed.parent))
sys.dont_write_bytecode = True

def go(place, last):
    count = 0

    def watch(event, arguments):
        nonlocal count
        writes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod")
        if writes or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    from handed_changes import changes
    blobs = DirectoryBlobs(place / "home" / "blobs")
    desk = handover.HandoverContext(place / "repo", blobs, place / "home" / "applied" / "run.json", "run")
    sys.addaudithook(watch)
    handover.apply_patch(desk, changes) if what == "apply" else handover.undo_patch(desk)

last = 0
while True:
    last += 1
    place = seed.parent / f"{what}-{last}"
    shutil.copytree(seed, place, symlinks=True)
    child = os.fork()
    if child == 0:
        go(place, last)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != -signal.SIGKILL:
        break
"""
"""Applies or undoes in copies of a folder, killed one write later each time, until one is no longer killed."""


def killed_everywhere(what: str, repo: Repo, seed: Path) -> list[Path]:
    """Return the copies that were killed, in the order of the writes."""
    lines = ["from redstart.toolkit.repo.worktree import FileChange, Version", f"changes = {repo.changes!r}"]
    (seed.parent / "handed_changes.py").write_text("\n".join(lines))
    command = [sys.executable, "-c", KILLED, what, str(seed)]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return [seed.parent / f"{what}-{last}" for last in range(1, len(list(seed.parent.glob(f"{what}-*"))))]


def at(repo: Repo, place: Path) -> Repo:
    """Return the same repo in another place."""
    moved = copy.copy(repo)
    moved.folder = place / "repo"
    moved.blobs = DirectoryBlobs(place / "home" / "blobs")
    moved.desk = HandoverContext(moved.folder, moved.blobs, place / "home" / "applied" / "run.json", "run")
    return moved


@pytest.mark.parametrize("what", short_form(["apply", "undo"], 1))
def test_killed_before_any_of_its_writes_it_is_finished_by_either_command(made, tmp_path, what):
    repo = made("clean")
    repo.write("gone.py", b"gone\n")
    (repo.folder / "gone.py").chmod(0o640)
    base = repo.trees.take(repo.folder)
    fixed = TEXT.replace(OLD, NEW)
    files = {"calc.py": fixed, "fresh/deep/new.py": b"new\n", "gone.py": None, "pkg/util.py": fixed}
    repo.changes = changes_between(repo.trees, base, repo.trees.write(base, files))
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.all()
    home = repo.desk.record.parents[1]
    if what == "undo":
        repo.apply()
    seed = tmp_path / "copies" / "seed"
    shutil.copytree(repo.folder, seed / "repo")
    shutil.copytree(home, seed / "home")
    repo.apply()
    after = repo.all()

    killed = killed_everywhere(what, repo, seed)

    between = [place for place in killed if at(repo, place).all() not in (before, after)]
    assert len(between) > 4, "none was killed between two writes"
    for place in killed:
        for then, wanted in (("apply", after), ("undo", before)):
            shutil.copytree(place, place / then, symlinks=True)
            again = at(repo, place / then)
            outcome = again.apply() if then == "apply" else again.undo()
            assert outcome.happened is not HandoverEvent.refused, (place.name, outcome)
            assert again.all() == wanted, (place.name, then)
            finished = again.undo() if then == "apply" else again.apply()
            assert finished.happened is HandoverEvent.done, (place.name, then, finished)
            assert again.all() == (before if then == "apply" else after), (place.name, then)


def test_a_file_that_changes_at_the_last_moment_is_not_overwritten(made, monkeypatch):
    repo = made("clean")
    real, seen = os.fsync, []

    def save_in_the_editor(handle: int) -> None:
        real(handle)
        seen.append(handle)
        repo.write("pkg/util.py", b"saved meanwhile\n")

    monkeypatch.setattr(os, "fsync", save_in_the_editor)
    outcome = repo.apply()
    monkeypatch.undo()
    assert seen
    assert [(file.path, file.what) for file in outcome.files] == [("pkg/util.py", "refused")]
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (TEXT, b"saved meanwhile\n")
    assert not list(repo.folder.rglob(".redstart*"))
    assert repo.undo().happened is HandoverEvent.unknown


def test_a_disk_that_says_no_leaves_everything_as_it_was(made, monkeypatch):
    repo = made("a_new_file_in_a_new_folder")
    before, real, calls = repo.all(), os.fchown, []

    def full(handle: int, owner: int, group: int) -> None:
        calls.append(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchown", full)
    with pytest.raises(StoreError, match="nothing was changed"):
        repo.apply()
    monkeypatch.setattr(os, "fchown", real)
    assert calls
    assert repo.all() == before
    assert repo.apply().happened is HandoverEvent.done
