"""The table in docs/architecture.md, row by row."""

from __future__ import annotations

from itertools import pairwise

import pytest

from redstart.core.change import ApplyResult, Patch
from redstart.core.context import Context
from redstart.core.finding import Findings
from redstart.core.learning import NewMemories, Plan, Reflection
from redstart.core.report import Ids, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import Action, Attempt, Decision, Limits, Mode, Result, RunState, Status, Step
from redstart.flow.modes import MODES
from redstart.flow.route import is_waiting_for_children, is_waiting_for_person, route, settle, wake
from redstart.testing.states import make_snapshot, make_spec, make_state, report

RED = PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.from_ids(["a"])))
GREEN = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.from_ids(["a"])))
EDITS = Patch(edits="blob")
PROBE = Patch(probe="blob")


def route_after(step: Step, mode: Mode = Mode.fix, limits: Limits | None = None, **artifacts: object) -> Step | None:
    entry = MODES[mode][0]
    run_spec = make_spec(mode=mode, limits=limits or Limits())
    return route(make_state(spec=run_spec, now=Attempt(entry=entry, **artifacts), last=step))


@pytest.mark.parametrize("mode", list(Mode))
def test_run_begins_with_the_first_step_of_its_mode(mode):
    assert route(make_state(spec=make_spec(mode=mode), now=Attempt(entry=MODES[mode][0]))) is MODES[mode][0]


@pytest.mark.parametrize("problem", ["already_green", "no_tests", "environment"])
def test_failed_reproduce_leads_to_decide(problem):
    assert route_after(Step.reproduce, reproduce=ReproductionResult(report=report(), trouble=problem)) is Step.decide


def test_reproduced_failure_leads_to_plan():
    assert route_after(Step.reproduce, reproduce=ReproductionResult(report=report(["a"]))) is Step.plan


@pytest.mark.parametrize(("patch", "leads_to"), [(EDITS, Step.apply), (PROBE, Step.test), (Patch(), Step.decide)])
def test_route_after_patch(patch, leads_to):
    assert route_after(Step.patch, patch=patch) is leads_to


@pytest.mark.parametrize(("ok", "leads_to"), [(True, Step.check), (False, Step.decide)])
def test_route_after_apply(ok, leads_to):
    assert route_after(Step.apply, patch=EDITS, apply=ApplyResult(ok=ok)) is leads_to


@pytest.mark.parametrize(
    ("findings", "leads_to"),
    [(Findings(), Step.test), (Findings(count=1), Step.decide), (Findings(fault="a.py:1 does not parse"), Step.decide)],
)
def test_route_after_check(findings, leads_to):
    assert route_after(Step.check, patch=EDITS, check=findings) is leads_to


@pytest.mark.parametrize(
    ("test_result", "patch", "iterations", "leads_to"),
    [
        (RED, EDITS, 2, Step.reflect),
        (RED, EDITS, 1, Step.remember),
        (GREEN, EDITS, 2, Step.remember),
        (GREEN, EDITS, 1, Step.remember),
        (RED, PROBE, 2, Step.decide),
    ],
)
def test_route_after_test(test_result, patch, iterations, leads_to):
    assert route_after(Step.test, limits=Limits(attempts=iterations), patch=patch, test=test_result) is leads_to


def test_plan_in_create_skips_reproduce_when_tests_exist():
    assert route_after(Step.plan, Mode.create) is Step.reproduce
    assert route_after(Step.plan, Mode.create, reproduce=ReproductionResult(report=report(["a"]))) is Step.retrieve
    assert route_after(Step.plan, Mode.fix, reproduce=ReproductionResult(report=report(["a"]))) is Step.retrieve


def test_plan_in_improve_skips_reproduce_when_a_test_exists():
    assert route_after(Step.plan, Mode.improve, plan=Plan(summary="p")) is Step.reproduce
    assert route_after(Step.plan, Mode.improve, plan=Plan(fault="no plan")) is Step.decide
    reproduction = ReproductionResult(report=report(["a"]))
    assert route_after(Step.plan, Mode.improve, plan=Plan(summary="p"), reproduce=reproduction) is Step.retrieve
    assert route_after(Step.plan, Mode.improve, plan=Plan(fault="no plan"), reproduce=reproduction) is Step.retrieve
    assert route_after(Step.plan, Mode.fix, plan=Plan(fault="no plan")) is Step.retrieve


def test_improve_begins_with_decide_and_waits_for_its_cycle():
    run_spec = make_spec(mode=Mode.improve)
    new_state = make_state(spec=run_spec, now=Attempt(entry=Step.decide))
    assert route(new_state) is Step.decide
    waits = settle(new_state, Step.decide, Decision(action=Action.spawn, reason="cycle 1"))
    assert (route(waits), is_waiting_for_children(waits), waits.status) == (None, True, Status.paused)
    assert route(wake(waits)) is Step.decide


