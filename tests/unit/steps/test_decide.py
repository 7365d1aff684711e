from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from redstart.core.change import ApplyResult, EditRejection, Patch, PatchProblem
from redstart.core.course import AttemptOutcome
from redstart.core.finding import Findings
from redstart.core.learning import Plan
from redstart.core.packages import PackageRequest
from redstart.core.report import Ids, Mutants, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import (
    Action,
    Attempt,
    AttemptSummary,
    Decision,
    Limits,
    Mode,
    Result,
    RunState,
    Spend,
    Step,
)
from redstart.flow.route import route, settle, wake
from redstart.ports.store.port.person import PersonReply
from redstart.steps.decide import decide
from redstart.steps.decide.person import answered
from redstart.steps.decide.retry import further
from redstart.testing.states import report, spec, state

RED = PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.of(["a"])))
GREEN = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.of(["a", "b"])))


def decided(
    *, mode: Mode = Mode.fix, limits: Limits | None = None, spend: Spend | None = None, history: Any = (), **now: Any
) -> Decision:
    attempt = Attempt(**{"entry": Step.reproduce, **now})
    run = state(
        spec=spec(mode=mode, limits=limits or Limits()), now=attempt, spend=spend or Spend(), history=tuple(history)
    )
    return asyncio.run(decide(run, cast(Any, None)))


def test_green_in_a_language_whose_tests_cannot_be_altered_is_unproven():
    decision = decided(reproduce=ReproductionResult(report=report(), language="Go"), test=GREEN)
    assert (decision.action, decision.result) == (Action.accept, Result.unproven)
    assert decision.reason == (
        "the tests pass by their own report; "
        "Redstart cannot alter tests written in Go to prove that they can still fail"
    )


@pytest.mark.parametrize(
    ("trouble", "action", "result"),
    [
        ("already_green", Action.accept, Result.already_green),
        ("no_tests", Action.stop, Result.no_tests),
        ("environment", Action.stop, Result.environment),
    ],
)
def test_trouble_ends_the_run(trouble, action, result):
    decision = decided(reproduce=ReproductionResult(report=report(), trouble=trouble))
    assert (decision.action, decision.result) == (action, result)


@pytest.mark.parametrize("trouble", ["already_green", "no_tests"])
def test_tests_that_are_not_usable_are_asked_for_again_in_create(trouble):
    decision = decided(mode=Mode.create, reproduce=ReproductionResult(report=report(), trouble=trouble))
    assert (decision.action, decision.next) == (Action.retry, Step.reproduce)


def test_honest_green_is_accepted_even_past_the_caps():
    decision = decided(test=GREEN, spend=Spend(usd=99))
    assert (decision.action, decision.result) == (Action.accept, Result.verified)
    assert decision.reason == "2 failing tests now pass, and no other test got worse"


@pytest.mark.parametrize(
    ("limits", "spend", "word"),
    [
        (Limits(minutes=1), Spend(seconds=60), "time limit"),
        (Limits(usd=1), Spend(usd=1), "money limit"),
        (Limits(tokens=10), Spend(input_tokens=6, output_tokens=4), "tokens"),
    ],
)
def test_a_cap_stops(limits, spend, word):
    decision = decided(limits=limits, spend=spend, test=RED)
    assert (decision.action, decision.result) == (Action.stop, Result.capped)
    assert word in decision.reason
    assert decided(limits=limits, test=RED).action is Action.retry


def test_a_call_that_was_not_made_for_want_of_budget_is_a_cap():
    decision = decided(patch=Patch(problem=PatchProblem.over_budget, fault="the model was not asked"))
    assert decision.result is Result.capped


@pytest.mark.parametrize(
    ("now", "leads_to"),
    [
        ({"patch": Patch(fault="no edit")}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=False)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=False, refused=True)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=True), "check": Findings(count=1)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=True), "check": Findings(), "test": RED}, Step.retrieve),
    ],
)
def test_where_a_retry_begins(now, leads_to):
    decision = decided(**now)
    assert (decision.action, decision.next) == (Action.retry, leads_to)


