"""How many damaged edits each applier gets right: ours, `git apply`, GNU patch and aider, on the same edits.

Real fixes (REDSTART_DATA/fix_diffs.jsonl) are damaged as models damage them, by seed: with the 20 kinds of
`perturb.py`, those of `damage.py`, deletions at the ends of an edit (`deletions.py`), and the held-out kinds of
`heldout/damage.py`, which were written without sight of the ladder.

`intended` is the share that reached the true content among edits that must reach it; `recovered` is the share that
reached it among edits that may also be refused. `wrong` counts files that ended neither unchanged nor as they should,
and files that changed although the edit had to be refused. Blanks at the end of a new line do not count: some damage
removes them for good.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import damage
import deletions
import perturb
from _figures import Figure, expect_at_least, expect_equal, print_figures, report_value
from appliers.peers import COMMANDS, Aider, Command
from kinds import Expect, Fix, Kind, Made
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.patching.ladder import apply_to_snapshot, put
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.repo.trees import GitTrees

HERE = Path(__file__).parent
EXPECTED: dict[str, Expect] = {"new": "reach", "new_crlf": "reach", "reject": "refuse", "any": "either"}
USUAL_STEP, QUICK_STEP, TREES_STEP = 4, 16, 97

Applier = Callable[[str, str, str], str]


class Case(NamedTuple):
    kind: str
    held_out: bool
    expect: Expect
    fix: Fix
    made: Made


class Score:
    """Counts of the cases by expectation and outcome."""

    def __init__(self) -> None:
        self.all: Counter[tuple[Expect, str]] = Counter()
        self.held_out: Counter[tuple[Expect, str]] = Counter()
        self.resist: dict[bool, Counter[str]] = defaultdict(Counter)

    def add(self, case: Case, outcome: str) -> None:
        self.all[case.expect, outcome] += 1
        if case.held_out:
            self.held_out[case.expect, outcome] += 1
        if outcome == "wrong" or (outcome == "refused" and case.expect != "refuse"):
            self.resist[case.held_out][f"{case.kind} {outcome}"] += 1


def load_fixes() -> list[Fix]:
    folder = os.environ.get("REDSTART_DATA", "")
    file = Path(folder) / "fix_diffs.jsonl"
    if not folder or not file.exists():
        sys.exit("bench/edits.py needs fix_diffs.jsonl in the REDSTART_DATA folder; the file is missing")
    rows = map(json.loads, file.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    return [Fix(row["path"], row["old"], row["new"], row["diff"]) for row in rows]


def create_perturb_kind(name: str) -> Kind:
    def make(fix: Fix, seeded: random.Random) -> Made:
        damaged = perturb.ALL[name](fix._asdict(), seeded)
        expected = fix.new.replace("\n", "\r\n") if damaged.expect == "new_crlf" else fix.new
        return Made(damaged.diff, damaged.old, EXPECTED[damaged.expect], expected)

    return Kind(name, "reach", make)


def load_held_out() -> tuple[Kind, ...]:
    """Load the kinds that heldout/damage.py defines, however they are grouped."""
    file = HERE / "heldout" / "damage.py"
    if not file.exists():
        return ()
    spec = importlib.util.spec_from_file_location("heldout_damage", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    groups = (value for value in vars(module).values() if isinstance(value, list | tuple))
    return tuple({item.name: item for group in groups for item in group if isinstance(item, Kind)}.values())


def generate_cases(all_fixes: Sequence[Fix], apart: Sequence[Kind], step: int) -> Iterator[Case]:
    """Yield every `step`-th fix for each kind of damage; each kind starts at another fix, so that all are used."""
    own_kinds = (*map(create_perturb_kind, perturb.ALL), *damage.KINDS, *deletions.KINDS)
    kinds = (*((kind, False) for kind in own_kinds), *((kind, True) for kind in apart))
    for offset, (kind, is_held_out) in enumerate(kinds):
        for number, fix in list(enumerate(all_fixes))[offset % step :: step]:
            damaged = kind.make(fix, random.Random(f"{kind.name}:{number}"))
            if damaged is not None:
                yield Case(kind.name, is_held_out, damaged.expect or kind.expect, fix, damaged)


def apply_edits(path: str, old: str, answer: str) -> str:
    data = old.encode()
    edits = parse(answer).edits
    result = put(edits, {path: data}.get, [path])
    if not edits or result.rejects:
        return old
    other_files = {name for name in result.files if name != path}
    return f"touched {other_files}" if other_files else (result.files[path] or b"").decode()


def classify_outcome(case: Case, after: str) -> str:
    if after == case.made.old:
        return "refused"
    return "reached" if case.expect != "refuse" and _is_same(case.made, after) else "wrong"


def _is_same(made: Made, after: str) -> bool:
    if after == made.wanted:
        return True
    old_lines = set(made.old.split("\n"))
    actual_lines, expected_lines = after.split("\n"), made.wanted.split("\n")
    ends = "\r" if made.old.count("\r\n") else ""
    return len(actual_lines) == len(expected_lines) and all(
        item == expected or (expected not in old_lines and item.endswith(ends) and item.rstrip() == expected.rstrip())
        for item, expected in zip(actual_lines, expected_lines, strict=True)
    )


def matches_in_trees(samples: Sequence[Case]) -> bool:
    """Return whether each edit gives the same content in a real snapshot as the ladder gives on the content alone."""
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        trees = GitTrees(Path(name) / "snapshots", DirectoryBlobs(Path(name) / "blobs"))
        try:
            return all(
                _in_tree(trees, case) == apply_edits(case.fix.path, case.made.old, case.made.answer) for case in samples
            )
        finally:
            trees.close()


def _in_tree(trees: GitTrees, case: Case) -> str:
    base = trees.write(trees.create_empty(), {case.fix.path: case.made.old.encode()})
    edits = parse(case.made.answer).edits
    result = apply_to_snapshot(trees, base, edits) if edits else None
    if result is None or result.snapshot is None:
        return case.made.old
    return (trees.read(result.snapshot, case.fix.path) or b"").decode()


def share(counts: Counter[tuple[Expect, str]], expect: Expect) -> float:
    total = sum(count for (expected, _), count in counts.items() if expected == expect)
    return counts[expect, "reached"] / total if total else 0.0


def build_figures(name: str, score: Score) -> list[Figure]:
    """Make the figures of an applier: ours have aims, those of the others do not."""
    results: list[Figure] = []
    halves = {"": score.all, "heldout_": score.held_out} if score.held_out else {"": score.all}
    for prefix, counts in halves.items():
        wrong_count = sum(count for (_, outcome), count in counts.items() if outcome == "wrong")
        new_figures = [
            expect_at_least(f"{name}{prefix}intended", share(counts, "reach"), 0.995),
            expect_at_least(f"{name}{prefix}recovered", share(counts, "either"), 0.85),
            expect_equal(f"{name}{prefix}wrong", wrong_count, 0),
        ]
        results += [Figure(item.name, item.value) for item in new_figures] if name else new_figures
    return results


def print_table(scores: dict[str, Score], kind_counts: Counter[str]) -> None:
    print(f"{'applier':<14}{'half':<10}{'reach':>14}{'either':>14}{'refuse':>14}{'wrong':>8}")
    for name, score in scores.items():
        for half, counts in (("all", score.all), ("held-out", score.held_out)):
            if not counts:
                continue
            cells: list[str] = []
            for expect, expected_outcome in (("reach", "reached"), ("either", "reached"), ("refuse", "refused")):
                total = sum(count for (expected, _), count in counts.items() if expected == expect)
                cells.append(f"{counts[expect, expected_outcome]}/{total}")
            wrong_count = sum(count for (_, outcome), count in counts.items() if outcome == "wrong")
            print(
                f"{name or 'redstart':<14}{half:<10}" + "".join(f"{cell:>14}" for cell in cells) + f"{wrong_count:>8}"
            )
    print("kinds that ours gets wrong or refuses:", dict(scores[""].resist[False].most_common()))
    print("held-out kinds that ours gets wrong or refuses:", dict(scores[""].resist[True].most_common()))
    print("edits by kind:", dict(kind_counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer edits, and without aider")
    size.add_argument("--all", action="store_true", help="every fix with every kind of damage: takes half an hour")
    parser.add_argument("--ours", action="store_true", help="only our applier")
    args = parser.parse_args()
    all_cases = list(
        generate_cases(load_fixes(), load_held_out(), QUICK_STEP if args.quick else 1 if args.all else USUAL_STEP)
    )
    appliers: dict[str, Applier] = {"": apply_edits}
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder:
        if not args.ours:
            appliers |= {f"{name}_": Command(arguments) for name, arguments in COMMANDS.items()}
        aider = None if args.quick or args.ours else Aider(Path(folder))
        if aider is not None:
            appliers["aider_"] = aider
        scores: dict[str, Score] = {}
        for name, applier in appliers.items():
            scores[name] = Score()
            for case in all_cases:
                scores[name].add(case, classify_outcome(case, applier(case.fix.path, case.made.old, case.made.answer)))
        if aider is not None:
            aider.close()
    trees_agree = matches_in_trees(all_cases[::TREES_STEP])
    print_table(scores, Counter(case.kind for case in all_cases))
    all_figures = [figure for name, score in scores.items() for figure in build_figures(name, score)]
    print_figures(
        "edits",
        [*all_figures, expect_equal("same_in_trees", int(trees_agree), 1), report_value("edits", len(all_cases))],
    )


if __name__ == "__main__":
    main()
