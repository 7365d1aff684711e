"""Display a run in progress: a moving line in a terminal, plain lines in a log, JSON Lines on demand."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner

from redstart.cli.event_text import (
    choose_tone,
    describe_note,
    describe_step,
    explain_failure,
    format_warning,
    is_outcome,
    list_detail_lines,
)
from redstart.cli.output import create_console, echo_json, style_line
from redstart.cli.text_wrap import wrap
from redstart.core.events import Event, Phase, Progress
from redstart.core.frozen import format_count
from redstart.core.safe_text import escape_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


SURE_AFTER = 5
"""Tests that must have ended before the remaining time is estimated from them."""
WORTH_TELLING = 2.0
"""Seconds that an activity must have run before its remaining time is shown."""
RESERVED_WIDTH = 6
"""Cells that the spinner and the margin take."""


class MovingLine:
    """Follow events and progress, and render one line that is never wider than the terminal."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spinner = Spinner("dots")
        self._started_at = self._step_began = self._began = self._first_at = clock()
        self._first = 0
        self._step, self._attempt, self._tests, self._spend_text = "", 0, "", ""
        self._progress: Progress | None = None

    def take(self, event: Event) -> None:
        data = event.data
        if event.phase is Phase.start and event.name != "run":
            self._step, self._attempt, self._progress = event.name, event.attempt, None
            self._step_began = self._clock()
        if event.name in ("reproduce", "test") and event.phase is Phase.end and not data.get("probe"):
            self._tests = f"{data['red']} fail, {data['passed']} pass"
        if "tokens" in data:
            self._spend_text = f"{data['tokens']:,} tokens, ${data.get('usd', 0.0):.3f}"

    def follow(self, progress: Progress) -> None:
        previous = self._progress
        if previous is None or previous.activity != progress.activity:
            self._began = self._clock()
            self._first = 0
        if progress.done and not self._first:
            self._first, self._first_at = progress.done, self._clock()
        self._progress = progress if progress.activity else None

    def describe_activity(self) -> str:
        """Describe the step and its progress for a log. Empty if no step is active."""
        return f"{self._step}: {', '.join(self._list_parts())}" if self._step else ""

    def _list_parts(self) -> list[str]:
        """List the current activity, its progress, and the estimated time left."""
        progress = self._progress
        if progress is None:
            return [_format_seconds(self._clock() - self._step_began)]
        elapsed = self._clock() - self._began
        name = escape_line(progress.activity)
        count = f"{progress.done:,}/{progress.total:,}" if progress.total else format_count(progress.done, "test")
        seconds_left = self._estimate_seconds_left(progress, elapsed)
        return [
            f"{name} {count}" if progress.done else name,
            _format_seconds(elapsed),
            *(
                [f"about {_format_seconds(seconds_left)} left"]
                if seconds_left is not None and elapsed >= WORTH_TELLING
                else []
            ),
            *([f"{format_count(progress.tokens, 'token')} sent"] if progress.tokens else []),
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.fit_to_width(options.max_width)
        self._spinner.update(text=style_line((text, ""), no_wrap=True, overflow="ellipsis"))
        yield self._spinner

    def fit_to_width(self, width: int) -> str:
        """Return the parts that fit into a line of that width, the most important first."""
        elapsed = f"{_format_seconds(self._clock() - self._started_at)} total"
        if not self._step:
            return f"starting · {elapsed}"
        attempt = f"attempt {self._attempt}" if self._attempt else ""
        parts = [*self._list_parts(), attempt, self._tests, self._spend_text, elapsed]
        text = f"{self._step:<10}{parts[0]}"
        for part in filter(None, parts[1:]):
            longer_text = f"{text} · {part}"
            text = longer_text if cell_len(longer_text) <= width - RESERVED_WIDTH else text
        return text

    def _estimate_seconds_left(self, progress: Progress, elapsed: float) -> float | None:
        """Estimate from the ended tests, else from the duration of the last time. None if neither is known."""
        measured_tests = progress.done - self._first
        if progress.total and measured_tests >= SURE_AFTER:
            return (self._clock() - self._first_at) * max(progress.total - progress.done, 0) / measured_tests
        return progress.seconds - elapsed if progress.seconds > elapsed else None


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


_STYLES = {"good": "green", "bad": "red", "": ""}
SOON, PACE = 5.0, 30.0
"""Seconds of silence before a log gets a line of progress: the first wait and the longest. Each doubles the last."""


class Display(Protocol):
    def __call__(self, event: Event) -> None: ...

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @property
    def is_terminal(self) -> bool:
        """Whether the output goes to a terminal, where a person can read it."""
        ...

    def print_line(self, text: str, style: str = "", hang: int | None = None) -> None:
        """Print a line for people. If it is wrapped, indent the continuation by `hang` blanks."""
        ...

    def show_progress(self, progress: Progress) -> None:
        """Show what a step is doing now."""
        ...

    def refresh(self) -> None:
        """Update the display. Call this about every second during a run."""
        ...

    def pause_updates(self) -> AbstractContextManager[None]:
        """Return a context in which nothing moves, so that a person can be asked."""
        ...

    def finish(self, **data: JsonValue) -> None:
        """Add data that is known only at the very end to the last event of the run."""
        ...


class JsonLines:
    """Write every event as one flushed line of JSON: the contract of `--json`.

    Hold back the end of a run until `finish`, or until another event follows.
    """

    is_terminal = False

    def __init__(self) -> None:
        self._pending_event: Event | None = None

    def __call__(self, event: Event) -> None:
        self._release()
        if event.name == "run" and event.phase is Phase.end and "." not in event.run:
            self._pending_event = event
        else:
            self._write(event)

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()
        sys.stdout.flush()

    def print_line(self, text: str, style: str = "", hang: int | None = None) -> None:
        """Do nothing: text for people is not part of JSON Lines."""

    def show_progress(self, progress: Progress) -> None:
        """Do nothing: progress is not an event."""

    def refresh(self) -> None:
        """Do nothing: no line moves."""

    def pause_updates(self) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self, **data: JsonValue) -> None:
        if self._pending_event is not None:
            self._pending_event = self._pending_event.model_copy(update={"data": {**self._pending_event.data, **data}})
        self._release()

    def _release(self) -> None:
        event, self._pending_event = self._pending_event, None
        if event is not None:
            self._write(event)

    def _write(self, event: Event) -> None:
        echo_json(event.model_dump_json())


