"""Whole improve runs in memory: their tests really run in this process, and no other process starts."""

from __future__ import annotations

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
from redstart.core.run_preferences import Metric, MetricDirection, QuestionOptions
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.ports.store.port.journal import CallPlace, JournalRecord
from redstart.ports.store.port.ordinals import OutsideOrdinal
from redstart.ports.store.port.runs import PersonWord
from redstart.testing.contracts.store import begin as begin_other
from redstart.testing.states import commit, make_pattern, make_spec
from redstart.toolkit.repo.trees import GitTrees
from support.rig import DAWN, Rig, make_rig
from support.sample import sample_parameters

pytestmark = pytest.mark.slow

CODE = "def total(numbers):\n    return sum(numbers)\n"
TEST = "def test_total():\n    from bag import total\n\n    assert total([1, 2]) == 3\n"
GARBAGE = "I would rather talk about the weather."
LINES = ("count", "lines")


def create_suite(trees: GitTrees) -> Callable[[Execution], Completed]:
    """Build a suite that runs the snapshot's test functions in this process and writes pytest's JUnit XML."""

    def run(execution: Execution) -> Completed:
        source = (trees.read(execution.snapshot, "bag.py") or b"").decode()
        if execution.argv == LINES:
            return Completed(exit_code=0, cause=ExitCause.ok, output=f"{len(source.splitlines())} lines")
        sys.modules["bag"] = module = ModuleType("bag")
        exec(source, module.__dict__)
        test_files = [path for path in trees.list_files(execution.snapshot) if path.startswith("tests/test_")]
        cases = "".join(_run_cases(path, (trees.read(execution.snapshot, path) or b"").decode()) for path in test_files)
        del sys.modules["bag"]
        has_failure = "<failure" in cases
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        cause = ExitCause.failed if has_failure else ExitCause.ok
        return Completed(
            exit_code=int(has_failure), cause=cause, output="played\n", files={"junit.xml": xml}, wall=0.01
        )

    return run


def _run_cases(path: str, text: str) -> str:
    space: dict[str, object] = {}
    exec(text, space)
    return "".join(
        _run_case(path, name, item) for name, item in space.items() if name.startswith("test_") and callable(item)
    )


def _run_case(path: str, name: str, function: Callable[[], None]) -> str:
    failure = ""
    try:
        function()
    except Exception as error:
        error_text = f"{type(error).__name__}: {error}"
        detail = f"def {name}():\n>       it\nE       {error_text}\n\n{path}:4: {type(error).__name__}"
        failure = f"<failure message={quoteattr(error_text)}>{escape(detail)}</failure>"
    owner = path.removesuffix(".py").replace("/", ".")
    return f'<testcase classname="{owner}" name="{name}" file="{path}" time="0.01">{failure}</testcase>'


def block(path: str, search: str, text: str, head: str = "WHY: it is asked for") -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


def create_model(*kinds: str) -> Callable[[Ask], str]:
    """Build a reply function that plays one cycle of each kind and finds the cycle from the question's text."""

    def reply(ask: Ask) -> str:
        text = "\n".join(message.text for message in ask.messages)
        if ask.question == "plan":
            cycle_numbers = re.findall(r"^cycle (\d+), ", text, re.MULTILINE)
            number = int(cycle_numbers[-1]) + 1 if cycle_numbers else 1
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
    new_rig = make_rig(tmp_path / "snapshots")
    new_rig.with_suite(create_suite(new_rig.trees))
    yield new_rig
    new_rig.trees.close()


async def begin(rig: Rig, cycles: int, code: str = CODE, **changes: object) -> str:
    files: dict[str, bytes | None] = {"bag.py": code.encode(), "tests/test_total.py": TEST.encode()}
    base = rig.trees.write(rig.trees.create_empty(), files)
    environment = Environment(mount="/repo", python="/usr/bin/python3")
    suite = Suite(runner="pytest", environment=rig.adapters.blobs.put(environment.model_dump_json().encode()))
    defaults = {"limits": Limits(attempts=2, usd=None, minutes=None, tokens=None), "verify": Level.quick, "repo": "bag"}
    spec_fields = {**defaults, "mode": Mode.improve, "base": base, "suite": suite, "cycles": cycles, **changes}
    if spec_fields.get("metric"):
        spec_fields["metric"] = Metric(command=LINES, better=spec_fields["metric"], start=base)
    state = RunState(
        run_id="parent", spec=RunSpec.model_validate(spec_fields), base=base, now=Attempt(entry=Step.decide)
    )
    await rig.adapters.store.create(state, folder="/bag", created=DAWN)
    return state.run_id


