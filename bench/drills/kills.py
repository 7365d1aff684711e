"""The worker is killed at each place of a run, and another one continues: the result is that of an undisturbed run."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from _figures import Figure, exactly, told
from drills.ground import DYING, ROOT, Ground, new_ground
from redstart.app.handover import apply_run
from redstart.app.runs import go_on
from redstart.app.wire import engine_called, open_house
from redstart.core.errors import ConfigError
from redstart.core.run import RunState, Step
from redstart.toolkit.repo.handover import HandoverEvent
from support.alike import masked
from support.scenarios import Scenario

PAGER = Scenario.load(ROOT / "tests" / "scenario" / "repos" / "pager")
"""A scenario of two attempts, so that its run passes every step."""
MOMENTS = ("before", "during", "after")
LANES = 3
"""Number of places tried in parallel, each on its own servers: most of the time a fleet waits for a death to show."""
QUICK = 3
DEATH_SECONDS, END_SECONDS = 90.0, 150.0


class Place(NamedTuple):
    step: Step
    moment: str

    @property
    def tenant(self) -> str:
        """A tenant of its own for each place: lessons of one run must not reach the next."""
        return f"{self.moment}-{self.step.value}"


class Came(NamedTuple):
    """The result of the run that was killed at one place."""

    place: Place
    resumed: bool
    lost: bool
    repeated: tuple[str, ...]
    asked_again: int
    seconds: float
    """Seconds from the death to the end."""
    differs: tuple[str, ...]
    """The differences between its last state and that of the undisturbed run."""


class Undisturbed(NamedTuple):
    state: Any
    calls: int
    rows: tuple[tuple[str, int], ...]


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Yield every difference between the two, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted(one.keys() | other.keys()):
            yield from differences(one.get(name), other.get(name), f"{where}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, theirs, f"{where}[{at}]")
    elif one != other:
        yield f"{where}: {str(one)[:60]!r}, not {str(other)[:60]!r}"


def kills(seed: int, *, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    places = [Place(step, moment) for step, moment in product(Step, MOMENTS)]
    if quick:
        places = random.Random(seed).sample(places, QUICK)
    lanes = [places[at::LANES] for at in range(LANES)]
    with ThreadPoolExecutor(LANES) as pool:
        came = [item for lane in pool.map(lambda lane: _lane(lane, say), lanes) for item in lane]
    for item in sorted(came):
        if not item.resumed or item.lost or item.repeated or item.asked_again:
            say(f"{item.place.moment} {item.place.step.value}: {item}")
    return [
        exactly("kills_resumed", sum(item.resumed for item in came), len(places)),
        exactly("kills_steps_lost", sum(item.lost for item in came), 0),
        exactly("kills_effects_repeated", sum(len(item.repeated) for item in came), 0),
        exactly("kills_answers_asked_again", sum(item.asked_again for item in came), 0),
        told("kills_takeover_seconds", sorted(item.seconds for item in came)[len(came) // 2]),
    ]


def _lane(places: Sequence[Place], say: Callable[[str], None]) -> list[Came]:
    with new_ground(PAGER.reply) as ground:
        calm = _undisturbed(ground)
        came: list[Came] = []
        for place in places:
            came.append(_place(ground, place, calm))
            say(f"killed {place.moment} {place.step.value}: ended after {came[-1].seconds:.0f} s")
        return came


def _repo(ground: Ground, name: str) -> Path:
    repo = ground.folder / "repos" / name / PAGER.name
    shutil.copytree(ROOT / "tests" / "scenario" / "repos" / PAGER.name / "repo", repo)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "begin"]):
        identity = ["-c", "user.name=drill", "-c", "user.email=drill@example.com"]
        subprocess.run(["git", *identity, *words], cwd=repo, check=True, capture_output=True)
    return repo


def _undisturbed(ground: Ground) -> Undisturbed:
    """Drive an undisturbed run in this process, with the default engine of a local run."""

    async def run() -> RunState:
        (state,) = await ground.begin(_repo(ground, "calm"), 1, "calm")
        with open_house(ground.settings("calm")) as opened:
            house = opened.with_sandbox().with_model()
            return (await go_on(house, state.run_id, engine_called("langgraph"))).state

    state = asyncio.run(run())
    return Undisturbed(
        masked(state.model_dump(mode="json"), "tenant"), len(ground.model.requests), _rows(ground, state.run_id, "calm")
    )


def _rows(ground: Ground, run_id: str, tenant: str) -> tuple[tuple[str, int], ...]:
    """Count the rows of the run in each table, and its steps and recorded calls by kind."""
    tables = ("steps", "events", "cards", "failures", "edits")
    counts = [(name, f"SELECT count(*) FROM {name} WHERE run_id = '{run_id}'") for name in tables]
    found = [(name, ground.rows(query, tenant)[0][0]) for name, query in counts]
    for table, what in (("steps", "step || ' ' || attempt"), ("journal", "step || ' ' || attempt || ' ' || kind")):
        each = f"SELECT '{table} ' || {what}, count(*) FROM {table} WHERE run_id = '{run_id}' GROUP BY 1 ORDER BY 1"
        found += ground.rows(each, tenant)
    return tuple(found)


def _place(ground: Ground, place: Place, calm: Undisturbed) -> Came:
    before = len(ground.model.requests)
    repo = _repo(ground, place.tenant)
    (run,) = asyncio.run(ground.begin(repo, 1, place.tenant))
    driver = (str(DYING), place.step.value, place.moment)
    victim = ground.worker(driver=driver, at_once=1)
    victim.wait_ready()
    asyncio.run(ground.submit([run]))
    died = victim.process.wait(DEATH_SECONDS) == -signal.SIGKILL
    began = time.monotonic()
    heir = ground.worker(at_once=1)
    try:
        (outcome,) = asyncio.run(asyncio.wait_for(ground.finish([run]), END_SECONDS))
        took = time.monotonic() - began
    finally:
        heir.end()
    asked = [str(request.body) for request in ground.model.requests[before:]]

    state, again = asyncio.run(_handed_over(ground, run.run_id, place.tenant))
    rows = _rows(ground, run.run_id, place.tenant)
    more = [name for name, count in rows if count > dict(calm.rows).get(name, 0)]
    commits = subprocess.run(["git", "rev-list", "--count", "HEAD..green"], cwd=repo, capture_output=True, text=True)
    if commits.stdout.strip() != "1" or again is not HandoverEvent.already:
        more.append("branch")
    differs = tuple(differences(masked(state.model_dump(mode="json"), "tenant"), calm.state))
    return Came(
        place,
        resumed=died and outcome == "verified" and not differs,
        lost=any(dict(rows).get(name, 0) < count for name, count in calm.rows),
        repeated=tuple(more),
        asked_again=max(len(asked) - calm.calls, len(asked) - len(set(asked))),
        seconds=took,
        differs=differs,
    )


async def _handed_over(ground: Ground, run_id: str, tenant: str) -> tuple[RunState, HandoverEvent]:
    """Make a branch of the run twice, and apply the run to the folder twice; return the state and the last event."""
    with open_house(ground.settings(tenant)) as house:
        await apply_run(house, run_id, branch="green")
        with suppress(ConfigError):
            await apply_run(house, run_id, branch="green")
        await apply_run(house, run_id)
        return await house.adapters.store.load(run_id), (await apply_run(house, run_id)).happened
