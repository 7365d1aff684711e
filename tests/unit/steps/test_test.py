"""What a passing result must survive: reruns, a run without the patch, and shrinking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from redstart.core.errors import InternalError, PortError
from redstart.core.report import PatchTestResult
from redstart.core.run import Level, Limits, Result, RunState
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.ports.bundle import Ports
from redstart.steps import test as step
from support import rig as play
from support.rig import CODE, GREEN, RED, TESTS, Rig, altered_ids, called_plainly, make_rig

pytestmark = pytest.mark.slow

FIX = play.block("    return number + number + 1", "    return number + number")
EXTRA = "extra.py"
PADDED = FIX + f"\n{EXTRA}\n<<<<<<< SEARCH\n=======\nEXTRA = 1\n>>>>>>> REPLACE\n"
Outcomes = dict[str, bool]
Suite = Callable[[str, Execution], Outcomes]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def fixed(code: str) -> bool:
    return "+ 1" not in code


def plain(code: str, execution: Execution) -> Outcomes:
    return {RED: fixed(code), GREEN: True}


def play_suite(rig: Rig, suite: Suite, seconds: float = 0.01) -> None:
    def run(execution: Execution) -> Completed:
        code = (rig.trees.read(execution.snapshot, CODE) or b"").decode()
        if "pytest" not in " ".join(execution.argv):
            return called_plainly(4 if fixed(code) else 5)
        altered = altered_ids((rig.trees.read(execution.snapshot, TESTS) or b"").decode())
        outcomes = {
            id_: green and id_ not in altered for id_, green in suite(code, execution).items() if wanted(execution, id_)
        }
        cases = "".join(
            f'<testcase classname="test_calc" name="{id_.rpartition("::")[2]}" file="{TESTS}" time="0.01">'
            + ("" if green else '<failure message="assert False">assert False</failure>')
            + "</testcase>"
            for id_, green in outcomes.items()
        )
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        red = not all(outcomes.values())
        cause = ExitCause.failed if red else ExitCause.ok
        return Completed(exit_code=int(red), cause=cause, output="", files={"junit.xml": xml}, wall=seconds)

    rig.with_suite(run)


def wanted(execution: Execution, id_: str) -> bool:
    chosen = [word for word in execution.argv if "::" in word]
    return not chosen or id_ in chosen


def fix(rig: Rig, answer: str = FIX, level: Level = Level.standard) -> RunState:
    rig.with_model(lambda ask: answer if ask.question == "patch" else play.CARD)

    async def go() -> RunState:
        run_id = await rig.begin(verify=level, limits=Limits(attempts=1))
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    return asyncio.run(go())


def judged(state: RunState) -> PatchTestResult:
    assert state.now.test is not None
    return state.now.test


def whole_runs(rig: Rig) -> int:
    runs = [" ".join(execution.argv) for execution in rig.sandbox.executions]
    return sum("pytest" in words and "::" not in words for words in runs)


def test_a_green_stands_four_repeats_and_is_red_again_without_the_patch(rig: Rig) -> None:
    play_suite(rig, plain)
    state = fix(rig)
    assert state.result is Result.verified
    told = [(repeat.patched, repeat.varied, repeat.green, repeat.red) for repeat in judged(state).repeats]
    names = ("hash seed", "random seed", "time zone", "order")
    assert told == [*((True, name, 1, 0) for name in names), (False, "", 0, 1)]
    assert judged(state).runs == 6 + 3 + 2 + 2, "and three controls, two neutral reruns, and two runs of nearby inputs"
    assert state.now.reproduce is not None
    assert [repeat.varied for repeat in state.now.reproduce.repeats] == [*names, "time zone"]
    seeds = [
        execution.variables["PYTHONHASHSEED"]
        for execution in rig.sandbox.executions
        if "PYTHONHASHSEED" in execution.variables
    ]
    assert len(set(seeds)) == 10, "each of the nine reruns has its own hash seed"


def test_quick_runs_the_suite_twice_and_the_controls(rig: Rig) -> None:
    play_suite(rig, plain)
    state = fix(rig, PADDED, Level.quick)
    assert (state.result, len(rig.sandbox.executions)) == (Result.verified, 2 + 3 + 1)
    assert [(item.check, item.covered, item.runs) for item in judged(state).evidence] == [
        ("control", 1, 3),
        ("neutral", 1, 1),
    ]
    assert judged(state).shrunk is None


def test_strict_runs_the_whole_suite_again(rig: Rig) -> None:
    play_suite(rig, plain)
    assert fix(rig, level=Level.strict).result is Result.verified
    assert whole_runs(rig) == 3


@pytest.mark.parametrize(
    ("variable", "pinned", "word"), [("PYTHONHASHSEED", "0", "hash seed"), ("TZ", "UTC", "time zone")]
)
def test_a_red_test_that_a_repeat_sees_green_is_no_target(rig: Rig, variable: str, pinned: str, word: str) -> None:
    play_suite(rig, lambda code, execution: {RED: execution.variables[variable] != pinned, GREEN: True})
    state = fix(rig)
    assert (state.result, state.spend.calls) == (Result.unsolved, 0)
    assert state.reason == f"every failing test is flaky: {RED} (green with another {word})"


def test_a_flake_that_only_the_hash_seed_of_a_later_repeat_shows_is_named_by_it(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: execution.variables["PYTHONHASHSEED"] == "3", GREEN: True})
    state = fix(rig)
    assert (state.result, state.spend.calls) == (Result.unsolved, 0)
    assert state.reason == f"every failing test is flaky: {RED} (green with another hash seed)"


def test_a_red_test_that_is_green_without_the_others_is_told_so(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: not wanted(execution, GREEN), GREEN: True})
    state = fix(rig)
    assert state.reason == f"every failing test is flaky: {RED} (green when it runs again without the other tests)"


def test_what_is_steadily_red_beside_a_flake_is_fixed(rig: Rig) -> None:
    flake = f"{TESTS}::test_flake"
    play_suite(rig, lambda code, execution: {RED: fixed(code), flake: execution.variables["TZ"] != "UTC"})
    state = fix(rig)
    assert state.result is Result.verified
    assert state.now.reproduce is not None
    assert state.now.reproduce.targets.first == (RED,)
    assert state.now.reproduce.flaky == (f"{flake} (green with another time zone)",)


def test_a_fix_that_holds_in_one_time_zone_only_is_none(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: fixed(code) and execution.variables["TZ"] == "UTC", GREEN: True})
    state = fix(rig)
    assert state.result is Result.unsolved
    assert judged(state).verdict.flaky.first == (RED,)


def test_a_neighbour_that_needs_a_test_far_away_is_left_to_the_whole_suite(rig: Rig) -> None:
    neighbour = f"{TESTS}::test_neighbour"

    def suite(code: str, execution: Execution) -> Outcomes:
        return {RED: fixed(code), GREEN: True, neighbour: not any("::" in word for word in execution.argv)}

    play_suite(rig, suite, seconds=6.0)
    assert fix(rig).result is Result.verified


def test_a_target_that_is_green_without_the_patch_was_not_fixed_by_it(rig: Rig) -> None:
    def healed(code: str, execution: Execution) -> Outcomes:
        patch_was_seen = any("+ 1" not in (rig.trees.read(item.snapshot, CODE) or b"").decode() for item in seen())
        return {RED: fixed(code) or patch_was_seen, GREEN: True}

    def seen() -> list[Execution]:
        return rig.sandbox.executions

    play_suite(rig, healed)
    state = fix(rig)
    assert state.result is Result.unsolved
    assert judged(state).verdict.green_without.first == (RED,)


def test_what_green_does_not_need_is_dropped(rig: Rig) -> None:
    play_suite(rig, plain)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    made = rig.adapters.blobs.get(state.now.diff).decode()
    assert "+    return number + number\n" in made
    assert EXTRA not in made
    assert state.now.made is not None
    assert rig.trees.files(state.now.made) == [CODE, TESTS]


def test_a_part_that_is_green_nearby_but_not_in_the_whole_suite_is_not_taken(rig: Rig) -> None:
    far = "other.py::test_far"

    def needs_both(code: str, execution: Execution) -> Outcomes:
        return {RED: fixed(code), far: not fixed(code) or EXTRA in rig.trees.files(execution.snapshot)}

    play_suite(rig, needs_both)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    assert judged(state).shrunk is None
    assert EXTRA in rig.adapters.blobs.get(state.now.diff).decode()


def test_a_flake_beside_the_targets_is_named_and_not_held_against_the_patch(rig: Rig) -> None:
    reds: list[int] = []

    def once(code: str, execution: Execution) -> Outcomes:
        if fixed(code) and wanted(execution, GREEN):
            reds.append(1)
        return {RED: fixed(code), GREEN: len(reds) != 1}

    play_suite(rig, once)
    state = fix(rig)
    assert state.result is Result.verified
    assert judged(state).unsteady.first == (GREEN,)


def test_a_test_that_stays_red_beside_the_targets_is_held_against_it(rig: Rig) -> None:
    play_suite(rig, lambda code, execution: {RED: fixed(code), GREEN: not fixed(code)})
    state = fix(rig)
    assert state.result is Result.unsolved
    assert judged(state).verdict.newly_red.first == (GREEN,)


def test_of_two_tests_with_one_id_none_may_vanish(rig: Rig) -> None:
    def fewer(code: str, execution: Execution) -> Outcomes:
        return {RED: fixed(code), GREEN: True, **({} if fixed(code) else {f"{TESTS}::test_zero ": True})}

    play_suite(rig, fewer)
    assert fix(rig).result is Result.unsolved


def test_a_long_suite_runs_as_a_whole_at_the_start_and_on_the_final_patch_only(rig: Rig) -> None:
    play_suite(rig, plain, seconds=6.0)
    state = fix(rig, PADDED)
    assert state.result is Result.verified
    assert state.now.reproduce is not None
    assert state.now.reproduce.forecast > 6.0
    assert whole_runs(rig) == 2


def test_without_a_patch_it_is_a_defect_and_no_trouble_of_the_store(rig):
    async def go() -> None:
        state = await rig.adapters.store.load(await rig.begin())
        await step.test(state, cast("Ports", None))

    with pytest.raises(InternalError, match="no applied patch") as caught:
        asyncio.run(go())
    assert not isinstance(caught.value, PortError), "a supervisor would retry it forever"
