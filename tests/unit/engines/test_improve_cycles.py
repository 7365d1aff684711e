"""Whole improve runs in memory: their tests really run in this process, and no other process starts."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from xml.sax.saxutils import escape, quoteattr

import pytest

from redstart.core.chat import Ask
from redstart.core.errors import ModelUnreachable
from redstart.core.learning import NewMemories
from redstart.core.pattern import SolutionPattern
from redstart.core.run import Attempt, Level, Limits, Mode, Result, RunSpec, RunState, Status, Step, Suite
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.core.wishes import Metric, MetricDirection, QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.ports.store.port.journal import CallPlace
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import begin as begin_other
from redstart.testing.states import commit, pattern, spec
from redstart.toolkit.repo.trees import GitTrees
from support.rig import DAWN, Rig, make_rig
from support.sample import short_form

pytestmark = pytest.mark.slow

CODE = "def total(numbers):\n    return sum(numbers)\n"
TEST = "def test_total():\n    from bag import total\n\n    assert total([1, 2]) == 3\n"
GARBAGE = "I would rather talk about the weather."
LINES = ("count", "lines")


def played(trees: GitTrees) -> Callable[[Execution], Completed]:
    """Build a suite that runs the snapshot's test functions in this process and writes pytest's JUnit XML."""

    def run(execution: Execution) -> Completed:
        source = (trees.read(execution.snapshot, "bag.py") or b"").decode()
        if execution.argv == LINES:
            return Completed(exit_code=0, cause=ExitCause.ok, output=f"{len(source.splitlines())} lines")
        sys.modules["bag"] = module = ModuleType("bag")
        exec(source, module.__dict__)
        found = [path for path in trees.files(execution.snapshot) if path.startswith("tests/test_")]
        cases = "".join(_cases(path, (trees.read(execution.snapshot, path) or b"").decode()) for path in found)
        del sys.modules["bag"]
        red = "<failure" in cases
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        cause = ExitCause.failed if red else ExitCause.ok
        return Completed(exit_code=int(red), cause=cause, output="played\n", files={"junit.xml": xml}, wall=0.01)

    return run


def _cases(path: str, text: str) -> str:
    space: dict[str, object] = {}
    exec(text, space)
    return "".join(
        _case(path, name, item) for name, item in space.items() if name.startswith("test_") and callable(item)
    )


def _case(path: str, name: str, function: Callable[[], None]) -> str:
    failure = ""
    try:
        function()
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        detail = f"def {name}():\n>       it\nE       {said}\n\n{path}:4: {type(error).__name__}"
        failure = f"<failure message={quoteattr(said)}>{escape(detail)}</failure>"
    owner = path.removesuffix(".py").replace("/", ".")
    return f'<testcase classname="{owner}" name="{name}" file="{path}" time="0.01">{failure}</testcase>'


def block(path: str, search: str, text: str, head: str = "WHY: it is asked for") -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


def script(*kinds: str) -> Callable[[Ask], str]:
    """Build a reply function that plays one cycle of each kind and finds the cycle from the question's text."""

    def reply(ask: Ask) -> str:
        text = "\n".join(message.text for message in ask.messages)
        if ask.question == "plan":
            told = re.findall(r"^cycle (\d+), ", text, re.MULTILINE)
            number = int(told[-1]) + 1 if told else 1
        else:
            number = int(re.findall(r"add the function f(\d+)", text)[-1])
        kind, name = kinds[number - 1], f"f{number}"
        if kind == f"no {ask.question}":
            return GARBAGE
        if ask.question == "plan":
            return json.dumps({"kind": "feature", "title": f"add the function {name}", "criteria": []})
        if ask.question == "reproduce":
            body = f"def test_{name}():\n    from bag import {name}\n\n    assert {name}() == 1\n"
            return block(f"tests/test_{name}.py", "", body if kind != "green" else TEST, "SURE: low, who knows")
        if kind == "breaks":
            return block("bag.py", "    return sum(numbers)\n", f"    return 0\n\n\ndef {name}():\n    return 1\n")
        value = 1 if kind == "good" else 2
        head = "def total(numbers):\n"
        return block("bag.py", head, f"def {name}():\n    return {value}\n\n\n{head}")

    return reply


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    made.with_suite(played(made.trees))
    yield made
    made.trees.close()


