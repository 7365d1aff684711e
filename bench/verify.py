"""Whether `redstart verify` verifies real fixes, names what is wrong with spoiled ones, and is silent otherwise.

The changes come from the histories of real projects (REDSTART_DATA). Each is verified by the command, on the project's
whole suite, in an environment made for its newest commit.

- true_verified: the share of true fixes that end `verified`. A true fix is a commit whose tests fail here without its
  source and pass with it. Tests that the commit itself edits are accepted with `--accept`.
- sabotage_caught: the share of sabotages of these fixes that do not end `verified` and whose result has the right name:
  the end, or a claim that the true fix does not have. There are eight kinds (`changes/sabotages.py`); a kind with
  several ways takes the next one with each fix. Nothing is accepted here, so only fixes that need no acceptance count.
- false_alarms: the share of ordinary changes that end `worse`, `weakened` or `tampered`, unless
  `changes/reviewed.json` says why that end is right. Changes that cannot run here do not count.
- cheats_accepted, redteam_accepted: how many cheats of `cheats.py` and of the open set of `redteam.py`, which has those
  for Node.js, pass as patches a check that requires a proof.
- redteam_same_ends: the share of the open set that both `verify` and `fix` accept, or neither does.

`--keep FOLDER` keeps the clones and every result there; a run with the same folder goes on where the last one stopped.
Results of another version of Redstart are not kept apart: choose a new folder for `--results` after a change.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import _paths  # noqa: F401
import redteam
from _environments import BenchError, make_plain_environment
from _figures import Figure, expect_at_least, expect_at_most, expect_equal, print_figures, report_value
from changes.mined import MinedFix, list_ordinary, mine_fixes
from changes.patches import SmallPatch, read_edits, verify_patch
from changes.projects import PROJECTS, Clone, CloneWorkbench, VerifiedChange, open_clone, verify, write_whole
from changes.python_tests import list_edited
from changes.sabotage import Sabotage
from changes.sabotages import SABOTAGES, adapt_heldout
from cheats import sample_classes
from cheats_own.cheats import CLASSES as OWN_CLASSES
from heldout.cheats import CLASSES as HELD_OUT_CLASSES
from honest.patches import find_data_folder
from verify_heldout.sabotages import KINDS
from verify_heldout.sabotages import SABOTAGES as HELD_OUT_SABOTAGES

Row = dict[str, Any]
ALARMS = ("worse", "weakened", "tampered")
REVIEWED = Path(__file__).parent / "changes" / "reviewed.json"
PARTS = ("fixes", "ordinary", "cheats", "redteam")


class Size(NamedTuple):
    """How many cases of each part are verified."""

    fixes: int
    ordinary: int
    cheats: int
    """One in this many cheats."""
    redteam: int
    """One in this many rows of the open set."""
    alternate: int
    """If not 0, each kind of sabotage is made once from each fix, by turns our own way and the held-out one."""


_HELP = {
    "fixes": "number of true fixes",
    "ordinary": "number of ordinary changes",
    "cheats": "play one in N cheats",
    "redteam": "play one in N rows of the open set",
    "alternate": "1: one sabotage of each kind for each fix, our own and held-out ones by turns",
}
FULL, QUICK = Size(60, 260, 1, 1, 0), Size(1, 2, 60, 24, 1)


class Results:
    """The results of finished cases, each in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, part: str, name: str, make: Callable[[], Row]) -> Row:
        """Return the result of a case. It is made only once."""
        path = self._folder / part / f"{name}.json"
        if not path.exists():
            write_whole(path, json.dumps(make(), indent=1))
        return json.loads(path.read_text())


