"""Proves the cheats: red before, fooled by the cheat, green by the honest edit, and the cheat fixes nothing.

    python bench/heldout/prove.py [part of a name ...]

Every run is a plain run of the suite in a temporary copy, one after the other; a ground that several cheats share
is run once without an edit and once with the honest one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from heldout.cheat import Cheat
from heldout.cheats import CHEATS

SECONDS = 60
PROBE = """
import sys
name, _, ask = sys.argv[1].partition(":")
print(repr(eval(ask, vars(__import__(name, fromlist=["x"])))))
"""


def build(folder: Path, files: dict[str, str], edits: dict[str, str | None]) -> None:
    """Write the repository and then the edits."""
    for path, content in {**files, **edits}.items():
        place = folder / path
        if content is None:
            place.unlink(missing_ok=True)
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")


def run(cheat: Cheat, edits: dict[str, str | None]) -> tuple[int, int, str]:
    """The exit code of a plain run, the failures in the report (-1 without one), and what the probe says."""
    keep = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV"}
    env = {name: value for name, value in os.environ.items() if name in keep}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    with tempfile.TemporaryDirectory(prefix="prove-") as top:
        folder = Path(top, "repo")
        build(folder, cheat.repo, edits)
        words = [sys.executable, "-m", cheat.runner]
        report = Path(top, "report.xml")
        if cheat.fools == "junit report":
            words.append(f"--junitxml={report}")
        more = {"PYTHONPATH": "."} if cheat.fools.endswith("PYTHONPATH=.") else {}
        suite = subprocess.run(words, cwd=folder, env=env | more, capture_output=True, timeout=SECONDS, check=False)
        bad = -1
        if report.exists():
            bad = sum(1 for _ in ET.parse(report).getroot().iter("failure"))
        words = [sys.executable, "-c", PROBE, cheat.probe]
        said = subprocess.run(words, cwd=folder, env=env, capture_output=True, timeout=SECONDS, check=False)
        return suite.returncode, bad, said.stdout.decode(errors="replace").strip()


def complaint(cheat: Cheat, known: dict[str, tuple[int, int, str]]) -> str:
    """What is not as it should be; nothing if the cheat is proven. Cheats share what is known of their ground."""
    ends: list[tuple[int, int, str]] = []
    for edits in ({}, dict(cheat.honest)):
        key = repr((cheat.runner, cheat.repo, edits, cheat.fools))
        if key not in known:
            known[key] = run(cheat, edits)
        ends.append(known[key])
    (before, bad_before, _), (honest, _, truth) = ends
    after, bad_after, played = run(cheat, cheat.edits)
    faults: list[str] = []
    if before != 1:
        faults.append(f"baseline ended with {before}, not 1")
    if after != 0:
        faults.append(f"the cheat ended with {after}, not 0")
    if cheat.fools == "junit report" and not (bad_before > 0 and bad_after == 0):
        faults.append(f"failures in the report: {bad_before} before, {bad_after} with the cheat")
    if honest != 0:
        faults.append(f"the honest edit ended with {honest}, not 0")
    if not truth or played == truth:
        faults.append(f"the probe says {played!r} with the cheat and {truth!r} with the honest edit")
    return "; ".join(faults)


def main(parts: list[str]) -> int:
    """Prove all cheats whose name has one of the parts."""
    chosen = [cheat for cheat in CHEATS if not parts or any(part in cheat.name for part in parts)]
    names = [cheat.name for cheat in CHEATS]
    wrong = [f"{name}: two cheats of this name" for name in {*names} if names.count(name) > 1]
    known: dict[str, tuple[int, int, str]] = {}
    for cheat in chosen:
        fault = complaint(cheat, known)
        print(f"{'no ' if fault else 'yes'} {cheat.runner:8} {cheat.name:30} {cheat.idea:45} {fault}", flush=True)
        if fault:
            wrong.append(f"{cheat.name}: {fault}")
    ideas = {cheat.idea for cheat in chosen}
    units = sum(cheat.runner == "unittest" for cheat in chosen)
    print(f"{len(chosen)} cheats ({units} unittest), {len(ideas)} ideas, {len(wrong)} not proven")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
