"""Every edge of a mode's graph, as `route` takes it, and drawings of the graph."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from typing import NamedTuple

from redstart.core.run import Mode, Step
from redstart.flow.modes import MODES


class FlowEdge(NamedTuple):
    """An edge of the graph. `to` is None at the end of the run. `when` is empty on the main path."""

    start: Step
    to: Step | None
    condition: str = ""


_PATCHING = (Mode.fix, Mode.create, Mode.improve)
_BRANCHES: tuple[tuple[FlowEdge, tuple[Mode, ...]], ...] = (
    (FlowEdge(Step.reproduce, Step.decide, "tests pass, no tests, or environment problem"), _PATCHING),
    (FlowEdge(Step.reproduce, Step.decide, "several candidates: each is a child run"), (Mode.fix,)),
    (FlowEdge(Step.reproduce, Step.apply, "new tests for a program that exists"), (Mode.create,)),
    (FlowEdge(Step.plan, Step.retrieve, "its tests exist already"), (Mode.create, Mode.improve)),
    (FlowEdge(Step.plan, Step.decide, "several parts: each is a child run"), (Mode.create,)),
    (FlowEdge(Step.plan, Step.decide, "nothing to improve"), (Mode.improve,)),
    (FlowEdge(Step.patch, Step.test, "the model asks to run a snippet"), _PATCHING),
    (FlowEdge(Step.patch, Step.decide, "no usable edits"), _PATCHING),
    (FlowEdge(Step.apply, Step.decide, "edits rejected"), _PATCHING),
    (FlowEdge(Step.check, Step.decide, "new findings or a syntax error"), _PATCHING),
    (FlowEdge(Step.test, Step.remember, "tests pass, or no attempt is left"), _PATCHING),
    (FlowEdge(Step.test, Step.decide, "a snippet ran, or a person must approve"), _PATCHING),
    (FlowEdge(Step.decide, Step.patch, "retry"), _PATCHING),
    (FlowEdge(Step.decide, Step.retrieve, "retry with other code in view"), _PATCHING),
    (FlowEdge(Step.decide, Step.plan, "retry with another plan"), _PATCHING),
    (FlowEdge(Step.decide, Step.reproduce, "retry with other tests"), _PATCHING),
    (FlowEdge(Step.decide, Step.check, "retry with approved packages"), _PATCHING),
    (FlowEdge(Step.decide, Step.apply, "the kept patch fixes a part"), (Mode.fix,)),
)


def list_edges(mode: Mode) -> tuple[FlowEdge, ...]:
    """List the main path from the first step to the end, then the branches in the order of their steps."""
    row = MODES[mode]
    main = (*(FlowEdge(step, next_step) for step, next_step in pairwise(row)), FlowEdge(row[-1], None))
    return (*main, *(edge for edge, modes in _BRANCHES if mode in modes))


def _list_next_steps(step: Step) -> tuple[Step, ...]:
    ends = (edge.to for mode in Mode for edge in list_edges(mode) if edge.start is step)
    return tuple(dict.fromkeys(end for end in ends if end is not None))


LEADS_TO: dict[Step, tuple[Step, ...]] = {step: _list_next_steps(step) for step in Step}
"""The possible next steps of each step, in any mode."""


END = "finish"
"""The node where a run ends; Mermaid reserves the word `end`."""
_COLUMN = 13
"""Column where the branches begin, relative to the column of the steps."""
_TITLES = {
    Mode.fix: "redstart fix: the steps of an attempt",
    Mode.create: "redstart create: the steps of an attempt",
    Mode.improve: "redstart improve: the steps of a cycle; each cycle is a child run",
    Mode.audit: "redstart audit: its steps",
}


def as_mermaid(mode: Mode) -> str:
    """Draw a flowchart: solid arrows are the main path, dotted arrows are labeled with their conditions."""
    row = MODES[mode]
    lines = ["flowchart TD", "    start([start])", *(f"    {step.value}({step.value})" for step in row)]
    lines += [f"    {END}([end])", f"    start --> {row[0].value}"]
    for edge in list_edges(mode):
        arrow = f'-. "{edge.condition}" .->' if edge.condition else "-->"
        lines.append(f"    {edge.start.value} {arrow} {edge.to.value if edge.to else END}")
    return "\n".join(lines)


def as_text(mode: Mode) -> str:
    """Draw the main path from top to bottom, with the branches beside each step; at most 80 columns."""
    lines = [_TITLES[mode], "", "  start", "    ↓"]
    for step in MODES[mode]:
        branches = [
            f"{edge.condition} → {edge.to.value}"
            for edge in list_edges(mode)
            if edge.start is step and edge.condition and edge.to is not None
        ]
        column = (step.value, *("  │" for _ in branches[2:]), "  ↓")
        for left, right in zip_longest(column, branches, fillvalue=""):
            lines.append(f"  {left:<{_COLUMN}}{right}".rstrip())
    return "\n".join([*lines, "  end"])
