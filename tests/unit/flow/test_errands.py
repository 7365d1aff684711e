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
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.flow.errands import begun, errand_id
from redstart.flow.route import waits_for_errands
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


def written(name: str, path: str = "") -> str:
    text = f"from {name} import {name}\n\n\ndef test_{name}():\n    assert {name}() == {VALUES[name]}"
    return block(path or f"tests/test_{name}.py", text)


def code_of(name: str, value: int | None = None) -> str:
    return block(f"{name}.py", f"def {name}():\n    return {VALUES[name] if value is None else value}")


def part_of(ask: Ask) -> str:
    """Return the name of the part that a question is about; empty if none."""
    text = ask.messages[-1].text
    return next((name for name in VALUES if f'## Goal\n<data from="user">\nmake {name}\n' in text), "")


def answer(ask: Ask) -> str:
    name = part_of(ask)
    return {"plan": json.dumps(PLAN), "reproduce": written(name or "one"), "patch": code_of(name or "one")}[
        ask.question
    ]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")

    def suite(execution: Execution) -> Completed:
        """Check one function for one number per test file; its return value is read from its text."""
        cases, red = "", False
        for path in made.trees.files(execution.snapshot):
            asked = re.search(r"assert (\w+)\(\) == (\d+)", (made.trees.read(execution.snapshot, path) or b"").decode())
            if not path.startswith("tests/") or asked is None:
                continue
            code = (made.trees.read(execution.snapshot, f"{asked[1]}.py") or b"").decode()
            is_green = bool(re.search(rf"return {asked[2]}$", code, re.MULTILINE))
            red = red or not is_green
            failure = "" if is_green else f"<failure message='assert {asked[1]}'>no</failure>"
            name = f'classname="tests.test_{asked[1]}" name="test_{asked[1]}" file="{path}"'
            cases += f'<testcase {name} time="0.01">{failure}</testcase>'
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        cause = ExitCause.failed if red else ExitCause.ok
        return Completed(exit_code=int(red), cause=cause, output="computed\n", files={"junit.xml": xml}, wall=0.01)

    made.with_suite(suite)
    yield made
    made.trees.close()


async def begin(rig: Rig, iterations: int = 3) -> str:
    return await rig.begin(mode=Mode.create, goal=GOAL, limits=Limits(attempts=iterations))


async def go_on(rig: Rig, run_id: str) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state


def files(rig: Rig, state: RunState) -> list[str]:
    assert state.now.made is not None
    return rig.trees.files(state.now.made)


def test_parts_are_made_apart_and_tested_together(rig):
    model = rig.with_model(answer)

    async def go() -> RunState:
        ended = await go_on(rig, await begin(rig))
        again = await replay(rig.adapters, ended.run_id)
        assert again.state == ended
        for number in (1, 2, 3):
            child = await rig.adapters.store.load(errand_id(ended.run_id, number))
            assert child.result is Result.verified
            assert (await replay(rig.adapters, child.run_id)).state == child
            assert child.spec.whole == GOAL
        return ended

    ended = asyncio.run(go())
    assert ended.result is Result.verified
    made = {f"{name}.py" for name in VALUES} | {f"tests/test_{name}.py" for name in VALUES}
    assert made <= set(files(rig, ended))
    assert ended.work.merged == (1, 2, 3)
    assert ended.spend.calls == len(model.asks) == 1 + 3 * 2
    assert Counter(ask.question for ask in model.asks) == {"plan": 1, "reproduce": 3, "patch": 3}
    assert ended.now.test is not None
    assert ended.now.test.verdict.fixed.count == 3


def test_a_part_begins_on_what_the_parts_it_needs_have_made(rig):
    rig.with_model(answer)

    async def go() -> list[list[str]]:
        run_id = (await go_on(rig, await begin(rig))).run_id
        loaded = [await rig.adapters.store.load(errand_id(run_id, number)) for number in (1, 2, 3)]
        return [rig.trees.files(child.spec.base) for child in loaded]

    first, second, third = asyncio.run(go())
    assert first == second == ["README.md"]
    assert {"one.py", "two.py"} <= set(third)


