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
from redstart.flow.route import route, settle, waits_for_a_person, waits_for_errands, wake
from redstart.testing.states import report, snapshot, spec, state

RED = PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.of(["a"])))
GREEN = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.of(["a"])))
EDITS = Patch(edits="blob")
PROBE = Patch(probe="blob")


def after(step: Step, mode: Mode = Mode.fix, limits: Limits | None = None, **now: object) -> Step | None:
    entry = MODES[mode][0]
    asked = spec(mode=mode, limits=limits or Limits())
    return route(state(spec=asked, now=Attempt(entry=entry, **now), last=step))


@pytest.mark.parametrize("mode", list(Mode))
def test_a_run_begins_with_the_first_of_its_row(mode):
    assert route(state(spec=spec(mode=mode), now=Attempt(entry=MODES[mode][0]))) is MODES[mode][0]


@pytest.mark.parametrize("trouble", ["already_green", "no_tests", "environment"])
def test_reproduce_with_trouble_leads_to_decide(trouble):
    assert after(Step.reproduce, reproduce=ReproductionResult(report=report(), trouble=trouble)) is Step.decide


def test_reproduce_red_leads_on():
    assert after(Step.reproduce, reproduce=ReproductionResult(report=report(["a"]))) is Step.plan


@pytest.mark.parametrize(("patch", "leads_to"), [(EDITS, Step.apply), (PROBE, Step.test), (Patch(), Step.decide)])
def test_patch(patch, leads_to):
    assert after(Step.patch, patch=patch) is leads_to


@pytest.mark.parametrize(("ok", "leads_to"), [(True, Step.check), (False, Step.decide)])
def test_apply(ok, leads_to):
    assert after(Step.apply, patch=EDITS, apply=ApplyResult(ok=ok)) is leads_to


@pytest.mark.parametrize(
    ("findings", "leads_to"),
    [(Findings(), Step.test), (Findings(count=1), Step.decide), (Findings(fault="a.py:1 does not parse"), Step.decide)],
)
def test_check(findings, leads_to):
    assert after(Step.check, patch=EDITS, check=findings) is leads_to


@pytest.mark.parametrize(
    ("tested", "patch", "iterations", "leads_to"),
    [
        (RED, EDITS, 2, Step.reflect),
        (RED, EDITS, 1, Step.remember),
        (GREEN, EDITS, 2, Step.remember),
        (GREEN, EDITS, 1, Step.remember),
        (RED, PROBE, 2, Step.decide),
    ],
)
def test_test(tested, patch, iterations, leads_to):
    assert after(Step.test, limits=Limits(attempts=iterations), patch=patch, test=tested) is leads_to


def test_plan_in_create_goes_past_tests_that_exist():
    assert after(Step.plan, Mode.create) is Step.reproduce
    assert after(Step.plan, Mode.create, reproduce=ReproductionResult(report=report(["a"]))) is Step.retrieve
    assert after(Step.plan, Mode.fix, reproduce=ReproductionResult(report=report(["a"]))) is Step.retrieve


def test_plan_in_improve_goes_past_a_test_that_exists_and_ends_without_an_aim():
    assert after(Step.plan, Mode.improve, plan=Plan(summary="p")) is Step.reproduce
    assert after(Step.plan, Mode.improve, plan=Plan(fault="no plan")) is Step.decide
    there = ReproductionResult(report=report(["a"]))
    assert after(Step.plan, Mode.improve, plan=Plan(summary="p"), reproduce=there) is Step.retrieve
    assert after(Step.plan, Mode.improve, plan=Plan(fault="no plan"), reproduce=there) is Step.retrieve
    assert after(Step.plan, Mode.fix, plan=Plan(fault="no plan")) is Step.retrieve


def test_improve_begins_with_a_decision_and_waits_for_its_cycle():
    asked = spec(mode=Mode.improve)
    begun = state(spec=asked, now=Attempt(entry=Step.decide))
    assert route(begun) is Step.decide
    waits = settle(begun, Step.decide, Decision(action=Action.spawn, reason="cycle 1"))
    assert (route(waits), waits_for_errands(waits), waits.status) == (None, True, Status.paused)
    assert route(wake(waits)) is Step.decide


