"""The line that moves in a terminal: the step, how far it is, and what the run has cost so far."""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.spinner import Spinner

from redstart.cli.output import styled
from redstart.core.events import Event, Phase, Progress
from redstart.core.noun import many
from redstart.core.visible import visible_line

SURE_AFTER = 5
"""Tests that must have ended before the time left is told from them."""
WORTH_TELLING = 2.0
"""Seconds below which no time is told."""
ASIDE = 6
"""Cells of the spinner and the margin."""


class MovingLine:
    """Follows events and progress; renders one line that is never wider than the terminal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spinner = Spinner("dots")
        self._started = self._step_began = self._began = self._first_at = clock()
        self._first = 0
        self._step, self._attempt, self._tests, self._spent = "", 0, "", ""
        self._progress: Progress | None = None

    def take(self, event: Event) -> None:
        data = event.data
        if event.phase is Phase.start and event.name != "run":
            self._step, self._attempt, self._progress = event.name, event.attempt, None
            self._step_began = self._clock()
        if event.name in ("reproduce", "test") and event.phase is Phase.end and not data.get("probe"):
            self._tests = f"{data['red']} fail, {data['passed']} pass"
        if "tokens" in data:
            self._spent = f"{data['tokens']:,} tokens, ${data.get('usd', 0.0):.3f}"

    def follow(self, progress: Progress) -> None:
        before = self._progress
        if before is None or before.activity != progress.activity:
            self._began = self._clock()
            self._first = 0
        if progress.done and not self._first:
            self._first, self._first_at = progress.done, self._clock()
        self._progress = progress if progress.activity else None

    def activity(self) -> str:
        """The step and how far it is, for a log; empty where nothing is under way."""
        return f"{self._step}: {', '.join(self._parts())}" if self._step else ""

    def _parts(self) -> list[str]:
        """What is done at the moment, how far it is, and how long it may still take."""
        now = self._progress
        if now is None:
            return [_seconds(self._clock() - self._step_began)]
        elapsed = self._clock() - self._began
        name = visible_line(now.activity)
        count = f"{now.done:,}/{now.total:,}" if now.total else many(now.done, "test")
        left = self._seconds_left(now, elapsed)
        return [
            f"{name} {count}" if now.done else name,
            _seconds(elapsed),
            *([f"about {_seconds(left)} left"] if left is not None and elapsed >= WORTH_TELLING else []),
            *([f"{many(now.tokens, 'token')} sent"] if now.tokens else []),
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.fitted(options.max_width)
        self._spinner.update(text=styled((text, ""), no_wrap=True, overflow="ellipsis"))
        yield self._spinner

    def fitted(self, width: int) -> str:
        """What has room in a line of that width, the most telling first."""
        elapsed = f"{_seconds(self._clock() - self._started)} in all"
        if not self._step:
            return f"starting · {elapsed}"
        parts = [*self._parts(), f"attempt {self._attempt}", self._tests, self._spent, elapsed]
        text = f"{self._step:<10}{parts[0]}"
        for part in filter(None, parts[1:]):
            more = f"{text} · {part}"
            text = more if cell_len(more) <= width - ASIDE else text
        return text

    def _seconds_left(self, progress: Progress, elapsed: float) -> float | None:
        """By the tests that have ended, else by how long it took the last time; None where nobody can tell."""
        counted = progress.done - self._first
        if progress.total and counted >= SURE_AFTER:
            return (self._clock() - self._first_at) * max(progress.total - progress.done, 0) / counted
        return progress.seconds - elapsed if progress.seconds > elapsed else None


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
