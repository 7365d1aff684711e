"""Makes `pairs.jsonl` anew: pairs of failures of real packages, with the same cause and with another one.

A line of a released package is broken (`breaks.py`), and its own tests are run on two machines (`machines.py`): in
another folder, by another Python, with another hash seed and another temporary folder, with lines shifted, and told by
pytest in another style. The same test, red by the same broken line, is a pair with the same cause.

A pair with another cause is of two broken lines of one package, or of two packages, chosen for texts that are alike.
Where the runner says exactly the same of both in the same place, on the same machine, no reader could tell them apart:
such a pair is left out, and how many were is told. So is one of two parametrisations of a test that found a wrong
value: other values are what they are for. Nothing here looks at what redstart makes of a text.

Needs the package index and the Pythons of `machines.py`. In the folder `bench`: `python -m signatures.make --home
FOLDER`, which goes on there where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from _environments import BenchError
from real.prepare import Sdist, download
from redstart.core.noun import FrozenValue
from redstart.core.report import Case
from signatures.breaks import Break, breaks
from signatures.machines import MACHINES, Job, Machine, Package, interpreter, red_cases, unpacked
from signatures.nodes import seen_by_node

PAIRS = Path(__file__).parent / "pairs.jsonl"
MANIFEST = Path(__file__).parent / "packages.json"
NODE = "bytes.js"
SEED = 11
SAME, DIFFERENT = 100, 100
EACH = 2
"""Changes of each kind in each source file that are thought of."""
BUGS = 14
"""Changes of each package that are tried; some no test notices."""
MOST_OF_A_PACKAGE = 25
"""Of the pairs with one cause."""
MOST_TEXT = 3600
"""A traceback above so many characters is passed over: the pairs are read by people too."""


class Told(FrozenValue):
    """One red test on one machine."""

    bug: str
    package: str
    machine: str
    python: str
    place: str
    """File and function of the broken line."""
    id: str
    message: str
    detail: str
    root: str
    language: str = "python"

    @property
    def side(self) -> dict[str, object]:
        side = {"id": self.id, "message": self.message, "detail": self.detail}
        return {**side, "roots": [self.root], "language": self.language}


class Seen(NamedTuple):
    """One test that one bug made red, on two machines."""

    one: Told
    other: Told


def packages(home: Path) -> Iterator[Package]:
    for entry in json.loads(MANIFEST.read_text()):
        sdist = Sdist.model_validate(entry["sdist"])
        found = list((home / f"sdist-{sdist.name}").glob("*.tar.gz")) or [download(sdist, home)]
        folder = unpacked(found[0], home / "unpacked")
        yield Package(sdist.name, folder, entry["sources"], tuple(entry["tests"]))


class Bench:
    """Runs the tests of broken packages, and keeps what was seen in a file to go on from."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "seen.jsonl"
        self.needs = sorted({need for load in json.loads(MANIFEST.read_text()) for need in load.get("needs", [])})

    def read(self) -> dict[str, list[Seen]]:
        """What was seen of each package so far."""
        lines = self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []
        kept = (json.loads(line) for line in lines)
        return {
            item["package"]: [Seen(*(Told.model_validate(side) for side in pair)) for pair in item["seen"]]
            for item in kept
        }

    def collect(self, package: Package, bugs: int) -> None:
        """Sees so many changes of the package, each on two of three machines."""
        chance = random.Random(f"{SEED} {package.name}")
        texts = {name: (package.folder / name).read_text(encoding="utf-8") for name in package.files}
        thought = [item for name in sorted(texts) for item in breaks(name, texts[name], chance, EACH)]
        chosen = chance.sample(thought, min(bugs, len(thought)))
        machines = chance.sample(MACHINES, 3)
        turns = [chance.sample(machines, 2) for _ in chosen]
        first: dict[int, list[Told]] = {}
        second: dict[int, list[Told]] = {}
        red = {machine.name: self._red(package, machine, texts) for machine in machines}
        for turn, told in ((0, first), (1, second)):
            for machine in machines:
                mine = [
                    place for place, both in enumerate(turns) if both[turn] is machine and (not turn or first[place])
                ]
                ids = [tuple(item.id for item in first[place]) if turn else () for place in mine]
                jobs = [Job(chosen[place], some) for place, some in zip(mine, ids, strict=True)]
                found = red_cases(package, machine, self._python(machine), self.home, jobs) if jobs else []
                for place, cases in zip(mine, found, strict=True):
                    told[place] = [
                        _as_told(case, package, machine, chosen[place], f"{package.name}-{place}")
                        for case in cases or ()
                        if case.id not in red[machine.name]
                    ]
        seen = [
            Seen(item, other)
            for place in sorted(second)
            for item in first[place]
            for other in second[place]
            if item.id == other.id and max(len(item.detail), len(other.detail)) <= MOST_TEXT
        ]
        self._keep(package.name, seen)

    def collect_node(self) -> None:
        seen: list[Seen] = []
        for item in seen_by_node(self.home):
            sides = (
                Told(
                    bug=item.bug,
                    package=NODE,
                    machine=machine.name,
                    python="node",
                    place=item.place,
                    id=case.id,
                    message=case.message,
                    detail=case.detail,
                    root=machine.root,
                    language="node",
                )
                for case, machine in zip((item.one, item.other), item.machines, strict=True)
            )
            seen.append(Seen(*sides))
        self._keep(NODE, seen)

    def _keep(self, package: str, seen: Sequence[Seen]) -> None:
        with self.file.open("a", encoding="utf-8") as kept:
            told = [[side.model_dump() for side in item] for item in seen]
            kept.write(json.dumps({"package": package, "seen": told}) + "\n")
        print(f"{package}: {len({item.one.bug for item in seen})} bugs seen, {len(seen)} red tests", flush=True)

    def _python(self, machine: Machine) -> Path:
        return interpreter(machine, self.home, self.needs)

    def _red(self, package: Package, machine: Machine, texts: Mapping[str, str]) -> frozenset[str]:
        """What is red there without a bug."""
        name = min(texts)
        whole = Break("none", name, 0, "", texts[name])
        (found,) = red_cases(package, machine, self._python(machine), self.home, [Job(whole)])
        print(f"{package.name} on {machine.name}: {'no report' if found is None else len(found)}", flush=True)
        return frozenset(case.id for case in found or ())


