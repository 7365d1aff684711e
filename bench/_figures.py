"""What a bench measures, and the table and the line of JSON that every one of them tells it in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

DIGITS = 4


class Figure(NamedTuple):
    """`aim` is empty for what is only told. A value is a list where it comes with its interval, and None where it could
    not be measured."""

    name: str
    value: float | Sequence[float] | None
    aim: str = ""
    holds: bool = True


def exactly(name: str, value: float, wanted: float) -> Figure:
    return Figure(name, round(value, DIGITS), f"= {wanted:g}", value == wanted)


def at_most(name: str, value: float, most: float) -> Figure:
    return Figure(name, round(value, DIGITS), f"<= {most:g}", value <= most)


def at_least(name: str, value: float, least: float) -> Figure:
    return Figure(name, round(value, DIGITS), f">= {least:g}", value >= least)


def told(name: str, value: float) -> Figure:
    """A figure without an aim."""
    return Figure(name, round(value, DIGITS))


def print_figures(bench: str, figures: Sequence[Figure], **more: object) -> bool:
    """A table, then the line of JSON. Whether all of them hold."""
    width = max(len(one.name) for one in figures)
    for one in figures:
        verdict = "" if not one.aim else "ok" if one.holds else "MISSED"
        print(f"{one.name:<{width}}  {_shown(one.value):>10}  {one.aim:<10} {verdict}".rstrip())
    rows = [{"name": one.name, "value": one.value, "aim": one.aim or "told", "holds": one.holds} for one in figures]
    print(json.dumps({"bench": bench, **more, "figures": rows}), flush=True)
    return all(one.holds for one in figures)


def _shown(value: float | Sequence[float] | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, Sequence):
        first, *interval = value
        return f"{first:g} [{', '.join(f'{one:g}' for one in interval)}]"
    return f"{value:g}"
