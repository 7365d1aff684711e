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
from redstart.core.frozen import FrozenValue
from redstart.core.report import Case
from signatures.breaks import Break, create_breaks
from signatures.machines import MACHINES, Job, Machine, Package, create_interpreter, run_jobs, unpack_sdist
from signatures.nodes import run_node_bugs

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
        fields = {"id": self.id, "message": self.message, "detail": self.detail}
        return {**fields, "roots": [self.root], "language": self.language}


class Seen(NamedTuple):
    """One test that one bug made red, on two machines."""

    one: Told
    other: Told


def iter_packages(home: Path) -> Iterator[Package]:
    for entry in json.loads(MANIFEST.read_text()):
        sdist = Sdist.model_validate(entry["sdist"])
        archives = list((home / f"sdist-{sdist.name}").glob("*.tar.gz")) or [download(sdist, home)]
        folder = unpack_sdist(archives[0], home / "unpacked")
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
        entries = (json.loads(line) for line in lines)
        return {
            item["package"]: [Seen(*(Told.model_validate(side) for side in pair)) for pair in item["seen"]]
            for item in entries
        }

    def collect(self, package: Package, bugs: int) -> None:
        """Sees so many changes of the package, each on two of three machines."""
        chance = random.Random(f"{SEED} {package.name}")
        texts = {name: (package.folder / name).read_text(encoding="utf-8") for name in package.files}
        candidates = [item for name in sorted(texts) for item in create_breaks(name, texts[name], chance, EACH)]
        selected = chance.sample(candidates, min(bugs, len(candidates)))
        machines = chance.sample(MACHINES, 3)
        turns = [chance.sample(machines, 2) for _ in selected]
        first_turn: dict[int, list[Told]] = {}
        second_turn: dict[int, list[Told]] = {}
        known_red = {machine.name: self._find_red_tests(package, machine, texts) for machine in machines}
        for turn, turn_results in ((0, first_turn), (1, second_turn)):
            for machine in machines:
                positions = [
                    place
                    for place, pair in enumerate(turns)
                    if pair[turn] is machine and (not turn or first_turn[place])
                ]
                ids = [tuple(item.id for item in first_turn[place]) if turn else () for place in positions]
                jobs = [Job(selected[place], test_ids) for place, test_ids in zip(positions, ids, strict=True)]
                reports = run_jobs(package, machine, self._get_python(machine), self.home, jobs) if jobs else []
                for place, cases in zip(positions, reports, strict=True):
                    turn_results[place] = [
                        _create_failure(case, package, machine, selected[place], f"{package.name}-{place}")
                        for case in cases or ()
                        if case.id not in known_red[machine.name]
                    ]
        matches = [
            Seen(item, other)
            for place in sorted(second_turn)
            for item in first_turn[place]
            for other in second_turn[place]
            if item.id == other.id and max(len(item.detail), len(other.detail)) <= MOST_TEXT
        ]
        self._keep(package.name, matches)

    def collect_node(self) -> None:
        matches: list[Seen] = []
        for item in run_node_bugs(self.home):
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
            matches.append(Seen(*sides))
        self._keep(NODE, matches)

    def _keep(self, package: str, matches: Sequence[Seen]) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            rows = [[side.model_dump() for side in item] for item in matches]
            file.write(json.dumps({"package": package, "seen": rows}) + "\n")
        print(f"{package}: {len({item.one.bug for item in matches})} bugs seen, {len(matches)} red tests", flush=True)

    def _get_python(self, machine: Machine) -> Path:
        return create_interpreter(machine, self.home, self.needs)

    def _find_red_tests(self, package: Package, machine: Machine, texts: Mapping[str, str]) -> frozenset[str]:
        """What is red there without a bug."""
        name = min(texts)
        unbroken = Break("none", name, 0, "", texts[name])
        (cases,) = run_jobs(package, machine, self._get_python(machine), self.home, [Job(unbroken)])
        print(f"{package.name} on {machine.name}: {'no report' if cases is None else len(cases)}", flush=True)
        return frozenset(case.id for case in cases or ())


def _create_failure(case: Case, package: Package, machine: Machine, broken: Break, bug: str) -> Told:
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


def choose_same_pairs(matches: Sequence[Seen], chance: random.Random) -> list[dict[str, object]]:
    """One of each bug first, then more, so that no package and no kind of bug has most of them."""
    turns: dict[str, int] = {}
    order: list[tuple[int, float, Seen]] = []
    for item in chance.sample(matches, len(matches)):
        turns[item.one.bug] = turns.get(item.one.bug, 0) + 1
        order.append((turns[item.one.bug], chance.random(), item))
    selected: list[Seen] = []
    package_counts: Counter[str] = Counter()
    for _, _, item in sorted(order, key=lambda entry: entry[:2]):
        if len(selected) < SAME and package_counts[item.one.package] < MOST_OF_A_PACKAGE:
            package_counts[item.one.package] += 1
            selected.append(item)
    return [
        _pair(number, "same", f"{item.machine} ({item.python}) and {other.machine} ({other.python})", item, other)
        for number, (item, other) in enumerate(selected)
    ]