def test_the_same_patch_again_asks_for_another_plan_and_then_is_stuck():
    once = [AttemptSummary(number=1, fingerprint="f")]
    twice = [*once, AttemptSummary(number=2, fingerprint="f")]
    patch = Patch(edits="x", fingerprint="f")
    assert decided(number=2, history=once, patch=patch, test=RED).next is Step.plan
    assert decided(number=3, history=twice, patch=patch, test=RED).result is Result.stuck


def test_out_of_attempts_is_unsolved_or_refused():
    last = {"number": 2, "limits": Limits(attempts=2)}
    assert decided(**last, test=RED).result is Result.unsolved
    refused = ApplyResult(ok=False, refused=True, rejects=(EditRejection(path="conftest.py", reason="no"),))
    decision = decided(**last, patch=Patch(edits="x"), apply=refused)
    assert (decision.result, "conftest.py: no" in decision.reason) == (Result.refused, True)


ASKED = Decision(action=Action.ask, reason="a test changes", result=Result.needs_human)
ONE = Ids.of(["a"])


def replied(reply: PersonReply, verdict: Verdict | None, asked: Decision = ASKED, **over: Any) -> Decision:
    tested = None if verdict is None else PatchTestResult(report=report(), verdict=verdict)
    return answered(state(now=Attempt(entry=Step.reproduce, decide=asked, test=tested), **over), asked, reply)


@pytest.mark.parametrize(
    ("verdict", "result"),
    [
        (Verdict(fixed=ONE), Result.verified),
        (Verdict(fixed=ONE, tampered=("test_a.py",)), Result.verified),
        (Verdict(fixed=ONE, newly_skipped=ONE), Result.verified),
        (Verdict(), Result.unsolved),
        (Verdict(fixed=ONE, still_red=ONE), Result.unsolved),
        (Verdict(fixed=ONE, newly_red=ONE), Result.unsolved),
        (Verdict(fixed=ONE, missing=ONE), Result.unsolved),
        (Verdict(fixed=ONE, flaky=ONE), Result.unsolved),
        (Verdict(fixed=ONE, unexplained="exit 0 with a red test"), Result.unsolved),
        (None, Result.unsolved),
    ],
)
def test_what_is_accepted_is_verified_only_if_its_tests_are_green(verdict, result):
    assert replied(PersonReply(accepts=True), verdict).result is result


def test_what_is_rejected_is_tried_again_where_the_question_says_and_within_the_limits():
    decision = replied(PersonReply(accepts=False, text="keep the test"), Verdict(fixed=ONE))
    assert (decision.action, decision.next) == (Action.retry, Step.patch)
    assert decision.reason == "you rejected the patch: keep the test"
    there = ASKED.model_copy(update={"next": Step.plan})
    assert replied(PersonReply(accepts=False), Verdict(fixed=ONE), there).next is Step.plan
    last = replied(PersonReply(accepts=False), Verdict(fixed=ONE), spec=spec(limits=Limits(attempts=1)))
    assert (last.result, last.reason) == (Result.unsolved, "you rejected the patch; no attempts are left")
    spent = {"spec": spec(limits=Limits(usd=1)), "spend": Spend(usd=1)}
    assert replied(PersonReply(accepts=False), Verdict(fixed=ONE), **spent).result is Result.capped


def test_packages_that_are_not_wanted_cost_an_attempt_like_any_other_no():
    asked = ASKED.model_copy(update={"next": Step.check})
    now = Attempt(entry=Step.reproduce, check=Findings(asks="may they be installed?", packages=("python:left-pad",)))
    no = PersonReply(accepts=False, text="only the standard library")
    again = answered(state(now=now), asked, no)
    said = "you rejected these packages: left-pad. only the standard library"
    assert (again.action, again.next, again.reason) == (Action.retry, Step.patch, said)
    last = answered(state(now=now, spec=spec(limits=Limits(attempts=1))), asked, no)
    assert (last.result, last.reason) == (Result.unsolved, f"{said}; no attempts are left")
    yes = answered(state(now=now), asked, PersonReply(accepts=True))
    assert (yes.next, yes.approved) == (Step.check, ("python:left-pad",))


def test_a_red_run_goes_further_where_a_retry_would_begin():
    refused = Attempt(entry=Step.reproduce, patch=Patch(edits="x"), apply=ApplyResult(ok=False, refused=True))
    assert further(state(now=refused)) is Step.patch
    assert further(state(now=Attempt(entry=Step.reproduce, test=RED))) is Step.retrieve


