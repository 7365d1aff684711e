"""The decision after a cycle, and the size of the state of a run with many cycles."""

from __future__ import annotations

import pytest

from redstart.core.run import Action, Attempt, ChildResult, Limits, Mode, Result, RunState, Spend, Step
from redstart.core.run_preferences import Metric
from redstart.core.tasks import ImproveTask
from redstart.flow.child_runs import create_child_run, get_child_result, make_child_run_id
from redstart.flow.route import is_waiting_for_children, route, settle, wake
from redstart.testing.states import make_snapshot, make_spec, make_state
from redstart.toolkit.child_runs import plan_next_cycle

LIMIT = 64 * 1024


def build_parent(**overrides: object) -> RunState:
    return make_state(spec=make_spec(mode=Mode.improve, **overrides), now=Attempt(entry=Step.decide))


def build_verified(number: int, **overrides: object) -> ChildResult:
    result_snapshot = make_snapshot(tree=f"{number:040x}")
    defaults = {
        "number": number,
        "result": Result.verified,
        "about": f"feature: thing {number}",
        "made": result_snapshot,
    }
    return ChildResult.model_validate({**defaults, **overrides})


def build_unsolved(
    number: int, result: Result = Result.unsolved, reason: str = "2 of 3 tests still fail"
) -> ChildResult:
    return ChildResult(number=number, result=result, reason=reason, about=f"bug: thing {number}")


def settle_cycle(run: RunState, *results: ChildResult, cap: str = "", empty: bool = False) -> RunState:
    """Return the run after it has received the results of its cycle, waiting for the next one."""
    return settle(run, Step.decide, plan_next_cycle(run, results, cap, empty=empty))


def test_first_cycle_starts_from_the_user_snapshot():
    waits = settle_cycle(build_parent())
    (child_task,) = waits.now.decide.errands
    assert (route(build_parent()), is_waiting_for_children(waits), route(waits)) == (Step.decide, True, None)
    assert (child_task.number, child_task.mode, child_task.base) == (1, Mode.improve, waits.spec.base)


def test_next_cycle_starts_from_the_last_verified_result():
    first_state = settle_cycle(build_parent())
    kept_state = settle_cycle(wake(first_state), build_verified(1))
    assert kept_state.draft == make_snapshot(tree=f"{1:040x}") == kept_state.now.decide.errands[0].base
    dropped_state = settle_cycle(wake(kept_state), build_unsolved(2))
    assert dropped_state.draft == kept_state.draft == dropped_state.now.decide.errands[0].base
    assert (
        dropped_state.work.begun,
        dropped_state.work.kept,
        dropped_state.work.dropped,
        dropped_state.work.in_a_row,
    ) == (3, 1, 1, 1)
    unmade = settle_cycle(wake(dropped_state), build_verified(3, made=None))
    assert (unmade.draft, unmade.work.kept) == (kept_state.draft, 1)


def test_next_cycle_receives_the_outcomes_of_earlier_cycles():
    run = settle_cycle(wake(settle_cycle(wake(settle_cycle(build_parent())), build_verified(1))), build_unsolved(2))
    child = create_child_run(run, run.now.decide.errands[0])
    assert child.spec.get_task(ImproveTask).before == (
        "cycle 1, kept: feature: thing 1",
        "cycle 2, dropped (2 of 3 tests still fail): bug: thing 2",
    )
    assert (child.run_id, child.spec.parent, child.spec.errand) == (make_child_run_id(run.run_id, 3), run.run_id, 3)
    assert (child.spec.needs_new_test, run.spec.needs_new_test) == (True, False)


def test_missing_program_is_created_first_and_retried_until_it_exists():
    run = build_parent(goal="a csv sorter")
    first_state = settle_cycle(run, empty=True)
    assert first_state.now.decide.errands[0].mode is Mode.create
    retried_state = settle_cycle(wake(first_state), build_unsolved(1), empty=True)
    assert retried_state.now.decide.errands[0].mode is Mode.create
    created_state = settle_cycle(wake(retried_state), build_verified(2), empty=True)
    assert created_state.now.decide.errands[0].mode is Mode.improve


@pytest.mark.parametrize(
    ("child_result", "cap", "result", "expected_reason"),
    [
        (build_verified(1), "", Result.verified, "kept 1 improvement of 1 cycle"),
        (build_unsolved(1), "", Result.unsolved, "kept 0 improvements of 1 cycle"),
        (
            build_verified(1),
            "the time limit of 1 minutes is reached",
            Result.verified,
            "of 1 cycle; the time limit of 1 minutes",
        ),
        (build_unsolved(1), "the time limit of 1 minutes is reached", Result.capped, "the time limit"),
    ],
)
def test_run_ends_after_its_cycles_or_at_a_limit(child_result, cap, result, expected_reason):
    run = wake(settle_cycle(build_parent(cycles=0 if cap else 1)))
    decision = plan_next_cycle(run, [child_result], cap, empty=False)
    assert (decision.action, decision.result) == (Action.accept if result is Result.verified else Action.stop, result)
    assert expected_reason in decision.reason


@pytest.mark.parametrize("result", [Result.capped, Result.environment, Result.unproven])
def test_cycle_that_rules_out_further_success_is_the_last(result):
    run = wake(settle_cycle(build_parent()))
    decision = plan_next_cycle(run, [build_unsolved(1, result, "nothing runs here")], "", empty=False)
    assert (decision.action, decision.result) == (Action.stop, result)
    assert "nothing runs here" in decision.reason


def test_spend_of_cycles_counts_and_the_rest_goes_to_the_next_cycle():
    run = build_parent(limits=Limits(usd=1.0, tokens=1000, minutes=10))
    used = Spend(calls=2, input_tokens=300, output_tokens=100, usd=0.25, seconds=120)
    second_state = settle_cycle(wake(settle_cycle(run)), build_verified(1, spend=used))
    assert (second_state.spend.usd, second_state.spend.tokens, second_state.spend.calls) == (0.25, 400, 2)
    remaining = second_state.now.decide.errands[0].limits
    assert (remaining.usd, remaining.tokens, remaining.minutes) == (0.75, 600, 8)


@pytest.mark.slow
def test_state_stays_small_after_500_cycles():
    long = "𝒶" * 4000
    metric = Metric(command=("python", "-c", "x" * 500), start=make_snapshot())
    run = settle_cycle(build_parent(goal=long, hint="h" * 1000, metric=metric, protect=("p" * 100,) * 50))
    sizes, children = [], []
    for number in range(1, 501):
        ending = build_verified(number, reason=long, about=long) if number % 3 else build_unsolved(number, reason=long)
        assert run.now.decide.errands[0].number == number
        sizes.append(len(run.model_dump_json().encode()))
        children.append(len(create_child_run(run, run.now.decide.errands[0]).model_dump_json().encode()))
        run = settle_cycle(wake(run), ending)
        run = RunState.model_validate_json(run.model_dump_json())
    assert (run.work.kept, run.work.dropped) == (334, 166)
    assert max(*sizes, *children) < LIMIT
    assert max(sizes[250:]) <= max(sizes[:250]) + 100


def test_unfinished_child_run_has_no_outcome():
    child = create_child_run(settle_cycle(build_parent()), settle_cycle(build_parent()).now.decide.errands[0])
    assert get_child_result(child) is None
