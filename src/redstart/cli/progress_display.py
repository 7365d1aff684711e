"""Show the progress of a command that only prints a report, and ask what it needs to know."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.cli.display import Terminal
from redstart.cli.output import confirm, create_console, echo
from redstart.cli.session import refresh_periodically
from redstart.core.events import Event, Phase, Progress

T = TypeVar("T")
ReportProgress = Callable[[Progress], None]


def run_with_progress(
    settings: Settings, step: str, work: Callable[[AppContext, ReportProgress], Awaitable[T]], *, unsafe: bool
) -> T:
    """Open the app with its sandbox and do the work, with a moving line on standard error.

    Only the report goes to standard output: it may be JSON, or another program may read it.
    """
    with Terminal(console=create_console(stderr=True), steps=False) as ui, open_app(settings) as app:

        async def go() -> T:
            async with refresh_periodically(ui):
                return await work(app.with_sandbox(unsafe=unsafe), ui.show_progress)

        ui(Event(run="", seq=0, time=app.adapters.world.now(), attempt=0, name=step, phase=Phase.start))
        return asyncio.run(go())


def ask_about_pytest(problem: str) -> bool:
    """Ask whether Redstart's own pytest may run the tests of an environment without one."""
    echo(f"{problem[:1].upper()}{problem[1:]}.", err=True)
    return confirm("Run its tests there with Redstart's own pytest? Nothing is installed.")
