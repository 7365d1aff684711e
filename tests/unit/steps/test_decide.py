from __future__ import annotations

from typing import Any, cast

import pytest

from redstart.core.change import ApplyResult, EditRejection, Patch, PatchProblem
from redstart.core.finding import Findings
from redstart.core.learning import Plan
from redstart.core.packages import PackageRequest
from redstart.core.progress import AttemptOutcome
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
from redstart.steps.decide.person import decide_after_answer
from redstart.steps.decide.retry import get_next_step
from redstart.testing.states import make_spec, make_state, report

RED = PatchTestResult(report=report(["a"]), verdict=Verdict(still_red=Ids.from_ids(["a"])))
GREEN = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.from_ids(["a", "b"])))


async def run_decide(
    *,
    mode: Mode = Mode.fix,
    limits: Limits | None = None,
    spend: Spend | None = None,
    history: Any = (),
    **artifacts: Any,
) -> Decision:
    attempt = Attempt(**{"entry": Step.reproduce, **artifacts})
    run = make_state(
        spec=make_spec(mode=mode, limits=limits or Limits()),
        now=attempt,
        spend=spend or Spend(),
        history=tuple(history),
    )
    return await decide(run, cast(Any, None))


async def test_pass_in_a_language_without_negative_controls_is_unproven():
    decision = await run_decide(reproduce=ReproductionResult(report=report(), language="Go"), test=GREEN)
    assert (decision.action, decision.result) == (Action.accept, Result.unproven)
    assert decision.reason == (
        "the tests pass by their own report; "
        "Redstart cannot alter tests written in Go to prove that they can still fail"
    )


@pytest.mark.parametrize(
    ("problem", "action", "result"),
    [
        ("already_green", Action.accept, Result.already_green),
        ("no_tests", Action.stop, Result.no_tests),
        ("environment", Action.stop, Result.environment),
    ],
)
async def test_unusable_baseline_ends_the_run(problem, action, result):
    decision = await run_decide(reproduce=ReproductionResult(report=report(), trouble=problem))
    assert (decision.action, decision.result) == (action, result)


@pytest.mark.parametrize("problem", ["already_green", "no_tests"])
async def test_unusable_tests_are_requested_again_in_create(problem):
    decision = await run_decide(mode=Mode.create, reproduce=ReproductionResult(report=report(), trouble=problem))
    assert (decision.action, decision.next) == (Action.retry, Step.reproduce)


async def test_honest_pass_is_accepted_beyond_the_limits():
    decision = await run_decide(test=GREEN, spend=Spend(usd=99))
    assert (decision.action, decision.result) == (Action.accept, Result.verified)
    assert decision.reason == "2 failing tests now pass, and no other test got worse"


@pytest.mark.parametrize(
    ("limits", "spend", "phrase"),
    [
        (Limits(minutes=1), Spend(seconds=60), "time limit"),
        (Limits(usd=1), Spend(usd=1), "money limit"),
        (Limits(tokens=10), Spend(input_tokens=6, output_tokens=4), "tokens"),
    ],
)
async def test_limit_stops_the_run(limits, spend, phrase):
    decision = await run_decide(limits=limits, spend=spend, test=RED)
    assert (decision.action, decision.result) == (Action.stop, Result.capped)
    assert phrase in decision.reason
    assert (await run_decide(limits=limits, test=RED)).action is Action.retry


async def test_call_skipped_for_lack_of_budget_counts_as_a_limit():
    decision = await run_decide(patch=Patch(problem=PatchProblem.over_budget, fault="the model was not asked"))
    assert decision.result is Result.capped


@pytest.mark.parametrize(
    ("artifacts", "leads_to"),
    [
        ({"patch": Patch(fault="no edit")}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=False)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=False, refused=True)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=True), "check": Findings(count=1)}, Step.patch),
        ({"patch": Patch(edits="x"), "apply": ApplyResult(ok=True), "check": Findings(), "test": RED}, Step.retrieve),
    ],
)
async def test_retry_starts_at_the_right_step(artifacts, leads_to):
    decision = await run_decide(**artifacts)
    assert (decision.action, decision.next) == (Action.retry, leads_to)


