"""Whether shrinking finds the true fix in a padded patch, and its cost.

Forty true fixes of small real bugs (REDSTART_DATA) are padded with two to eight unrelated, harmless hunks: a renamed
local in another function, a helper, a comment, a docstring, reordered or unused imports, layout, a new file. The real
tests decide; pytest runs them in a process of its own. The shrunk patch must leave exactly the files of the true fix.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from _figures import expect_at_least, expect_at_most, print_figures
from honest.patches import Honest, find_data_folder, load_humaneval, load_quixbugs
from redstart.toolkit.honesty.verdict.hunk_groups import group_hunks
from redstart.toolkit.honesty.verdict.hunks import Files, compose, split_hunks
from redstart.toolkit.honesty.verdict.shrink import ShrinkBudget, shrink

FIXES, FEW = 40, 8
SEED = 40
SECONDS = 60
BEFORE = '''"""Beside the program."""

import os
import sys


def _wrapped(words, width=20):
    """The words in lines."""
    lines, now = [], ""
    for word in words:
        if len(now) + len(word) > width:
            lines.append(now)
            now = ""
        now += word + " "
    return [*lines, now]
'''
BEHIND = """

def _is_there(path):
    return os.path.exists(path)


def _told(text):
    total = 0
    for line in text.splitlines():
        total += len(line)
    sys.stderr.write(str(total))
    return total
"""
EXTRA = '''"""More beside the program."""

SIZES = [1, 2, 3]


def largest(sizes=SIZES):
    return max(sizes)


def smallest(sizes=SIZES):
    return min(sizes)
'''
Pad = Callable[[dict[str, str], str], None]


class Padded(NamedTuple):
    """A repository with a bug, its true fix, and the padded fix."""

    name: str
    repo: dict[str, str]
    true: dict[str, str]
    padded: dict[str, str]
    added: int


def swap(path: str | None, old: str, new: str) -> Pad:
    """Return a pad that replaces text; without a path, in the program's own file."""

    def pad(files: dict[str, str], program: str) -> None:
        target_path = path or program
        assert files[target_path].count(old) == 1, old
        files[target_path] = files[target_path].replace(old, new)

    return pad


def add_file(files: dict[str, str], program: str) -> None:
    del program
    files["more/notes.py"] = '"""Notes."""\n\nKEPT = ["a", "b"]\n'


PADS: tuple[Pad, ...] = (
    swap(None, "import os\nimport sys\n", "import sys\nimport os\n"),
    swap(None, '    """The words in lines."""\n', '    """The words in lines of a width."""\n'),
    swap(
        None,
        "    return os.path.exists(path)\n",
        "    # A link that leads nowhere is not there.\n    return os.path.exists(path)\n",
    ),
    swap(
        None, "def _is_there(path):\n", "def _is_empty(text):\n    return not text.strip()\n\n\ndef _is_there(path):\n"
    ),
    swap(
        None,
        "    total = 0\n    for line in text.splitlines():\n        total += len(line)\n",
        "    count = 0\n    for line in text.splitlines():\n        count += len(line)\n    total = count\n",
    ),
    swap("extra.py", "SIZES = [1, 2, 3]\n", "SIZES = [\n    1,\n    2,\n    3,\n]\n"),
    swap("extra.py", "    return min(sizes)\n", "    return sorted(sizes)[0]\n"),
    swap("extra.py", '"""More beside the program."""\n', '"""More beside the program."""\n\nimport math\n'),
    add_file,
)


def pad_fix(honest: Honest, chance: random.Random) -> Padded:
    """Put the fix into a repository with other code, and pad it with two to eight hunks."""
    ((program, fixed_program),) = honest.fix.items()
    repo = {**honest.repo, program: _surround(honest.repo[program]), "extra.py": EXTRA}
    true_files = {**repo, program: _surround(fixed_program)}
    files = dict(true_files)
    pads = chance.sample(PADS, chance.randint(2, 8))
    for pad in pads:
        pad(files, program)
    return Padded(honest.name, repo, true_files, files, len(pads))


def _surround(program: str) -> str:
    """Return the program between other functions, without its remarks (QuixBugs adds some)."""
    tree = ast.parse(program)
    statements = [
        node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    ]
    return f"{BEFORE}\n\n{ast.unparse(ast.Module(statements, []))}\n{BEHIND}"


def is_green(files: Files, folder: Path) -> bool:
    """Return whether the tests pass on these files."""
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            place.unlink(missing_ok=True)
        else:
            place.write_bytes(text)
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests"]
    completed = subprocess.run(
        command, cwd=folder, env={**environ, "PYTHONPATH": "."}, capture_output=True, timeout=SECONDS, check=False
    )
    return completed.returncode == 0


class Found(NamedTuple):
    same: bool
    runs: int
    seconds: float


async def measure_shrink(case: Padded, folder: Path) -> Found:
    before: dict[str, bytes | None] = {path: text.encode() for path, text in case.repo.items()}
    hunks = split_hunks(before, {path: text.encode() for path, text in case.padded.items()})
    touched_paths = {hunk.path for hunk in hunks}
    for path, text in case.repo.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    async def is_passing(kept_hunks: frozenset[int]) -> bool:
        return await asyncio.to_thread(is_green, compose(before, hunks, kept_hunks), folder)

    began = time.monotonic()
    result = await shrink(
        before,
        hunks,
        is_passing,
        budget=ShrinkBudget(runs=40, seconds=600),
        clock=time.monotonic,
        groups=group_hunks(before, hunks),
    )
    remaining = compose(before, hunks, result.needed_hunks)
    is_same = all(
        remaining[path] == (case.true[path].encode() if path in case.true else None) for path in touched_paths
    )
    print(
        f"{case.name:<44} {len(hunks):>2} hunks {result.runs:>2} runs  {'' if is_same else 'NOT THE FIX'}", flush=True
    )
    return Found(is_same, result.runs, time.monotonic() - began)


def choose(data: Path, count: int) -> Sequence[Padded]:
    """Choose fixes of both sets in equal parts, always the same ones."""
    chance = random.Random(SEED)
    samples = [chance.sample(list(kind(data)), count // 2) for kind in (load_quixbugs, load_humaneval)]
    return [pad_fix(item, chance) for part in samples for item in part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer fixes")
    data = find_data_folder()
    count = FEW if parser.parse_args().quick else FIXES
    if data is None:
        sys.exit("The fixes come from the evaluation data: set REDSTART_DATA (see docs/benchmarks.md).")
    results: list[Found] = []
    for item in choose(data, count):
        with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
            results.append(asyncio.run(measure_shrink(item, Path(name))))
    figures = [
        expect_at_least("same_as_fix", sum(item.same for item in results) / len(results), 0.95),
        expect_at_most("runs_median", statistics.median(item.runs for item in results), 12),
    ]
    print_figures("shrink", figures, fixes=len(results))


if __name__ == "__main__":
    main()
