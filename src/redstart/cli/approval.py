"""Approve the packages that a run requests: at the terminal, or with the commands that are printed."""

from __future__ import annotations

import asyncio

from redstart.app.exit_codes import exit_code
from redstart.app.person_answers import ResumeWish, handle_resume, load_resumed_state
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.cli.output import confirm, echo
from redstart.cli.session import DriveMode, drive_run
from redstart.core.run import RunState, Step
from redstart.flow.route import is_waiting_for_person
from redstart.ports.store.port.runs import PersonWord


def settle_packages(settings: Settings, drive_mode: DriveMode, run_id: str, code: int, *, can_ask: bool) -> int:
    """Ask about the packages that a run waits for, and continue with the answer. Return the exit code.

    If nobody can be asked, print how to approve them instead. The exit code of any other ending is returned unchanged.
    """
    while _is_waiting_for_packages(settings, run_id, code):
        if not can_ask:
            echo(
                f"hint: to approve, run: redstart resume {run_id} --accept\n"
                "      or start again with --approve, or add the packages to dependencies.allow in your settings",
                # With --json, standard output holds events alone.
                err=drive_mode.json,
            )
            return code
        accepts = confirm("Install these packages?", default=False)
        code = _answer(settings, drive_mode, run_id, PersonWord.accept if accepts else PersonWord.reject)
    return code


def _is_waiting_for_packages(settings: Settings, run_id: str, code: int) -> bool:
    async def load(app: AppContext) -> bool:
        state = await app.adapters.store.load(run_id)
        decision = state.now.decide
        about_packages = decision is not None and decision.next in (Step.plan, Step.check)
        return about_packages and is_waiting_for_person(state) and exit_code(state) == code

    with open_app(settings) as app:
        return asyncio.run(load(app))


def _answer(settings: Settings, drive_mode: DriveMode, run_id: str, answer: PersonWord) -> int:
    async def start_run(app: AppContext) -> RunState:
        await handle_resume(app, run_id, ResumeWish(answer=answer))
        return await load_resumed_state(app, run_id)

    return drive_run(settings, drive_mode, start_run)
