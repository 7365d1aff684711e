"""The quality of memory: failure fingerprints (`same_cause`, `different_cause`), recall (`_recall_cards.py`) and recall
from other projects (`_recall_elsewhere.py`).

Each of the first two is the share of pairs of failures that share a key: ideally all pairs with the same cause, and no
pairs with different causes. The pairs are failures of real packages. One half is `signatures/pairs.jsonl`, made by
`signatures/make.py`; the other, `heldout/signatures/pairs.jsonl`, was written without sight of how keys are made. The
figures are given for each half and, under the plain name, for both. Wrong pairs are printed by their IDs.

A line of a file of pairs is {"id", "same", "kind", "package", "a", "b"}, where each side is {"id", "message", "detail",
"roots", "language"}: a test's ID, the runner's message, its traceback, and the folders of the repo in that traceback.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import _paths  # noqa: F401
import _recall_cards
import _recall_elsewhere
from _figures import Figure, expect_at_least, expect_at_most, print_figures
from redstart.core.frozen import FrozenValue
from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import find_protection

HERE = Path(__file__).parent
HALVES = {
    "open": HERE / "signatures" / "pairs.jsonl",
    "heldout": HERE / "heldout" / "signatures" / "pairs.jsonl",
}
LEAST_PAIRS = 200
"""Minimum number of pairs in each half."""


class Side(FrozenValue):
    id: str
    message: str
    detail: str
    roots: tuple[str, ...]
    language: Literal["python", "node"]


class Pair(FrozenValue):
    id: str
    same: bool
    kind: str
    package: str
    a: Side
    b: Side


def sign_failure(side: Side) -> Signature:
    """Sign the failure as a run does: files that a patch may not touch do not count as source."""
    case = Case(id=side.id, outcome=Outcome.failed, message=side.message, detail=side.detail)
    return sign(case, is_source=lambda path: not find_protection(path), roots=side.roots)


def read(file: Path) -> list[Pair]:
    """Read the pairs of a file; empty if the file is missing."""
    if not file.exists():
        return []
    return [Pair.model_validate_json(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def signature_figures(*, quick: bool, explain: bool) -> Iterator[Figure]:
    """Yield the figures of failure fingerprints. `quick` changes nothing: this takes almost no time."""
    del quick
    halves = {name: read(file) for name, file in HALVES.items()}
    for name, pairs in halves.items():
        yield expect_at_least(f"pairs_{name}", len(pairs), LEAST_PAIRS)
        yield from _build_share_figures(pairs, f"_{name}", explain=explain)
    yield from _build_share_figures([pair for pairs in halves.values() for pair in pairs], "", explain=False)


def _build_share_figures(pairs: Sequence[Pair], suffix: str, *, explain: bool) -> Iterator[Figure]:
    one_key = {pair.id: _has_one_key(pair, explain=explain) for pair in pairs}
    same, different = ([one_key[pair.id] for pair in pairs if pair.same is same] for same in (True, False))
    yield expect_at_least(f"same_cause{suffix}", sum(same) / len(same) if same else 0, 0.99)
    yield expect_at_most(f"different_cause{suffix}", sum(different) / len(different) if different else 1, 0.01)
    if explain:
        wrong_counts = Counter(f"{pair.kind} ({pair.same=})" for pair in pairs if one_key[pair.id] is not pair.same)
        for kind, count in wrong_counts.most_common():
            print(f"  {count} wrong of {sum(pair.kind == kind.partition(' (pair')[0] for pair in pairs)}: {kind}")


def _has_one_key(pair: Pair, *, explain: bool) -> bool:
    signature_a, signature_b = sign_failure(pair.a), sign_failure(pair.b)
    if explain and (signature_a.key == signature_b.key) is not pair.same:
        print(f"{pair.id} ({pair.package}; {pair.kind}): {'same' if pair.same else 'different'} cause")
        print(f"  {signature_a}\n  {signature_b}")
    return signature_a.key == signature_b.key


def recall_figures(*, quick: bool, explain: bool) -> Iterator[Figure]:
    del explain
    yield from _recall_cards.recall_figures(quick=quick)


def elsewhere_figures(*, quick: bool, explain: bool) -> Iterator[Figure]:
    """Yield the figures of recall from other projects. `quick` changes nothing: this takes seconds."""
    del quick, explain
    sides = [(pair.package, side) for file in HALVES.values() for pair in read(file) for side in (pair.a, pair.b)]
    yield from _recall_elsewhere.elsewhere_figures([(package, sign_failure(side)) for package, side in sides])


FIGURES = {"signatures": signature_figures, "recall": recall_figures, "elsewhere": elsewhere_figures}
"""The figures by part, so that `--only` can select one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(FIGURES), help="measure only this part")
    parser.add_argument("--explain", action="store_true", help="print wrong pairs with both fingerprints")
    parser.add_argument("--quick", action="store_true", help="recall over 40,000 cards instead of 100,000")
    args = parser.parse_args()
    figures: list[Figure] = []
    for part, measure in FIGURES.items():
        if args.only in (None, part):
            figures += measure(quick=args.quick, explain=args.explain)
    print_figures("memory", figures)


if __name__ == "__main__":
    main()
