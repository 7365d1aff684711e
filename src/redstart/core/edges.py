"""What belongs together in what a run left: read from its state, written with what it remembers."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.learning import Edge, EdgeKind, Remembered
from redstart.core.run import RunState, Step


def edges_of(run: RunState, left: Remembered) -> tuple[Edge, ...]:
    """Those of the attempt at hand, each once; `run` stands before the step that left it."""
    now = run.now
    iteration = f"{run.run_id}/{now.number}"
    found = [Edge(kind=EdgeKind.iteration, source=run.run_id, target=iteration)]

    def tie(kind: EdgeKind, targets: Iterable[str]) -> None:
        found.extend(Edge(kind=kind, source=iteration, target=one) for one in dict.fromkeys(targets) if one)

    done = [step.value for step in Step if getattr(now, step.value) is not None]
    tie(EdgeKind.step, [*done, Step.remember.value])
    tie(EdgeKind.retrieved_file, [chunk.path for chunk in now.retrieve.chunks] if now.retrieve else [])
    tie(EdgeKind.changed_file, now.patch.files if now.patch else ())
    red = now.reproduce.report.signature if now.reproduce else None
    tie(EdgeKind.failure_signature, [red.key] if red else [])
    tie(EdgeKind.bug_type, [red.exception] if red else [])
    tie(EdgeKind.has_fix_card, [left.card.id] if left.card else [])
    return tuple(found)