async def go_on(rig: Rig, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim("parent"), run_inline, until)).state


async def run_improve(rig: Rig, *kinds: str, **changes: object) -> RunState:
    rig.with_model(create_model(*kinds))

    async def go() -> RunState:
        await begin(rig, len(kinds), **changes)
        return await go_on(rig)

    return await go()


def list_functions(rig: Rig, state: RunState) -> list[str]:
    text = (rig.trees.read(state.draft or state.spec.base, "bag.py") or b"").decode()
    return re.findall(r"^def (\w+)", text, re.MULTILINE)


async def test_only_good_improvements_are_kept(rig):
    kinds = ("good", "no plan", "wrong", "good", "no reproduce", "green", "breaks", "no patch", "good")
    state = await run_improve(rig, *kinds)
    assert (state.status, state.result) == (Status.finished, Result.verified)
    assert state.reason == "kept 3 improvements of 9 cycles"
    assert list_functions(rig, state) == ["f1", "f4", "f9", "total"]
    tests = [path for path in rig.trees.list_files(state.draft) if path.startswith("tests/")]
    assert tests == ["tests/test_f1.py", "tests/test_f4.py", "tests/test_f9.py", "tests/test_total.py"]
    assert len(state.model_dump_json()) < 20_000


async def test_dropped_cycle_gives_its_reason(rig):
    state = await run_improve(rig, "no plan", "wrong", "green", "no reproduce")
    assert state.result is Result.unsolved
    reasons = [re.findall(r"dropped \((.*?)[:;)]", line)[0] for line in state.work.last]
    assert reasons == [
        "the model named no usable improvement",
        "the target test still fails after 2 attempts",
        "the model wrote no usable test in 3 attempts",
        "the model wrote no usable test in 3 attempts",
    ]


@pytest.mark.parametrize(("extra", "window"), [(0, 0), (2000, 8000)])
async def test_planner_reads_the_code_within_the_model_window(rig, extra, window):
    code = CODE + "".join(f"\n\ndef unused_{number}():\n    return {number}\n" for number in range(extra))
    await run_improve(rig, "good", code=code, asks=QuestionOptions(window=window))
    prompt = next(ask for ask in rig.adapters.model.questions if ask.question == "plan").messages[-1].text
    assert "def total(numbers):\n    return sum(numbers)" in prompt
    assert len(prompt) < 24_000


async def test_spend_of_cycles_counts_for_the_run(rig):
    state = await run_improve(rig, "good", "good")
    children = [await rig.adapters.store.load(f"parent.{number}") for number in (1, 2)]
    assert state.spend.calls == sum(child.spend.calls for child in children) == 6
    assert children[0].spec.limits.tokens is None


async def test_token_limit_ends_the_run(rig):
    state = await run_improve(rig, *["good"] * 6, limits=Limits(attempts=2, usd=None, minutes=None, tokens=9_000))
    assert (state.result, 0 < state.work.kept < 6) == (Result.verified, True)
    assert "token" in state.reason


@pytest.mark.parametrize(("better", "kept"), [(MetricDirection.smaller, 0), (MetricDirection.larger, 2)])
async def test_metric_decides_whether_a_green_cycle_is_kept(rig, better, kept):
    state = await run_improve(rig, "good", "good", metric=better)
    assert state.work.kept == kept
    child = await rig.adapters.store.load("parent.1")
    assert ("got worse: 6, before 2" in child.reason) is not bool(kept)
    measurements = [execution for execution in rig.sandbox.executions if execution.argv == LINES]
    assert len(measurements) == (10 + 10 if not kept else 10 + 15)