@pytest.mark.parametrize("mode", list(Mode))
def test_steps_otherwise_follow_the_order_of_the_mode(mode):
    row = MODES[mode]
    artifacts = {
        "reproduce": None,
        "patch": EDITS,
        "apply": ApplyResult(ok=True),
        "check": Findings(),
        "test": RED,
        "reflect": Reflection(),
        "remember": NewMemories(),
    }
    for step, next_step in pairwise(row):
        assert route_after(step, mode, **{name: value for name, value in artifacts.items() if value}) is next_step


def test_audit_has_only_its_four_steps():
    assert MODES[Mode.audit] == (Step.plan, Step.retrieve, Step.audit, Step.decide)


@pytest.mark.parametrize("last_step", [Step.reflect, Step.remember])
def test_audit_from_an_earlier_version_ends_after_its_findings(last_step):
    assert route_after(last_step, Mode.audit, audit=Findings(count=1)) is Step.decide


@pytest.mark.parametrize("entry", [Step.plan, Step.retrieve, Step.patch, Step.reproduce])
def test_retry_begins_the_next_attempt_at_the_chosen_step(entry):
    full = Attempt(
        entry=Step.reproduce,
        reproduce=ReproductionResult(report=report(["a"])),
        plan=Plan(summary="p"),
        retrieve=Context(),
        audit=Findings(),
        patch=EDITS,
        apply=ApplyResult(ok=True),
    )
    before = make_state(now=full, last=Step.remember)
    next_state = settle(before, Step.decide, Decision(action=Action.retry, reason="still red", next=entry))
    assert route(next_state) is entry
    assert (next_state.now.number, len(next_state.history), next_state.history[0].number) == (2, 1, 1)
    row = MODES[Mode.fix]
    kept_steps = {step for step in Step if getattr(next_state.now, step.value) is not None}
    assert kept_steps == {step for step in row[: row.index(entry)] if getattr(full, step.value) is not None}


@pytest.mark.parametrize(
    ("action", "status"),
    [
        (Action.accept, Status.finished),
        (Action.stop, Status.finished),
        (Action.ask, Status.needs_input),
        (Action.spawn, Status.paused),
    ],
)
def test_decisions_other_than_retry_end_or_pause_the_run(action, status):
    decision = Decision(action=action, reason="because", result=Result.unsolved)
    next_state = settle(make_state(now=Attempt(entry=Step.reproduce), last=Step.remember), Step.decide, decision)
    assert (route(next_state), next_state.status, next_state.reason) == (None, status, "because")
    assert next_state.now.decide == decision


def test_run_that_asks_a_question_decides_again_when_woken():
    ask = Decision(action=Action.ask, reason="is it right?", result=Result.needs_human)
    waits = settle(make_state(now=Attempt(entry=Step.reproduce, test=GREEN), last=Step.remember), Step.decide, ask)
    assert (is_waiting_for_person(waits), route(waits)) == (True, None)
    woken_state = wake(waits)
    assert (route(woken_state), woken_state.result, woken_state.reason, woken_state.version) == (
        Step.decide,
        None,
        "",
        waits.version,
    )
    accepted_state = settle(
        woken_state, Step.decide, Decision(action=Action.accept, reason="yes", result=Result.verified)
    )
    assert (accepted_state.status, accepted_state.result, accepted_state.now.number) == (
        Status.finished,
        Result.verified,
        1,
    )
    retried_state = settle(
        woken_state, Step.decide, Decision(action=Action.retry, reason="you rejected it", next=Step.patch)
    )
    assert (route(retried_state), retried_state.now.number, retried_state.now.decide) == (Step.patch, 2, None)
    assert (retried_state.history[0].outcome, retried_state.history[0].reason) == ("", "you rejected it")


def test_waiting_for_child_runs_is_not_waiting_for_a_person():
    spawn = Decision(action=Action.spawn, reason="three parts")
    waits = settle(make_state(now=Attempt(entry=Step.reproduce), last=Step.remember), Step.decide, spawn)
    assert (waits.status, is_waiting_for_person(waits)) == (Status.paused, False)


def test_draft_is_kept_in_create_but_not_in_fix():
    draft_snapshot = make_snapshot(tree="c" * 40)
    attempt = Attempt(entry=Step.plan, patch=EDITS, apply=ApplyResult(ok=True, snapshot=draft_snapshot), test=RED)
    retry = Decision(action=Action.retry, reason="still red", next=Step.retrieve)

    def settle_retry(mode: Mode) -> RunState:
        return settle(make_state(spec=make_spec(mode=mode), now=attempt, last=Step.remember), Step.decide, retry)

    assert settle_retry(Mode.create).workspace == draft_snapshot
    assert settle_retry(Mode.fix).draft is None
