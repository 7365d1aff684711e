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
from redstart.engines.inline import run_inline
from redstart.engines.progress import StepWatch
from redstart.engines.step_driver import Adapters, drive
from redstart.ports.sandbox.launch import launch
from support.rig import CARD, RIGHT, Rig, make_rig

pytestmark = pytest.mark.slow


async def test_tests_are_counted_while_they_run(tmp_path):
    reports: list[Progress] = []
    watch = StepWatch(Progress("run", 1, "test"), reports.append)
    watch.announce("all tests", tests=9, seconds=4.0)
    script = tmp_path / "suite.py"
    script.write_text("print('collected 3 items', flush=True)\nprint('test_a.py ..', flush=True)\n")

    async def run() -> None:
        with watch.report_execution():
            await launch([sys.executable, str(script)], variables={}, limits=SandboxLimits())

    await run()
    first, *between, last = reports
    assert (first.activity, first.done, first.total, first.seconds) == ("all tests", 0, 9, 4.0)
    assert between[0].total == 3, "the count of the runner replaces the expected one"
    assert last.activity == ""


async def test_execution_reports_nothing_after_its_end(tmp_path):
    reports: list[Progress] = []
    watch = StepWatch(Progress("run", 1, "test"), reports.append)
    watch.announce("all tests")
    with watch.report_execution():
        pass
    report_count = len(reports)
    await launch([sys.executable, "-c", "print('..')"], variables={}, limits=SandboxLimits())
    assert len(reports) == report_count


def test_of_simultaneous_executions_the_first_is_reported_until_it_ends():
    reports: list[Progress] = []
    watch = StepWatch(Progress("run", 1, "test"), reports.append)
    watch.announce("old tests")
    with watch.report_execution():
        watch.announce("new tests")
        with watch.report_execution():
            pass
        assert [report.activity for report in reports] == ["old tests"]
    assert [report.activity for report in reports] == ["old tests", ""]
    watch.announce("next")
    with watch.report_execution():
        assert reports[-1].activity == "next"


@pytest.fixture
def rig(tmp_path) -> Iterator[Rig]:
    new_rig = make_rig(tmp_path)
    yield new_rig
    new_rig.trees.close()


def drive_new_run(rig: Rig, adapters: Adapters, level: Level = Level.quick) -> RunState:
    async def go() -> RunState:
        claim = await adapters.store.claim(await rig.begin(verify=level))
        return (await drive(adapters, claim, run_inline)).state

    return asyncio.run(go())


def test_steps_report_their_activity_and_events_stay_the_same(rig):
    rig.with_model([RIGHT, CARD])
    reports: list[Progress] = []
    watched_adapters = replace(rig.adapters, progress=reports.append, get_model_name=lambda ask: f"openai:{ask.tier}")
    final_state = drive_new_run(rig, watched_adapters)
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
    assert drive_new_run(twin, twin.adapters).now.test == final_state.now.test
    assert [(event.seq, event.name, event.phase) for event in twin.events] == [
        (event.seq, event.name, event.phase) for event in rig.events
    ]


def test_reruns_are_numbered(rig):
    rig.with_model([RIGHT, CARD])
    reports: list[Progress] = []
    drive_new_run(rig, replace(rig.adapters, progress=reports.append), Level.standard)
    reruns = [(report.step, report.activity) for report in reports if report.activity.startswith("rerun")]
    baseline_reruns = [("reproduce", f"rerun {number} of 5") for number in range(1, 6)]
    assert reruns == [*baseline_reruns, *(("test", f"rerun {number} of 4") for number in range(1, 5))]
    activities = [report.activity for report in reports if report.step == "test" and report.activity]
    assert activities[activities.index("rerun 4 of 4") + 1] == "without the patch"


def test_committed_state_is_reported_before_each_step(rig):
    rig.with_model([RIGHT, CARD])
    observed: list[tuple[Step | None, Step]] = []
    drive_new_run(rig, replace(rig.adapters, before_step=lambda state, step: observed.append((state.last, step))))
    assert observed[0] == (None, Step.reproduce)
    assert (Step.test, Step.remember) in observed
