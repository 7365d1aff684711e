"""The contract of every engine: the same trail and the same final state as the reference loop, whatever happens.

Subclass it as `Test...` and define the fixtures `engine` and `rig`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from redstart.core.errors import Fenced, ModelError
from redstart.core.run import Action, Decision, Level, Limits, Mode, Result, RunState, Status, Step
from redstart.core.standing import Control, HaltReason
from redstart.engines.drive import RunDriver, drive
from redstart.engines.port import Engine
from redstart.engines.replay import replay
from redstart.flow.loop import STEPS, loop
from redstart.flow.modes import MODES
from redstart.ports.bundle import Ports
from redstart.ports.store.port.runs import PersonWord
from redstart.steps.decide import decide
from redstart.toolkit.honesty.verdict.levels import MEASURES
from support import rig as play
from support.rig import DAWN, Rig

WHOLE = [(1, step) for step in MODES[Mode.fix] if step is not Step.reflect]
"""The trail of a run that succeeds at the first attempt."""

TO_TEST = [Step.patch, Step.apply, Step.check, Step.test]
RED_AGAIN = [*TO_TEST, Step.reflect, Step.remember, Step.decide]


class Scenario(NamedTuple):
    name: str
    answers: Sequence[str | Exception]
    limits: Limits
    result: Result
    trail: Sequence[tuple[int, Step]]


def _then(number: int, steps: Sequence[Step]) -> list[tuple[int, Step]]:
    return [(number, step) for step in steps]


_FIRST_RED = _then(1, [Step.reproduce, Step.plan, Step.retrieve, Step.audit, *RED_AGAIN])
_HEAD = [Step.reproduce, Step.plan, Step.retrieve, Step.audit]
_CONTEXT = [Step.retrieve, Step.audit]

SCENARIOS = (
    Scenario("success at once", [play.RIGHT, play.CARD], Limits(), Result.verified, WHOLE),
    Scenario(
        "success after 3 attempts",
        [play.WRONG, play.WORSE, play.RIGHT, play.CARD],
        Limits(),
        Result.verified,
        [
            *_FIRST_RED,
            *_then(2, [*_CONTEXT, *RED_AGAIN]),
            *_then(3, [*_CONTEXT, *TO_TEST, Step.remember, Step.decide]),
        ],
    ),
    Scenario(
        "an edit that never applies",
        [play.MISFIT, play.block("    return nothing of the kind", "    pass")],
        Limits(attempts=2),
        Result.unsolved,
        [*_then(1, [*_HEAD, Step.patch, Step.apply, Step.decide]), *_then(2, [Step.patch, Step.apply, Step.decide])],
    ),
    Scenario(
        "a model that returns garbage",
        [play.GARBAGE] * 4,  # each attempt asks once more for a usable answer
        Limits(attempts=2),
        Result.unsolved,
        [*_then(1, [*_HEAD, Step.patch, Step.decide]), *_then(2, [Step.patch, Step.decide])],
    ),
    Scenario(
        "new findings in check",
        [play.SMELLY, play.RIGHT, play.CARD],
        Limits(),
        Result.verified,
        [
            *_then(1, [*_HEAD, Step.patch, Step.apply, Step.check, Step.decide]),
            *_then(2, [*TO_TEST, Step.remember, Step.decide]),
        ],
    ),
    Scenario(
        "a syntax error in apply",
        [play.BROKEN],
        Limits(attempts=1),
        Result.unsolved,
        _then(1, [*_HEAD, Step.patch, Step.apply, Step.decide]),
    ),
    Scenario(
        "budget out",
        [],
        Limits(tokens=100),
        Result.capped,
        _then(1, [*_HEAD, Step.patch, Step.decide]),
    ),
    Scenario(
        "the same patch again and again",
        [play.WRONG, play.WRONG, '{"summary": "something else", "subtasks": []}', play.WRONG],
        Limits(attempts=9),
        Result.stuck,
        [
            *_FIRST_RED,
            *_then(2, [*_CONTEXT, *RED_AGAIN]),
            *_then(3, [Step.plan, *_CONTEXT, *RED_AGAIN]),
        ],
    ),
    Scenario(
        "an edit of the test",
        [play.TAMPER],
        Limits(attempts=1),
        Result.refused,
        _then(1, [*_HEAD, Step.patch, Step.apply, Step.decide]),
    ),
)


class EngineContract:
    @pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
    def test_trail_and_result(self, engine: Engine, rig: Rig, scenario: Scenario) -> None:
        rig.with_model(scenario.answers)
        state = _run(rig, engine, scenario.limits)
        assert (state.status, state.result) == (Status.finished, scenario.result)
        assert asyncio.run(rig.trail(state.run_id)) == list(scenario.trail)

    @pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
    def test_ends_as_the_reference_loop_does(self, engine: Engine, rig: Rig, scenario: Scenario) -> None:
        rig.with_model(scenario.answers)
        mine = _run(rig, engine, scenario.limits)
        twin = rig.twin()
        twin.with_model(scenario.answers)
        reference = asyncio.run(_by_the_loop(twin, scenario.limits))
        assert comparable(mine) == comparable(reference)

    def test_events_are_numbered_without_a_gap_and_committed(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        state = _run(rig, engine)
        kept = asyncio.run(rig.adapters.store.events(state.run_id))
        assert [event.seq for event in kept] == list(range(state.seq))
        assert kept == rig.events
        assert (kept[0].name, kept[-1].name) == ("run", "run")

    @pytest.mark.parametrize("step", list(Step))
    def test_stops_after_a_step_and_resumes(self, engine: Engine, rig: Rig, step: Step) -> None:
        answers = [play.WRONG, play.RIGHT, play.CARD]
        model = rig.with_model(answers)
        run_id = asyncio.run(rig.begin())
        stopped = asyncio.run(_drive(rig, run_id, engine, step))
        assert (stopped.last, stopped.status) == (step, Status.running)
        ended = asyncio.run(_drive(rig, run_id, engine))
        assert len(model.asks) == len(answers)
        assert comparable(ended) == comparable(_undisturbed(rig, engine, answers))

    @pytest.mark.parametrize("step", list(Step))
    def test_forks_from_any_step(self, engine: Engine, rig: Rig, step: Step) -> None:
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        whole = _run(rig, engine)
        rows = asyncio.run(rig.adapters.store.steps(whole.run_id))
        row = next(row for row in rows if row.step is step)
        after = {Step.test, Step.reflect, Step.remember, Step.decide}
        asked = [play.RIGHT, play.CARD] if step in {*after, *TO_TEST} else [play.WRONG, play.RIGHT, play.CARD]
        other = rig.twin()
        other.with_model(asked)
        forked = row.state.model_copy(update={"run_id": f"fork-{step.value}"})
        asyncio.run(other.adapters.store.create(forked, folder="/rig", created=DAWN))
        ended = asyncio.run(_drive(other, forked.run_id, engine))
        assert comparable(ended) == comparable(whole)
        assert asyncio.run(rig.adapters.store.load(whole.run_id)) == whole

    def test_a_stale_driver_is_fenced_off(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin())

        async def race() -> RunState:
            stale = await rig.adapters.store.claim(run_id)
            fresh = await rig.adapters.store.claim(run_id)
            with pytest.raises(Fenced):
                await drive(rig.adapters, stale, engine)
            assert await rig.adapters.store.steps(run_id) == []
            return (await drive(rig.adapters, fresh, engine)).state

        assert asyncio.run(race()).result is Result.verified

    def test_two_drivers_in_turn_one_thinks_one_acts(self, engine: Engine, rig: Rig) -> None:
        model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        whole = rig.adapters
        thinks, acts = replace(whole, sandbox=None), replace(whole, model=None)
        run_id = asyncio.run(rig.begin())

        async def serve() -> tuple[RunState, list[str]]:
            handed: list[str] = []
            adapters = acts
            while True:
                done = await drive(adapters, await whole.store.claim(run_id), engine)
                if done.state.status is Status.finished:
                    return done.state, handed
                handed.append(done.halt)
                adapters = thinks if done.halt is HaltReason.needs_think else acts

        state, handed = asyncio.run(serve())
        assert handed == ["needs:think", "needs:act", "needs:think", "needs:act", "needs:think"]
        assert len(model.asks) == 3
        assert comparable(state) == comparable(_undisturbed(rig, engine, [play.WRONG, play.RIGHT, play.CARD]))

    def test_broken_machinery_is_let_through_and_the_run_can_go_on(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([ModelError("the endpoint is down")])
        run_id = asyncio.run(rig.begin())
        with pytest.raises(ModelError, match="down"):
            asyncio.run(_drive(rig, run_id, engine))
        rig.with_model([play.RIGHT, play.CARD])
        assert asyncio.run(_drive(rig, run_id, engine)).result is Result.verified

    def test_pause_is_obeyed_between_steps(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin())

        async def go() -> tuple[str, RunState]:
            await rig.adapters.store.control(run_id, Control.pause)
            done = await drive(rig.adapters, await rig.adapters.store.claim(run_id), engine)
            await rig.adapters.store.control(run_id, Control.none)
            return done.halt, (await drive(rig.adapters, await rig.adapters.store.claim(run_id), engine)).state

        halt, state = asyncio.run(go())
        assert (halt, state.result) == ("pause", Result.verified)

    def test_a_repeated_test_run_is_a_new_execution(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin(verify=Level.standard))
        assert asyncio.run(_drive(rig, run_id, engine)).result is Result.verified
        records = [record for record in asyncio.run(rig.adapters.journal.records(run_id)) if record.call.step == "test"]
        runs = [record for record in records if record.kind == "sandbox"]
        measures = MEASURES[Level.standard]
        # Four alterations of the only target, two neutral reruns of the targets, and nearby inputs on both trees.
        expected = 1 + len(measures.after) + measures.fail_again + 4 + 2 + 2
        assert len(runs) == expected
        assert len({record.call.ordinal for record in runs}) == expected
        assert len(rig.sandbox.executions) == 1 + len(measures.before) + expected

    def test_what_a_person_says_is_in_every_later_patch_and_replayed(self, engine: Engine, rig: Rig) -> None:
        model = rig.with_model([play.WRONG, play.WORSE, play.RIGHT, play.CARD])

        async def go() -> RunState:
            run_id = await rig.begin()
            await _drive(rig, run_id, engine, Step.patch)
            for number in range(7):
                await rig.adapters.store.tell(run_id, PersonWord.say, f"word {number} of mine", version=0)
            ended = await _drive(rig, run_id, engine)
            assert await rig.adapters.store.holder(run_id) is None, "the run was given back"
            await rig.adapters.store.tell(run_id, PersonWord.say, "too late", version=0)
            assert (await replay(rig.adapters, run_id)).state == ended
            return ended

        assert asyncio.run(go()).result is Result.verified
        said = [
            [number for number in range(7) if f"word {number} of mine" in str(ask.messages)]
            for ask in model.asks
            if ask.question == "patch"
        ]
        assert said == [[], [2, 3, 4, 5, 6], [2, 3, 4, 5, 6]]

    def test_words_that_come_while_a_step_is_at_work_do_not_change_it(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([ModelError("the endpoint is down")])
        run_id = asyncio.run(rig.begin())
        with pytest.raises(ModelError):
            asyncio.run(_drive(rig, run_id, engine))
        asyncio.run(rig.adapters.store.tell(run_id, PersonWord.say, "look at the sum", version=0))
        model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        assert asyncio.run(_drive(rig, run_id, engine)).result is Result.verified
        assert ["look at the sum" in str(ask.messages) for ask in model.asks[:2]] == [False, True]

    @pytest.mark.parametrize("word", [PersonWord.accept, PersonWord.reject])
    def test_a_run_that_asks_waits_for_its_answer(
        self, engine: Engine, rig: Rig, word: PersonWord, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(STEPS, Step.decide, asking)
        model = rig.with_model([play.RIGHT, play.CARD, play.RIGHT, play.CARD])
        tell = rig.adapters.store.tell

        async def go() -> tuple[RunState, RunState]:
            run_id = await rig.begin()
            asks = await _drive(rig, run_id, engine)
            assert await _drive(rig, run_id, engine) == asks, "without an answer it waits on"
            await tell(run_id, PersonWord.accept, "", version=asks.version - 1)
            assert await _drive(rig, run_id, engine) == asks, "an answer to something else is none"
            await tell(run_id, word, "" if word is PersonWord.accept else "keep the sign", version=asks.version)
            after = await _drive(rig, run_id, engine)
            assert (await replay(rig.adapters, run_id)).state == after
            return asks, after

        asks, after = asyncio.run(go())
        assert (asks.status, asks.result, asks.reason) == (Status.needs_input, Result.needs_human, QUESTION)
        trail = asyncio.run(rig.trail(asks.run_id))
        assert trail[: len(WHOLE) + 1] == [*WHOLE, (1, Step.decide)]
        if word is PersonWord.accept:
            assert (after.status, after.result, len(trail)) == (Status.finished, Result.verified, len(WHOLE) + 1)
        else:
            assert (after.status, after.result, after.now.number) == (Status.needs_input, Result.needs_human, 2)
            assert after.history[0].reason == "you rejected the patch: keep the sign"
            assert "keep the sign" in str([ask.messages for ask in model.asks if ask.question == "patch"][1])

    def test_an_attempt_may_ask_twice_and_each_answer_is_to_its_question(
        self, engine: Engine, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(STEPS, Step.decide, asking_twice)
        rig.with_model([play.RIGHT, play.CARD])

        async def go() -> list[RunState]:
            run_id = await rig.begin(limits=Limits(attempts=1))
            states = [await _drive(rig, run_id, engine)]
            for word in (PersonWord.accept, PersonWord.reject):
                await rig.adapters.store.tell(run_id, word, "", version=states[-1].version)
                states.append(await _drive(rig, run_id, engine))
                assert (await replay(rig.adapters, run_id)).state == states[-1]
            return states

        once, twice, ended = asyncio.run(go())
        assert [once.reason, twice.reason] == [QUESTION, "really?"]
        assert (ended.status, ended.result) == (Status.finished, Result.unsolved)


QUESTION = "is that what you want?"


async def asking(run: RunState, ports: Ports) -> Decision:
    """A `decide` that asks before it accepts."""
    decision = await decide(run, ports)
    if run.now.decide is None and decision.action is Action.accept:
        return Decision(action=Action.ask, reason=QUESTION, result=Result.needs_human)
    return decision


async def asking_twice(run: RunState, ports: Ports) -> Decision:
    """A `decide` that asks again after the answer yes."""
    decision = await asking(run, ports)
    first = run.now.decide is not None and run.now.decide.reason == QUESTION
    again = first and decision.action is Action.accept
    return Decision(action=Action.ask, reason="really?", result=Result.needs_human) if again else decision


def comparable(state: RunState) -> dict[str, object]:
    """Mask what differs from run to run in a state: its ID and durations."""
    text = state.model_dump_json().replace(state.run_id, "RUN")
    plain = RunState.model_validate_json(text)
    spend = plain.spend.model_copy(update={"seconds": 0.0})
    spec = plain.spec.model_copy(update={"parent": ""})
    return plain.model_copy(update={"spend": spend, "spec": spec, "seq": 0}).model_dump(mode="json")


def _run(rig: Rig, engine: Engine, limits: Limits | None = None) -> RunState:
    async def go() -> RunState:
        return await _drive(rig, await rig.begin(limits=limits), engine)

    return asyncio.run(go())


def _undisturbed(rig: Rig, engine: Engine, answers: Sequence[str | Exception]) -> RunState:
    twin = rig.twin()
    twin.with_model(answers)
    return _run(twin, engine)


async def _drive(rig: Rig, run_id: str, engine: Engine, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), engine, until)).state


async def _by_the_loop(rig: Rig, limits: Limits) -> RunState:
    claim = await rig.adapters.store.claim(await rig.begin(limits=limits))
    return (await loop(claim.state, RunDriver(rig.adapters, claim.fence).advance)).state