def _as_told(case: Case, package: Package, machine: Machine, broken: Break, bug: str) -> Told:
    return Told(
        bug=bug,
        package=package.name,
        machine=machine.name,
        python=machine.python,
        place=f"{broken.file}:{broken.function}:{broken.line}",
        id=case.id,
        message=case.message,
        detail=case.detail,
        root=machine.root.format(package.name),
    )


def same_pairs(seen: Sequence[Seen], chance: random.Random) -> list[dict[str, object]]:
    """One of each bug first, then more, so that no package and no kind of bug has most of them."""
    turns: dict[str, int] = {}
    order: list[tuple[int, float, Seen]] = []
    for item in chance.sample(seen, len(seen)):
        turns[item.one.bug] = turns.get(item.one.bug, 0) + 1
        order.append((turns[item.one.bug], chance.random(), item))
    chosen: list[Seen] = []
    packages_of: Counter[str] = Counter()
    for _, _, item in sorted(order, key=lambda entry: entry[:2]):
        if len(chosen) < SAME and packages_of[item.one.package] < MOST_OF_A_PACKAGE:
            packages_of[item.one.package] += 1
            chosen.append(item)
    return [
        _pair(number, "same", f"{item.machine} ({item.python}) and {other.machine} ({other.python})", item, other)
        for number, (item, other) in enumerate(chosen)
    ]


def different_pairs(seen: Sequence[Seen], chance: random.Random) -> list[dict[str, object]]:
    """Of each kind the most alike, no failure more than twice."""
    used: Counter[str] = Counter()
    chosen: list[dict[str, object]] = []
    left_out = 0
    for kind, share, alike in _KINDS:
        candidates = [
            (_likeness(combination, other), chance.random(), combination, other)
            for combination, other in combinations(seen, 2)
            if combination.one.bug != other.one.bug
            and combination.one.place != other.one.place
            and alike(combination.one, other.one)
        ]
        taken = 0
        for _, _, candidate, other in sorted(candidates, key=lambda entry: entry[:2], reverse=True):
            names = (f"{candidate.one.bug} {candidate.one.id}", f"{other.one.bug} {other.one.id}")
            if taken == share or len(chosen) == DIFFERENT:
                break
            if max(used[name] for name in names) >= 2:
                continue
            if _says_the_same(candidate, other) or _given_otherwise(candidate.one, other.one):
                left_out += 1
                continue
            used.update(names)
            chosen.append(_pair(len(chosen), "different", kind, candidate.one, other.other))
            taken += 1
        print(f"{kind}: {taken} of {len(candidates)}")
    print(f"{left_out} pairs left out: the runner says exactly the same, or the tests were given other values")
    return chosen


