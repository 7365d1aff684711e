from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from redstart.core.change import Applied, Patch, Reject
from redstart.core.finding import Findings
from redstart.core.report import Ids, Judged, Reproduced, Verdict
from redstart.core.run import (
    Action,
    Attempt,
    AttemptSummary,
    Decision,
    Limits,
    Mode,
    Result,
    Spend,
    Step,
)
from redstart.ports.store.port import Reply
from redstart.steps.decide import answered, decide, further
from redstart.testing.states import report, spec, state

RED = Judged(report=report(["a"]), verdict=Verdict(still_red=Ids.of(["a"])))
GREEN = Judged(report=report(), verdict=Verdict(fixed=Ids.of(["a", "b"])))


def decided(
    *, mode: Mode = Mode.fix, limits: Limits | None = None, spend: Spend | None = None, history: Any = (), **now: Any
) -> Decision:
    attempt = Attempt(**{"entry": Step.reproduce, **now})
    run = state(
        spec=spec(mode=mode, limits=limits or Limits()), now=attempt, spend=spend or Spend(), history=tuple(history)
    )
    return asyncio.run(decide(run, cast(Any, None)))


@pytest.mark.parametrize(
    ("trouble", "action", "result"),
    [
        ("already_green", Action.accept, Result.already_green),
        ("no_tests", Action.stop, Result.no_tests),
        ("environment", Action.stop, Result.environment),
    ],
)
def test_trouble_ends_the_run(trouble, action, result):
    decision = decided(reproduce=Reproduced(report=report(), trouble=trouble))
    assert (decision.action, decision.result) == (action, result)


@pytest.mark.parametrize("trouble", ["already_green", "no_tests"])
def test_tests_that_are_not_usable_are_asked_for_again_in_create(trouble):
    decision = decided(mode=Mode.create, reproduce=Reproduced(report=report(), trouble=trouble))
    assert (decision.action, decision.next) == (Action.retry, Step.reproduce)


def test_honest_green_is_accepted_even_past_the_caps():
    decision = decided(test=GREEN, spend=Spend(usd=99))
    assert (decision.action, decision.result) == (Action.accept, Result.verified)
    assert decision.reason == "2 red tests are green, and nothing else got worse"


@pytest.mark.parametrize(
    ("limits", "spend", "word"),
    [
        (Limits(minutes=1), Spend(seconds=60), "time cap"),
        (Limits(usd=1), Spend(usd=1), "money cap"),
        (Limits(tokens=10), Spend(input_tokens=6, output_tokens=4), "tokens"),
    ],
)
def test_a_cap_stops(limits, spend, word):
    decision = decided(limits=limits, spend=spend, test=RED)
    assert (decision.action, decision.result) == (Action.stop, Result.capped)
    assert word in decision.reason
    assert decided(limits=limits, test=RED).action is Action.retry


def test_a_call_that_was_not_made_for_want_of_budget_is_a_cap():
    decision = decided(patch=Patch(fault="the model's answer could not be used: budget"))
    assert decision.result is Result.capped


@pytest.mark.parametrize(
    ("now", "leads_to"),
    [
        ({"patch": Patch(fault="no edit")}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": Applied(ok=False)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": Applied(ok=False, refused=True)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": Applied(ok=True), "check": Findings(count=1)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": Applied(ok=True), "check": Findings(), "test": RED}, Step.retrieve),
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
    last = {"number": 2, "limits": Limits(iterations=2)}
    assert decided(**last, test=RED).result is Result.unsolved
    refused = Applied(ok=False, refused=True, rejects=(Reject(path="conftest.py", reason="no"),))
    decision = decided(**last, patch=Patch(edits="x"), apply=refused)
    assert (decision.result, "conftest.py: no" in decision.reason) == (Result.refused, True)


ASKED = Decision(action=Action.ask, reason="a test changes", result=Result.needs_human)
ONE = Ids.of(["a"])


def replied(reply: Reply, verdict: Verdict | None, asked: Decision = ASKED, **over: Any) -> Decision:
    tested = None if verdict is None else Judged(report=report(), verdict=verdict)
    return answered(state(now=Attempt(entry=Step.reproduce, decide=asked, test=tested), **over), asked, reply)


@pytest.mark.parametrize(
    ("verdict", "result"),
    [
        (Verdict(fixed=ONE), Result.verified),
        (Verdict(fixed=ONE, tampered=("test_a.py",)), Result.verified),
        (Verdict(fixed=ONE, newly_skipped=ONE, new_findings=1), Result.verified),
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
    assert replied(Reply(accepts=True), verdict).result is result


def test_what_is_rejected_is_tried_again_where_the_question_says_and_within_the_limits():
    decision = replied(Reply(accepts=False, text="keep the test"), Verdict(fixed=ONE))
    assert (decision.action, decision.next) == (Action.retry, Step.patch)
    assert decision.reason == "you rejected it: keep the test"
    there = ASKED.model_copy(update={"next": Step.plan})
    assert replied(Reply(accepts=False), Verdict(fixed=ONE), there).next is Step.plan
    last = replied(Reply(accepts=False), Verdict(fixed=ONE), spec=spec(limits=Limits(iterations=1)))
    assert (last.result, last.reason) == (Result.unsolved, "you rejected it; no attempt is left")
    spent = {"spec": spec(limits=Limits(usd=1)), "spend": Spend(usd=1)}
    assert replied(Reply(accepts=False), Verdict(fixed=ONE), **spent).result is Result.capped


def test_packages_that_are_not_wanted_cost_an_attempt_like_any_other_no():
    asked = ASKED.model_copy(update={"next": Step.check})
    now = Attempt(entry=Step.reproduce, check=Findings(asks="may they be installed?", packages=("python:left-pad",)))
    no = Reply(accepts=False, text="only the standard library")
    again = answered(state(now=now), asked, no)
    said = "you do not want these packages: python:left-pad. only the standard library"
    assert (again.action, again.next, again.reason) == (Action.retry, Step.patch, said)
    last = answered(state(now=now, spec=spec(limits=Limits(iterations=1))), asked, no)
    assert (last.result, last.reason) == (Result.unsolved, f"{said}; no attempt is left")
    yes = answered(state(now=now), asked, Reply(accepts=True))
    assert (yes.next, yes.approved) == (Step.check, ("python:left-pad",))


def test_a_red_run_goes_further_where_a_retry_would_begin():
    refused = Attempt(entry=Step.reproduce, patch=Patch(edits="x"), apply=Applied(ok=False, refused=True))
    assert further(state(now=refused)) is Step.patch
    assert further(state(now=Attempt(entry=Step.reproduce, test=RED))) is Step.retrieve
