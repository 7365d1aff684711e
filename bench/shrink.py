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

from _figures import at_least, at_most, print_figures
from honest.patches import Honest, data_folder, humaneval, quixbugs
from redstart.toolkit.honesty.verdict.hunks import Files, compose, hunks_of
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
        where = path or program
        assert files[where].count(old) == 1, old
        files[where] = files[where].replace(old, new)

    return pad


def new_file(files: dict[str, str], program: str) -> None:
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
    new_file,
)


def padded(honest: Honest, chance: random.Random) -> Padded:
    """Put the fix into a repository with other code, and pad it with two to eight hunks."""
    ((program, right),) = honest.fix.items()
    repo = {**honest.repo, program: _among(honest.repo[program]), "extra.py": EXTRA}
    true = {**repo, program: _among(right)}
    files = dict(true)
    chosen = chance.sample(PADS, chance.randint(2, 8))
    for pad in chosen:
        pad(files, program)
    return Padded(honest.name, repo, true, files, len(chosen))


def _among(program: str) -> str:
    """Return the program between other functions, without its remarks (QuixBugs adds some)."""
    tree = ast.parse(program)
    later = [node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return f"{BEFORE}\n\n{ast.unparse(ast.Module(later, []))}\n{BEHIND}"


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
    done = subprocess.run(
        command, cwd=folder, env={**environ, "PYTHONPATH": "."}, capture_output=True, timeout=SECONDS, check=False
    )
    return done.returncode == 0


class Found(NamedTuple):
    same: bool
    runs: int
    seconds: float


async def measured(one: Padded, folder: Path) -> Found:
    before: dict[str, bytes | None] = {path: text.encode() for path, text in one.repo.items()}
    hunks = hunks_of(before, {path: text.encode() for path, text in one.padded.items()})
    touched = {hunk.path for hunk in hunks}
    for path, text in one.repo.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    async def green(kept: frozenset[int]) -> bool:
        return await asyncio.to_thread(is_green, compose(before, hunks, kept), folder)

    began = time.monotonic()
    found = await shrink(before, hunks, green, budget=ShrinkBudget(runs=40, seconds=600), clock=time.monotonic)
    left = compose(before, hunks, found.kept)
    same = all(left[path] == (one.true[path].encode() if path in one.true else None) for path in touched)
    print(f"{one.name:<44} {len(hunks):>2} hunks {found.runs:>2} runs  {'' if same else 'NOT THE FIX'}", flush=True)
    return Found(same, found.runs, time.monotonic() - began)


def choose(data: Path, wanted: int) -> Sequence[Padded]:
    """Choose fixes of both sets in equal parts, always the same ones."""
    chance = random.Random(SEED)
    every = [chance.sample(list(kind(data)), wanted // 2) for kind in (quixbugs, humaneval)]
    return [padded(item, chance) for part in every for item in part]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer fixes")
    data = data_folder()
    wanted = FEW if parser.parse_args().quick else FIXES
    if data is None:
        sys.exit("The fixes come from the evaluation data: set REDSTART_DATA (see docs/benchmarks.md).")
    found: list[Found] = []
    for item in choose(data, wanted):
        with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
            found.append(asyncio.run(measured(item, Path(name))))
    figures = [
        at_least("same_as_fix", sum(item.same for item in found) / len(found), 0.95),
        at_most("runs_median", statistics.median(item.runs for item in found), 12),
    ]
    print_figures("shrink", figures, fixes=len(found))


if __name__ == "__main__":
    main()
