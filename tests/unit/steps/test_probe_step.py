"""A probe instead of edits runs on the current code; the next attempt sees its result, and probes are limited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from redstart.core.change import Probe
from redstart.core.chat import Answer, Ask, ToolCall
from redstart.core.run import PROBES, Limits, Result, RunState, Step
from redstart.core.shell import TIGHT, Completed, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.toolkit.languages.python.snippets import FILE
from support import rig as play
from support.rig import CODE, DAWN, RED, Rig, create_computed_suite, make_rig

pytestmark = pytest.mark.slow

SNIPPET = "from calc import double\nprint('double gives', double(2))\n"
PROBE = f"WHY: not sure yet\n\nPROBE:\n```python\n{SNIPPET}```\n"
PRINTED = "double gives 5"
SEES = "What was run to find out more"
OFFER = "Instead of edits you may answer with a probe"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    suite = create_computed_suite(test_rig.trees)

    def run(execution: Execution) -> Completed:
        if FILE in execution.files_in:
            return Completed(exit_code=0, cause=ExitCause.ok, output=f"{PRINTED}\n", wall=0.5)
        return suite(execution)

    test_rig.with_suite(run)
    yield test_rig
    test_rig.trees.close()


def build_probe_factory() -> Callable[[], str]:
    """Return a function that builds a different probe on each call."""
    numbers = iter(range(100))
    return lambda: PROBE.replace("double gives", f"{next(numbers)} double gives")


def run_to_end(
    rig: Rig,
    answers: Sequence[str] | Callable[[Ask], str | Answer],
    *,
    max_tool_calls: int = 3,
    limits: Limits | None = None,
) -> tuple[RunState, list[Ask]]:
    model = rig.with_model(answers)  # type: ignore[arg-type]

    async def go() -> RunState:
        initial_state = await rig.adapters.store.load(await rig.begin(limits=limits))
        spec = initial_state.spec.model_copy(update={"looks": max_tool_calls})
        state = initial_state.model_copy(update={"run_id": "looks", "spec": spec})
        await rig.adapters.store.create(state, folder="/rig", created=DAWN)
        return (await drive(rig.adapters, await rig.adapters.store.claim("looks"), run_inline)).state

    return asyncio.run(go()), [ask for ask in model.questions if ask.question == "patch"]


def list_steps(rig: Rig, state: RunState, attempt: int) -> list[Step]:
    return [step for number, step in asyncio.run(rig.list_steps(state.run_id)) if number == attempt]


def get_user_text(ask: Ask) -> str:
    return ask.messages[1].text


def test_snippet_is_run_and_the_next_attempt_sees_its_output(rig):
    state, asks = run_to_end(rig, [PROBE, play.RIGHT, play.CARD])
    assert (state.result, state.now.number, state.tries) == (Result.verified, 2, 1)
    assert list_steps(rig, state, 1)[-3:] == [Step.patch, Step.test, Step.decide]
    (probe_execution,) = [execution for execution in rig.sandbox.executions if FILE in execution.files_in]
    assert (probe_execution.limits, probe_execution.files_in[FILE]) == (TIGHT, SNIPPET)
    assert probe_execution.snapshot.tree == state.base.tree
    assert SEES not in get_user_text(asks[0])
    assert SEES in get_user_text(asks[1])
    assert PRINTED in get_user_text(asks[1])
    assert "Already tried" not in get_user_text(asks[1])
    assert "ROOT CAUSE:" not in get_user_text(asks[1]), "there is no earlier attempt to reflect on"


def test_probe_runs_tests_by_id(rig):
    state, asks = run_to_end(rig, [f"PROBE: {RED}", play.RIGHT, play.CARD])
    assert state.result is Result.verified
    test_executions = [
        execution for execution in rig.sandbox.executions if any(RED in argument for argument in execution.argv)
    ]
    assert (test_executions[0].limits, test_executions[0].snapshot) == (state.spec.sandbox, state.base)
    assert all(item.snapshot != state.base for item in test_executions[1:]), "the controls run on the patched code"
    assert f"{RED}: failed assert 5 == 4" in get_user_text(asks[1])


def test_probe_and_its_result_are_stored(rig):
    state, _ = run_to_end(rig, [PROBE, play.RIGHT, play.CARD])
    rows = asyncio.run(rig.adapters.store.list_steps(state.run_id))
    patched = next(row for row in rows if row.step is Step.patch).state.now.patch
    assert patched is not None
    assert Probe.model_validate_json(rig.adapters.blobs.get(patched.probe)) == Probe(snippet=SNIPPET)
    assert (patched.edits, patched.why) == ("", "not sure yet")
    (summary,) = state.history
    assert PRINTED in rig.adapters.blobs.get(summary.probe).decode()
    assert (summary.red, summary.diff, summary.report) == (None, "", "")


def test_edits_take_precedence_over_a_probe(rig):
    state, _ = run_to_end(rig, [PROBE + play.RIGHT, play.CARD])
    assert (state.result, state.now.number, state.probes) == (Result.verified, 1, 0)


def test_run_that_only_probes_ends(rig):
    probe = build_probe_factory()
    state, asks = run_to_end(rig, lambda ask: probe() if ask.question == "patch" else "{}", limits=Limits(attempts=5))
    assert state.result is Result.unsolved
    assert sum(FILE in execution.files_in for execution in rig.sandbox.executions) == PROBES == state.probes
    assert [OFFER in get_user_text(ask) for ask in asks[: PROBES + 1]] == [True] * PROBES + [False]
    assert "no more than 3 probes are run" in state.history[PROBES].reason
    assert len(state.model_dump_json()) < 64 * 1024


def test_repeated_probe_counts_as_stuck(rig):
    plan = '{"summary": "something else", "subtasks": []}'
    state, _ = run_to_end(rig, lambda ask: PROBE if ask.question == "patch" else plan, limits=Limits(attempts=9))
    assert (state.result, state.now.number) == (Result.stuck, 3)


def test_probes_are_neither_offered_nor_run_without_tool_calls(rig):
    state, asks = run_to_end(rig, [PROBE, PROBE], max_tool_calls=0, limits=Limits(attempts=1))
    assert (state.result, state.probes) == (Result.unsolved, 0)
    assert OFFER not in get_user_text(asks[0])
    assert asks[0].tools == ()


def test_replay_repeats_probes_and_tool_calls(rig):
    tool_call = ToolCall(id="1", name="read", arguments=f'{{"path": "{CODE}"}}')

    def reply(ask: Ask) -> str | Answer:
        if ask.question != "patch":
            return play.CARD
        if len(ask.messages) == 2:
            return Answer(text="", model=play.WRITER, calls=(tool_call,))
        return play.RIGHT if PRINTED in get_user_text(ask) else PROBE

    state, asks = run_to_end(rig, reply)
    assert (state.result, len(asks)) == (Result.verified, 4)
    assert state.now.patch is not None
    assert state.now.patch.looks == 1
    event_data = [event.data for event in rig.events if "look" in event.data]
    assert event_data == [{"look": f"{CODE} lines 1-2", "served": True}] * 2
    execution_count = len(rig.sandbox.executions)
    assert asyncio.run(replay(rig.adapters, state.run_id)).state == state
    assert len(rig.sandbox.executions) == execution_count


def test_extra_tool_call_over_the_limit_counts_as_no_edit(rig):
    tool_answer = Answer(text="", model=play.WRITER, calls=(ToolCall(id="1", name="outline", arguments="{}"),))
    state, asks = run_to_end(
        rig, lambda ask: tool_answer if ask.question == "patch" else "{}", max_tool_calls=1, limits=Limits(attempts=1)
    )
    assert (state.result, len(asks)) == (Result.unsolved, 3)
    assert "none was left" in asks[2].messages[-1].text
    assert state.now.patch is not None
    assert state.now.patch.fault == "the model asked for one more look instead of an answer, and none was left"


def test_probe_costs_no_attempt_and_continues_at_the_patch_step(rig):
    probe = build_probe_factory()
    answers = iter([probe(), probe(), probe(), play.RIGHT])
    state, asks = run_to_end(
        rig, lambda ask: next(answers) if ask.question == "patch" else play.CARD, limits=Limits(attempts=1)
    )
    assert (state.result, state.now.number, state.probes, state.tries) == (Result.verified, 4, 3, 1)
    assert list_steps(rig, state, 2) == [Step.patch, Step.test, Step.decide]
    assert state.history[0].probe
    assert len(asks) == 4
