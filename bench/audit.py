"""The defects that an audit finds and the look-alikes that it flags, and its time, beside bare ruff and bandit.

There are two small repos with planted defects and harmless look-alikes: bench/audit/own, and bench/audit/heldout, which
was written from the task alone. A defect counts as found if a finding of its kind is at most two lines off. A
look-alike counts as flagged if a finding of any kind except plain code remarks is at most one line off. Times are of
complete commands on both repos and on three packages from the index; ruff and bandit run one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from _figures import Figure, expect_at_least, expect_at_most, print_figures, report_value
from redstart.toolkit.languages.python.pip import find_pip

HERE = Path(__file__).parent / "audit"
PACKAGES = ("requests==2.32.3", "celery==5.4.0", "sqlalchemy==2.0.36")
RECALL, LOOKALIKES = 0.9, 0.05
CACHE = Path(tempfile.gettempdir()) / f"redstart-bench-{os.getuid()}"
BY_RULE = {
    "608": "sql_injection", "610": "sql_injection", "611": "sql_injection",
    "105": "secret", "106": "secret", "107": "secret"
}  # fmt: skip
"""Kinds of the rules of bare ruff and bandit; all other rules are about calls."""


class Seen(NamedTuple):
    path: str
    line: int
    kind: str


class Score(NamedTuple):
    found: int
    defects: int
    flagged: int
    lookalikes: int

    def plus(self, other: Score) -> Score:
        return Score(*(item + two for item, two in zip(self, other, strict=True)))

    @property
    def recall(self) -> float:
        return round(self.found / self.defects, 4) if self.defects else 0.0

    @property
    def false_share(self) -> float:
        return round(self.flagged / self.lookalikes, 4) if self.lookalikes else 0.0


def laid_out(half: Path, to: Path) -> Path:
    """Copy the half and join the split keys: only the copy holds what this repository would take for a real key."""
    shutil.copytree(half, to)
    for path in to.rglob("*.py"):
        path.write_text(path.read_text().replace("{{}}", ""))
    return to


def audit(folder: Path, home: Path) -> list[Seen]:
    command = [sys.executable, "-m", "redstart.cli.main", "audit", str(folder), "--no-llm", "--format", "json"]
    done = subprocess.run(command, env={**os.environ, "REDSTART_HOME": str(home)}, capture_output=True, check=True)
    found = json.loads(done.stdout)["findings"]
    return [
        Seen(item["path"], line, item["kind"])
        for item in found
        if item["kind"] != "code"
        for line in {item["line"], item["reaches"] or item["line"]}
    ]


def bare(folder: Path) -> list[Seen]:
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--exit-zero", "--select", "S"]
    said = subprocess.run([*ruff, "--output-format", "json", str(folder)], capture_output=True, check=True)
    found = [(load["filename"], load["location"]["row"], load["code"] or "") for load in json.loads(said.stdout)]
    command = [sys.executable, "-m", "bandit", "-q", "-r", str(folder), "-f", "json", "--exit-zero"]
    said = subprocess.run(command, capture_output=True, check=True)
    found += [(load["filename"], load["line_number"], load["test_id"]) for load in json.loads(said.stdout)["results"]]
    return [
        Seen(
            Path(path).resolve().relative_to(folder.resolve()).as_posix(), line, BY_RULE.get(code[1:], "dangerous_call")
        )
        for path, line, code in found
    ]


def score(folder: Path, seen: Sequence[Seen], *, tell: bool) -> Score:
    expected = json.loads((folder / "expected.json").read_text())
    found = flagged = 0
    for item in expected["defects"]:
        hit = any(
            each.path == item["path"] and each.kind == item["kind"] and abs(each.line - item["line"]) <= 2
            for each in seen
        )
        found += hit
        if tell and not hit:
            print(f"missed   {folder.name}/{item['path']}:{item['line']} {item['kind']}")
    for item in expected["lookalikes"]:
        hit = any(each.path == item["path"] and abs(each.line - item["line"]) <= 1 for each in seen)
        flagged += hit
        if tell and hit:
            print(f"flagged  {folder.name}/{item['path']}:{item['line']} {item['why']}")
    return Score(found, len(expected["defects"]), flagged, len(expected["lookalikes"]))


def packages() -> list[Path]:
    """Return the folders of the packages' files; their wheels are fetched from the index once."""
    folders: list[Path] = []
    for package in PACKAGES:
        folder = CACHE / package.replace("==", "-")
        if not folder.is_dir():
            CACHE.mkdir(exist_ok=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as name:
                pip = find_pip(Path(sys.executable), os.environ)
                wanted = ["download", "-q", "--no-deps", "--only-binary", ":all:", "-d", name, package]
                subprocess.run([*pip, *wanted], check=True)
                (wheel,) = Path(name).glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(Path(name) / "files")
                shutil.move(Path(name) / "files", folder)
        folders.append(folder)
    return folders


def timed(folders: Sequence[Path], rounds: int, home: Path) -> tuple[float, float]:
    """Return the best seconds of our audits and of the bare tools on all folders; the two alternate."""
    ours, theirs = list[float](), list[float]()
    for _ in range(rounds):
        started = time.perf_counter()
        for folder in folders:
            audit(folder, home)
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        for folder in folders:
            bare(folder)
        theirs.append(time.perf_counter() - started)
    return min(ours), min(theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of timing instead of three")
    parser.add_argument("--half", choices=("own", "heldout"), help="only this half, without timing")
    asked = parser.parse_args()
    halves = [HERE / name for name in ("own", "heldout") if asked.half in (None, name) and (HERE / name).is_dir()]
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        home = scratch / "home"
        all_ours, all_bare = Score(0, 0, 0, 0), Score(0, 0, 0, 0)
        copies = [laid_out(half, scratch / half.name) for half in halves]
        for copy in copies:
            repo = copy / "repo"
            ours, others = score(copy, audit(repo, home), tell=True), score(copy, bare(repo), tell=False)
            all_ours, all_bare = all_ours.plus(ours), all_bare.plus(others)
            print(f"{copy.name}: {ours}, bare ruff and bandit: {others}")
            figures.append(expect_at_least(f"recall_{copy.name}", ours.recall, RECALL))
            figures.append(expect_at_most(f"lookalikes_{copy.name}", ours.false_share, LOOKALIKES))
        figures.append(expect_at_least("recall", all_ours.recall, RECALL))
        figures.append(expect_at_most("lookalikes_flagged", all_ours.false_share, LOOKALIKES))
        figures += [report_value("recall_bare", all_bare.recall), report_value("lookalikes_bare", all_bare.false_share)]
        if asked.half is None:
            ours_took, bare_took = timed(
                [*(copy / "repo" for copy in copies), *packages()], 1 if asked.quick else 3, home
            )
            print(f"audit {ours_took:.1f} s, bare ruff and bandit {bare_took:.1f} s")
            figures.append(expect_at_most("time_ratio", ours_took / bare_took, 1.3))
    print_figures("audit", figures)


if __name__ == "__main__":
    main()
