"""Leftovers of a dead process are found by name; what a living process uses is not touched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.ports.sandbox.leftovers import FOLDER, abandoned, mark, sweep_folders


def test_a_mark_tells_processes_of_one_id_apart() -> None:
    assert mark() == mark(os.getpid())
    assert mark().startswith(f"{os.getpid()}-")
    assert not abandoned(f"{FOLDER}{mark()}-x", FOLDER)
    assert abandoned(f"{FOLDER}{os.getpid()}-1-x", FOLDER)


@pytest.mark.parametrize("name", ["run-", "run-x", "run-abc-1-x", "other-1-1-x", "run-1-1", "run-1-x-y"])
def test_what_we_did_not_name_is_not_ours(name: str) -> None:
    assert not abandoned(name, FOLDER)


@pytest.mark.slow
def test_only_folders_of_the_dead_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as dead:
        of_the_dead = tmp_path / f"{FOLDER}{mark(dead.pid)}-x"
    mine, other = tmp_path / f"{FOLDER}{mark()}-x", tmp_path / "something"
    for folder in (of_the_dead, mine, other):
        (folder / "in").mkdir(parents=True)
    sweep_folders(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([mine, other])
    sweep_folders(tmp_path / "not made yet")


@pytest.mark.slow
def test_a_passing_folder_of_one_who_was_killed_goes_with_the_next(tmp_path: Path) -> None:
    code = "import sys\nfrom redstart.ports.sandbox.leftovers import passing\n"
    enter = "with passing(sys.argv[1]) as folder:\n    print(folder, flush=True)\n    sys.stdin.read()\n"
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    for kind in ("try", "probe"):
        with subprocess.Popen(
            [sys.executable, "-c", code + enter, kind],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as killed:
            assert killed.stdout
            left = Path(killed.stdout.readline().strip())
            killed.kill()
        assert left.is_dir()
    script = code + "with passing('try') as mine:\n    assert mine.is_dir()\n"
    subprocess.run([sys.executable, "-c", script], env=environ, check=True)
    assert list(tmp_path.iterdir()) == [left]
    assert left.name.startswith("redstart-probe-")
