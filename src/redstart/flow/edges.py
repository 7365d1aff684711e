"""Where each step can lead, by mode: what a drawing shows, and what the graph of an engine needs to know.

`flow/route.py` decides; a test compares every edge with it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from redstart.core.run import Mode, Step
from redstart.flow.modes import MODES


class Edge(NamedTuple):
    """`to` is None where the run ends. `when` is empty on the main path."""

    start: Step
    to: Step | None
    when: str = ""


_PATCHING = (Mode.fix, Mode.create, Mode.improve)
_BRANCHES: tuple[tuple[Edge, tuple[Mode, ...]], ...] = (
    (Edge(Step.reproduce, Step.decide, "tests pass, no tests, or environment problem"), _PATCHING),
    (Edge(Step.reproduce, Step.apply, "new tests for a program that exists"), (Mode.create,)),
    (Edge(Step.plan, Step.retrieve, "its tests exist already"), (Mode.create, Mode.improve)),
    (Edge(Step.plan, Step.decide, "several parts: each is a child run"), (Mode.create,)),
    (Edge(Step.plan, Step.decide, "nothing to improve"), (Mode.improve,)),
    (Edge(Step.patch, Step.test, "the model asks to run a snippet"), _PATCHING),
    (Edge(Step.patch, Step.decide, "no usable edits"), _PATCHING),
    (Edge(Step.apply, Step.decide, "edits rejected"), _PATCHING),
    (Edge(Step.check, Step.decide, "new findings or a syntax error"), _PATCHING),
    (Edge(Step.test, Step.remember, "tests pass, or no attempt is left"), _PATCHING),
    (Edge(Step.test, Step.decide, "a snippet ran, or a person must approve"), _PATCHING),
    (Edge(Step.decide, Step.patch, "retry"), _PATCHING),
    (Edge(Step.decide, Step.retrieve, "retry with other code in view"), _PATCHING),
    (Edge(Step.decide, Step.plan, "retry with another plan"), _PATCHING),
    (Edge(Step.decide, Step.reproduce, "retry with other tests"), _PATCHING),
    (Edge(Step.decide, Step.check, "retry with approved packages"), _PATCHING),
)


def edges_of(mode: Mode) -> tuple[Edge, ...]:
    """The main path from its first step to the end, then the branches in the order of their steps."""
    row = MODES[mode]
    main = (*(Edge(step, following) for step, following in pairwise(row)), Edge(row[-1], None))
    return (*main, *(edge for edge, modes in _BRANCHES if mode in modes))


def _leads_to(step: Step) -> tuple[Step, ...]:
    ends = (edge.to for mode in Mode for edge in edges_of(mode) if edge.start is step)
    return tuple(dict.fromkeys(end for end in ends if end is not None))


LEADS_TO: dict[Step, tuple[Step, ...]] = {step: _leads_to(step) for step in Step}
"""Every step that a step can lead to, in any mode."""
