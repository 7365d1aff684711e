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
    list_changes,
)
from support.sample import sample_parameters

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


def kill_at_each_write(command_name: str, repo: Repo, seed: Path) -> list[Path]:
    """Return the copies that were killed, in the order of the writes."""
    lines = ["from redstart.toolkit.repo.worktree import FileChange, Version", f"changes = {repo.changes!r}"]
    (seed.parent / "handed_changes.py").write_text("\n".join(lines))
    command = [sys.executable, "-c", KILLED, command_name, str(seed)]
    completed = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (completed.returncode, completed.stderr) == (0, b"")
    return [
        seed.parent / f"{command_name}-{number}"
        for number in range(1, len(list(seed.parent.glob(f"{command_name}-*"))))
    ]


def copy_repo_to(repo: Repo, place: Path) -> Repo:
    """Return the same repo in another place."""
    moved_repo = copy.copy(repo)
    moved_repo.folder = place / "repo"
    moved_repo.blobs = DirectoryBlobs(place / "home" / "blobs")
    moved_repo.desk = HandoverContext(
        moved_repo.folder, moved_repo.blobs, place / "home" / "applied" / "run.json", "run"
    )
    return moved_repo


@pytest.mark.parametrize("command_name", sample_parameters(["apply", "undo"], 1))
def test_handover_killed_before_any_write_is_completed_by_either_command(made, tmp_path, command_name):
    repo = made("clean")
    repo.write("gone.py", b"gone\n")
    (repo.folder / "gone.py").chmod(0o640)
    base = repo.trees.take(repo.folder)
    fixed = TEXT.replace(OLD, NEW)
    files = {"calc.py": fixed, "fresh/deep/new.py": b"new\n", "gone.py": None, "pkg/util.py": fixed}
    repo.changes = list_changes(repo.trees, base, repo.trees.write(base, files))
    repo.edit("calc.py", b"line 3\n", b"mine 3\n")
    before = repo.list_entries()
    home = repo.desk.record.parents[1]
    if command_name == "undo":
        repo.apply()
    seed = tmp_path / "copies" / "seed"
    shutil.copytree(repo.folder, seed / "repo")
    shutil.copytree(home, seed / "home")
    repo.apply()
    after = repo.list_entries()

    killed = kill_at_each_write(command_name, repo, seed)

    between = [place for place in killed if copy_repo_to(repo, place).list_entries() not in (before, after)]
    assert len(between) > 4, "none was killed between two writes"
    for place in killed:
        for next_command, expected_entries in (("apply", after), ("undo", before)):
            shutil.copytree(place, place / next_command, symlinks=True)
            moved_repo = copy_repo_to(repo, place / next_command)
            outcome = moved_repo.apply() if next_command == "apply" else moved_repo.undo()
            assert outcome.happened is not HandoverEvent.refused, (place.name, outcome)
            assert moved_repo.list_entries() == expected_entries, (place.name, next_command)
            final_outcome = moved_repo.undo() if next_command == "apply" else moved_repo.apply()
            assert final_outcome.happened is HandoverEvent.done, (place.name, next_command, final_outcome)
            assert moved_repo.list_entries() == (before if next_command == "apply" else after), (
                place.name,
                next_command,
            )


def test_file_that_changes_at_the_last_moment_is_not_overwritten(made, monkeypatch):
    repo = made("clean")
    original_fsync, synced_handles = os.fsync, []

    def save_in_the_editor(handle: int) -> None:
        original_fsync(handle)
        synced_handles.append(handle)
        repo.write("pkg/util.py", b"saved meanwhile\n")

    monkeypatch.setattr(os, "fsync", save_in_the_editor)
    outcome = repo.apply()
    monkeypatch.undo()
    assert synced_handles
    assert [(file.path, file.what) for file in outcome.files] == [("pkg/util.py", "refused")]
    assert (repo.read("calc.py"), repo.read("pkg/util.py")) == (TEXT, b"saved meanwhile\n")
    assert not list(repo.folder.rglob(".redstart*"))
    assert repo.undo().happened is HandoverEvent.unknown


def test_full_disk_leaves_everything_unchanged(made, monkeypatch):
    repo = made("a_new_file_in_a_new_folder")
    before, original_fchown, calls = repo.list_entries(), os.fchown, []

    def raise_disk_full(handle: int, owner: int, group: int) -> None:
        calls.append(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fchown", raise_disk_full)
    with pytest.raises(StoreError, match="nothing was changed"):
        repo.apply()
    monkeypatch.setattr(os, "fchown", original_fchown)
    assert calls
    assert repo.list_entries() == before
    assert repo.apply().happened is HandoverEvent.done
