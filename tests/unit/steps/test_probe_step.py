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
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.toolkit.languages.python.snippets import FILE
from support import rig as play
from support.rig import CODE, DAWN, RED, Rig, computed_suite, make_rig

pytestmark = pytest.mark.slow

SNIPPET = "from calc import double\nprint('double gives', double(2))\n"
PROBE = f"WHY: not sure yet\n\nPROBE:\n```python\n{SNIPPET}```\n"
PRINTED = "double gives 5"
SEES = "What was run to find out more"
OFFER = "Instead of edits you may answer with a probe"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    suite = computed_suite(made.trees)

    def run(execution: Execution) -> Completed:
        if FILE in execution.files_in:
            return Completed(exit_code=0, cause=ExitCause.ok, output=f"{PRINTED}\n", wall=0.5)
        return suite(execution)

    made.with_suite(run)
    yield made
    made.trees.close()


def numbered() -> Callable[[], str]:
    """Return a function that builds a different probe on each call."""
    numbers = iter(range(100))
    return lambda: PROBE.replace("double gives", f"{next(numbers)} double gives")


def ran(
    rig: Rig, answers: Sequence[str] | Callable[[Ask], str | Answer], *, looks: int = 3, limits: Limits | None = None
) -> tuple[RunState, list[Ask]]:
    model = rig.with_model(answers)  # type: ignore[arg-type]

    async def go() -> RunState:
        first = await rig.adapters.store.load(await rig.begin(limits=limits))
        spec = first.spec.model_copy(update={"looks": looks})
        state = first.model_copy(update={"run_id": "looks", "spec": spec})
        await rig.adapters.store.create(state, folder="/rig", created=DAWN)
        return (await drive(rig.adapters, await rig.adapters.store.claim("looks"), inline)).state

    return asyncio.run(go()), [ask for ask in model.asks if ask.question == "patch"]


def steps(rig: Rig, state: RunState, attempt: int) -> list[Step]:
    return [step for number, step in asyncio.run(rig.trail(state.run_id)) if number == attempt]


def user_text(ask: Ask) -> str:
    return ask.messages[1].text


def test_a_snippet_is_run_and_the_next_attempt_sees_what_it_printed(rig):
    state, asks = ran(rig, [PROBE, play.RIGHT, play.CARD])
    assert (state.result, state.now.number, state.tries) == (Result.verified, 2, 1)
    assert steps(rig, state, 1)[-3:] == [Step.patch, Step.test, Step.decide]
    (probed,) = [execution for execution in rig.sandbox.executions if FILE in execution.files_in]
    assert (probed.limits, probed.files_in[FILE]) == (TIGHT, SNIPPET)
    assert probed.snapshot.tree == state.base.tree
    assert SEES not in user_text(asks[0])
    assert SEES in user_text(asks[1])
    assert PRINTED in user_text(asks[1])
    assert "Already tried" not in user_text(asks[1])
    assert "ROOT CAUSE:" not in user_text(asks[1]), "there is no earlier attempt to reflect on"


def test_tests_are_run_by_their_ids(rig):
    state, asks = ran(rig, [f"PROBE: {RED}", play.RIGHT, play.CARD])
    assert state.result is Result.verified
    named = [execution for execution in rig.sandbox.executions if any(RED in word for word in execution.argv)]
    assert (named[0].limits, named[0].snapshot) == (state.spec.sandbox, state.base)
    assert all(item.snapshot != state.base for item in named[1:]), "the controls run on the patched code"
    assert f"{RED}: failed assert 5 == 4" in user_text(asks[1])


def test_what_a_probe_is_and_did_is_kept(rig):
    state, _ = ran(rig, [PROBE, play.RIGHT, play.CARD])
    rows = asyncio.run(rig.adapters.store.steps(state.run_id))
    patched = next(row for row in rows if row.step is Step.patch).state.now.patch
    assert patched is not None
    assert Probe.model_validate_json(rig.adapters.blobs.get(patched.probe)) == Probe(snippet=SNIPPET)
    assert (patched.edits, patched.why) == ("", "not sure yet")
    (summary,) = state.history
    assert PRINTED in rig.adapters.blobs.get(summary.probe).decode()
    assert (summary.red, summary.diff, summary.report) == (None, "", "")


