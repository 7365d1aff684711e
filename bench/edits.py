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
from _figures import Figure, at_least, exactly, print_figures, told
from appliers.peers import COMMANDS, Aider, Command
from kinds import Expect, Fix, Kind, Made
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.patching.ladder import climb, put
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

    def add(self, case: Case, came: str) -> None:
        self.all[case.expect, came] += 1
        if case.held_out:
            self.held_out[case.expect, came] += 1
        if came == "wrong" or (came == "refused" and case.expect != "refuse"):
            self.resist[case.held_out][f"{case.kind} {came}"] += 1


def fixes() -> list[Fix]:
    folder = os.environ.get("REDSTART_DATA", "")
    file = Path(folder) / "fix_diffs.jsonl"
    if not folder or not file.exists():
        sys.exit("bench/edits.py needs fix_diffs.jsonl in the REDSTART_DATA folder; the file is missing")
    rows = map(json.loads, file.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    return [Fix(row["path"], row["old"], row["new"], row["diff"]) for row in rows]


def of_perturb(name: str) -> Kind:
    def make(fix: Fix, seeded: random.Random) -> Made:
        done = perturb.ALL[name](fix._asdict(), seeded)
        wanted = fix.new.replace("\n", "\r\n") if done.expect == "new_crlf" else fix.new
        return Made(done.diff, done.old, EXPECTED[done.expect], wanted)

    return Kind(name, "reach", make)


def held_out() -> tuple[Kind, ...]:
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


def cases(given: Sequence[Fix], apart: Sequence[Kind], step: int) -> Iterator[Case]:
    """Yield every `step`-th fix for each kind of damage; each kind starts at another fix, so that all are used."""
    ours = (*map(of_perturb, perturb.ALL), *damage.KINDS, *deletions.KINDS)
    kinds = (*((kind, False) for kind in ours), *((kind, True) for kind in apart))
    for first, (kind, held) in enumerate(kinds):
        for number, fix in list(enumerate(given))[first % step :: step]:
            made = kind.make(fix, random.Random(f"{kind.name}:{number}"))
            if made is not None:
                yield Case(kind.name, held, made.expect or kind.expect, fix, made)


def ladder(path: str, old: str, answer: str) -> str:
    data = old.encode()
    edits = parse(answer).edits
    done = put(edits, {path: data}.get, [path])
    if not edits or done.rejects:
        return old
    others = {name for name in done.files if name != path}
    return f"touched {others}" if others else (done.files[path] or b"").decode()


def came(case: Case, after: str) -> str:
    if after == case.made.old:
        return "refused"
    return "reached" if case.expect != "refuse" and _same(case.made, after) else "wrong"


def _same(made: Made, after: str) -> bool:
    if after == made.wanted:
        return True
    before = set(made.old.split("\n"))
    got, wanted = after.split("\n"), made.wanted.split("\n")
    ends = "\r" if made.old.count("\r\n") else ""
    return len(got) == len(wanted) and all(
        item == other or (other not in before and item.endswith(ends) and item.rstrip() == other.rstrip())
        for item, other in zip(got, wanted, strict=True)
    )


def agrees_in_trees(some: Sequence[Case]) -> bool:
    """Return whether each edit gives the same content in a real snapshot as the ladder gives on the content alone."""
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        trees = GitTrees(Path(name) / "snapshots", DirectoryBlobs(Path(name) / "blobs"))
        try:
            return all(_in_tree(trees, case) == ladder(case.fix.path, case.made.old, case.made.answer) for case in some)
        finally:
            trees.close()


def _in_tree(trees: GitTrees, case: Case) -> str:
    base = trees.write(trees.empty(), {case.fix.path: case.made.old.encode()})
    edits = parse(case.made.answer).edits
    done = climb(trees, base, edits) if edits else None
    if done is None or done.snapshot is None:
        return case.made.old
    return (trees.read(done.snapshot, case.fix.path) or b"").decode()


def share(counted: Counter[tuple[Expect, str]], expect: Expect) -> float:
    total = sum(count for (wanted, _), count in counted.items() if wanted == expect)
    return counted[expect, "reached"] / total if total else 0.0


def figures(name: str, score: Score) -> list[Figure]:
    """Make the figures of an applier: ours have aims, those of the others do not."""
    made: list[Figure] = []
    halves = {"": score.all, "heldout_": score.held_out} if score.held_out else {"": score.all}
    for half, counted in halves.items():
        wrong = sum(count for (_, what), count in counted.items() if what == "wrong")
        here = [
            at_least(f"{name}{half}intended", share(counted, "reach"), 0.995),
            at_least(f"{name}{half}recovered", share(counted, "either"), 0.85),
            exactly(f"{name}{half}wrong", wrong, 0),
        ]
        made += [Figure(item.name, item.value) for item in here] if name else here
    return made


def table(scores: dict[str, Score], counted: Counter[str]) -> None:
    print(f"{'applier':<14}{'half':<10}{'reach':>14}{'either':>14}{'refuse':>14}{'wrong':>8}")
    for name, score in scores.items():
        for half, some in (("all", score.all), ("held-out", score.held_out)):
            if not some:
                continue
            cells: list[str] = []
            for expect, good in (("reach", "reached"), ("either", "reached"), ("refuse", "refused")):
                total = sum(count for (wanted, _), count in some.items() if wanted == expect)
                cells.append(f"{some[expect, good]}/{total}")
            wrong = sum(count for (_, what), count in some.items() if what == "wrong")
            print(f"{name or 'redstart':<14}{half:<10}" + "".join(f"{cell:>14}" for cell in cells) + f"{wrong:>8}")
    print("kinds that ours gets wrong or refuses:", dict(scores[""].resist[False].most_common()))
    print("held-out kinds that ours gets wrong or refuses:", dict(scores[""].resist[True].most_common()))
    print("edits by kind:", dict(counted))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer edits, and without aider")
    size.add_argument("--all", action="store_true", help="every fix with every kind of damage: takes half an hour")
    parser.add_argument("--ours", action="store_true", help="only our applier")
    chosen = parser.parse_args()
    made = list(cases(fixes(), held_out(), QUICK_STEP if chosen.quick else 1 if chosen.all else USUAL_STEP))
    appliers: dict[str, Applier] = {"": ladder}
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder:
        if not chosen.ours:
            appliers |= {f"{name}_": Command(arguments) for name, arguments in COMMANDS.items()}
        aider = None if chosen.quick or chosen.ours else Aider(Path(folder))
        if aider is not None:
            appliers["aider_"] = aider
        scores: dict[str, Score] = {}
        for name, applier in appliers.items():
            scores[name] = Score()
            for case in made:
                scores[name].add(case, came(case, applier(case.fix.path, case.made.old, case.made.answer)))
        if aider is not None:
            aider.close()
    agree = agrees_in_trees(made[::TREES_STEP])
    table(scores, Counter(case.kind for case in made))
    all_figures = [figure for name, score in scores.items() for figure in figures(name, score)]
    print_figures("edits", [*all_figures, exactly("same_in_trees", int(agree), 1), told("edits", len(made))])


if __name__ == "__main__":
    main()