async def begin(rig: Rig, cycles: int, code: str = CODE, **over: object) -> str:
    files: dict[str, bytes | None] = {"bag.py": code.encode(), "tests/test_total.py": TEST.encode()}
    base = rig.trees.write(rig.trees.empty(), files)
    environment = Environment(mount="/repo", python="/usr/bin/python3")
    suite = Suite(runner="pytest", environment=rig.adapters.blobs.put(environment.model_dump_json().encode()))
    plain = {"limits": Limits(attempts=2, usd=None, minutes=None, tokens=None), "verify": Level.quick, "repo": "bag"}
    asked = {**plain, "mode": Mode.improve, "base": base, "suite": suite, "cycles": cycles, **over}
    if asked.get("metric"):
        asked["metric"] = Metric(command=LINES, better=asked["metric"], start=base)
    state = RunState(run_id="parent", spec=RunSpec.model_validate(asked), base=base, now=Attempt(entry=Step.decide))
    await rig.adapters.store.create(state, folder="/bag", created=DAWN)
    return state.run_id


async def go_on(rig: Rig, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim("parent"), inline, until)).state


def improved(rig: Rig, *kinds: str, **over: object) -> RunState:
    rig.with_model(script(*kinds))

    async def go() -> RunState:
        await begin(rig, len(kinds), **over)
        return await go_on(rig)

    return asyncio.run(go())


def functions(rig: Rig, state: RunState) -> list[str]:
    text = (rig.trees.read(state.draft or state.spec.base, "bag.py") or b"").decode()
    return re.findall(r"^def (\w+)", text, re.MULTILINE)


def test_what_is_good_is_kept_and_nothing_else(rig):
    kinds = ("good", "no plan", "wrong", "good", "no reproduce", "green", "breaks", "no patch", "good")
    state = improved(rig, *kinds)
    assert (state.status, state.result) == (Status.finished, Result.verified)
    assert state.reason == "kept 3 improvements of 9 cycles"
    assert functions(rig, state) == ["f1", "f4", "f9", "total"]
    tests = [path for path in rig.trees.files(state.draft) if path.startswith("tests/")]
    assert tests == ["tests/test_f1.py", "tests/test_f4.py", "tests/test_f9.py", "tests/test_total.py"]
    assert len(state.model_dump_json()) < 20_000


def test_a_cycle_says_why_it_was_dropped(rig):
    state = improved(rig, "no plan", "wrong", "green", "no reproduce")
    assert state.result is Result.unsolved
    reasons = [re.findall(r"dropped \((.*?)[:;)]", line)[0] for line in state.work.last]
    assert reasons == [
        "the model named no usable improvement",
        "the target test still fails after 2 attempts",
        "the model wrote no usable test in 3 attempts",
        "the model wrote no usable test in 3 attempts",
    ]


@pytest.mark.parametrize(("extra", "window"), [(0, 0), (2000, 8000)])
def test_whoever_chooses_an_improvement_reads_the_code_within_the_models_window(rig, extra, window):
    code = CODE + "".join(f"\n\ndef unused_{number}():\n    return {number}\n" for number in range(extra))
    improved(rig, "good", code=code, asks=QuestionOptions(window=window))
    asked = next(ask for ask in rig.adapters.model.asks if ask.question == "plan").messages[-1].text
    assert "def total(numbers):\n    return sum(numbers)" in asked
    assert len(asked) < 24_000


def test_what_is_spent_in_cycles_is_spent_by_the_run(rig):
    state = improved(rig, "good", "good")
    children = [asyncio.run(rig.adapters.store.load(f"parent.{number}")) for number in (1, 2)]
    assert state.spend.calls == sum(child.spend.calls for child in children) == 6
    assert children[0].spec.limits.tokens is None


def test_a_cap_on_tokens_ends_it(rig):
    state = improved(rig, *["good"] * 6, limits=Limits(attempts=2, usd=None, minutes=None, tokens=9_000))
    assert (state.result, 0 < state.work.kept < 6) == (Result.verified, True)
    assert "token" in state.reason


@pytest.mark.parametrize(("better", "kept"), [(MetricDirection.smaller, 0), (MetricDirection.larger, 2)])
def test_a_metric_decides_over_what_is_green(rig, better, kept):
    state = improved(rig, "good", "good", metric=better)
    assert state.work.kept == kept
    child = asyncio.run(rig.adapters.store.load("parent.1"))
    assert ("got worse: 6, before 2" in child.reason) is not bool(kept)
    measured = [execution for execution in rig.sandbox.executions if execution.argv == LINES]
    assert len(measured) == (10 + 10 if not kept else 10 + 15)