async def test_repeated_patch_requests_a_new_plan_and_then_counts_as_stuck():
    one_summary = [AttemptSummary(number=1, fingerprint="f")]
    two_summaries = [*one_summary, AttemptSummary(number=2, fingerprint="f")]
    patch = Patch(edits="x", fingerprint="f")
    assert (await run_decide(number=2, history=one_summary, patch=patch, test=RED)).next is Step.plan
    assert (await run_decide(number=3, history=two_summaries, patch=patch, test=RED)).result is Result.stuck


async def test_run_without_attempts_left_is_unsolved_or_refused():
    last_options = {"number": 2, "limits": Limits(attempts=2)}
    assert (await run_decide(**last_options, test=RED)).result is Result.unsolved
    refused = ApplyResult(ok=False, refused=True, rejects=(EditRejection(path="conftest.py", reason="no"),))
    decision = await run_decide(**last_options, patch=Patch(edits="x"), apply=refused)
    assert (decision.result, "conftest.py: no" in decision.reason) == (Result.refused, True)


ASKED = Decision(action=Action.ask, reason="a test changes", result=Result.needs_human)
ONE = Ids.from_ids(["a"])


def apply_reply(reply: PersonReply, verdict: Verdict | None, question: Decision = ASKED, **overrides: Any) -> Decision:
    test_result = None if verdict is None else PatchTestResult(report=report(), verdict=verdict)
    return decide_after_answer(
        make_state(now=Attempt(entry=Step.reproduce, decide=question, test=test_result), **overrides), question, reply
    )


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
def test_accepted_patch_is_verified_only_if_its_tests_pass(verdict, result):
    assert apply_reply(PersonReply(accepts=True), verdict).result is result


def test_rejected_patch_is_retried_at_the_named_step_within_the_limits():
    decision = apply_reply(PersonReply(accepts=False, text="keep the test"), Verdict(fixed=ONE))
    assert (decision.action, decision.next) == (Action.retry, Step.patch)
    assert decision.reason == "you rejected the patch: keep the test"
    replan_question = ASKED.model_copy(update={"next": Step.plan})
    assert apply_reply(PersonReply(accepts=False), Verdict(fixed=ONE), replan_question).next is Step.plan
    last_decision = apply_reply(
        PersonReply(accepts=False), Verdict(fixed=ONE), spec=make_spec(limits=Limits(attempts=1))
    )
    assert (last_decision.result, last_decision.reason) == (
        Result.unsolved,
        "you rejected the patch; no attempts are left",
    )
    budget = {"spec": make_spec(limits=Limits(usd=1)), "spend": Spend(usd=1)}
    assert apply_reply(PersonReply(accepts=False), Verdict(fixed=ONE), **budget).result is Result.capped


def test_rejecting_packages_costs_an_attempt():
    question = ASKED.model_copy(update={"next": Step.check})
    attempt = Attempt(
        entry=Step.reproduce, check=Findings(asks="may they be installed?", packages=("python:left-pad",))
    )
    rejection = PersonReply(accepts=False, text="only the standard library")
    retry_decision = decide_after_answer(make_state(now=attempt), question, rejection)
    expected_reason = "you rejected these packages: left-pad. only the standard library"
    assert (retry_decision.action, retry_decision.next, retry_decision.reason) == (
        Action.retry,
        Step.patch,
        expected_reason,
    )
    last_decision = decide_after_answer(
        make_state(now=attempt, spec=make_spec(limits=Limits(attempts=1))), question, rejection
    )
    assert (last_decision.result, last_decision.reason) == (Result.unsolved, f"{expected_reason}; no attempts are left")
    accepted_decision = decide_after_answer(make_state(now=attempt), question, PersonReply(accepts=True))
    assert (accepted_decision.next, accepted_decision.approved) == (Step.check, ("python:left-pad",))


def test_failing_run_continues_where_a_retry_would_begin():
    refused = Attempt(entry=Step.reproduce, patch=Patch(edits="x"), apply=ApplyResult(ok=False, refused=True))
    assert get_next_step(make_state(now=refused)) is Step.patch
    assert get_next_step(make_state(now=Attempt(entry=Step.reproduce, test=RED))) is Step.retrieve


PLANNED = Plan(asks="the plan needs packages", to_approve=("python:flask",), packages=(PackageRequest(name="flask"),))


async def build_waiting_state() -> RunState:
    """Build a run whose plan waits for a person to approve its packages."""
    initial_state = make_state(spec=make_spec(mode=Mode.create, goal="an API"), now=Attempt(entry=Step.plan))
    planned_state = settle(initial_state, Step.plan, PLANNED)
    assert route(planned_state) is Step.decide
    question = await decide(planned_state, cast(Any, None))
    assert (question.action, question.result, question.reason) == (Action.ask, Result.needs_human, PLANNED.asks)
    return settle(planned_state, Step.decide, question)


