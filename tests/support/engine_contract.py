"""The contract of every engine: the same trail and the same final state as the reference loop, whatever happens.

Subclass it as `Test...` and define the fixtures `engine` and `rig`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from redstart.core.errors import Fenced, ModelError
from redstart.core.events import Phase
from redstart.core.run import Action, Decision, Level, Limits, Mode, Result, RunState, Status, Step
from redstart.core.run_preferences import QuestionOptions
from redstart.core.run_status import Control, HaltReason
from redstart.engines.port import Engine
from redstart.engines.replay import replay
from redstart.engines.step_driver import RunDriver, drive
from redstart.flow.loop import STEPS, run_loop
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


def _number_steps(number: int, steps: Sequence[Step]) -> list[tuple[int, Step]]:
    return [(number, step) for step in steps]


_FIRST_RED = _number_steps(1, [Step.reproduce, Step.plan, Step.retrieve, Step.audit, *RED_AGAIN])
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
            *_number_steps(2, [*_CONTEXT, *RED_AGAIN]),
            *_number_steps(3, [*_CONTEXT, *TO_TEST, Step.remember, Step.decide]),
        ],
    ),
    Scenario(
        "an edit that never applies",
        [play.MISFIT, play.block("    return nothing of the kind", "    pass")],
        Limits(attempts=2),
        Result.unsolved,
        [
            *_number_steps(1, [*_HEAD, Step.patch, Step.apply, Step.decide]),
            *_number_steps(2, [Step.patch, Step.apply, Step.decide]),
        ],
    ),
    Scenario(
        "a model that returns garbage",
        [play.GARBAGE] * 4,  # each attempt asks once more for a usable answer
        Limits(attempts=2),
        Result.unsolved,
        [*_number_steps(1, [*_HEAD, Step.patch, Step.decide]), *_number_steps(2, [Step.patch, Step.decide])],
    ),
    Scenario(
        "new findings in check",
        [play.SMELLY, play.RIGHT, play.CARD],
        Limits(),
        Result.verified,
        [
            *_number_steps(1, [*_HEAD, Step.patch, Step.apply, Step.check, Step.decide]),
            *_number_steps(2, [*TO_TEST, Step.remember, Step.decide]),
        ],
    ),
    Scenario(
        "a syntax error in apply",
        [play.BROKEN],
        Limits(attempts=1),
        Result.unsolved,
        _number_steps(1, [*_HEAD, Step.patch, Step.apply, Step.decide]),
    ),
    Scenario(
        "budget out",
        [],
        Limits(tokens=100),
        Result.capped,
        _number_steps(1, [*_HEAD, Step.patch, Step.decide]),
    ),
    Scenario(
        "the same patch again and again",
        [play.WRONG, play.WRONG, '{"summary": "something else", "subtasks": []}', play.WRONG],
        Limits(attempts=9),
        Result.stuck,
        [
            *_FIRST_RED,
            *_number_steps(2, [*_CONTEXT, *RED_AGAIN]),
            *_number_steps(3, [Step.plan, *_CONTEXT, *RED_AGAIN]),
        ],
    ),
    Scenario(
        "an edit of the test",
        [play.TAMPER],
        Limits(attempts=1),
        Result.refused,
        _number_steps(1, [*_HEAD, Step.patch, Step.apply, Step.decide]),
    ),
)


class EngineContract:
    @pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
    def test_trail_and_result_match_the_scenario(self, engine: Engine, rig: Rig, scenario: Scenario) -> None:
        rig.with_model(scenario.answers)
        state = _run(rig, engine, scenario.limits)
        assert (state.status, state.result) == (Status.finished, scenario.result)
        assert asyncio.run(rig.list_steps(state.run_id)) == list(scenario.trail)

    @pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
    def test_final_state_matches_the_reference_loop(self, engine: Engine, rig: Rig, scenario: Scenario) -> None:
        rig.with_model(scenario.answers)
        own_state = _run(rig, engine, scenario.limits)
        twin = rig.twin()
        twin.with_model(scenario.answers)
        reference = asyncio.run(_run_reference_loop(twin, scenario.limits))
        assert mask_run(own_state) == mask_run(reference)

    def test_events_are_numbered_without_gaps_and_committed(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        state = _run(rig, engine)
        events = asyncio.run(rig.adapters.store.list_events(state.run_id))
        assert [event.seq for event in events] == list(range(state.seq))
        assert events == rig.events
        assert (events[0].name, events[-1].name) == ("run", "run")

    @pytest.mark.parametrize("step", list(Step))
    def test_run_stops_after_a_step_and_resumes(self, engine: Engine, rig: Rig, step: Step) -> None:
        answers = [play.WRONG, play.RIGHT, play.CARD]
        model = rig.with_model(answers)
        run_id = asyncio.run(rig.begin())
        stopped_state = asyncio.run(_drive(rig, run_id, engine, step))
        assert (stopped_state.last, stopped_state.status) == (step, Status.running)
        final_state = asyncio.run(_drive(rig, run_id, engine))
        assert len(model.questions) == len(answers)
        assert mask_run(final_state) == mask_run(_run_undisturbed(rig, engine, answers))

    @pytest.mark.parametrize("step", list(Step))
    def test_run_forks_from_any_step(self, engine: Engine, rig: Rig, step: Step) -> None:
        rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        full_state = _run(rig, engine)
        rows = asyncio.run(rig.adapters.store.list_steps(full_state.run_id))
        row = next(row for row in rows if row.step is step)
        after = {Step.test, Step.reflect, Step.remember, Step.decide}
        answers = [play.RIGHT, play.CARD] if step in {*after, *TO_TEST} else [play.WRONG, play.RIGHT, play.CARD]
        other_rig = rig.twin()
        other_rig.with_model(answers)
        forked_state = row.state.model_copy(update={"run_id": f"fork-{step.value}"})
        asyncio.run(other_rig.adapters.store.create(forked_state, folder="/rig", created=DAWN))
        final_state = asyncio.run(_drive(other_rig, forked_state.run_id, engine))
        assert mask_run(final_state) == mask_run(full_state)
        assert asyncio.run(rig.adapters.store.load(full_state.run_id)) == full_state

    def test_stale_driver_is_fenced_off(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin())

        async def race() -> RunState:
            stale = await rig.adapters.store.claim(run_id)
            fresh = await rig.adapters.store.claim(run_id)
            with pytest.raises(Fenced):
                await drive(rig.adapters, stale, engine)
            assert await rig.adapters.store.list_steps(run_id) == []
            return (await drive(rig.adapters, fresh, engine)).state

        assert asyncio.run(race()).result is Result.verified

    def test_two_drivers_alternate_between_thinking_and_acting(self, engine: Engine, rig: Rig) -> None:
        model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        state, handovers = asyncio.run(_drive_by_two(rig, asyncio.run(rig.begin()), engine))
        assert handovers == ["needs:think", "needs:act", "needs:think", "needs:act", "needs:think"]
        assert len(model.questions) == 3
        assert mask_run(state) == mask_run(_run_undisturbed(rig, engine, [play.WRONG, play.RIGHT, play.CARD]))

    def test_each_execution_of_a_session_hands_the_run_over_and_is_counted(self, engine: Engine, rig: Rig) -> None:
        edit = {"path": play.CODE, "text": play.BUGGY.replace(" + 1", "")}
        run_tests, submit = _call_tool("run_tests", {}), _call_tool("submit", {})
        answers = [run_tests, _call_tool("edit", edit), _call_tool("read", {"path": play.CODE}), run_tests, submit]
        model = rig.with_model([*answers, play.CARD])
        run_id = asyncio.run(rig.begin(asks=QuestionOptions(session_calls=9)))
        state, handovers = asyncio.run(_drive_by_two(rig, run_id, engine))
        assert state.result is Result.verified
        think, act = HaltReason.needs_think, HaltReason.needs_act
        # The session begins, runs tests twice, and ends; the patch is tested, and the fix is remembered.
        assert handovers == [think, act, think, act, think, act, think]
        assert len(model.questions) == len(answers) + 1
        assert state.spend.handovers == len(handovers)
        ends = [event for event in rig.events if event.phase is Phase.end and event.name != "run"]
        assert {event.name: event.data["handovers"] for event in ends if "handovers" in event.data} == {
            "patch": 5,
            "test": 1,
            "remember": 1,
        }
        replayed = asyncio.run(replay(rig.adapters, run_id))
        assert (replayed.state, replayed.calls) == (state, _count_calls(rig, run_id))

    def test_driver_that_comes_to_a_call_in_vain_again_counts_no_further_handover(
        self, engine: Engine, rig: Rig
    ) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id, all_adapters = asyncio.run(rig.begin()), rig.adapters
        rig.adapters = replace(all_adapters, model=None)
        for _ in range(3):
            assert asyncio.run(_drive(rig, run_id, engine)).last is Step.audit
        rig.adapters = all_adapters
        assert asyncio.run(_drive(rig, run_id, engine)).spend.handovers == 1

    def test_infrastructure_error_is_raised_and_the_run_can_continue(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([ModelError("the endpoint is down")])
        run_id = asyncio.run(rig.begin())
        with pytest.raises(ModelError, match="down"):
            asyncio.run(_drive(rig, run_id, engine))
        rig.with_model([play.RIGHT, play.CARD])
        assert asyncio.run(_drive(rig, run_id, engine)).result is Result.verified

    def test_pause_takes_effect_between_steps(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin())

        async def go() -> tuple[str, RunState]:
            await rig.adapters.store.control(run_id, Control.pause)
            report = await drive(rig.adapters, await rig.adapters.store.claim(run_id), engine)
            await rig.adapters.store.control(run_id, Control.none)
            return report.halt, (await drive(rig.adapters, await rig.adapters.store.claim(run_id), engine)).state

        halt, state = asyncio.run(go())
        assert (halt, state.result) == ("pause", Result.verified)

    def test_repeated_test_run_is_a_new_execution(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([play.RIGHT, play.CARD])
        run_id = asyncio.run(rig.begin(verify=Level.standard))
        assert asyncio.run(_drive(rig, run_id, engine)).result is Result.verified
        records = [
            record for record in asyncio.run(rig.adapters.journal.list_records(run_id)) if record.call.step == "test"
        ]
        runs = [record for record in records if record.kind == "sandbox"]
        measures = MEASURES[Level.standard]
        # Four alterations of the only target, two neutral reruns of the targets, and nearby inputs on both trees.
        expected = 1 + len(measures.after) + measures.fail_again + 4 + 2 + 2
        assert len(runs) == expected
        assert len({record.call.ordinal for record in runs}) == expected
        assert len(rig.sandbox.executions) == 1 + len(measures.before) + expected

    def test_user_message_is_in_every_later_patch_and_replayed(self, engine: Engine, rig: Rig) -> None:
        model = rig.with_model([play.WRONG, play.WORSE, play.RIGHT, play.CARD])

        async def go() -> RunState:
            run_id = await rig.begin()
            await _drive(rig, run_id, engine, Step.patch)
            for number in range(7):
                await rig.adapters.store.send_message(run_id, PersonWord.say, f"word {number} of mine", version=0)
            final_state = await _drive(rig, run_id, engine)
            assert await rig.adapters.store.get_holder(run_id) is None, "the run was given back"
            await rig.adapters.store.send_message(run_id, PersonWord.say, "too late", version=0)
            assert (await replay(rig.adapters, run_id)).state == final_state
            return final_state

        assert asyncio.run(go()).result is Result.verified
        messages = [
            [number for number in range(7) if f"word {number} of mine" in str(ask.messages)]
            for ask in model.questions
            if ask.question == "patch"
        ]
        assert messages == [[], [2, 3, 4, 5, 6], [2, 3, 4, 5, 6]]

    def test_message_during_a_step_does_not_change_it(self, engine: Engine, rig: Rig) -> None:
        rig.with_model([ModelError("the endpoint is down")])
        run_id = asyncio.run(rig.begin())
        with pytest.raises(ModelError):
            asyncio.run(_drive(rig, run_id, engine))
        asyncio.run(rig.adapters.store.send_message(run_id, PersonWord.say, "look at the sum", version=0))
        model = rig.with_model([play.WRONG, play.RIGHT, play.CARD])
        assert asyncio.run(_drive(rig, run_id, engine)).result is Result.verified
        assert ["look at the sum" in str(ask.messages) for ask in model.questions[:2]] == [False, True]

    @pytest.mark.parametrize("word", [PersonWord.accept, PersonWord.reject])
    def test_run_with_a_question_waits_for_its_answer(
        self, engine: Engine, rig: Rig, word: PersonWord, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(STEPS, Step.decide, ask_before_accept)
        model = rig.with_model([play.RIGHT, play.CARD, play.RIGHT, play.CARD])
        tell = rig.adapters.store.send_message

        async def go() -> tuple[RunState, RunState]:
            run_id = await rig.begin()
            waiting_state = await _drive(rig, run_id, engine)
            assert await _drive(rig, run_id, engine) == waiting_state, "without an answer it waits on"
            await tell(run_id, PersonWord.accept, "", version=waiting_state.version - 1)
            assert await _drive(rig, run_id, engine) == waiting_state, "an answer to something else is none"
            await tell(
                run_id, word, "" if word is PersonWord.accept else "keep the sign", version=waiting_state.version
            )
            final_state = await _drive(rig, run_id, engine)
            assert (await replay(rig.adapters, run_id)).state == final_state
            return waiting_state, final_state

        waiting_state, final_state = asyncio.run(go())
        assert (waiting_state.status, waiting_state.result, waiting_state.reason) == (
            Status.needs_input,
            Result.needs_human,
            QUESTION,
        )
        trail = asyncio.run(rig.list_steps(waiting_state.run_id))
        assert trail[: len(WHOLE) + 1] == [*WHOLE, (1, Step.decide)]
        if word is PersonWord.accept:
            assert (final_state.status, final_state.result, len(trail)) == (
                Status.finished,
                Result.verified,
                len(WHOLE) + 1,
            )
        else:
            assert (final_state.status, final_state.result, final_state.now.number) == (
                Status.needs_input,
                Result.needs_human,
                2,
            )
            assert final_state.history[0].reason == "you rejected the patch: keep the sign"
            assert "keep the sign" in str([ask.messages for ask in model.questions if ask.question == "patch"][1])

    def test_attempt_may_ask_twice_and_each_answer_matches_its_question(
        self, engine: Engine, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(STEPS, Step.decide, ask_twice)
        rig.with_model([play.RIGHT, play.CARD])

        async def go() -> list[RunState]:
            run_id = await rig.begin(limits=Limits(attempts=1))
            states = [await _drive(rig, run_id, engine)]
            for word in (PersonWord.accept, PersonWord.reject):
                await rig.adapters.store.send_message(run_id, word, "", version=states[-1].version)
                states.append(await _drive(rig, run_id, engine))
                assert (await replay(rig.adapters, run_id)).state == states[-1]
            return states

        first_state, second_state, final_state = asyncio.run(go())
        assert [first_state.reason, second_state.reason] == [QUESTION, "really?"]
        assert (final_state.status, final_state.result) == (Status.finished, Result.unsolved)


QUESTION = "is that what you want?"


async def ask_before_accept(run: RunState, ports: Ports) -> Decision:
    """A `decide` that asks before it accepts."""
    decision = await decide(run, ports)
    if run.now.decide is None and decision.action is Action.accept:
        return Decision(action=Action.ask, reason=QUESTION, result=Result.needs_human)
    return decision


async def ask_twice(run: RunState, ports: Ports) -> Decision:
    """A `decide` that asks again after the answer yes."""
    decision = await ask_before_accept(run, ports)
    was_asked = run.now.decide is not None and run.now.decide.reason == QUESTION
    ask_again = was_asked and decision.action is Action.accept
    return Decision(action=Action.ask, reason="really?", result=Result.needs_human) if ask_again else decision


def _call_tool(name: str, arguments: Mapping[str, str]) -> str:
    """Write a tool call as text."""
    return f"```json\n{json.dumps({'tool': name, 'arguments': arguments})}\n```"


async def _drive_by_two(rig: Rig, run_id: str, engine: Engine) -> tuple[RunState, list[HaltReason]]:
    """Drive a run by a driver without a model and one without a sandbox. Return each reason to hand it over."""
    adapters = sandbox_adapters = replace(rig.adapters, model=None)
    model_adapters = replace(rig.adapters, sandbox=None)
    handovers: list[HaltReason] = []
    while True:
        report = await drive(adapters, await rig.adapters.store.claim(run_id), engine)
        if report.state.status is Status.finished:
            return report.state, handovers
        handovers.append(report.halt)
        adapters = model_adapters if report.halt is HaltReason.needs_think else sandbox_adapters


def _count_calls(rig: Rig, run_id: str) -> int:
    records = asyncio.run(rig.adapters.journal.list_records(run_id))
    return sum(record.kind != "handover" for record in records)


def mask_run(state: RunState) -> dict[str, object]:
    """Mask what differs from run to run in a state: its ID, durations and hand-overs."""
    text = state.model_dump_json().replace(state.run_id, "RUN")
    masked = RunState.model_validate_json(text)
    spend = masked.spend.model_copy(update={"seconds": 0.0, "handovers": 0})
    spec = masked.spec.model_copy(update={"parent": ""})
    return masked.model_copy(update={"spend": spend, "spec": spec, "seq": 0}).model_dump(mode="json")


def _run(rig: Rig, engine: Engine, limits: Limits | None = None) -> RunState:
    async def go() -> RunState:
        return await _drive(rig, await rig.begin(limits=limits), engine)

    return asyncio.run(go())


def _run_undisturbed(rig: Rig, engine: Engine, answers: Sequence[str | Exception]) -> RunState:
    twin = rig.twin()
    twin.with_model(answers)
    return _run(twin, engine)


async def _drive(rig: Rig, run_id: str, engine: Engine, until: Step | None = None) -> RunState:
    return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), engine, until)).state


async def _run_reference_loop(rig: Rig, limits: Limits) -> RunState:
    claim = await rig.adapters.store.claim(await rig.begin(limits=limits))
    return (await run_loop(claim.state, RunDriver(rig.adapters, claim.fence).advance)).state