def test_red_tests_come_first(rig):
    right = block("bag.py", "    return sum(numbers) + 1\n", "    return sum(numbers)\n")
    model = rig.with_model(lambda ask: script("good")(ask) if ask.question == "plan" else right)

    async def go() -> RunState:
        await begin(rig, 1, CODE.replace("sum(numbers)", "sum(numbers) + 1"))
        return await go_on(rig)

    state = asyncio.run(go())
    assert (state.result, [ask.question for ask in model.asks]) == (Result.verified, ["plan", "patch"])
    assert state.work.last == ("cycle 1, kept: bug: the tests that were red already",)


def test_a_server_that_is_down_leaves_a_run_that_goes_on(rig):
    async def go() -> RunState:
        await begin(rig, 2)
        good = script("good", "good")

        def falling(ask: Ask) -> str:
            if ask.question == "patch" and "f2" in ask.messages[-1].text:
                raise ModelUnreachable("nobody answers")
            return good(ask)

        rig.with_model(falling)
        with pytest.raises(ModelUnreachable):
            await go_on(rig)
        waits = await rig.adapters.store.load("parent")
        assert (waits.status, waits.work.kept, functions(rig, waits)) == (Status.paused, 1, ["f1", "total"])
        model = rig.with_model(good)
        ended = await go_on(rig)
        assert [ask.question for ask in model.asks] == ["patch"]
        return ended

    assert asyncio.run(go()).work.kept == 2


@pytest.mark.parametrize("step", [Step.plan, Step.decide])
def test_a_step_to_stop_after_is_the_next_cycles(rig, step):
    rig.with_model(script("good", "good"))

    async def go() -> tuple[RunState, RunState, RunState]:
        await begin(rig, 2)
        stopped = await go_on(rig, step)
        child = await rig.adapters.store.load("parent.1")
        return stopped, child, await go_on(rig)

    stopped, child, ended = asyncio.run(go())
    assert (stopped.status, child.last, stopped.work.kept) == (Status.paused, step, 0)
    assert ended.work.kept == 2


def test_what_is_said_to_the_run_reaches_its_cycles(rig):
    model = rig.with_model(script("good"))

    async def go() -> None:
        await begin(rig, 1)
        await rig.adapters.store.tell("parent", PersonWord.say, "mind the empty list", version=0)
        await go_on(rig)

    asyncio.run(go())
    assert "mind the empty list" in model.asks[0].messages[-1].text


GOAL = "A bag of numbers: their total, their mean and functions that return 1"


async def reached_before(rig: Rig, goal: str) -> None:
    """Store a pattern for this goal that another run left."""
    new, fence = await begin_other(rig.adapters.store, "other", spec=spec(mode=Mode.create))
    left = NewMemories(pattern=pattern("other-1", goal=goal, summary="Two modules, one of them for the mean."))
    await rig.adapters.store.commit(commit(new, Step.remember, remembered=left), fence)


def patterns(rig: Rig, goal: str = GOAL) -> list[SolutionPattern]:
    found = asyncio.run(rig.adapters.memory.patterns(goal, tenant="home", repo="bag", limit=9))
    return [item.pattern for item in found]


def test_only_cycles_that_are_kept_leave_a_pattern_and_the_next_ones_are_not_shown_it(rig):
    asyncio.run(reached_before(rig, "A bag of numbers: their total and mean"))
    improved(rig, "good", "breaks", "good", goal=GOAL)
    kept = [pattern for pattern in patterns(rig) if pattern.mode == "improve"]
    assert [(pattern.id, pattern.summary) for pattern in kept] == [("parent.3-1", "feature: add the function f3")]
    assert (kept[0].goal, kept[0].subtasks, kept[0].outcome) == (GOAL, ("add the function f3",), "verified")
    roles = {part.path: part.role for part in kept[0].shape}
    assert roles == {"bag.py": "module: f1, f3, total", "tests/test_f3.py": "tests: 1 function"}
    assert kept[0].provenance["run"] == "parent.3"
    plans = [ask.messages[-1].text for ask in rig.adapters.model.asks if ask.question == "plan"]
    assert all("plan: Two modules, one of them for the mean." in text for text in plans)
    assert not any("plan: feature" in text for text in plans)