class Terminal:
    """Print a line for each finished step. In a terminal, wrap it at words and add a moving line.

    In a log every step is one line, however long, so that it can be searched.
    """

    def __init__(
        self,
        *,
        verbose: bool = False,
        steps: bool = True,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or create_console()
        self._verbose = verbose
        self._shows_steps = steps
        self._clock = clock
        self._last_output_at = clock()
        self._pace = SOON
        self._moving = MovingLine(clock)
        self._live = Live(self._moving, console=self._console, transient=True, refresh_per_second=8)

    @property
    def is_terminal(self) -> bool:
        return self._console.is_terminal

    @property
    def moving(self) -> str:
        """The current text of the moving line."""
        return self._moving.fit_to_width(self._console.width)

    def __enter__(self) -> Terminal:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def print_line(self, text: str, style: str = "", hang: int | None = None) -> None:
        for line in wrap(text, self._width, hang=hang):
            self._print(style_line((line, style)))

    def show_progress(self, progress: Progress) -> None:
        self._moving.follow(progress)

    def refresh(self) -> None:
        if self._console.is_terminal or self._clock() - self._last_output_at < self._pace:
            return
        if text := self._moving.describe_activity():
            self.print_line(f"     {text}")
            self._pace = min(2 * self._pace, PACE)

    @contextmanager
    def pause_updates(self) -> Generator[None]:
        self._live.stop()
        try:
            yield
        finally:
            self.__enter__()

    def finish(self, **data: JsonValue) -> None:
        """Stop the moving line. People read the result in words, so `data` is not used."""
        del data
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self._moving.take(event)
        if event.phase is Phase.start:
            self._pace = SOON
        if event.name == "run" or event.phase is Phase.start or not self._shows_steps:
            return
        if event.phase is Phase.note:
            self.print_line(f"     {describe_note(event)}", "dim")
        elif self._verbose or not (_is_quiet(event) or is_outcome(event)):
            self._print_step(event)
            for line in list_detail_lines(event):
                self.print_line(" " * len(_start(event)) + line, "dim")
            if warning := format_warning(event):
                self.print_line(f"     {warning}", "yellow")

    @property
    def _width(self) -> int | None:
        return self._console.width if self._console.is_terminal else None

    def _print_step(self, event: Event) -> None:
        text = describe_step(event)
        start = _start(event)
        seconds = event.data.get("seconds", 0.0)
        is_long = isinstance(seconds, float) and (seconds >= 0.1 or self._verbose)
        lines = wrap(" " * len(start) + text, self._width, hang=len(start))
        duration = f"  {seconds:.1f} s" if is_long else ""
        if self._width is not None and cell_len(lines[-1] + duration) > self._width:
            # The time must not stand alone on a line: move the last word down with it.
            head, _, last_word = lines[-1].rpartition(" ")
            lines[-1:] = [head.rstrip() or " " * len(start), f"{' ' * len(start)}{last_word}"]
        for number, line in enumerate(lines, 1):
            name = event.name.ljust(10)
            prefix = ((start[: -len(name)], "dim"), (name, "bold")) if number == 1 else ((" " * len(start), ""),)
            suffix = duration if number == len(lines) else ""
            self._print(style_line(*prefix, (line[len(start) :], _STYLES[choose_tone(event)]), (suffix, "dim")))

    def _print(self, text: Text) -> None:
        self._last_output_at = self._clock()
        self._console.print(text)


def _is_quiet(event: Event) -> bool:
    """Whether the neighboring lines already say everything about this step."""
    return event.name == "reflect" and not explain_failure(event.data)


def _start(event: Event) -> str:
    """Return the beginning of a step's line."""
    return f"{_format_attempt_number(event)}  {event.name:<10}"


def _format_attempt_number(event: Event) -> str:
    """Format the number of the attempt, for a child run with the number of that run before it."""
    _, _, child = event.run.partition(".")
    return f"{child}.{event.attempt}".rjust(5) if child else f"{event.attempt:>3}"


def display(*, json: bool, verbose: bool) -> JsonLines | Terminal:
    return JsonLines() if json else Terminal(verbose=verbose)
