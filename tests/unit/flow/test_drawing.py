"""The drawing of a mode shows exactly the edges that runs take."""

from __future__ import annotations

import re
from itertools import pairwise, product

import pytest

from redstart.cli.graph import ModeName
from redstart.core.change import ApplyResult, Patch
from redstart.core.finding import Findings
from redstart.core.learning import Plan, Subtask
from redstart.core.report import Ids, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import Action, Attempt, Decision, Limits, Mode, Step
from redstart.flow.edges import LEADS_TO, as_mermaid, as_text, edges_of
from redstart.flow.modes import MODES
from redstart.flow.route import route, settle
from redstart.testing.states import report, snapshot, spec, state

RED = PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.of(["a"])))
GREEN = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.of(["a"])))
THERE = ReproductionResult(report=report(["a"]))
VARIANTS: dict[Step, list[object]] = {
    Step.reproduce: [THERE, ReproductionResult(report=report(), trouble="no_tests")],
    Step.plan: [Plan(summary="p"), Plan(fault="none"), Plan(subtasks=(Subtask(title="a"), Subtask(title="b")))],
    Step.patch: [Patch(edits="blob"), Patch(probe="blob"), Patch()],
    Step.apply: [ApplyResult(ok=True), ApplyResult(ok=False)],
    Step.check: [Findings(), Findings(count=1)],
    Step.test: [RED, GREEN],
}


def taken(mode: Mode, step: Step) -> set[Step | None]:
    """Collect where `route` leads after `step`, over all states that a run can be in at that point."""
    ends: set[Step | None] = set()
    before = [THERE, None] if step is Step.plan and mode is not Mode.fix else [THERE]
    for artifact, earlier, attempts, draft in product(VARIANTS.get(step, [None]), before, (1, 2), (None, snapshot())):
        probe = Patch(probe="blob") if step is Step.test and attempts == 2 and draft else Patch(edits="blob")
        now = {"reproduce": earlier, "patch": probe} | ({step.value: artifact} if artifact else {})
        entry = Step.reproduce if draft and step is Step.reproduce else MODES[mode][0]
        run = state(
            spec=spec(mode=mode, limits=Limits(attempts=attempts)),
            now=Attempt(entry=entry, **now),
            last=step,
            draft=draft if mode is Mode.create else None,
        )
        ends.add(route(run))
    return ends


@pytest.mark.parametrize(("mode", "step"), [(mode, step) for mode in Mode for step in MODES[mode][:-1]])
def test_the_edges_of_a_step_are_those_that_runs_take(mode, step):
    assert taken(mode, step) == {edge.to for edge in edges_of(mode) if edge.start is step}


@pytest.mark.parametrize("mode", [Mode.fix, Mode.create, Mode.improve])
def test_every_drawn_retry_can_be_taken(mode):
    retries = [edge.to for edge in edges_of(mode) if edge.start is Step.decide and edge.to]
    assert retries
    for entry in retries:
        run = state(spec=spec(mode=mode), now=Attempt(entry=MODES[mode][0], reproduce=THERE), last=Step.remember)
        assert route(settle(run, Step.decide, Decision(action=Action.retry, reason="again", next=entry))) is entry


def test_an_engine_is_told_every_edge():
    drawn = {(edge.start, edge.to) for mode in Mode for edge in edges_of(mode) if edge.to}
    assert {(step, to) for step, ends in LEADS_TO.items() for to in ends} == drawn


@pytest.mark.parametrize("mode", list(Mode))
def test_mermaid_goes_from_the_start_along_the_main_path(mode):
    drawing = as_mermaid(mode)
    arrows = re.findall(r"^    (\w+) --> (\w+)$", drawing, re.MULTILINE)
    path = ["start", *(step.value for step in MODES[mode]), "finish"]
    assert arrows == list(pairwise(path))
    assert drawing.startswith("flowchart TD\n")
    assert drawing.count("start -") == 1


def test_a_fix_leads_back_to_its_patch():
    assert '    decide -. "retry" .-> patch' in as_mermaid(Mode.fix).splitlines()
    assert '-. "retry" .->' not in as_mermaid(Mode.audit)


@pytest.mark.parametrize("mode", list(Mode))
def test_text_has_every_step_in_order_and_fits_80_columns(mode):
    lines = as_text(mode).splitlines()
    assert max(map(len, lines)) <= 80
    steps = [line.split()[0] for line in lines[2:] if re.match(r"  \w", line)]
    assert steps == ["start", *(step.value for step in MODES[mode]), "end"]
    assert all(f"{edge.when} → {edge.to.value}" in as_text(mode) for edge in edges_of(mode) if edge.when and edge.to)


def test_the_command_has_the_modes_of_the_code():
    assert [name.value for name in ModeName] == [mode.value for mode in Mode]
