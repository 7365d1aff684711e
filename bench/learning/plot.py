"""The learning curve as a self-contained SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from learning.arms import Arm
from redstart.evals.intervals import Estimate, estimate_share

WIDE, HIGH = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 60, 130, 70, 60
COLOURS = {Arm.off: "#6b7280", Arm.on: "#0f766e", Arm.placebo: "#c2410c"}
DASHES = {Arm.off: "6 4", Arm.on: "", Arm.placebo: "2 3"}
"""Dashes that distinguish the lines without colors, even where two lines overlap."""
FONT = "font-family='system-ui, sans-serif'"


class Words(NamedTuple):
    title: str
    label: str
    """Whose result it is, shown on the plot itself."""


def estimate_moving_share(solved: Sequence[bool], window: int) -> list[Estimate]:
    """Return the solved share of the last `window` tasks, from the first full window on."""
    return [estimate_share(sum(solved[end - window : end]), window) for end in range(window, len(solved) + 1)]


def render_svg(solved: Mapping[Arm, Sequence[bool]], caption: Words) -> str:
    """Plot the solved share over the order of tasks: for each arm a line and the band of its 95% interval."""
    count = len(solved[Arm.off])
    window = max(count // 4, 1)
    body = [
        _draw_text(LEFT, 26, caption.title, size=17, weight="600"),
        _draw_text(LEFT, 48, caption.label, size=13, fill="#b91c1c"),
    ]
    body += _draw_axes(count, window)
    lines = {arm: estimate_moving_share(solved[arm], window) for arm in Arm}
    body += [_draw_band(lines[arm], arm, count, window) for arm in Arm]
    body += [_draw_line(lines[arm], arm, count, window) for arm in Arm]
    for number, arm in enumerate(Arm):
        y = TOP + 20 + 26 * number
        start = WIDE - RIGHT + 14
        body.append(f"<line x1='{start}' y1='{y}' x2='{start + 26}' y2='{y}' {_format_stroke(arm)}/>")
        body.append(_draw_text(start + 34, y + 4, arm.value, size=13))
    content = "\n".join(body)
    description = escape(f"{caption.title}. {caption.label}")
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDE} {HIGH}' role='img' aria-label='{description}'>\n"
        f"<rect width='{WIDE}' height='{HIGH}' fill='#ffffff'/>\n{content}\n</svg>\n"
    )


def _draw_axes(count: int, window: int) -> list[str]:
    elements: list[str] = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _scale_y(share)
        elements.append(f"<line x1='{LEFT}' y1='{y:.1f}' x2='{WIDE - RIGHT}' y2='{y:.1f}' stroke='#e5e7eb'/>")
        elements.append(_draw_text(LEFT - 8, y + 4, f"{share:.0%}", size=12, anchor="end"))
    for task in sorted({window, *(count * part // 4 for part in (2, 3, 4))}):
        elements.append(
            _draw_text(_scale_x(task, count, window), HIGH - BOTTOM + 20, str(task), size=12, anchor="middle")
        )
    middle = (LEFT + WIDE - RIGHT) / 2
    label = f"tasks done; solved share of the last {window}, with 95 % intervals"
    return [*elements, _draw_text(middle, HIGH - BOTTOM + 44, label, size=13, anchor="middle")]


def _draw_band(points: Sequence[Estimate], arm: Arm, count: int, window: int) -> str:
    xs = [_scale_x(window + number, count, window) for number in range(len(points))]
    upper = [f"{x:.1f},{_scale_y(item.high):.1f}" for x, item in zip(xs, points, strict=True)]
    lower = [f"{x:.1f},{_scale_y(item.low):.1f}" for x, item in zip(xs, points, strict=True)]
    return f"<polygon points='{' '.join([*upper, *reversed(lower)])}' fill='{COLOURS[arm]}' fill-opacity='0.12'/>"


def _draw_line(points: Sequence[Estimate], arm: Arm, count: int, window: int) -> str:
    places = (
        f"{_scale_x(window + number, count, window):.1f},{_scale_y(point.value):.1f}"
        for number, point in enumerate(points)
    )
    return f"<polyline points='{' '.join(places)}' fill='none' {_format_stroke(arm)}/>"


def _format_stroke(arm: Arm) -> str:
    dash = f" stroke-dasharray='{DASHES[arm]}'" if DASHES[arm] else ""
    return f"stroke='{COLOURS[arm]}' stroke-width='2.5'{dash}"


def _scale_x(task: int, count: int, window: int) -> float:
    plot_width = WIDE - LEFT - RIGHT
    return LEFT + plot_width * (task - window) / max(count - window, 1)


def _scale_y(share: float) -> float:
    return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * share


def _draw_text(
    x: float, y: float, content: str, *, size: int, anchor: str = "start", weight: str = "400", fill: str = "#111827"
) -> str:
    style = f"font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' fill='{fill}' {FONT}"
    return f"<text x='{x:.1f}' y='{y:.1f}' {style}>{escape(content)}</text>"
