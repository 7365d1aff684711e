"""The figures that a bench measures, and the table and JSON line in which every bench reports them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

DIGITS = 4


class Figure(NamedTuple):
    """`aim` is empty for a figure without an aim. A value is a list if it comes with its interval, and None if it could
    not be measured."""

    name: str
    value: float | Sequence[float] | None
    aim: str = ""
    holds: bool = True


def expect_equal(name: str, value: float, expected: float) -> Figure:
    return Figure(name, round(value, DIGITS), f"= {expected:g}", value == expected)


def expect_at_most(name: str, value: float, maximum: float) -> Figure:
    return Figure(name, round(value, DIGITS), f"<= {maximum:g}", value <= maximum)


def expect_at_least(name: str, value: float, minimum: float) -> Figure:
    return Figure(name, round(value, DIGITS), f">= {minimum:g}", value >= minimum)


def report_value(name: str, value: float) -> Figure:
    """Make a figure without an aim."""
    return Figure(name, round(value, DIGITS))


def print_figures(bench: str, figures: Sequence[Figure], **extra: object) -> bool:
    """Print a table, then the line of JSON, and return whether all figures meet their aims."""
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        verdict = "" if not figure.aim else "ok" if figure.holds else "MISSED"
        print(f"{figure.name:<{width}}  {_format_value(figure.value):>10}  {figure.aim:<10} {verdict}".rstrip())
    rows = [
        {"name": figure.name, "value": figure.value, "aim": figure.aim or "told", "holds": figure.holds}
        for figure in figures
    ]
    print(json.dumps({"bench": bench, **extra, "figures": rows}), flush=True)
    return all(figure.holds for figure in figures)


def _format_value(value: float | Sequence[float] | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, Sequence):
        first, *interval = value
        return f"{first:g} [{', '.join(f'{item:g}' for item in interval)}]"
    return f"{value:g}"
