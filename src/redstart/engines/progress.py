"""The progress of a step: which tests have ended, and how long a question is open. It is displayed, never recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from redstart.core.chat import Answer, Ask
from redstart.core.events import Progress
from redstart.ports.model.port import Model
from redstart.ports.model.prices import estimate_input
from redstart.ports.sandbox.launch import listen_to_output
from redstart.toolkit.suites.live_count import OutcomeCounter

APART = 0.2
"""Minimum seconds between two reports."""


class StepWatch:
    """Follows one step and reports its progress, at most a few times per second.

    Of executions that run at the same time, the one that began first is reported.
    """

    def __init__(self, idle: Progress, report: Callable[[Progress], None]) -> None:
        """`idle` names the step and has no activity."""
        self._report, self._idle = report, idle
        self._announced_progress = self._idle
        self._reported = 0.0
        self._reported_counter: OutcomeCounter | None = None

    def announce(self, activity: str, *, tests: int = 0, seconds: float = 0.0) -> None:
        self._announced_progress = self._idle._replace(activity=activity, total=tests, seconds=seconds)

    @contextmanager
    def report_execution(self) -> Generator[None]:
        """Report the progress of an execution while it runs: its output shows how many tests have ended."""
        progress = self._announced_progress
        counter = OutcomeCounter(progress.total)
        self._reported_counter = self._reported_counter or counter
        if progress.activity and self._reported_counter is counter:
            self._report(progress)

        def handle_output(chunk: bytes) -> None:
            moment = time.monotonic()
            is_reported = progress.activity and self._reported_counter is counter
            if counter.feed(chunk) and is_reported and moment - self._reported >= APART:
                self._reported = moment
                self._report(progress._replace(done=counter.finished, total=counter.total))

        try:
            with listen_to_output(handle_output):
                yield
        finally:
            if self._reported_counter is counter:
                self._reported_counter = None
                self._report(self._idle)

    @contextmanager
    def report_question(self, model: str, tokens: int) -> Generator[None]:
        """Report a question while it is open."""
        self._report(self._idle._replace(activity=f"asking {model}", tokens=tokens))
        try:
            yield
        finally:
            self._report(self._idle)


class WatchedModel:
    """A model whose open questions are reported."""

    def __init__(self, inner: Model, watch: StepWatch, get_model_name: Callable[[Ask], str]) -> None:
        self._inner, self._watch, self._get_model_name = inner, watch, get_model_name

    async def ask(self, ask: Ask) -> Answer:
        with self._watch.report_question(self._get_model_name(ask), estimate_input(ask)):
            return await self._inner.ask(ask)
