"""Child runs that build parts of a program: they start, merge, resume and replay, all on the rig."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.chat import Ask
from redstart.core.errors import SandboxUnavailable
from redstart.core.run import Action, Limits, Mode, Result, RunState, Status, Step
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.flow.child_runs import create_child_run, make_child_run_id
from redstart.flow.route import is_waiting_for_children
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

GOAL = "three numbers"
PLAN = {
    "summary": "one module each",
    "subtasks": [
        {"title": "make one", "criteria": ["one() is 1"]},
        {"title": "make two", "criteria": ["two() is 2"]},
        {"title": "make three", "criteria": ["three() is 3"], "needs": [1, "make two"]},
    ],
}
VALUES = {"one": 1, "two": 2, "three": 3}


def block(path: str, text: str) -> str:
    return f"WHY: as asked.\n\n{path}\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n"


def format_test_block(name: str, path: str = "") -> str:
    text = f"from {name} import {name}\n\n\ndef test_{name}():\n    assert {name}() == {VALUES[name]}"
    return block(path or f"tests/test_{name}.py", text)


def format_code_block(name: str, value: int | None = None) -> str:
    return block(f"{name}.py", f"def {name}():\n    return {VALUES[name] if value is None else value}")


def find_part_name(ask: Ask) -> str:
    """Return the name of the part that a question is about; empty if none."""
    text = ask.messages[-1].text
    return next((name for name in VALUES if f'## Goal\n<data from="user">\nmake {name}\n' in text), "")


def answer(ask: Ask) -> str:
    name = find_part_name(ask)
    return {
        "plan": json.dumps(PLAN),
        "reproduce": format_test_block(name or "one"),
        "patch": format_code_block(name or "one"),
    }[ask.question]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")

    def run_suite(execution: Execution) -> Completed:
        """Check one function for one number per test file; its return value is read from its text."""
        cases, has_failure = "", False
        for path in test_rig.trees.list_files(execution.snapshot):
            assertion = re.search(
                r"assert (\w+)\(\) == (\d+)", (test_rig.trees.read(execution.snapshot, path) or b"").decode()
            )
            if not path.startswith("tests/") or assertion is None:
                continue
            code = (test_rig.trees.read(execution.snapshot, f"{assertion[1]}.py") or b"").decode()
            is_green = bool(re.search(rf"return {assertion[2]}$", code, re.MULTILINE))
            has_failure = has_failure or not is_green
            failure = "" if is_green else f"<failure message='assert {assertion[1]}'>no</failure>"
            name = f'classname="tests.test_{assertion[1]}" name="test_{assertion[1]}" file="{path}"'
            cases += f'<testcase {name} time="0.01">{failure}</testcase>'
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        cause = ExitCause.failed if has_failure else ExitCause.ok
        return Completed(
            exit_code=int(has_failure), cause=cause, output="computed\n", files={"junit.xml": xml}, wall=0.01
        )

    test_rig.with_suite(run_suite)
    yield test_rig
    test_rig.trees.close()


async def start_run(rig: Rig, iterations: int = 3) -> str:
    return await rig.begin(mode=Mode.create, goal=GOAL, limits=Limits(attempts=iterations))


async def go_on(rig: Rig, run_id: str) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state


def list_files(rig: Rig, state: RunState) -> list[str]:
    assert state.now.made is not None
    return rig.trees.list_files(state.now.made)


def test_parts_are_made_separately_and_tested_together(rig):
    model = rig.with_model(answer)

    async def go() -> RunState:
        final_state = await go_on(rig, await start_run(rig))
        replay_result = await replay(rig.adapters, final_state.run_id)
        assert replay_result.state == final_state
        for number in (1, 2, 3):
            child = await rig.adapters.store.load(make_child_run_id(final_state.run_id, number))
            assert child.result is Result.verified
            assert (await replay(rig.adapters, child.run_id)).state == child
            assert child.spec.program_goal == GOAL
        return final_state

    final_state = asyncio.run(go())
    assert final_state.result is Result.verified
    expected_files = {f"{name}.py" for name in VALUES} | {f"tests/test_{name}.py" for name in VALUES}
    assert expected_files <= set(list_files(rig, final_state))
    assert final_state.work.merged == (1, 2, 3)
    assert final_state.spend.calls == len(model.questions) == 1 + 3 * 2
    assert Counter(ask.question for ask in model.questions) == {"plan": 1, "reproduce": 3, "patch": 3}
    assert final_state.now.test is not None
    assert final_state.now.test.verdict.fixed.count == 3


def test_part_starts_from_the_parts_it_needs(rig):
    rig.with_model(answer)

    async def go() -> list[list[str]]:
        run_id = (await go_on(rig, await start_run(rig))).run_id
        children = [await rig.adapters.store.load(make_child_run_id(run_id, number)) for number in (1, 2, 3)]
        return [rig.trees.list_files(child.spec.base) for child in children]

    first_files, second_files, third_files = asyncio.run(go())
    assert first_files == second_files == ["README.md"]
    assert {"one.py", "two.py"} <= set(third_files)


def test_test_writer_sees_the_goal_and_existing_files_but_no_code(rig):
    model = rig.with_model(answer)
    asyncio.run(run_to_end(rig))
    prompts = [ask.messages[-1].text for ask in model.questions if ask.question == "reproduce"]
    third_prompt = next(text for text in prompts if "\nmake three\n" in text)
    assert (
        f'It is a part of this, whose other parts are made apart from it:\n<data from="user">\n{GOAL}\n' in third_prompt
    )
    assert "three() is 3" in third_prompt
    assert "one.py" in third_prompt
    assert "`tests/test_make_three`" in third_prompt
    assert not [text for text in prompts if "def one" in text or "return 1" in text]


async def run_to_end(rig: Rig) -> RunState:
    return await go_on(rig, await start_run(rig))


def test_new_tests_cannot_overwrite_an_existing_file(rig):
    counts: Counter[str] = Counter()

    def reply(ask: Ask) -> str:
        if ask.question == "reproduce" and find_part_name(ask) == "three":
            counts["three"] += 1
            return (
                format_test_block("three", "tests/test_one.py") if counts["three"] == 1 else format_test_block("three")
            )
        return answer(ask)

    model = rig.with_model(reply)
    final_state = asyncio.run(run_to_end(rig))
    assert final_state.result is Result.verified
    assert counts["three"] == 2
    assert "tests/test_one.py is there already: choose another name" in model.questions[-2].messages[-1].text


def test_conflicting_parts_are_redone_one_on_top_of_the_other(rig):
    def reply(ask: Ask) -> str:
        name = find_part_name(ask)
        extra = f"shared_{name}" if name in ("one", "two") and ask.question == "patch" else ""
        note = block("NOTES.md", f"made with {name}") if extra and "NOTES.md" not in ask.messages[-1].text else ""
        return answer(ask) + "\n" + note

    rig.with_model(reply)

    async def go() -> tuple[RunState, list[str]]:
        final_state = await run_to_end(rig)
        rows = await rig.adapters.store.list_runs(prefix=f"{final_state.run_id}.")
        return final_state, sorted(row.run_id for row in rows)

    final_state, ids = asyncio.run(go())
    assert final_state.result is Result.verified
    assert len(ids) == 4
    assert any("conflicts with another part in NOTES.md" in line for line in final_state.work.last)


@pytest.mark.parametrize(("failures", "result"), [(1, Result.verified), (9, Result.unsolved)])
def test_one_failed_part_is_tolerated(rig, failures, result):
    attempts: Counter[str] = Counter()

    def reply(ask: Ask) -> str:
        name = find_part_name(ask)
        if ask.question == "patch" and name == "two":
            attempts[name] += 1
            if attempts[name] <= failures:
                return format_code_block("two", 7 + attempts[name])
        return answer(ask)

    rig.with_model(reply)

    async def go() -> RunState:
        return await go_on(rig, await start_run(rig, iterations=1))

    final_state = asyncio.run(go())
    assert final_state.result is result
    assert final_state.work.dropped == min(failures, 2)
    if result is Result.unsolved:
        assert final_state.reason.startswith("make two: ")


@pytest.mark.parametrize("failing_call", range(1, 12, 3))
def test_outage_at_any_point_resumes_without_repeating_a_model_call(rig, failing_call):
    """A sandbox failure at any execution leaves runs that continue from that point."""
    model = rig.with_model(answer)
    real_sandbox = rig.sandbox
    calls = 0

    class Dying:
        tier = "fake"

        async def run(self, execution: Execution) -> Completed:
            nonlocal calls
            calls += 1
            if calls == failing_call:
                raise SandboxUnavailable("gone")
            return await real_sandbox.run(execution)

    rig.adapters = replace(rig.adapters, sandbox=Dying())

    async def go() -> RunState:
        run_id = await start_run(rig)
        with pytest.raises(SandboxUnavailable):
            await go_on(rig, run_id)
        stored_state = await rig.adapters.store.load(run_id)
        assert stored_state.status is not Status.finished
        return await go_on(rig, run_id)

    final_state = asyncio.run(go())
    assert final_state.result is Result.verified
    texts = [ask.model_dump_json(exclude={"site"}) for ask in model.questions]
    assert len(texts) == len(set(texts)) == 7


def test_run_waiting_for_its_parts_is_marked_as_waiting(rig):
    rig.with_model(answer)

    async def go() -> RunState:
        run_id = await start_run(rig)
        return (
            await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline, last_step=Step.reproduce)
        ).state

    paused_state = asyncio.run(go())
    assert is_waiting_for_children(paused_state)
    assert paused_state.now.decide is not None
    assert paused_state.now.decide.action is Action.spawn
    first_task = paused_state.now.decide.errands[0]
    assert create_child_run(paused_state, first_task) == create_child_run(paused_state, first_task)
    assert create_child_run(paused_state, first_task).spec.task.criteria == ("one() is 1",)
