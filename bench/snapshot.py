"""The time of a snapshot of 5,000 files, beside `git add -A` of the same files into a fresh index.

The two alternate, and both write every object into an empty store; the figure is the median of the rounds' ratios. The
bench also reports the median seconds from starting `redstart fix` on the same repo to its first line on the screen.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _figures import expect_at_most, print_figures
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.repo.trees import GitTrees

FILES, AIM = 5_000, 1.5


def make_repo(folder: Path) -> None:
    seeded = random.Random(1)
    for number in range(FILES):
        place = folder / f"pkg{number % 50}" / f"part{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        body = "\n".join(f"def f_{number}_{n}(x):\n    return x + {seeded.random()}\n" for n in range(40))
        (place / f"m{number}.py").write_text(body)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


def measure_snapshot(repo: Path, scratch: Path) -> float:
    trees = GitTrees(scratch / "snapshots", DirectoryBlobs(scratch / "blobs"))
    began = time.perf_counter()
    tree = trees.take(repo)
    seconds = time.perf_counter() - began
    assert len(trees.list_files(tree)) == FILES
    trees.close()
    shutil.rmtree(scratch)
    return seconds


def measure_git_add(repo: Path, scratch: Path) -> float:
    scratch.mkdir()
    subprocess.run(["git", "init", "-q", "--bare", str(scratch / "objects.git")], check=True)
    environ = {**os.environ, "GIT_DIR": str(scratch / "objects.git"), "GIT_WORK_TREE": str(repo)}
    began = time.perf_counter()
    subprocess.run(["git", "add", "-A"], cwd=repo, env=environ, check=True)
    seconds = time.perf_counter() - began
    shutil.rmtree(scratch)
    return seconds


def measure_first_line(repo: Path, scratch: Path) -> float:
    """Return the seconds until the command prints its first line. It has no model to ask, and ends by itself."""
    environ = {**os.environ, "REDSTART_HOME": str(scratch / "home"), "REDSTART_MODELS__STRONG": "ollama:none"}
    command = [sys.executable, "-m", "redstart.cli.main", "fix", str(repo), "--dry-run"]
    began = time.perf_counter()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        seconds = time.perf_counter() - began
        running.communicate()
    assert line.startswith("reading"), line
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else 9
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        folder = Path(name)
        repo = folder / "repo"
        make_repo(repo)
        ratios: list[float] = []
        for _ in range(rounds):
            snapshot_seconds, git_seconds = (
                measure_snapshot(repo, folder / "mine"),
                measure_git_add(repo, folder / "bare"),
            )
            print(f"snapshot {snapshot_seconds:.2f} s, git add -A {git_seconds:.2f} s")
            ratios.append(snapshot_seconds / git_seconds)
        waits = [measure_first_line(repo, folder) for _ in range(rounds)]
    figures = [
        expect_at_most("snapshot_ratio", statistics.median(ratios), AIM),
        expect_at_most("first_line_seconds", statistics.median(waits), 1),
    ]
    print_figures("snapshot", figures)


if __name__ == "__main__":
    main()
