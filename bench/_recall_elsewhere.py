"""What the bar for fix cards of other projects lets pass (`Embedder.near_elsewhere`), with the built-in embedder.

`elsewhere_different`: the share of pairs of different failures of two real packages (the failures of the pairs of
`memory.py`) that would be shown for each other. `elsewhere_different_before`: the same with the limit for cards of the
same repo, and with plain assertions.

`elsewhere_same`: the share of those real failures that are still recalled in another project, where the same function
lies in another file. Plain assertions are not among them: they are recalled elsewhere only by their signature.

`elsewhere_made`: the same share of made failures (`_recall_cards.py`), of which a quarter is unchanged except for the
project, a quarter is in another function, a quarter has other words, and a quarter has both.
`elsewhere_near_misses`: the share of their near-misses that would be shown.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from operator import mul
from typing import NamedTuple

from _figures import Figure, expect_at_least, expect_at_most, report_value
from _recall_cards import Bug, create_card, generate_bugs
from redstart.core.learning import Signature, build_similarity_text
from redstart.ports.memory.hashing import HashingEmbedder, embed_text

BUGS = 400
PROJECTS = ("billing", "crm", "portal", "reporting")
FILES = ("core", "utils", "helpers", "tools")
BAR, LIMIT_WITHIN = HashingEmbedder.near_elsewhere, HashingEmbedder.near


class RealFailure(NamedTuple):
    package: str
    signature: Signature
    place: Sequence[float]


def compute_likeness(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(map(mul, one, other))


def place(signature: Signature) -> list[float]:
    return embed_text(build_similarity_text(signature))


def move_function(signature: Signature, rng: random.Random) -> Signature:
    """Return the failure of the same function in another project."""
    function = signature.frame.rpartition(":")[2].rpartition(".")[2]
    return signature.model_copy(update={"frame": f"{rng.choice(PROJECTS)}/{rng.choice(FILES)}.py:{function}"})


def change_bug(bug: Bug, number: int, rng: random.Random) -> Signature:
    """Return the failure in another project, also in another function or in other words."""
    signature = bug.signature
    frame, message = signature.frame.replace("shop/", f"{rng.choice(PROJECTS)}/", 1), signature.message
    if number % 2:
        frame = frame.replace(f".{bug.deed}_{bug.number}", f".do_{bug.deed}")
    if number // 2 % 2:
        message = f"{message} (while handling {bug.other})"
    return signature.model_copy(update={"frame": frame, "message": message})


def elsewhere_figures(signed: Sequence[tuple[str, Signature]]) -> Iterator[Figure]:
    """Yield the figures. `signed` are real failures, each with its package."""
    rng = random.Random(7)
    distinct = {(package, signature.key): signature for package, signature in signed}
    failures = [RealFailure(package, signature, place(signature)) for (package, _), signature in distinct.items()]
    pairs = [
        (compute_likeness(one.place, other.place), one.signature, other.signature)
        for one, other in itertools.combinations(failures, 2)
        if one.package != other.package and one.signature.key != other.signature.key
    ]
    shown = [
        likeness >= BAR and not (one.is_plain_assertion or other.is_plain_assertion) for likeness, one, other in pairs
    ]
    before = [likeness >= LIMIT_WITHIN or one.family == other.family for likeness, one, other in pairs]
    yield report_value("elsewhere_pairs", len(pairs))
    yield expect_at_most("elsewhere_different", sum(shown) / len(pairs), 0.01)
    yield report_value("elsewhere_different_before", sum(before) / len(pairs))
    code_failures = [failure for failure in failures if not failure.signature.is_plain_assertion]
    same = [
        compute_likeness(failure.place, place(move_function(failure.signature, rng))) >= BAR
        for failure in code_failures
    ]
    yield expect_at_least("elsewhere_same", sum(same) / len(same), 0.9)
    yield from _made_figures(rng)


def _made_figures(rng: random.Random) -> Iterator[Figure]:
    made: list[bool] = []
    misses: list[bool] = []
    for number, group in enumerate(itertools.islice(generate_bugs(rng), BUGS)):
        query = place(change_bug(group[0], number, rng))
        made.append(compute_likeness(query, embed_text(create_card(group[0], 0).likeness)) >= BAR)
        misses += [
            compute_likeness(query, embed_text(create_card(miss, 0).likeness)) >= BAR
            for miss in rng.sample(group[1:], 10)
        ]
    yield expect_at_least("elsewhere_made", sum(made) / len(made), 0.95)
    yield report_value("elsewhere_near_misses", sum(misses) / len(misses))
