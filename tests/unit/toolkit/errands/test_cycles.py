"""The decision after a cycle, and the size of the state of a run with many cycles."""

from __future__ import annotations

import pytest

from redstart.core.run import Action, Attempt, ChildResult, Limits, Mode, Result, RunState, Spend, Step
from redstart.core.tasks import ImproveTask
from redstart.core.wishes import Metric
from redstart.flow.errands import begun, ended, errand_id
from redstart.flow.route import route, settle, waits_for_errands, wake
from redstart.testing.states import snapshot, spec, state
from redstart.toolkit.errands import next_cycle

LIMIT = 64 * 1024


def parent(**over: object) -> RunState:
    return state(spec=spec(mode=Mode.improve, **over), now=Attempt(entry=Step.decide))


def good(number: int, **over: object) -> ChildResult:
    made = snapshot(tree=f"{number:040x}")
    plain = {"number": number, "result": Result.verified, "about": f"feature: thing {number}", "made": made}
    return ChildResult.model_validate({**plain, **over})


def bad(number: int, result: Result = Result.unsolved, reason: str = "2 of 3 tests still fail") -> ChildResult:
    return ChildResult(number=number, result=result, reason=reason, about=f"bug: thing {number}")


def after(run: RunState, *told: ChildResult, cap: str = "", empty: bool = False) -> RunState:
    """Return the run after it has received the results of its cycle, waiting for the next one."""
    return settle(run, Step.decide, next_cycle(run, told, cap, empty=empty))


def test_it_begins_with_a_cycle_on_what_the_user_has():
    waits = after(parent())
    (errand,) = waits.now.decide.errands
    assert (route(parent()), waits_for_errands(waits), route(waits)) == (Step.decide, True, None)
    assert (errand.number, errand.mode, errand.base) == (1, Mode.improve, waits.spec.base)


def test_what_is_verified_is_what_the_next_one_starts_from_and_all_else_is_not():
    first = after(parent())
    kept = after(wake(first), good(1))
    assert kept.draft == snapshot(tree=f"{1:040x}") == kept.now.decide.errands[0].base
    dropped = after(wake(kept), bad(2))
    assert dropped.draft == kept.draft == dropped.now.decide.errands[0].base
    assert (dropped.work.begun, dropped.work.kept, dropped.work.dropped, dropped.work.in_a_row) == (3, 1, 1, 1)
    unmade = after(wake(dropped), good(3, made=None))
    assert (unmade.draft, unmade.work.kept) == (kept.draft, 1)


def test_the_next_one_is_told_what_the_last_ones_came_to():
    run = after(wake(after(wake(after(parent())), good(1))), bad(2))
    child = begun(run, run.now.decide.errands[0])
    assert child.spec.task_of(ImproveTask).before == (
        "cycle 1, kept: feature: thing 1",
        "cycle 2, dropped (2 of 3 tests still fail): bug: thing 2",
    )
    assert (child.run_id, child.spec.parent, child.spec.errand) == (errand_id(run.run_id, 3), run.run_id, 3)
    assert (child.spec.lacks_test, run.spec.lacks_test) == (True, False)


def test_a_goal_without_a_program_is_created_first_and_again_until_it_is_there():
    run = parent(goal="a csv sorter")
    first = after(run, empty=True)
    assert first.now.decide.errands[0].mode is Mode.create
    again = after(wake(first), bad(1), empty=True)
    assert again.now.decide.errands[0].mode is Mode.create
    made = after(wake(again), good(2), empty=True)
    assert made.now.decide.errands[0].mode is Mode.improve


@pytest.mark.parametrize(
    ("told", "cap", "result", "said"),
    [
        (good(1), "", Result.verified, "kept 1 improvement of 1 cycle"),
        (bad(1), "", Result.unsolved, "kept 0 improvements of 1 cycle"),
        (good(1), "the time limit of 1 minutes is reached", Result.verified, "of 1 cycle; the time limit of 1 minutes"),
        (bad(1), "the time limit of 1 minutes is reached", Result.capped, "the time limit"),
    ],
)
def test_it_ends_after_so_many_or_at_a_cap(told, cap, result, said):
    run = wake(after(parent(cycles=0 if cap else 1)))
    done = next_cycle(run, [told], cap, empty=False)
    assert (done.action, done.result) == (Action.accept if result is Result.verified else Action.stop, result)
    assert said in done.reason


@pytest.mark.parametrize("result", [Result.capped, Result.environment, Result.unproven])
def test_a_cycle_that_shows_that_no_other_can_be_kept_is_the_last(result):
    run = wake(after(parent()))
    done = next_cycle(run, [bad(1, result, "nothing runs here")], "", empty=False)
    assert (done.action, done.result) == (Action.stop, result)
    assert "nothing runs here" in done.reason


def test_what_the_cycles_spend_counts_and_the_rest_is_left_for_the_next():
    run = parent(limits=Limits(usd=1.0, tokens=1000, minutes=10))
    used = Spend(calls=2, input_tokens=300, output_tokens=100, usd=0.25, seconds=120)
    second = after(wake(after(run)), good(1, spend=used))
    assert (second.spend.usd, second.spend.tokens, second.spend.calls) == (0.25, 400, 2)
    left = second.now.decide.errands[0].limits
    assert (left.usd, left.tokens, left.minutes) == (0.75, 600, 8)


@pytest.mark.slow
def test_500_cycles_leave_the_state_small():
    long = "𝒶" * 4000
    metric = Metric(command=("python", "-c", "x" * 500), start=snapshot())
    run = after(parent(goal=long, hint="h" * 1000, metric=metric, protect=("p" * 100,) * 50))
    sizes, children = [], []
    for number in range(1, 501):
        ending = good(number, reason=long, about=long) if number % 3 else bad(number, reason=long)
        assert run.now.decide.errands[0].number == number
        sizes.append(len(run.model_dump_json().encode()))
        children.append(len(begun(run, run.now.decide.errands[0]).model_dump_json().encode()))
        run = after(wake(run), ending)
        run = RunState.model_validate_json(run.model_dump_json())
    assert (run.work.kept, run.work.dropped) == (334, 166)
    assert max(*sizes, *children) < LIMIT
    assert max(sizes[250:]) <= max(sizes[:250]) + 100


def test_how_a_child_ended_is_told_only_when_it_has():
    child = begun(after(parent()), after(parent()).now.decide.errands[0])
    assert ended(child) is None
