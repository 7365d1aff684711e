"""The steps of a mode as a drawing: Mermaid, or text for a terminal."""

from __future__ import annotations

from itertools import zip_longest

from redstart.core.run import Mode
from redstart.flow.edges import edges_of
from redstart.flow.modes import MODES

END = "finish"
"""The node where a run ends; Mermaid reserves the word `end`."""
_COLUMN = 13
"""Where the branches begin, from the steps' own column."""
_ABOUT = {
    Mode.fix: "redstart fix: the steps of an attempt",
    Mode.create: "redstart create: the steps of an attempt",
    Mode.improve: "redstart improve: the steps of a cycle; each cycle is a child run",
    Mode.audit: "redstart audit: its steps",
}


def as_mermaid(mode: Mode) -> str:
    """A flowchart: solid arrows are the main path, dotted ones say when they are taken."""
    row = MODES[mode]
    lines = ["flowchart TD", "    start([start])", *(f"    {step.value}({step.value})" for step in row)]
    lines += [f"    {END}([end])", f"    start --> {row[0].value}"]
    for edge in edges_of(mode):
        arrow = f'-. "{edge.when}" .->' if edge.when else "-->"
        lines.append(f"    {edge.start.value} {arrow} {edge.to.value if edge.to else END}")
    return "\n".join(lines)


def as_text(mode: Mode) -> str:
    """The main path from top to bottom, and beside each step when it leads elsewhere; at most 80 columns."""
    lines = [_ABOUT[mode], "", "  start", "    ↓"]
    for step in MODES[mode]:
        branches = [
            f"{edge.when} → {edge.to.value}"
            for edge in edges_of(mode)
            if edge.start is step and edge.when and edge.to is not None
        ]
        column = (step.value, *("  │" for _ in branches[2:]), "  ↓")
        for left, right in zip_longest(column, branches, fillvalue=""):
            lines.append(f"  {left:<{_COLUMN}}{right}".rstrip())
    return "\n".join([*lines, "  end"])