PLANNED = Plan(asks="the plan needs packages", to_approve=("python:flask",), packages=(PackageRequest(name="flask"),))


def waiting() -> RunState:
    """Build a run whose plan waits for a person to approve its packages."""
    before = state(spec=spec(mode=Mode.create, goal="an API"), now=Attempt(entry=Step.plan))
    planned = settle(before, Step.plan, PLANNED)
    assert route(planned) is Step.decide
    asked = asyncio.run(decide(planned, cast(Any, None)))
    assert (asked.action, asked.result, asked.reason) == (Action.ask, Result.needs_human, PLANNED.asks)
    return settle(planned, Step.decide, asked)


def answered_with(reply: PersonReply) -> RunState:
    paused = waiting()
    assert paused.now.decide is not None
    return settle(wake(paused), Step.decide, answered(paused, paused.now.decide, reply))


def test_packages_of_a_plan_are_approved_and_that_is_no_attempt():
    after = answered_with(PersonReply(accepts=True))
    assert (after.now.entry, after.now.plan, after.approved) == (Step.plan, PLANNED, ("python:flask",))
    assert (after.now.number, after.tries) == (2, 1)


def test_a_plan_whose_packages_are_rejected_is_made_anew():
    after = answered_with(PersonReply(accepts=False, text="only the standard library"))
    assert (after.now.entry, after.now.plan, after.approved) == (Step.plan, None, ())
    assert after.history[-1].reason == "you rejected these packages: flask. only the standard library"
    assert after.tries == 2


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(summary="s"), "the model wrote no usable tests in 5 attempts"),
        (Plan(fault="no JSON"), "the model wrote no usable plan and no usable tests in 5 attempts"),
    ],
)
def test_a_model_that_writes_no_tests_is_said_to(plan, words):
    useless = ReproductionResult(report=report(), trouble="no_tests", remedy="the answer held no test file")
    tried = [AttemptSummary(number=number) for number in range(1, 5)]
    last = decided(mode=Mode.create, number=5, plan=plan, reproduce=useless, history=tried)
    assert (last.action, last.result, last.reason) == (Action.stop, Result.unsolved, words)


def failing(count: int) -> Ids:
    return Ids.of(f"t{number}" for number in range(count))


@pytest.mark.parametrize(
    ("verdict", "history", "words"),
    [
        (Verdict(still_red=failing(2), fixed=failing(1)), (), "2 of 3 target tests still fail (was 3)"),
        (Verdict(still_red=failing(3)), (), "3 of 3 target tests still fail"),
        (Verdict(still_red=failing(1), fixed=failing(2)), (2,), "1 of 3 target tests still fails (was 2)"),
        (
            Verdict(still_red=failing(1), newly_red=failing(2)),
            (),
            "1 of 3 target tests still fails, 2 newly failing tests",
        ),
    ],
)
def test_a_retry_says_how_many_tests_fail_and_failed_before(verdict, history, words):
    red = ReproductionResult(report=report(["a"]), targets=failing(3))
    before = [AttemptSummary(number=1, seen=AttemptOutcome(wrong=wrong)) for wrong in history]
    again = decided(reproduce=red, test=PatchTestResult(report=report(["a"]), verdict=verdict), history=before)
    assert (again.action, again.reason) == (Action.retry, words)


def test_a_new_program_counts_its_tests_and_not_their_files():
    red = ReproductionResult(report=report(["tests/test_a.py"]), targets=failing(1), written=31)
    judged = PatchTestResult(
        report=report([f"t{n}" for n in range(4)], passed=27), verdict=Verdict(still_red=failing(1))
    )
    last = decided(mode=Mode.create, number=5, reproduce=red, test=judged, patch=Patch(edits="x"))
    assert last.reason == "4 of 31 tests still fail after 5 attempts"
    green = judged.model_copy(
        update={
            "report": report(passed=31),
            "verdict": Verdict(fixed=failing(1)),
            "mutants": Mutants(sampled=8, killed=6),
        }
    )
    done = decided(mode=Mode.create, reproduce=red, test=green)
    assert done.reason == "31 tests pass; they notice 6 of 8 small changes to the program"