def test_edits_beside_a_probe_are_what_counts(rig):
    state, _ = ran(rig, [PROBE + play.RIGHT, play.CARD])
    assert (state.result, state.now.number, state.probes) == (Result.verified, 1, 0)


def test_a_run_that_only_probes_ends(rig):
    probe = numbered()
    state, asks = ran(rig, lambda ask: probe() if ask.question == "patch" else "{}", limits=Limits(attempts=5))
    assert state.result is Result.unsolved
    assert sum(FILE in execution.files_in for execution in rig.sandbox.executions) == PROBES == state.probes
    assert [OFFER in user_text(ask) for ask in asks[: PROBES + 1]] == [True] * PROBES + [False]
    assert "no more than 3 probes are run" in state.history[PROBES].reason
    assert len(state.model_dump_json()) < 64 * 1024


def test_the_same_probe_again_and_again_is_going_in_circles(rig):
    plan = '{"summary": "something else", "subtasks": []}'
    state, _ = ran(rig, lambda ask: PROBE if ask.question == "patch" else plan, limits=Limits(attempts=9))
    assert (state.result, state.now.number) == (Result.stuck, 3)


def test_without_looks_no_probe_is_offered_nor_taken(rig):
    state, asks = ran(rig, [PROBE, PROBE], looks=0, limits=Limits(attempts=1))
    assert (state.result, state.probes) == (Result.unsolved, 0)
    assert OFFER not in user_text(asks[0])
    assert asks[0].tools == ()


def test_a_replay_probes_and_looks_as_the_run_did(rig):
    looked = ToolCall(id="1", name="read", arguments=f'{{"path": "{CODE}"}}')

    def reply(ask: Ask) -> str | Answer:
        if ask.question != "patch":
            return play.CARD
        if len(ask.messages) == 2:
            return Answer(text="", model=play.WRITER, calls=(looked,))
        return play.RIGHT if PRINTED in user_text(ask) else PROBE

    state, asks = ran(rig, reply)
    assert (state.result, len(asks)) == (Result.verified, 4)
    assert state.now.patch is not None
    assert state.now.patch.looks == 1
    told = [event.data for event in rig.events if "look" in event.data]
    assert told == [{"look": f"{CODE} lines 1-2", "served": True}] * 2
    done = len(rig.sandbox.executions)
    assert asyncio.run(replay(rig.adapters, state.run_id)).state == state
    assert len(rig.sandbox.executions) == done


def test_a_model_that_asks_for_one_more_look_has_given_no_edit(rig):
    looked = Answer(text="", model=play.WRITER, calls=(ToolCall(id="1", name="outline", arguments="{}"),))
    state, asks = ran(rig, lambda ask: looked if ask.question == "patch" else "{}", looks=1, limits=Limits(attempts=1))
    assert (state.result, len(asks)) == (Result.unsolved, 3)
    assert "none was left" in asks[2].messages[-1].text
    assert state.now.patch is not None
    assert state.now.patch.fault == "the model asked for one more look instead of an answer, and none was left"


def test_probes_are_no_attempts_and_the_next_one_begins_with_the_patch(rig):
    probe = numbered()
    given = iter([probe(), probe(), probe(), play.RIGHT])
    state, asks = ran(rig, lambda ask: next(given) if ask.question == "patch" else play.CARD, limits=Limits(attempts=1))
    assert (state.result, state.now.number, state.probes, state.tries) == (Result.verified, 4, 3, 1)
    assert steps(rig, state, 2) == [Step.patch, Step.test, Step.decide]
    assert state.history[0].probe
    assert len(asks) == 4