@pytest.mark.parametrize("mode", list(Mode))
def test_otherwise_the_row_is_followed(mode):
    row = MODES[mode]
    usable = {
        "reproduce": None,
        "patch": EDITS,
        "apply": ApplyResult(ok=True),
        "check": Findings(),
        "test": RED,
        "reflect": Reflection(),
        "remember": NewMemories(),
    }
    for step, following in pairwise(row):
        assert after(step, mode, **{name: value for name, value in usable.items() if value}) is following


def test_an_audit_reports_what_it_found_and_nothing_else():
    assert MODES[Mode.audit] == (Step.plan, Step.retrieve, Step.audit, Step.decide)


@pytest.mark.parametrize("last", [Step.reflect, Step.remember])
def test_an_audit_of_an_earlier_version_that_stands_past_its_findings_ends(last):
    assert after(last, Mode.audit, audit=Findings(count=1)) is Step.decide


@pytest.mark.parametrize("entry", [Step.plan, Step.retrieve, Step.patch, Step.reproduce])
def test_decide_retry_begins_the_next_attempt_there(entry):
    full = Attempt(
        entry=Step.reproduce,
        reproduce=ReproductionResult(report=report(["a"])),
        plan=Plan(summary="p"),
        retrieve=Context(),
        audit=Findings(),
        patch=EDITS,
        apply=ApplyResult(ok=True),
    )
    before = state(now=full, last=Step.remember)
    done = settle(before, Step.decide, Decision(action=Action.retry, reason="still red", next=entry))
    assert route(done) is entry
    assert (done.now.number, len(done.history), done.history[0].number) == (2, 1, 1)
    row = MODES[Mode.fix]
    kept = {step for step in Step if getattr(done.now, step.value) is not None}
    assert kept == {step for step in row[: row.index(entry)] if getattr(full, step.value) is not None}


@pytest.mark.parametrize(
    ("action", "status"),
    [
        (Action.accept, Status.finished),
        (Action.stop, Status.finished),
        (Action.ask, Status.needs_input),
        (Action.spawn, Status.paused),
    ],
)
def test_decide_otherwise_ends_or_waits(action, status):
    decision = Decision(action=action, reason="because", result=Result.unsolved)
    done = settle(state(now=Attempt(entry=Step.reproduce), last=Step.remember), Step.decide, decision)
    assert (route(done), done.status, done.reason) == (None, status, "because")
    assert done.now.decide == decision


def test_a_run_that_asks_decides_again_once_it_is_woken():
    ask = Decision(action=Action.ask, reason="is it right?", result=Result.needs_human)
    waits = settle(state(now=Attempt(entry=Step.reproduce, test=GREEN), last=Step.remember), Step.decide, ask)
    assert (waits_for_a_person(waits), route(waits)) == (True, None)
    woken = wake(waits)
    assert (route(woken), woken.result, woken.reason, woken.version) == (Step.decide, None, "", waits.version)
    taken = settle(woken, Step.decide, Decision(action=Action.accept, reason="yes", result=Result.verified))
    assert (taken.status, taken.result, taken.now.number) == (Status.finished, Result.verified, 1)
    tried = settle(woken, Step.decide, Decision(action=Action.retry, reason="you rejected it", next=Step.patch))
    assert (route(tried), tried.now.number, tried.now.decide) == (Step.patch, 2, None)
    assert (tried.history[0].outcome, tried.history[0].reason) == ("", "you rejected it")


def test_child_runs_are_not_waited_for_as_a_person_is():
    spawn = Decision(action=Action.spawn, reason="three parts")
    waits = settle(state(now=Attempt(entry=Step.reproduce), last=Step.remember), Step.decide, spawn)
    assert (waits.status, waits_for_a_person(waits)) == (Status.paused, False)


def test_a_draft_is_carried_on_in_create_and_never_in_fix():
    made = snapshot(tree="c" * 40)
    now = Attempt(entry=Step.plan, patch=EDITS, apply=ApplyResult(ok=True, snapshot=made), test=RED)
    again = Decision(action=Action.retry, reason="still red", next=Step.retrieve)

    def following(mode: Mode) -> RunState:
        return settle(state(spec=spec(mode=mode), now=now, last=Step.remember), Step.decide, again)

    assert following(Mode.create).ground == made
    assert following(Mode.fix).draft is None
