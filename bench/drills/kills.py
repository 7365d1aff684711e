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

from _figures import Figure, expect_equal, report_value
from drills.ground import DYING, ROOT, Ground, open_cluster
from redstart.app.handover import apply_run
from redstart.app.runs import go_on
from redstart.app.wire import load_engine, open_app
from redstart.core.errors import ConfigError
from redstart.core.run import RunState, Step
from redstart.toolkit.repo.handover import HandoverEvent
from support.alike import mask_fields
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


def find_differences(left: Any, right: Any, where: str = "") -> Iterator[str]:
    """Yield every difference between the two, with both values."""
    if isinstance(left, dict) and isinstance(right, dict):
        for name in sorted(left.keys() | right.keys()):
            yield from find_differences(left.get(name), right.get(name), f"{where}.{name}")
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (left_item, right_item) in enumerate(zip(left, right, strict=True)):
            yield from find_differences(left_item, right_item, f"{where}[{index}]")
    elif left != right:
        yield f"{where}: {str(left)[:60]!r}, not {str(right)[:60]!r}"


def measure_kills(seed: int, *, quick: bool, say: Callable[[str], None]) -> list[Figure]:
    places = [Place(step, moment) for step, moment in product(Step, MOMENTS)]
    if quick:
        places = random.Random(seed).sample(places, QUICK)
    batches = [places[index::LANES] for index in range(LANES)]
    with ThreadPoolExecutor(LANES) as pool:
        results = [item for batch in pool.map(lambda batch: _run_batch(batch, say), batches) for item in batch]
    for item in sorted(results):
        if not item.resumed or item.lost or item.repeated or item.asked_again:
            say(f"{item.place.moment} {item.place.step.value}: {item}")
    return [
        expect_equal("kills_resumed", sum(item.resumed for item in results), len(places)),
        expect_equal("kills_steps_lost", sum(item.lost for item in results), 0),
        expect_equal("kills_effects_repeated", sum(len(item.repeated) for item in results), 0),
        expect_equal("kills_answers_asked_again", sum(item.asked_again for item in results), 0),
        report_value("kills_takeover_seconds", sorted(item.seconds for item in results)[len(results) // 2]),
    ]


def _run_batch(places: Sequence[Place], say: Callable[[str], None]) -> list[Came]:
    with open_cluster(PAGER.reply) as cluster:
        undisturbed = _run_undisturbed(cluster)
        results: list[Came] = []
        for place in places:
            results.append(_place(cluster, place, undisturbed))
            say(f"killed {place.moment} {place.step.value}: ended after {results[-1].seconds:.0f} s")
        return results


def _create_repo(ground: Ground, name: str) -> Path:
    repo = ground.folder / "repos" / name / PAGER.name
    shutil.copytree(ROOT / "tests" / "scenario" / "repos" / PAGER.name / "repo", repo)
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "begin"]):
        identity = ["-c", "user.name=drill", "-c", "user.email=drill@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True)
    return repo


def _run_undisturbed(ground: Ground) -> Undisturbed:
    """Drive an undisturbed run in this process, with the default engine of a local run."""

    async def run() -> RunState:
        (state,) = await ground.store_runs(_create_repo(ground, "calm"), 1, "calm")
        with open_app(ground.create_settings("calm")) as base_app:
            app = base_app.with_sandbox().with_model()
            return (await go_on(app, state.run_id, load_engine("langgraph"))).state

    state = asyncio.run(run())
    return Undisturbed(
        mask_fields(state.model_dump(mode="json"), "tenant"),
        len(ground.model.requests),
        _count_rows(ground, state.run_id, "calm"),
    )


def _count_rows(ground: Ground, run_id: str, tenant: str) -> tuple[tuple[str, int], ...]:
    """Count the rows of the run in each table, and its steps and recorded calls by kind."""
    tables = ("steps", "events", "cards", "failures", "edits")
    queries = [(name, f"SELECT count(*) FROM {name} WHERE run_id = '{run_id}'") for name in tables]
    row_counts = [(name, ground.query_rows(query, tenant)[0][0]) for name, query in queries]
    for table, column in (("steps", "step || ' ' || attempt"), ("journal", "step || ' ' || attempt || ' ' || kind")):
        grouped_query = (
            f"SELECT '{table} ' || {column}, count(*) FROM {table} WHERE run_id = '{run_id}' GROUP BY 1 ORDER BY 1"
        )
        row_counts += ground.query_rows(grouped_query, tenant)
    return tuple(row_counts)


def _place(ground: Ground, place: Place, undisturbed: Undisturbed) -> Came:
    requests_before = len(ground.model.requests)
    repo = _create_repo(ground, place.tenant)
    (run,) = asyncio.run(ground.store_runs(repo, 1, place.tenant))
    driver = (str(DYING), place.step.value, place.moment)
    victim = ground.start_worker(driver=driver, at_once=1)
    victim.wait_ready()
    asyncio.run(ground.submit([run]))
    was_killed = victim.process.wait(DEATH_SECONDS) == -signal.SIGKILL
    began = time.monotonic()
    successor = ground.start_worker(at_once=1)
    try:
        (outcome,) = asyncio.run(asyncio.wait_for(ground.finish([run]), END_SECONDS))
        seconds = time.monotonic() - began
    finally:
        successor.end()
    questions = [str(request.body) for request in ground.model.requests[requests_before:]]

    state, last_event = asyncio.run(_hand_over_twice(ground, run.run_id, place.tenant))
    rows = _count_rows(ground, run.run_id, place.tenant)
    repeated = [name for name, count in rows if count > dict(undisturbed.rows).get(name, 0)]
    commits = subprocess.run(["git", "rev-list", "--count", "HEAD..green"], cwd=repo, capture_output=True, text=True)
    if commits.stdout.strip() != "1" or last_event is not HandoverEvent.already:
        repeated.append("branch")
    mismatches = tuple(find_differences(mask_fields(state.model_dump(mode="json"), "tenant"), undisturbed.state))
    return Came(
        place,
        resumed=was_killed and outcome == "verified" and not mismatches,
        lost=any(dict(rows).get(name, 0) < count for name, count in undisturbed.rows),
        repeated=tuple(repeated),
        asked_again=max(len(questions) - undisturbed.calls, len(questions) - len(set(questions))),
        seconds=seconds,
        differs=mismatches,
    )


async def _hand_over_twice(ground: Ground, run_id: str, tenant: str) -> tuple[RunState, HandoverEvent]:
    """Make a branch of the run twice, and apply the run to the folder twice; return the state and the last event."""
    with open_app(ground.create_settings(tenant)) as app:
        await apply_run(app, run_id, branch="green")
        with suppress(ConfigError):
            await apply_run(app, run_id, branch="green")
        await apply_run(app, run_id)
        return await app.adapters.store.load(run_id), (await apply_run(app, run_id)).happened
