"""Candidates: child runs that try the same fix. They race, or the smallest patch is chosen; all on the rig."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.core.chat import Answer, Ask, Tier, Usage
from redstart.core.errors import SandboxUnavailable
from redstart.core.run import Action, Limits, Result, RunState, Status, Step
from redstart.core.run_preferences import QuestionOptions
from redstart.core.run_status import Control, resolve_status
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.core.tasks import CandidatePlan, FastCandidates
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.flow.child_runs import CANDIDATE_TEMPERATURE, make_child_run_id
from redstart.ports.store.port.runs import PersonWord
from support.rig import CODE, GARBAGE, RIGHT, TAMPER, WRONG, Rig, block, create_computed_suite, make_rig

pytestmark = pytest.mark.slow

LONGER = block("    return number + number + 1", "    # twice as much\n    return number + number")
OTHER = block("    return number + number + 1", "    return number + number\n    # the end of the function")
TOKENS = 400_000
SECONDS = 60
"""A run that takes longer waits for something that never comes."""


class Model:
    """A model that answers by the question, and may wait before it does."""

    def __init__(self, reply: Callable[[Ask, int], Awaitable[str] | str]) -> None:
        self._reply = reply
        self.questions: list[Ask] = []

    async def ask(self, ask: Ask) -> Answer:
        self.questions.append(ask)
        text = self._reply(ask, len(self.questions))
        usage = Usage(input_tokens=sum(len(message.text) for message in ask.messages) // 4, output_tokens=100)
        return Answer(text=text if isinstance(text, str) else await text, model="scripted:model", usage=usage)


async def wait_forever() -> str:
    await asyncio.Event().wait()
    return ""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def use_model(rig: Rig, reply: Callable[[Ask, int], Awaitable[str] | str]) -> Model:
    model = Model(reply)
    rig.adapters = replace(rig.adapters, model=model)
    return model


async def go_on(rig: Rig, run_id: str) -> RunState:
    async with asyncio.timeout(SECONDS):
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state


async def play(rig: Rig, plan: CandidatePlan, attempts: int = 1, tokens: int = TOKENS) -> RunState:
    return await go_on(rig, await rig.begin(limits=Limits(attempts=attempts, tokens=tokens), candidates=plan))


async def load_children(rig: Rig, run_id: str) -> dict[int, RunState]:
    rows = await rig.adapters.store.list_runs(prefix=f"{run_id}.")
    return {int(row.run_id.rpartition(".")[2]): await rig.adapters.store.load(row.run_id) for row in rows}


async def check_replays(rig: Rig, state: RunState) -> None:
    assert (await replay(rig.adapters, state.run_id)).state == state
    for child in (await load_children(rig, state.run_id)).values():
        assert (await replay(rig.adapters, child.run_id)).state == child


def read_code(rig: Rig, state: RunState) -> str:
    assert state.now.made is not None
    return (rig.trees.read(state.now.made, CODE) or b"").decode()


def test_first_verified_candidate_ends_the_others(rig):
    def reply(ask: Ask, _: int) -> Awaitable[str] | str:
        return wait_forever() if ask.question == "patch" and not ask.temperature else RIGHT

    model = use_model(rig, reply)

    async def go() -> tuple[RunState, dict[int, RunState], Status]:
        state = await play(rig, CandidatePlan(count=3))
        await check_replays(rig, state)
        rows = await rig.adapters.store.list_runs(prefix=make_child_run_id(state.run_id, 1))
        assert rows[0].control is Control.cancel
        return state, await load_children(rig, state.run_id), resolve_status(rows[0], has_driver=False)

    state, children, first_status = asyncio.run(go())
    assert state.result is Result.verified
    assert state.work.chosen == 2
    assert "candidate 2 of 3" in state.reason
    assert sorted(children) == [1, 2], "the third had not begun"
    assert first_status is Status.cancelled
    assert [ask.temperature for ask in model.questions if ask.question == "patch"] == [0.0, CANDIDATE_TEMPERATURE]
    assert state.now.made == children[2].now.made
    assert state.now.test == children[2].now.test
    assert state.spend.calls == children[2].spend.calls > 0


def test_baseline_is_measured_once(rig):
    use_model(rig, lambda ask, _: WRONG)

    async def go() -> tuple[list[tuple[int, Step]], list[tuple[int, Step]]]:
        state = await play(rig, CandidatePlan(count=2))
        child_id = make_child_run_id(state.run_id, 1)
        return await rig.list_steps(state.run_id), await rig.list_steps(child_id)

    parent_steps, child_steps = asyncio.run(go())
    assert parent_steps == [(1, Step.reproduce), (1, Step.decide), (1, Step.decide)]
    assert child_steps[0] == (1, Step.plan)


def test_answers_of_a_stopped_candidate_are_counted(rig):
    """The stopped candidate had one committed attempt, and one recorded answer in the step that was interrupted."""
    green = asyncio.Event()

    async def answer_late() -> str:
        await green.wait()
        return RIGHT

    async def let_other_win() -> str:
        green.set()
        return await wait_forever()

    def reply(ask: Ask, number: int) -> Awaitable[str] | str:
        if ask.question != "patch":
            return GARBAGE
        if not ask.temperature:
            return WRONG
        is_repaired = len(ask.messages) > 2
        if "Already tried" in ask.messages[1].text:
            return let_other_win() if is_repaired else GARBAGE
        return answer_late()

    use_model(rig, reply)

    async def go() -> tuple[RunState, dict[int, RunState], list[int]]:
        state = await play(rig, CandidatePlan(count=2), attempts=3)
        await check_replays(rig, state)
        children = await load_children(rig, state.run_id)
        records = [await rig.adapters.journal.list_records(child.run_id) for child in children.values()]
        return state, children, [sum(record.kind == "model" for record in item) for item in records]

    state, children, answers = asyncio.run(go())
    assert state.work.chosen == 2
    assert children[1].spend.calls < state.spend.calls - children[2].spend.calls
    assert state.spend.calls == sum(answers)


@pytest.mark.parametrize("plan", [CandidatePlan(count=3), CandidatePlan(count=3, choose=True)])
@pytest.mark.parametrize("tokens", [0, 4_000, 9_000, 20_000])
def test_sum_of_all_candidates_stays_within_the_limits(rig, plan, tokens):
    model = use_model(rig, lambda ask, _: WRONG)
    state = asyncio.run(play(rig, plan, attempts=5, tokens=tokens))
    assert state.result in (Result.capped, Result.unsolved, Result.stuck)
    assert state.spend.tokens <= tokens
    assert state.spend.calls == len(model.questions)


def test_run_without_a_passing_candidate_names_each_reason(rig):
    use_model(rig, lambda ask, _: WRONG if ask.temperature else TAMPER)

    async def go() -> RunState:
        state = await play(rig, CandidatePlan(count=3))
        await check_replays(rig, state)
        return state

    state = asyncio.run(go())
    assert state.result is Result.unsolved
    assert state.reason.startswith("no candidate passed: candidate 1: the last patch was refused: test_calc.py")
    assert state.reason.endswith("candidates 2, 3: the target test still fails after 1 attempt")
    assert state.now.made is None
    assert state.spend.calls == 3


@pytest.mark.parametrize("failing_call", range(2, 12, 3))
def test_outage_at_any_point_resumes_without_repeating_a_model_call(rig, failing_call):
    model = use_model(rig, lambda ask, number: f"{RIGHT if ask.temperature else WRONG}\n{number}")
    real_sandbox, calls = rig.sandbox, 0

    class Dying:
        tier = "fake"

        async def run(self, execution: Execution) -> Completed:
            nonlocal calls
            calls += 1
            if calls == failing_call:
                raise SandboxUnavailable("gone")
            return await real_sandbox.run(execution)

    rig.adapters = replace(rig.adapters, sandbox=Dying())

    async def go() -> tuple[RunState, int]:
        run_id = await rig.begin(limits=Limits(attempts=1), candidates=CandidatePlan(count=3, choose=True))
        with pytest.raises(SandboxUnavailable):
            await go_on(rig, run_id)
        state = await go_on(rig, run_id)
        await check_replays(rig, state)
        children = (await load_children(rig, run_id)).values()
        records = [await rig.adapters.journal.list_records(child.run_id) for child in children]
        return state, sum(record.kind == "model" for item in records for record in item)

    state, recorded = asyncio.run(go())
    assert state.result is Result.verified
    assert len(model.questions) == recorded == state.spend.calls


def test_resumed_run_takes_the_candidate_that_was_verified_before_the_crash(rig):
    """The winner was committed, but the parent died before it stopped the others."""
    model = use_model(rig, lambda ask, _: WRONG if ask.temperature else RIGHT)

    async def go() -> RunState:
        run_id = await rig.begin(limits=Limits(attempts=1), candidates=CandidatePlan(count=3))
        parent = (
            await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline, last_step=Step.plan)
        ).state
        assert parent.status is Status.paused
        await go_on(rig, make_child_run_id(run_id, 1))
        asked = len(model.questions)
        state = await go_on(rig, run_id)
        assert len(model.questions) == asked
        await check_replays(rig, state)
        return state

    state = asyncio.run(go())
    assert state.result is Result.verified
    assert state.work.chosen == 1


def test_fast_candidates_come_before_those_of_the_strong_model(rig):
    model = use_model(rig, lambda ask, _: WRONG if ask.tier is Tier.fast else RIGHT)
    fast = FastCandidates(count=2, attempts=2, asks=QuestionOptions(fast=True, brief=True))

    async def go() -> tuple[RunState, dict[int, RunState]]:
        state = await play(rig, CandidatePlan(count=3, fast=fast), attempts=5)
        await check_replays(rig, state)
        return state, await load_children(rig, state.run_id)

    state, children = asyncio.run(go())
    tiers = [ask.tier for ask in model.questions if ask.question == "patch"]
    assert tiers == [Tier.fast] * 4 + [Tier.strong]
    assert state.work.chosen == 3
    assert [children[number].spec.limits.attempts for number in (1, 2, 3)] == [2, 2, 5]
    tokens = state.spec.limits.tokens or 0
    spent = children[1].spend.tokens + children[2].spend.tokens
    assert children[1].spec.limits.tokens == tokens // 3
    assert children[3].spec.limits.tokens == tokens - spent, "what the others did not use is left for the last"
    assert state.spend.calls == len(model.questions)


def test_fast_candidate_that_is_verified_makes_the_strong_model_unnecessary(rig):
    model = use_model(rig, lambda ask, _: RIGHT)
    fast = FastCandidates(count=1, attempts=2, asks=QuestionOptions(fast=True))
    state = asyncio.run(play(rig, CandidatePlan(count=2, fast=fast)))
    assert state.work.chosen == state.work.begun == 1
    assert {ask.tier for ask in model.questions} == {Tier.fast}


def answer_in_turn(*answers: str) -> Callable[[Ask, int], str]:
    """Give each first question for a patch the next answer."""
    remaining = iter(answers)
    return lambda ask, _: next(remaining) if ask.question == "patch" else GARBAGE


def test_smallest_of_the_passing_patches_is_chosen(rig):
    use_model(rig, answer_in_turn(LONGER, RIGHT, WRONG))

    async def go() -> RunState:
        state = await play(rig, CandidatePlan(count=3, choose=True))
        await check_replays(rig, state)
        return state

    state = asyncio.run(go())
    assert state.result is Result.verified
    assert state.work.chosen == 2
    assert "the smallest of 2 patches that pass (2 changed lines)" in state.reason
    assert "twice" not in read_code(rig, state)


def with_results(rig: Rig, results: dict[str, str]) -> None:
    """Give every nearby input the result of the first marker that the code contains."""
    suite = create_computed_suite(rig.trees)

    def run(execution: Execution) -> Completed:
        question = execution.files_in.get("nearby_asked.json")
        if question is None:
            return suite(execution)
        code = (rig.trees.read(execution.snapshot, CODE) or b"").decode()
        outcome = [next(result for marker, result in results.items() if marker in code), False]
        answers = [[outcome for _ in module["expressions"]] for module in json.loads(question)["modules"]]
        return Completed(
            exit_code=0, cause=ExitCause.ok, output="", files={"nearby.json": json.dumps(answers)}, wall=0.01
        )

    rig.with_suite(run)


DIFFERENT = {"twice": "80", "the end": "81", "def": "82"}


async def ask_person(rig: Rig) -> RunState:
    use_model(rig, answer_in_turn(LONGER, RIGHT, OTHER))
    with_results(rig, DIFFERENT)
    return await play(rig, CandidatePlan(count=3, choose=True))


def test_passing_candidates_that_differ_at_a_nearby_input_are_shown_to_a_person(rig):
    state = asyncio.run(ask_person(rig))
    assert state.status is Status.needs_input
    assert state.now.decide is not None
    assert state.now.decide.action is Action.ask
    assert "double(" in state.reason
    for shown in ("82 with candidate 2", "80 with candidate 1", "81 with candidate 3", "Is candidate 2 right"):
        assert shown in state.reason
    assert "number + number\n" in read_code(rig, state)


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([PersonWord.accept], 2),
        ([PersonWord.reject, PersonWord.accept], 1),
        ([PersonWord.reject] * 2 + [PersonWord.accept], 3),
        ([PersonWord.reject] * 3, 0),
    ],
)
def test_person_accepts_one_of_the_differing_candidates_or_none(rig, words, chosen):
    async def go() -> tuple[RunState, dict[int, RunState]]:
        state = await ask_person(rig)
        spent = state.spend.calls
        for word in words:
            assert state.status is Status.needs_input
            await rig.adapters.store.send_message(state.run_id, word, "", version=state.version)
            state = await go_on(rig, state.run_id)
        assert state.spend.calls == spent
        await check_replays(rig, state)
        return state, await load_children(rig, state.run_id)

    state, children = asyncio.run(go())
    assert state.status is Status.finished
    if not chosen:
        assert state.result is Result.unsolved
        return
    assert state.result is Result.verified
    assert state.work.chosen == chosen
    assert state.now.made == children[chosen].now.made


def test_candidates_that_agree_are_not_shown_to_a_person(rig):
    use_model(rig, answer_in_turn(LONGER, RIGHT, OTHER))
    with_results(rig, {"def": "80"})
    state = asyncio.run(play(rig, CandidatePlan(count=3, choose=True)))
    assert state.result is Result.verified


def test_candidates_do_not_recall_what_other_candidates_saved(rig):
    model = use_model(rig, lambda ask, _: LONGER if ask.question == "patch" else GARBAGE)
    asyncio.run(play(rig, CandidatePlan(count=4, choose=True)))
    questions = [ask.messages[-1].text for ask in model.questions if ask.question == "patch"]
    assert len(questions) == 4
    assert len(set(questions)) == 1
