"""The progress of a step is reported while an execution runs and is stored nowhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from redstart.core.events import Progress
from redstart.core.run import Level, RunState, Step
from redstart.core.shell import SandboxLimits
from redstart.engines.drive import Adapters, drive
from redstart.engines.inline import inline
from redstart.engines.progress import StepWatch
from redstart.ports.sandbox.launch import launch
from redstart.testing.states import state
from support.rig import CARD, RIGHT, Rig, make_rig

pytestmark = pytest.mark.slow


def test_tests_are_counted_while_they_run(tmp_path):
    reports: list[Progress] = []
    watch = StepWatch(state(), Step.test, reports.append)
    watch.announce("all tests", tests=9, seconds=4.0)
    script = tmp_path / "suite.py"
    script.write_text("print('collected 3 items', flush=True)\nprint('test_a.py ..', flush=True)\n")

    async def run() -> None:
        with watch.running():
            await launch([sys.executable, str(script)], variables={}, limits=SandboxLimits())

    asyncio.run(run())
    first, *between, last = reports
    assert (first.activity, first.done, first.total, first.seconds) == ("all tests", 0, 9, 4.0)
    assert between[0].total == 3, "the count of the runner replaces the expected one"
    assert last.activity == ""


def test_nobody_hears_an_execution_after_its_end(tmp_path):
    reports: list[Progress] = []
    watch = StepWatch(state(), Step.test, reports.append)
    watch.announce("all tests")
    with watch.running():
        pass
    before = len(reports)
    asyncio.run(launch([sys.executable, "-c", "print('..')"], variables={}, limits=SandboxLimits()))
    assert len(reports) == before


@pytest.fixture
def rig(tmp_path) -> Iterator[Rig]:
    made = make_rig(tmp_path)
    yield made
    made.trees.close()


def driven(rig: Rig, adapters: Adapters, level: Level = Level.quick) -> RunState:
    async def go() -> RunState:
        claim = await adapters.store.claim(await rig.begin(verify=level))
        return (await drive(adapters, claim, inline)).state

    return asyncio.run(go())


def test_steps_say_what_they_do_and_the_events_stay_the_same(rig):
    rig.with_model([RIGHT, CARD])
    reports: list[Progress] = []
    watched = replace(rig.adapters, progress=reports.append, asked_model=lambda ask: f"openai:{ask.tier}")
    done = driven(rig, watched)
    assert [(report.step, report.activity) for report in reports if report.activity] == [
        ("reproduce", "baseline"),
        ("patch", "asking openai:strong"),
        ("test", "all tests"),
        *(("test", f"control {number} of 4") for number in range(1, 5)),
        ("test", "neutral rerun"),
        ("remember", "asking openai:fast"),
    ]
    assert all(report.tokens for report in reports if report.activity.startswith("asking"))
    twin = rig.twin()
    twin.with_model([RIGHT, CARD])
    assert driven(twin, twin.adapters).now.test == done.now.test
    assert [(each.seq, each.name, each.phase) for each in twin.events] == [
        (each.seq, each.name, each.phase) for each in rig.events
    ]


def test_reruns_are_numbered(rig):
    rig.with_model([RIGHT, CARD])
    reports: list[Progress] = []
    driven(rig, replace(rig.adapters, progress=reports.append), Level.standard)
    reruns = [(report.step, report.activity) for report in reports if report.activity.startswith("rerun")]
    before = [("reproduce", f"rerun {number} of 5") for number in range(1, 6)]
    assert reruns == [*before, *(("test", f"rerun {number} of 4") for number in range(1, 5))]
    activities = [report.activity for report in reports if report.step == "test" and report.activity]
    assert activities[activities.index("rerun 4 of 4") + 1] == "without the patch"


def test_before_each_step_the_committed_state_is_told(rig):
    rig.with_model([RIGHT, CARD])
    seen: list[tuple[Step | None, Step]] = []
    driven(rig, replace(rig.adapters, before_step=lambda state, step: seen.append((state.last, step))))
    assert seen[0] == (None, Step.reproduce)
    assert (Step.test, Step.remember) in seen
