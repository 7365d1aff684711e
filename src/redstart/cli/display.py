"""What the user sees while a run goes on: a live line in a terminal, plain lines in a pipe, JSON Lines on demand."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from redstart.cli.words import note_in_words, tone, warning_in_words, words
from redstart.core.events import Event, Phase
from redstart.core.noun import clip

_STYLES = {"good": "green", "bad": "red", "": ""}
_QUIET_STEPS = ("reflect",)


class Display(Protocol):
    def __call__(self, event: Event) -> None: ...

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def say(self, text: str, style: str = "") -> None:
        """A line of our own, for people."""
        ...


class JsonLines:
    """Every event as one line of JSON, flushed: the contract of `--json`."""

    def __call__(self, event: Event) -> None:
        sys.stdout.write(event.model_dump_json() + "\n")
        sys.stdout.flush()

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout.flush()

    def say(self, text: str, style: str = "") -> None:
        """People are not spoken to here."""


class Terminal:
    """A line for each finished step; in a terminal also one that moves."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._verbose = verbose
        self._status = _Status()
        self._live = Live(self._status, console=self._console, transient=True, refresh_per_second=8)

    def __enter__(self) -> Terminal:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style))

    def __call__(self, event: Event) -> None:
        self._status.take(event)
        if event.name == "run" or event.phase is Phase.start:
            return
        if event.phase is Phase.note:
            self.say(f"     {note_in_words(event)}", "dim")
        elif self._verbose or event.name not in _QUIET_STEPS:
            self._console.print(self._line(event))
            if warning := warning_in_words(event):
                self.say(f"     {warning}", "yellow")

    def _line(self, event: Event) -> Text:
        seconds = event.data.get("seconds", 0.0)
        said = words(event) if self._verbose else clip(words(event), max(100, self._console.width - 25))
        shown = Text(f"{_numbered(event)}  ", style="dim")
        shown.append(f"{event.name:<10}", style="bold")
        shown.append(said, style=_STYLES[tone(event)])
        if isinstance(seconds, float) and (seconds >= 0.1 or self._verbose):
            shown.append(f"  {seconds:.1f} s", style="dim")
        return shown


def _numbered(event: Event) -> str:
    """The attempt; of a run that another one began, with the number of that run before it."""
    _, _, errand = event.run.partition(".")
    return f"{errand}.{event.attempt}".rjust(5) if errand else f"{event.attempt:>3}"


class _Status:
    """The moving line: step, attempt, red and green, tokens, money, time."""

    def __init__(self) -> None:
        self._spinner = Spinner("dots")
        self._started = time.monotonic()
        self._step, self._attempt, self._tests, self._spent = "", 0, "", ""

    def take(self, event: Event) -> None:
        data = event.data
        if event.phase is Phase.start and event.name != "run":
            self._step, self._attempt = event.name, event.attempt
        if event.name in ("reproduce", "test") and event.phase is Phase.end and not data.get("probe"):
            self._tests = f"{data['red']} red, {data['passed']} green"
        if "tokens" in data:
            self._spent = f"{data['tokens']:,} tokens  ${data.get('usd', 0.0):.3f}"

    def __rich__(self) -> Group:
        elapsed = time.monotonic() - self._started
        parts = (f"attempt {self._attempt}", self._tests, self._spent, f"{elapsed:.0f} s")
        self._spinner.update(text=f"{self._step:<10} " + "  ·  ".join(part for part in parts if part))
        return Group(self._spinner)


def display(*, json: bool, verbose: bool) -> JsonLines | Terminal:
    return JsonLines() if json else Terminal(verbose=verbose)
