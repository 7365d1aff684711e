"""Leftovers of a dead process are found by name; what a living process uses is not touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.ports.sandbox.leftovers import FOLDER, is_abandoned, mark, sweep_folders


def test_mark_distinguishes_processes_with_the_same_id() -> None:
    assert mark() == mark(os.getpid())
    assert mark().startswith(f"{os.getpid()}-")
    assert not is_abandoned(f"{FOLDER}{mark()}-x", FOLDER)
    assert is_abandoned(f"{FOLDER}{os.getpid()}-1-x", FOLDER)


@pytest.mark.parametrize("name", ["run-", "run-x", "run-abc-1-x", "other-1-1-x", "run-1-1", "run-1-x-y"])
def test_unknown_names_are_not_abandoned(name: str) -> None:
    assert not is_abandoned(name, FOLDER)


@pytest.mark.slow
def test_only_directories_of_dead_processes_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as dead_process:
        dead_folder = tmp_path / f"{FOLDER}{mark(dead_process.pid)}-x"
    own_folder, other_folder = tmp_path / f"{FOLDER}{mark()}-x", tmp_path / "something"
    for folder in (dead_folder, own_folder, other_folder):
        (folder / "in").mkdir(parents=True)
    sweep_folders(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([own_folder, other_folder])
    sweep_folders(tmp_path / "not made yet")


@pytest.mark.slow
def test_temporary_directory_of_a_killed_process_is_removed_by_the_next(tmp_path: Path) -> None:
    code = "import sys\nfrom redstart.ports.sandbox.leftovers import open_temporary_folder\n"
    enter_code = (
        "with open_temporary_folder(sys.argv[1]) as folder:\n    print(folder, flush=True)\n    sys.stdin.read()\n"
    )
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    for kind in ("try", "probe"):
        with subprocess.Popen(
            [sys.executable, "-c", code + enter_code, kind],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as killed:
            assert killed.stdout
            leftover = Path(killed.stdout.readline().strip())
            killed.kill()
        assert leftover.is_dir()
    script = code + "with open_temporary_folder('try') as mine:\n    assert mine.is_dir()\n"
    subprocess.run([sys.executable, "-c", script], env=environ, check=True)
    assert list(tmp_path.iterdir()) == [leftover]
    assert leftover.name.startswith("redstart-probe-")