def test_whoever_writes_tests_is_told_the_whole_and_what_is_there_and_sees_no_code(rig):
    model = rig.with_model(answer)
    asyncio.run(begin_and_end(rig))
    asked = [ask.messages[-1].text for ask in model.asks if ask.question == "reproduce"]
    third = next(text for text in asked if "\nmake three\n" in text)
    assert f'It is a part of this, whose other parts are made apart from it:\n<data from="user">\n{GOAL}\n' in third
    assert "three() is 3" in third
    assert "one.py" in third
    assert "`tests/test_make_three`" in third
    assert not [text for text in asked if "def one" in text or "return 1" in text]


async def begin_and_end(rig: Rig) -> RunState:
    return await go_on(rig, await begin(rig))


def test_tests_do_not_take_the_name_of_a_file_that_is_there(rig):
    given: Counter[str] = Counter()

    def reply(ask: Ask) -> str:
        if ask.question == "reproduce" and part_of(ask) == "three":
            given["three"] += 1
            return written("three", "tests/test_one.py") if given["three"] == 1 else written("three")
        return answer(ask)

    model = rig.with_model(reply)
    ended = asyncio.run(begin_and_end(rig))
    assert ended.result is Result.verified
    assert given["three"] == 2
    assert "tests/test_one.py is there already: choose another name" in model.asks[-2].messages[-1].text


def test_parts_that_are_at_odds_are_done_again_one_on_top_of_the_other(rig):
    def reply(ask: Ask) -> str:
        name = part_of(ask)
        extra = f"shared_{name}" if name in ("one", "two") and ask.question == "patch" else ""
        note = block("NOTES.md", f"made with {name}") if extra and "NOTES.md" not in ask.messages[-1].text else ""
        return answer(ask) + "\n" + note

    rig.with_model(reply)

    async def go() -> tuple[RunState, list[str]]:
        ended = await begin_and_end(rig)
        rows = await rig.adapters.store.runs(prefix=f"{ended.run_id}.")
        return ended, sorted(row.run_id for row in rows)

    ended, ids = asyncio.run(go())
    assert ended.result is Result.verified
    assert len(ids) == 4
    assert any("conflicts with another part in NOTES.md" in line for line in ended.work.last)


@pytest.mark.parametrize(("failures", "result"), [(1, Result.verified), (9, Result.unsolved)])
def test_one_failure_is_forgiven(rig, failures, result):
    tried: Counter[str] = Counter()

    def reply(ask: Ask) -> str:
        name = part_of(ask)
        if ask.question == "patch" and name == "two":
            tried[name] += 1
            if tried[name] <= failures:
                return code_of("two", 7 + tried[name])
        return answer(ask)

    rig.with_model(reply)

    async def go() -> RunState:
        return await go_on(rig, await begin(rig, iterations=1))

    ended = asyncio.run(go())
    assert ended.result is result
    assert ended.work.dropped == min(failures, 2)
    if result is Result.unsolved:
        assert ended.reason.startswith("make two: ")


@pytest.mark.parametrize("broken", range(1, 12, 3))
def test_an_outage_anywhere_resumes_and_pays_nothing_twice(rig, broken):
    """A sandbox failure at any execution leaves runs that continue from that point."""
    model = rig.with_model(answer)
    working = rig.sandbox
    calls = 0

    class Dying:
        tier = "fake"

        async def run(self, execution: Execution) -> Completed:
            nonlocal calls
            calls += 1
            if calls == broken:
                raise SandboxUnavailable("gone")
            return await working.run(execution)

    rig.adapters = replace(rig.adapters, sandbox=Dying())

    async def go() -> RunState:
        run_id = await begin(rig)
        with pytest.raises(SandboxUnavailable):
            await go_on(rig, run_id)
        stands = await rig.adapters.store.load(run_id)
        assert stands.status is not Status.finished
        return await go_on(rig, run_id)

    ended = asyncio.run(go())
    assert ended.result is Result.verified
    texts = [ask.model_dump_json(exclude={"site"}) for ask in model.asks]
    assert len(texts) == len(set(texts)) == 7


def test_a_run_that_waits_for_its_parts_says_so(rig):
    rig.with_model(answer)

    async def go() -> RunState:
        run_id = await begin(rig)
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline, until=Step.reproduce)).state

    stopped = asyncio.run(go())
    assert waits_for_errands(stopped)
    assert stopped.now.decide is not None
    assert stopped.now.decide.action is Action.spawn
    first = stopped.now.decide.errands[0]
    assert begun(stopped, first) == begun(stopped, first)
    assert begun(stopped, first).spec.task.criteria == ("one() is 1",)