async def settle_with_reply(reply: PersonReply) -> RunState:
    paused_state = await build_waiting_state()
    assert paused_state.now.decide is not None
    return settle(wake(paused_state), Step.decide, decide_after_answer(paused_state, paused_state.now.decide, reply))


async def test_approving_the_packages_of_a_plan_costs_no_attempt():
    next_state = await settle_with_reply(PersonReply(accepts=True))
    assert (next_state.now.entry, next_state.now.plan, next_state.approved) == (Step.plan, PLANNED, ("python:flask",))
    assert (next_state.now.number, next_state.tries) == (2, 1)


async def test_plan_with_rejected_packages_is_replaced():
    next_state = await settle_with_reply(PersonReply(accepts=False, text="only the standard library"))
    assert (next_state.now.entry, next_state.now.plan, next_state.approved) == (Step.plan, None, ())
    assert next_state.history[-1].reason == "you rejected these packages: flask. only the standard library"
    assert next_state.tries == 2


@pytest.mark.parametrize(
    ("plan", "expected_reason"),
    [
        (Plan(summary="s"), "the model wrote no usable tests in 5 attempts"),
        (Plan(fault="no JSON"), "the model wrote no usable plan and no usable tests in 5 attempts"),
    ],
)
async def test_stop_reason_names_a_model_that_writes_no_tests(plan, expected_reason):
    useless = ReproductionResult(report=report(), trouble="no_tests", remedy="the answer held no test file")
    summaries = [AttemptSummary(number=number) for number in range(1, 5)]
    decision = await run_decide(mode=Mode.create, number=5, plan=plan, reproduce=useless, history=summaries)
    assert (decision.action, decision.result, decision.reason) == (Action.stop, Result.unsolved, expected_reason)


def build_failing_ids(count: int) -> Ids:
    return Ids.from_ids(f"t{number}" for number in range(count))


@pytest.mark.parametrize(
    ("verdict", "history", "expected_reason"),
    [
        (
            Verdict(still_red=build_failing_ids(2), fixed=build_failing_ids(1)),
            (),
            "2 of 3 target tests still fail (was 3)",
        ),
        (Verdict(still_red=build_failing_ids(3)), (), "3 of 3 target tests still fail"),
        (
            Verdict(still_red=build_failing_ids(1), fixed=build_failing_ids(2)),
            (2,),
            "1 of 3 target tests still fails (was 2)",
        ),
        (
            Verdict(still_red=build_failing_ids(1), newly_red=build_failing_ids(2)),
            (),
            "1 of 3 target tests still fails, 2 newly failing tests",
        ),
    ],
)
async def test_retry_reason_gives_the_current_and_previous_failure_counts(verdict, history, expected_reason):
    reproduction = ReproductionResult(report=report(["a"]), targets=build_failing_ids(3))
    summaries = [AttemptSummary(number=1, seen=AttemptOutcome(wrong=wrong_count)) for wrong_count in history]
    decision = await run_decide(
        reproduce=reproduction, test=PatchTestResult(report=report(["a"]), verdict=verdict), history=summaries
    )
    assert (decision.action, decision.reason) == (Action.retry, expected_reason)


async def test_new_program_counts_tests_instead_of_test_files():
    reproduction = ReproductionResult(report=report(["tests/test_a.py"]), targets=build_failing_ids(1), written=31)
    test_result = PatchTestResult(
        report=report([f"t{n}" for n in range(4)], passed=27), verdict=Verdict(still_red=build_failing_ids(1))
    )
    last_decision = await run_decide(
        mode=Mode.create, number=5, reproduce=reproduction, test=test_result, patch=Patch(edits="x")
    )
    assert last_decision.reason == "4 of 31 tests still fail after 5 attempts"
    passing_result = test_result.model_copy(
        update={
            "report": report(passed=31),
            "verdict": Verdict(fixed=build_failing_ids(1)),
            "mutants": Mutants(sampled=8, killed=6),
        }
    )
    passing_decision = await run_decide(mode=Mode.create, reproduce=reproduction, test=passing_result)
    assert passing_decision.reason == "31 tests pass; they notice 6 of 8 small changes to the program"