def choose_different_pairs(matches: Sequence[Seen], chance: random.Random) -> list[dict[str, object]]:
    """Of each kind the most alike, no failure more than twice."""
    used: Counter[str] = Counter()
    selected: list[dict[str, object]] = []
    left_out = 0
    for kind, share, alike in _KINDS:
        candidates = [
            (_compute_likeness(combination, other), chance.random(), combination, other)
            for combination, other in combinations(matches, 2)
            if combination.one.bug != other.one.bug
            and combination.one.place != other.one.place
            and alike(combination.one, other.one)
        ]
        taken_count = 0
        for _, _, candidate, other in sorted(candidates, key=lambda entry: entry[:2], reverse=True):
            names = (f"{candidate.one.bug} {candidate.one.id}", f"{other.one.bug} {other.one.id}")
            if taken_count == share or len(selected) == DIFFERENT:
                break
            if max(used[name] for name in names) >= 2:
                continue
            if _is_indistinguishable(candidate, other) or _has_other_values(candidate.one, other.one):
                left_out += 1
                continue
            used.update(names)
            selected.append(_pair(len(selected), "different", kind, candidate.one, other.other))
            taken_count += 1
        print(f"{kind}: {taken_count} of {len(candidates)}")
    print(f"{left_out} pairs left out: the runner says exactly the same, or the tests were given other values")
    return selected


def _pair(number: int, label: str, kind: str, failure: Told, other: Told) -> dict[str, object]:
    package = failure.package if failure.package == other.package else f"{failure.package} and {other.package}"
    pair = {"id": f"{label}-{number:03}", "same": label == "same", "kind": kind, "package": package}
    return {**pair, "a": failure.side, "b": other.side}


def _type(failure: Told) -> str:
    first_line = failure.message.partition("\n")[0]
    return "AssertionError" if first_line.startswith("assert ") else first_line.partition(":")[0]


def _compute_likeness(match: Seen, other: Seen) -> float:
    return SequenceMatcher(None, match.one.message[:160], other.one.message[:160]).quick_ratio()


_FRAME = re.compile(
    r'^(?:E\s+)?\s*(?:File "([^"]+)", line \d+, in (.+)|([^\s:][^:\n]*\.py):\d+: in (.+))$', re.MULTILINE
)
_SHOWN = re.compile(r"^> +(.*)$", re.MULTILINE)


def _is_indistinguishable(match: Seen, other: Seen) -> bool:
    """Whether message, failing lines and functions are equal where both were told by one machine, or look so."""
    for left in match:
        for right in other:
            if left.machine == right.machine:
                return _summarize_failure(left) == _summarize_failure(right)
    return (
        _summarize_failure(match.one)[:2] == _summarize_failure(other.one)[:2]
        and _summarize_failure(match.other)[:2] == _summarize_failure(other.other)[:2]
    )


def _has_other_values(failure: Told, other: Told) -> bool:
    return (
        _is_same_test(failure, other) and failure.id != other.id and _type(failure) == _type(other) == "AssertionError"
    )


def _summarize_failure(failure: Told) -> tuple[str, str, tuple[str, ...]]:
    message = re.sub(r"0x[0-9a-f]+", "0x", failure.message)
    frames = [" ".join(filter(None, parts)) for parts in _FRAME.findall(failure.detail)]
    return failure.id.partition("[")[0], message, (*frames, *_SHOWN.findall(failure.detail))


def _is_same_test(failure: Told, other: Told) -> bool:
    return failure.package == other.package and failure.id.partition("[")[0] == other.id.partition("[")[0]


def _get_function(failure: Told) -> str:
    return failure.place.rpartition(":")[0]


Alike = Callable[[Told, Told], bool]
_KINDS: tuple[tuple[str, int, Alike], ...] = (
    (
        "another bug in the same function",
        16,
        lambda a, b: a.package == b.package and _get_function(a) == _get_function(b) and _type(a) == _type(b),
    ),
    ("another value in the same test", 30, lambda a, b: _is_same_test(a, b) and _type(a) == _type(b)),
    (
        "the same exception in another function",
        24,
        lambda a, b: a.package == b.package and not _is_same_test(a, b) and _type(a) == _type(b) != "AssertionError",
    ),
    (
        "the same words about another test",
        26,
        lambda a, b: a.package == b.package and not _is_same_test(a, b) and _type(a) == _type(b) == "AssertionError",
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
        for package in iter_packages(home):
            if package.name not in bench.read() and (not args.only or package.name in args.only.split(",")):
                bench.collect(package, args.bugs)
    except BenchError as error:
        sys.exit(str(error))
    # a text with an address of the web in it is a page of the package's, and none of this repo's to hold
    all_matches = (item for matches in bench.read().values() for item in matches)
    selected = [message for message in all_matches if not any("://" in side.detail for side in message)]
    chance = random.Random(SEED)
    pairs = choose_same_pairs(selected, chance) + choose_different_pairs(selected, chance)
    PAIRS.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in pairs), encoding="utf-8")
    print(f"{len(selected)} failures, {len(pairs)} pairs")


if __name__ == "__main__":
    main()
