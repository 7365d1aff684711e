"""Approve the packages that a run requests: at the terminal, or with the commands that are printed."""

from __future__ import annotations

import asyncio

from redstart.app.answers import ResumeWish, hear, standing
from redstart.app.exits import exit_code
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_house
from redstart.cli.output import confirm, echo
from redstart.cli.session import DriveMode, drive_run
from redstart.core.run import RunState, Step
from redstart.flow.route import waits_for_a_person
from redstart.ports.store.port.runs import PersonWord


def settle_packages(settings: Settings, how: DriveMode, run_id: str, code: int, *, somebody_there: bool) -> int:
    """Ask about the packages that a run waits for, and continue with the answer. Return the exit code.

    If nobody can be asked, print how to approve them instead. The exit code of any other ending is returned unchanged.
    """
    while _waits_for_packages(settings, run_id, code):
        if not somebody_there:
            if not how.json:
                echo(
                    f"hint: to approve, run: redstart resume {run_id} --accept\n"
                    "      or start again with --approve, or add the packages to dependencies.allow in your settings"
                )
            return code
        accepts = confirm("Install these packages?", default=False)
        code = _answer(settings, how, run_id, PersonWord.accept if accepts else PersonWord.reject)
    return code


def _waits_for_packages(settings: Settings, run_id: str, code: int) -> bool:
    async def load(house: AppContext) -> bool:
        state = await house.adapters.store.load(run_id)
        asked = state.now.decide
        about_packages = asked is not None and asked.next in (Step.plan, Step.check)
        return about_packages and waits_for_a_person(state) and exit_code(state) == code

    with open_house(settings) as house:
        return asyncio.run(load(house))


def _answer(settings: Settings, how: DriveMode, run_id: str, word: PersonWord) -> int:
    async def begin(house: AppContext) -> RunState:
        await hear(house, run_id, ResumeWish(answer=word))
        return await standing(house, run_id)

    return drive_run(settings, how, begin)