def test_without_a_goal_nothing_is_recalled_and_the_pattern_has_what_was_chosen_for_one(rig):
    improved(rig, "good")
    assert [pattern.goal for pattern in patterns(rig, "add the function f1")] == ["feature: add the function f1"]
    assert "reached before" not in rig.adapters.model.asks[0].messages[-1].text


def test_a_cycle_that_mends_what_was_red_already_leaves_none(rig):
    fixes = block("bag.py", "    return 0\n", "    return sum(numbers)\n")
    plan = json.dumps({"kind": "feature", "title": "add the function f1", "criteria": []})
    rig.with_model(lambda ask: plan if ask.question == "plan" else fixes)

    async def go() -> RunState:
        await begin(rig, 1, CODE.replace("sum(numbers)", "0"), goal=GOAL)
        return await go_on(rig)

    assert asyncio.run(go()).work.kept == 1
    assert patterns(rig) == []


def test_a_cycle_whose_program_measures_worse_has_its_pattern_put_aside(rig):
    state = improved(rig, "good", goal=GOAL, metric=MetricDirection.smaller)
    assert state.work.kept == 0
    assert patterns(rig) == []


def test_what_was_recalled_is_what_a_replay_sees_and_runs_of_before_are_replayed_without(rig):
    asyncio.run(reached_before(rig, GOAL))
    state = improved(rig, "good", goal=GOAL)
    assert "plan: Two modules" in rig.adapters.model.asks[0].messages[-1].text

    class Gone:
        async def patterns(self, *_: object, **__: object) -> None:
            raise AssertionError("nothing is recalled twice")

        failures = patterns

    rig.adapters = replace(rig.adapters, memory=Gone())
    assert asyncio.run(replay(rig.adapters, "parent.1")).state.result is state.result is Result.verified
    silent = rig.twin()
    silent.with_suite(played(rig.trees))
    improved(silent, "good", goal=GOAL)

    class Before:
        """The journal without the records of patterns."""

        def __getattr__(self, name: str) -> object:
            return getattr(journal, name)

        async def find(self, call: CallPlace) -> object:
            return None if call.ordinal == OutsideOrdinal.alike else await journal.find(call)

    journal = silent.adapters.journal
    assert [item for item in asyncio.run(journal.records("parent.1")) if item.call.ordinal == OutsideOrdinal.alike]
    silent.adapters = replace(silent.adapters, journal=Before(), memory=Gone())
    assert asyncio.run(replay(silent.adapters, "parent.1")).state.result is Result.verified


class Killed(Exception):
    """Stands for kill -9."""


@pytest.mark.parametrize("writes", short_form([1, 2, 3, 5, 7, 11], 2))
def test_killed_again_and_again_it_ends_the_same_and_asks_nothing_twice(rig, writes):
    kinds = ("good", "no plan", "breaks", "good")
    model = rig.with_model(script(*kinds))
    store, left = rig.adapters.store, [writes]

    class Dying:
        """The store; it dies after a number of commits."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def commit(self, commit: object, fence: int) -> object:
            done = await store.commit(commit, fence)
            left[0] -= 1
            if not left[0]:
                raise Killed
            return done

    async def go() -> tuple[RunState, int]:
        await begin(rig, len(kinds))
        rig.adapters = replace(rig.adapters, store=Dying())
        deaths = 0
        while True:
            left[0] = writes
            try:
                return await go_on(rig), deaths
            except Killed:
                deaths += 1

    state, deaths = asyncio.run(go())
    assert (state.result, state.work.kept, functions(rig, state)) == (Result.verified, 2, ["f1", "f4", "total"])
    asked = [(ask.question, ask.site) for ask in model.asks]
    assert deaths >= 2
    assert [item for item, _ in asked] == [
        *("plan", "reproduce", "patch"),
        *("plan",) * 3,
        *("plan", "reproduce", "patch", "patch"),
        *("plan", "reproduce", "patch"),
    ]
    rig.adapters = replace(rig.adapters, store=store)
    assert asyncio.run(replay(rig.adapters, "parent")).state == state
    assert asyncio.run(replay(rig.adapters, "parent.3")).state.result is not Result.verified