async def test_failing_tests_are_fixed_first(rig):
    right_edit = block("bag.py", "    return sum(numbers) + 1\n", "    return sum(numbers)\n")
    model = rig.with_model(lambda ask: create_model("good")(ask) if ask.question == "plan" else right_edit)

    async def go() -> RunState:
        await begin(rig, 1, CODE.replace("sum(numbers)", "sum(numbers) + 1"))
        return await go_on(rig)

    state = await go()
    assert (state.result, [ask.question for ask in model.questions]) == (Result.verified, ["plan", "patch"])
    assert state.work.last == ("cycle 1, kept: bug: the tests that were red already",)


async def test_server_failure_leaves_a_resumable_run(rig):
    async def go() -> RunState:
        await begin(rig, 2)
        good_model = create_model("good", "good")

        def fail_on_second(ask: Ask) -> str:
            if ask.question == "patch" and "f2" in ask.messages[-1].text:
                raise ModelUnreachable("nobody answers")
            return good_model(ask)

        rig.with_model(fail_on_second)
        with pytest.raises(ModelUnreachable):
            await go_on(rig)
        waits = await rig.adapters.store.load("parent")
        assert (waits.status, waits.work.kept, list_functions(rig, waits)) == (Status.paused, 1, ["f1", "total"])
        model = rig.with_model(good_model)
        final_state = await go_on(rig)
        assert [ask.question for ask in model.questions] == ["patch"]
        return final_state

    assert (await go()).work.kept == 2


@pytest.mark.parametrize("step", [Step.plan, Step.decide])
async def test_stop_after_applies_to_the_next_cycle(rig, step):
    rig.with_model(create_model("good", "good"))

    async def go() -> tuple[RunState, RunState, RunState]:
        await begin(rig, 2)
        stopped_state = await go_on(rig, step)
        child = await rig.adapters.store.load("parent.1")
        return stopped_state, child, await go_on(rig)

    stopped_state, child, final_state = await go()
    assert (stopped_state.status, child.last, stopped_state.work.kept) == (Status.paused, step, 0)
    assert final_state.work.kept == 2


async def test_message_to_the_run_reaches_its_cycles(rig):
    model = rig.with_model(create_model("good"))

    async def go() -> None:
        await begin(rig, 1)
        await rig.adapters.store.send_message("parent", PersonWord.say, "mind the empty list", version=0)
        await go_on(rig)

    await go()
    assert "mind the empty list" in model.questions[0].messages[-1].text


GOAL = "A bag of numbers: their total, their mean and functions that return 1"


async def store_earlier_pattern(rig: Rig, goal: str) -> None:
    """Store a pattern for this goal that another run left."""
    new, fence = await begin_other(rig.adapters.store, "other", spec=make_spec(mode=Mode.create))
    memories = NewMemories(pattern=make_pattern("other-1", goal=goal, summary="Two modules, one of them for the mean."))
    await rig.adapters.store.commit(commit(new, Step.remember, remembered=memories), fence)


async def list_patterns(rig: Rig, goal: str = GOAL) -> list[SolutionPattern]:
    matches = await rig.adapters.memory.recall_patterns(goal, tenant="home", repo="bag", limit=9)
    return [item.pattern for item in matches]


async def test_only_kept_cycles_leave_a_pattern_hidden_from_later_cycles(rig):
    await store_earlier_pattern(rig, "A bag of numbers: their total and mean")
    await run_improve(rig, "good", "breaks", "good", goal=GOAL)
    kept_patterns = [pattern for pattern in await list_patterns(rig) if pattern.mode == "improve"]
    assert [(pattern.id, pattern.summary) for pattern in kept_patterns] == [
        ("parent.3-1", "feature: add the function f3")
    ]
    assert (kept_patterns[0].goal, kept_patterns[0].subtasks, kept_patterns[0].outcome) == (
        GOAL,
        ("add the function f3",),
        "verified",
    )
    roles = {part.path: part.role for part in kept_patterns[0].shape}
    assert roles == {"bag.py": "module: f1, f3, total", "tests/test_f3.py": "tests: 1 function"}
    assert kept_patterns[0].provenance["run"] == "parent.3"
    plans = [ask.messages[-1].text for ask in rig.adapters.model.questions if ask.question == "plan"]
    assert all("plan: Two modules, one of them for the mean." in text for text in plans)
    assert not any("plan: feature" in text for text in plans)