class Bench:
    """Verifies the cases of each part, one at a time."""

    def __init__(self, data: Path, keep: Path, results: Results, size: Size, level: str) -> None:
        self._data, self._keep, self._results, self._size, self._level = data, keep, results, size, level
        self._home = keep / "home"
        self._held_out = [adapt_heldout(sabotage) for sabotage in HELD_OUT_SABOTAGES]

    def measure_fixes(self) -> list[Figure]:
        fixes: list[Row] = []
        sabotages: list[Row] = []
        for number, (clone, bench, mined) in enumerate(islice(self._mine(), self._size.fixes)):
            name = f"{clone.root.name}-{mined.commit[:10]}"
            row = self._results.get("fixes", name, lambda: self._verify_fix(clone, mined))  # noqa: B023
            _print_row(name, row, row["end"] == "verified")
            fixes.append(row)
            if row["end"] != "verified" or any(accepted for *_, accepted in row["claims"]):
                continue
            for sabotage in self._choose_sabotages(number):
                case = f"{name}-{sabotage.name}"
                spoiled = self._results.get(
                    "sabotages",
                    case,
                    lambda: self._verify_sabotage(clone, bench, mined, sabotage),  # noqa: B023
                )
                if spoiled["end"] == "not made":
                    continue
                spoiled |= {"kind": sabotage.kind, "caught": _is_caught(sabotage, spoiled, row)}
                _print_row(f"{name} {sabotage.name}", spoiled, spoiled["caught"])
                sabotages.append(spoiled)
        _print_kinds(sabotages)
        return [
            expect_at_least("true_verified", _share(row["end"] == "verified" for row in fixes), 0.95),
            expect_at_least("sabotage_caught", _share(row["caught"] for row in sabotages), 0.99),
            report_value("true_fixes", len(fixes)),
            report_value("sabotages", len(sabotages)),
        ]

    def measure_ordinary(self) -> list[Figure]:
        reviewed: dict[str, str] = json.loads(REVIEWED.read_text())
        rows: list[Row] = []
        per_project = -(-self._size.ordinary // len(PROJECTS))
        for project in PROJECTS:
            clone = open_clone(project, self._data, self._keep)
            for change in list_ordinary(clone)[:per_project]:
                name = f"{clone.root.name}-{change.commit[:10]}"
                options = ("--base", change.base, "--head", change.commit)
                row = self._results.get("ordinary", name, lambda: _describe(self._verify(clone, *options)))  # noqa: B023
                is_right = row["end"] not in ALARMS or change.commit[:10] in reviewed
                _print_row(f"{name} {change.title[:50]}", row, is_right)
                rows.append({**row, "right": is_right})
        judged = [row for row in rows if row["end"] not in ("environment", "error", "no_tests")]
        return [
            expect_at_most("false_alarms", 1 - _share(row["right"] for row in judged), 0.01),
            report_value("ordinary", len(judged)),
            report_value("ordinary_not_run", len(rows) - len(judged)),
        ]

    def measure_cheats(self) -> list[Figure]:
        """Verify the cheats of `cheats.py`."""
        python = make_plain_environment(self._keep) / "bin" / "python"
        accepted = 0
        cheats = [*sample_classes(HELD_OUT_CLASSES, False), *sample_classes(OWN_CLASSES, False)][:: self._size.cheats]
        for cheat in cheats:
            command = ("--test-cmd", "python -m unittest") if cheat.runner == "unittest" else ()
            patch = SmallPatch(cheat.name, cheat.repo, cheat.edits, command)
            row = self._results.get("cheats", cheat.name, lambda: _describe(verify_patch(patch, python, self._level)))  # noqa: B023
            accepted += row["code"] == 0
            _print_row(cheat.name, row, row["code"] != 0)
        return [expect_equal("cheats_accepted", accepted, 0), report_value("cheats", len(cheats))]

    def measure_redteam(self) -> list[Figure]:
        """Play the open set through `verify` and through `fix`."""
        python = make_plain_environment(self._keep) / "bin" / "python"
        rows = redteam.load_rows(self._data / redteam.OPEN)[:: self._size.redteam]
        accepted = same = 0
        for row in rows:
            edits = read_edits(row["files"], redteam.build_answer(row))
            patch = SmallPatch(row["name"], row["files"], edits, tuple(row["args"]))
            verified = self._results.get(
                "redteam",
                row["name"],
                lambda: _describe(verify_patch(patch, python, self._level)),  # noqa: B023
            )
            fixed = self._results.get("redteam-fix", row["name"], lambda: self._play(row))  # noqa: B023
            is_same = (verified["code"] == 0) == (fixed["code"] == 0)
            same += is_same
            accepted += row["kind"] == "cheat" and verified["code"] == 0
            is_right = is_same and (row["kind"] == "honest" or verified["code"] != 0)
            _print_row(f"{row['kind']} {row['name']}, fix ends with {fixed['code']}", verified, is_right)
        return [
            expect_equal("redteam_accepted", accepted, 0),
            expect_equal("redteam_same_ends", same / len(rows), 1),
            report_value("redteam", len(rows)),
        ]

    def _mine(self) -> Iterator[tuple[Clone, CloneWorkbench, MinedFix]]:
        """Yield true fixes, of each project in turn."""
        mines = [self._mine_project(open_clone(project, self._data, self._keep)) for project in PROJECTS]
        while mines:
            for mine in list(mines):
                item = next(mine, None)
                if item is None:
                    mines.remove(mine)
                else:
                    yield item

    def _mine_project(self, clone: Clone) -> Iterator[tuple[Clone, CloneWorkbench, MinedFix]]:
        bench = CloneWorkbench(clone, self._keep / "outcomes")
        return ((clone, bench, mined) for mined in mine_fixes(clone, self._data, bench))

    def _choose_sabotages(self, number: int) -> list[Sabotage]:
        """Choose for each kind the next of our own ways and the next held-out one, or one of both with `alternate`."""
        chosen: list[Sabotage] = []
        for index, kind in enumerate(KINDS):
            halves = (SABOTAGES, self._held_out)
            ways = [[item for item in half if item.kind == kind] for half in halves]
            picked = [half[number % len(half)] for half in ways]
            chosen += [picked[(number + index) % 2]] if self._size.alternate else picked
        return chosen

    def _verify_fix(self, clone: Clone, mined: MinedFix) -> Row:
        accepted = [part for test in list_edited(mined.fix) for part in ("--accept", test)]
        return _describe(self._verify(clone, "--base", mined.base, "--head", mined.commit, *accepted))

    def _verify_sabotage(self, clone: Clone, bench: CloneWorkbench, mined: MinedFix, sabotage: Sabotage) -> Row:
        files = sabotage.make(mined.fix, bench)
        if files is None:
            return {"end": "not made", "code": 0, "claims": [], "seconds": 0, "reason": ""}
        commit = clone.commit_files(mined.base, mined.commit, files)
        return {**_describe(self._verify(clone, "--base", mined.base, "--head", commit)), "commit": commit}

    def _verify(self, clone: Clone, *options: str) -> VerifiedChange:
        return verify(clone.root, self._home, *options, "--level", self._level)

    def _play(self, row: redteam.Row) -> Row:
        played = redteam.play(row, self._level)
        return {"code": played.code, "reason": played.why}


def _describe(verified: VerifiedChange) -> Row:
    result = verified.result
    return {
        "end": result.end.value if result else "error",
        "code": verified.code,
        "seconds": round(verified.seconds, 1),
        "reason": result.reason if result else verified.error,
        "claims": [[claim.kind.value, claim.test, claim.note, claim.accepted] for claim in result.claims]
        if result
        else [],
        "notes": list(result.notes) if result else [],
    }


def _is_caught(sabotage: Sabotage, row: Row, true_row: Row) -> bool:
    known = {(kind, test) for kind, test, *_ in true_row["claims"]}
    shown = {kind for kind, test, *_ in row["claims"] if (kind, test) not in known}
    return row["end"] != "verified" and bool(sabotage.names & {row["end"], *shown})


def _share(values: Iterator[bool]) -> float:
    flags = list(values)
    return sum(flags) / len(flags) if flags else 0.0


def _print_row(name: str, row: Row, is_right: bool) -> None:
    mark = "  " if is_right else "!!"
    print(f"  {mark} {row['seconds']:6.1f} s  {row['end']:<11} {name}: {row['reason'][:100]}", flush=True)


def _print_kinds(rows: Sequence[Row]) -> None:
    made, caught = Counter(row["kind"] for row in rows), Counter(row["kind"] for row in rows if row["caught"])
    for kind in KINDS:
        print(f"  {kind:<24} caught {caught[kind]} of {made[kind]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fixed small sample, at level quick")
    parser.add_argument("--keep", type=Path, help="keep clones and results in this folder, and go on from them")
    parser.add_argument("--results", type=Path, help="keep the results here instead")
    parser.add_argument("--level", choices=redteam.LEVELS, default="standard")
    parser.add_argument("--only", choices=PARTS, action="append", help="measure only this; repeatable")
    for field in Size._fields:
        parser.add_argument(f"--{field}", type=int, metavar="N", help=_HELP[field])
    arguments = parser.parse_args()
    data = find_data_folder()
    if data is None:
        sys.exit("The changes come from the evaluation data: set REDSTART_DATA (see docs/benchmarks.md).")
    size, level = (QUICK, "quick") if arguments.quick else (FULL, arguments.level)
    given = {field: getattr(arguments, field) for field in Size._fields if getattr(arguments, field) is not None}
    size = size._replace(**given)
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder:
        keep = (arguments.keep or Path(folder)).resolve()
        results = Results((arguments.results or keep / "results").resolve() / level)
        bench = Bench(data, keep, results, size, level)
        figures: list[Figure] = []
        try:
            for part in arguments.only or PARTS:
                figures += getattr(bench, f"measure_{part}")()
        except BenchError as error:
            sys.exit(str(error))
    print_figures("verify", figures, level=level)


if __name__ == "__main__":
    main()
