"""What a passing result must survive: reruns, a run without the patch, and shrinking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from redstart.core.errors import InternalError, PortError
from redstart.core.report import PatchTestResult, ShrinkEnd
from redstart.core.run import Level, Limits, Result, RunState
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from redstart.ports.bundle import Ports
from redstart.steps import test as step
from support import rig as play
from support.rig import CODE, GREEN, RED, TESTS, Rig, altered_ids, create_neutral_result, make_rig

pytestmark = pytest.mark.slow

FIX = play.block("    return number + number + 1", "    return number + number")
EXTRA = "extra.py"
PADDED = FIX + f"\n{EXTRA}\n<<<<<<< SEARCH\n=======\nEXTRA = 1\n>>>>>>> REPLACE\n"
Outcomes = dict[str, bool]
Suite = Callable[[str, Execution], Outcomes]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def is_fixed(code: str) -> bool:
    return "+ 1" not in code


def run_plain_suite(code: str, execution: Execution) -> Outcomes:
    return {RED: is_fixed(code), GREEN: True}


def play_suite(rig: Rig, suite: Suite, seconds: float = 0.01) -> None:
    def run(execution: Execution) -> Completed:
        code = (rig.trees.read(execution.snapshot, CODE) or b"").decode()
        if "pytest" not in " ".join(execution.argv):
            return create_neutral_result(4 if is_fixed(code) else 5)
        altered_tests = altered_ids((rig.trees.read(execution.snapshot, TESTS) or b"").decode())
        outcomes = {
            id_: is_green and id_ not in altered_tests
            for id_, is_green in suite(code, execution).items()
            if is_selected(execution, id_)
        }
        cases = "".join(
            f'<testcase classname="test_calc" name="{id_.rpartition("::")[2]}" file="{TESTS}" time="0.01">'
            + ("" if is_green else '<failure message="assert False">assert False</failure>')
            + "</testcase>"
            for id_, is_green in outcomes.items()
        )
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        has_failure = not all(outcomes.values())
        cause = ExitCause.failed if has_failure else ExitCause.ok
        return Completed(exit_code=int(has_failure), cause=cause, output="", files={"junit.xml": xml}, wall=seconds)

    rig.with_suite(run)


def is_selected(execution: Execution, id_: str) -> bool:
    selected = [argument for argument in execution.argv if "::" in argument]
    return not selected or id_ in selected


def fix(rig: Rig, answer: str = FIX, level: Level = Level.standard) -> RunState:
    rig.with_model(lambda ask: answer if ask.question == "patch" else play.CARD)

    async def go() -> RunState:
        run_id = await rig.begin(verify=level, limits=Limits(attempts=1))
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state

    return asyncio.run(go())


def get_test_result(state: RunState) -> PatchTestResult:
    assert state.now.test is not None
    return state.now.test


def count_full_runs(rig: Rig) -> int:
    runs = [" ".join(execution.argv) for execution in rig.sandbox.executions]
    return sum("pytest" in command and "::" not in command for command in runs)


def test_patch_passes_four_reruns_and_fails_again_without_the_patch(rig: Rig) -> None:
    play_suite(rig, run_plain_suite)
    state = fix(rig)
    assert state.result is Result.verified
    repeats = [(repeat.patched, repeat.varied, repeat.green, repeat.red) for repeat in get_test_result(state).repeats]
    names = ("hash seed", "random seed", "time zone", "order")
    assert repeats == [*((True, name, 1, 0) for name in names), (False, "", 0, 1)]
    assert get_test_result(state).runs == 6 + 3 + 2 + 2, (
        "and three controls, two neutral reruns, and two runs of nearby inputs"
    )
    assert state.now.reproduce is not None
    assert [repeat.varied for repeat in state.now.reproduce.repeats] == [*names, "time zone"]
    seeds = [
        execution.variables["PYTHONHASHSEED"]
        for execution in rig.sandbox.executions
        if "PYTHONHASHSEED" in execution.variables
    ]
    assert len(set(seeds)) == 10, "each of the nine reruns has its own hash seed"


def test_quick_level_runs_the_suite_twice_and_the_controls(rig: Rig) -> None:
    play_suite(rig, run_plain_suite)
    state = fix(rig, PADDED, Level.quick)
    assert (state.result, len(rig.sandbox.executions)) == (Result.verified, 2 + 3 + 1)
    assert [(item.check, item.covered, item.runs) for item in get_test_result(state).evidence] == [
        ("control", 1, 3),
        ("neutral", 1, 1),
    ]
    assert get_test_result(state).shrunk is None


def test_strict_level_runs_the_whole_suite_again(rig: Rig) -> None:
    play_suite(rig, run_plain_suite)
    assert fix(rig, level=Level.strict).result is Result.verified
    assert count_full_runs(rig) == 3


@pytest.mark.parametrize(
    ("variable", "pinned", "variation"), [("PYTHONHASHSEED", "0", "hash seed"), ("TZ", "UTC", "time zone")]
)
def test_failing_test_that_passes_in_a_rerun_is_not_a_target(
    rig: Rig, variable: str, pinned: str, variation: str
) -> None:
    play_suite(rig, lambda code, execution: {RED: execution.variables[variable] != pinned, GREEN: True})
    state = fix(rig)
    assert (state.result, state.spend.calls) == (Result.unsolved, 0)
    assert state.reason == f"every failing test is flaky: {RED} (green with another {variation})"


def test_flake_is_attributed_to_the_hash_seed_of_a_later_rerun(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: execution.variables["PYTHONHASHSEED"] == "3", GREEN: True})
    state = fix(rig)
    assert (state.result, state.spend.calls) == (Result.unsolved, 0)
    assert state.reason == f"every failing test is flaky: {RED} (green with another hash seed)"


def test_failing_test_that_passes_alone_is_reported_as_flaky(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: not is_selected(execution, GREEN), GREEN: True})
    state = fix(rig)
    assert state.reason == f"every failing test is flaky: {RED} (green when it runs again without the other tests)"


def test_steady_failure_beside_a_flake_is_fixed(rig: Rig) -> None:
    flake = f"{TESTS}::test_flake"
    play_suite(rig, lambda code, execution: {RED: is_fixed(code), flake: execution.variables["TZ"] != "UTC"})
    state = fix(rig)
    assert state.result is Result.verified
    assert state.now.reproduce is not None
    assert state.now.reproduce.targets.first == (RED,)
    assert state.now.reproduce.flaky == (f"{flake} (green with another time zone)",)


def test_fix_that_works_in_only_one_time_zone_is_rejected(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: is_fixed(code) and execution.variables["TZ"] == "UTC", GREEN: True})
    state = fix(rig)
    assert state.result is Result.unsolved
    assert get_test_result(state).verdict.flaky.first == (RED,)


def test_neighbor_that_needs_a_distant_test_is_left_to_the_whole_suite(rig: Rig) -> None:
    neighbour = f"{TESTS}::test_neighbour"

    def run_suite(code: str, execution: Execution) -> Outcomes:
        return {RED: is_fixed(code), GREEN: True, neighbour: not any("::" in argument for argument in execution.argv)}

    play_suite(rig, run_suite, seconds=6.0)
    assert fix(rig).result is Result.verified


def test_target_that_passes_without_the_patch_was_not_fixed_by_it(rig: Rig) -> None:
    def run_healed_suite(code: str, execution: Execution) -> Outcomes:
        patch_was_seen = any(
            "+ 1" not in (rig.trees.read(item.snapshot, CODE) or b"").decode() for item in list_executions()
        )
        return {RED: is_fixed(code) or patch_was_seen, GREEN: True}

    def list_executions() -> list[Execution]:
        return rig.sandbox.executions

    play_suite(rig, run_healed_suite)
    state = fix(rig)
    assert state.result is Result.unsolved
    assert get_test_result(state).verdict.green_without.first == (RED,)


def test_unneeded_part_of_the_patch_is_dropped(rig: Rig) -> None:
    play_suite(rig, run_plain_suite)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    diff = rig.adapters.blobs.get(state.now.diff).decode()
    assert "+    return number + number\n" in diff
    assert EXTRA not in diff
    assert state.now.made is not None
    assert rig.trees.list_files(state.now.made) == [CODE, TESTS]
    assert get_test_result(state).shrink_end is ShrinkEnd.complete


def test_search_that_reaches_its_limit_says_so(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redstart.steps.test.trial.SHRINK_SECONDS", 0.0)
    play_suite(rig, run_plain_suite, seconds=0.0)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    assert get_test_result(state).shrink_end is ShrinkEnd.limit


def test_smaller_patch_that_fails_the_whole_suite_is_not_used(rig: Rig) -> None:
    far_test = f"{TESTS}::test_far"

    def needs_both(code: str, execution: Execution) -> Outcomes:
        is_whole_suite = not any("::" in argument for argument in execution.argv)
        lacks_extra = is_fixed(code) and EXTRA not in rig.trees.list_files(execution.snapshot)
        return {RED: is_fixed(code), far_test: not (is_whole_suite and lacks_extra)}

    play_suite(rig, needs_both)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    assert get_test_result(state).shrunk is None
    assert get_test_result(state).shrink_end is ShrinkEnd.failed
    assert EXTRA in rig.adapters.blobs.get(state.now.diff).decode()


def test_flake_beside_the_targets_is_named_but_not_held_against_the_patch(rig: Rig) -> None:
    failures: list[int] = []

    def run_flaky_suite(code: str, execution: Execution) -> Outcomes:
        if is_fixed(code) and is_selected(execution, GREEN):
            failures.append(1)
        return {RED: is_fixed(code), GREEN: len(failures) != 1}

    play_suite(rig, run_flaky_suite)
    state = fix(rig)
    assert state.result is Result.verified
    assert get_test_result(state).unsteady.first == (GREEN,)


def test_steady_new_failure_is_held_against_the_patch(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: is_fixed(code), GREEN: not is_fixed(code)})
    state = fix(rig)
    assert state.result is Result.unsolved
    assert get_test_result(state).verdict.newly_red.first == (GREEN,)


def test_neither_of_two_tests_with_the_same_id_may_vanish(rig: Rig) -> None:
    def run_fewer_tests(code: str, execution: Execution) -> Outcomes:
        return {RED: is_fixed(code), GREEN: True, **({} if is_fixed(code) else {f"{TESTS}::test_zero ": True})}

    play_suite(rig, run_fewer_tests)
    assert fix(rig).result is Result.unsolved


def test_long_suite_runs_whole_only_at_the_start_and_on_the_final_patch(rig: Rig) -> None:
    play_suite(rig, run_plain_suite, seconds=6.0)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    assert state.now.reproduce is not None
    assert state.now.reproduce.forecast > 6.0
    assert count_full_runs(rig) == 2


async def test_missing_patch_is_an_internal_error_and_not_a_store_error(rig):
    async def go() -> None:
        state = await rig.adapters.store.load(await rig.begin())
        await step.test(state, cast("Ports", None))

    with pytest.raises(InternalError, match="no applied patch") as caught:
        await go()
    assert not isinstance(caught.value, PortError), "a supervisor would retry it forever"