def _pair(number: int, word: str, kind: str, one: Told, other: Told) -> dict[str, object]:
    package = one.package if one.package == other.package else f"{one.package} and {other.package}"
    pair = {"id": f"{word}-{number:03}", "same": word == "same", "kind": kind, "package": package}
    return {**pair, "a": one.side, "b": other.side}


def _type(told: Told) -> str:
    first = told.message.partition("\n")[0]
    return "AssertionError" if first.startswith("assert ") else first.partition(":")[0]


def _likeness(one: Seen, other: Seen) -> float:
    return SequenceMatcher(None, one.one.message[:160], other.one.message[:160]).quick_ratio()


_FRAME = re.compile(
    r'^(?:E\s+)?\s*(?:File "([^"]+)", line \d+, in (.+)|([^\s:][^:\n]*\.py):\d+: in (.+))$', re.MULTILINE
)
_SHOWN = re.compile(r"^> +(.*)$", re.MULTILINE)


def _says_the_same(one: Seen, other: Seen) -> bool:
    """Whether message, failing lines and functions are equal where both were told by one machine, or look so."""
    for left in one:
        for right in other:
            if left.machine == right.machine:
                return _telling(left) == _telling(right)
    return _telling(one.one)[:2] == _telling(other.one)[:2] and _telling(one.other)[:2] == _telling(other.other)[:2]


def _given_otherwise(one: Told, other: Told) -> bool:
    return _same_test(one, other) and one.id != other.id and _type(one) == _type(other) == "AssertionError"


def _telling(told: Told) -> tuple[str, str, tuple[str, ...]]:
    plain = re.sub(r"0x[0-9a-f]+", "0x", told.message)
    frames = [" ".join(filter(None, found)) for found in _FRAME.findall(told.detail)]
    return told.id.partition("[")[0], plain, (*frames, *_SHOWN.findall(told.detail))


def _same_test(one: Told, other: Told) -> bool:
    return one.package == other.package and one.id.partition("[")[0] == other.id.partition("[")[0]


def _function(told: Told) -> str:
    return told.place.rpartition(":")[0]


Alike = Callable[[Told, Told], bool]
_KINDS: tuple[tuple[str, int, Alike], ...] = (
    (
        "another bug in the same function",
        16,
        lambda a, b: a.package == b.package and _function(a) == _function(b) and _type(a) == _type(b),
    ),
    ("another value in the same test", 30, lambda a, b: _same_test(a, b) and _type(a) == _type(b)),
    (
        "the same exception in another function",
        24,
        lambda a, b: a.package == b.package and not _same_test(a, b) and _type(a) == _type(b) != "AssertionError",
    ),
    (
        "the same words about another test",
        26,
        lambda a, b: a.package == b.package and not _same_test(a, b) and _type(a) == _type(b) == "AssertionError",
    ),
    ("the same words in another package", 12, lambda a, b: a.package != b.package and _type(a) == _type(b)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="where everything is kept, to go on later")
    parser.add_argument("--only", default="", help="these packages, parted by commas")
    parser.add_argument("--bugs", type=int, default=BUGS)
    args = parser.parse_args()
    home: Path = args.home.resolve()
    (home / "unpacked").mkdir(parents=True, exist_ok=True)
    bench = Bench(home)
    try:
        if NODE not in bench.read() and (not args.only or NODE in args.only.split(",")):
            bench.collect_node()
        for package in packages(home):
            if package.name not in bench.read() and (not args.only or package.name in args.only.split(",")):
                bench.collect(package, args.bugs)
    except BenchError as error:
        sys.exit(str(error))
    # a text with an address of the web in it is a page of the package's, and none of this repo's to hold
    told = (item for found in bench.read().values() for item in found)
    seen = [message for message in told if not any("://" in side.detail for side in message)]
    chance = random.Random(SEED)
    made = same_pairs(seen, chance) + different_pairs(seen, chance)
    PAIRS.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in made), encoding="utf-8")
    print(f"{len(seen)} failures, {len(made)} pairs")


if __name__ == "__main__":
    main()