async def test_run_without_a_goal_recalls_nothing_and_stores_the_chosen_goal(rig):
    await run_improve(rig, "good")
    assert [pattern.goal for pattern in await list_patterns(rig, "add the function f1")] == [
        "feature: add the function f1"
    ]
    assert "reached before" not in rig.adapters.model.questions[0].messages[-1].text


async def test_cycle_that_fixes_an_already_failing_test_leaves_no_pattern(rig):
    fixes = block("bag.py", "    return 0\n", "    return sum(numbers)\n")
    plan = json.dumps({"kind": "feature", "title": "add the function f1", "criteria": []})
    rig.with_model(lambda ask: plan if ask.question == "plan" else fixes)

    async def go() -> RunState:
        await begin(rig, 1, CODE.replace("sum(numbers)", "0"), goal=GOAL)
        return await go_on(rig)

    assert (await go()).work.kept == 1
    assert await list_patterns(rig) == []


async def test_cycle_with_a_worse_metric_leaves_no_pattern(rig):
    state = await run_improve(rig, "good", goal=GOAL, metric=MetricDirection.smaller)
    assert state.work.kept == 0
    assert await list_patterns(rig) == []


async def test_replay_sees_recalled_patterns_and_old_runs_replay_without_them(rig):
    await store_earlier_pattern(rig, GOAL)
    state = await run_improve(rig, "good", goal=GOAL)
    assert "plan: Two modules" in rig.adapters.model.questions[0].messages[-1].text

    class Gone:
        async def patterns(self, *_: object, **__: object) -> None:
            raise AssertionError("nothing is recalled twice")

        failures = patterns

    rig.adapters = replace(rig.adapters, memory=Gone())
    assert (await replay(rig.adapters, "parent.1")).state.result is state.result is Result.verified
    silent_rig = rig.twin()
    silent_rig.with_suite(create_suite(rig.trees))
    await run_improve(silent_rig, "good", goal=GOAL)

    class Before:
        """The journal without the records of patterns."""

        def __getattr__(self, name: str) -> object:
            return getattr(journal, name)

        async def list_step(self, call: CallPlace) -> list[JournalRecord]:
            return [item for item in await journal.list_step(call) if item.call.ordinal != OutsideOrdinal.alike]

    journal = silent_rig.adapters.journal
    assert [item for item in await journal.list_records("parent.1") if item.call.ordinal == OutsideOrdinal.alike]
    silent_rig.adapters = replace(silent_rig.adapters, journal=Before(), memory=Gone())
    assert (await replay(silent_rig.adapters, "parent.1")).state.result is Result.verified


class Killed(Exception):
    """Stands for kill -9."""


@pytest.mark.parametrize("writes", sample_parameters([1, 2, 3, 5, 7, 11], 2))
async def test_repeatedly_killed_run_ends_the_same_and_repeats_no_question(rig, writes):
    kinds = ("good", "no plan", "breaks", "good")
    model = rig.with_model(create_model(*kinds))
    store, writes_left = rig.adapters.store, [writes]

    class Dying:
        """The store; it dies after a number of commits."""

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        async def commit(self, commit: object, fence: int) -> object:
            control = await store.commit(commit, fence)
            writes_left[0] -= 1
            if not writes_left[0]:
                raise Killed
            return control

    async def go() -> tuple[RunState, int]:
        await begin(rig, len(kinds))
        rig.adapters = replace(rig.adapters, store=Dying())
        kill_count = 0
        while True:
            writes_left[0] = writes
            try:
                return await go_on(rig), kill_count
            except Killed:
                kill_count += 1

    state, kill_count = await go()
    assert (state.result, state.work.kept, list_functions(rig, state)) == (Result.verified, 2, ["f1", "f4", "total"])
    questions = [(ask.question, ask.site) for ask in model.questions]
    assert kill_count >= 2
    assert [item for item, _ in questions] == [
        *("plan", "reproduce", "patch"),
        *("plan",) * 3,
        *("plan", "reproduce", "patch", "patch"),
        *("plan", "reproduce", "patch"),
    ]
    rig.adapters = replace(rig.adapters, store=store)
    assert (await replay(rig.adapters, "parent")).state == state
    assert (await replay(rig.adapters, "parent.3")).state.result is not Result.verified
