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
from redstart.flow.edges import LEADS_TO, as_mermaid, as_text, list_edges
from redstart.flow.modes import MODES
from redstart.flow.route import route, settle
from redstart.testing.states import make_snapshot, make_spec, make_state, report

RED = PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.from_ids(["a"])))
GREEN = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.from_ids(["a"])))
THERE = ReproductionResult(report=report(["a"]))
VARIANTS: dict[Step, list[object]] = {
    Step.reproduce: [THERE, ReproductionResult(report=report(), trouble="no_tests")],
    Step.plan: [Plan(summary="p"), Plan(fault="none"), Plan(subtasks=(Subtask(title="a"), Subtask(title="b")))],
    Step.patch: [Patch(edits="blob"), Patch(probe="blob"), Patch()],
    Step.apply: [ApplyResult(ok=True), ApplyResult(ok=False)],
    Step.check: [Findings(), Findings(count=1)],
    Step.test: [RED, GREEN],
}


def collect_next_steps(mode: Mode, step: Step) -> set[Step | None]:
    """Collect where `route` leads after `step`, over all states that a run can be in at that point."""
    ends: set[Step | None] = set()
    earlier_results = [THERE, None] if step is Step.plan and mode is not Mode.fix else [THERE]
    for artifact, reproduction, attempts, draft in product(
        VARIANTS.get(step, [None]), earlier_results, (1, 2), (None, make_snapshot())
    ):
        probe = Patch(probe="blob") if step is Step.test and attempts == 2 and draft else Patch(edits="blob")
        artifacts = {"reproduce": reproduction, "patch": probe} | ({step.value: artifact} if artifact else {})
        entry = Step.reproduce if draft and step is Step.reproduce else MODES[mode][0]
        run = make_state(
            spec=make_spec(mode=mode, limits=Limits(attempts=attempts)),
            now=Attempt(entry=entry, **artifacts),
            last=step,
            draft=draft if mode is Mode.create else None,
        )
        ends.add(route(run))
    return ends


@pytest.mark.parametrize(("mode", "step"), [(mode, step) for mode in Mode for step in MODES[mode][:-1]])
def test_edges_of_a_step_match_the_ones_runs_take(mode, step):
    assert collect_next_steps(mode, step) == {edge.to for edge in list_edges(mode) if edge.start is step}


@pytest.mark.parametrize("mode", [Mode.fix, Mode.create, Mode.improve])
def test_every_drawn_retry_can_be_taken(mode):
    retries = [edge.to for edge in list_edges(mode) if edge.start is Step.decide and edge.to]
    assert retries
    for entry in retries:
        run = make_state(
            spec=make_spec(mode=mode), now=Attempt(entry=MODES[mode][0], reproduce=THERE), last=Step.remember
        )
        assert route(settle(run, Step.decide, Decision(action=Action.retry, reason="again", next=entry))) is entry


def test_engine_knows_every_edge():
    expected_edges = {(edge.start, edge.to) for mode in Mode for edge in list_edges(mode) if edge.to}
    assert {(step, to) for step, ends in LEADS_TO.items() for to in ends} == expected_edges


@pytest.mark.parametrize("mode", list(Mode))
def test_mermaid_follows_the_main_path_from_the_start(mode):
    drawing = as_mermaid(mode)
    arrows = re.findall(r"^    (\w+) --> (\w+)$", drawing, re.MULTILINE)
    path = ["start", *(step.value for step in MODES[mode]), "finish"]
    assert arrows == list(pairwise(path))
    assert drawing.startswith("flowchart TD\n")
    assert drawing.count("start -") == 1


def test_fix_retry_leads_back_to_patch():
    assert '    decide -. "retry" .-> patch' in as_mermaid(Mode.fix).splitlines()
    assert '-. "retry" .->' not in as_mermaid(Mode.audit)


@pytest.mark.parametrize("mode", list(Mode))
def test_text_has_every_step_in_order_and_fits_80_columns(mode):
    lines = as_text(mode).splitlines()
    assert max(map(len, lines)) <= 80
    steps = [line.split()[0] for line in lines[2:] if re.match(r"  \w", line)]
    assert steps == ["start", *(step.value for step in MODES[mode]), "end"]
    assert all(
        f"{edge.condition} → {edge.to.value}" in as_text(mode)
        for edge in list_edges(mode)
        if edge.condition and edge.to
    )


def test_command_offers_every_mode():
    assert [name.value for name in ModeName] == [mode.value for mode in Mode]
