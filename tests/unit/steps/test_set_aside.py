"""Failing tests that a model sets aside: a person decides, or the run ends partial; the other targets are proven."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from redstart.app.exit_codes import exit_code
from redstart.core.chat import Ask
from redstart.core.run import Action, Limits, Result, RunState, Status
from redstart.core.run_preferences import QuestionOptions
from redstart.core.set_aside import SetAsidePolicy
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.ports.store.port.runs import PersonWord
from support import rig as play
from support.rig import CODE, GREEN, RED, TESTS, Rig, altered_ids, create_neutral_result, make_rig

pytestmark = pytest.mark.slow

OTHER = f"{TESTS}::test_colors"
CLAIM = f"NOT THIS CODE: {OTHER}\nThe installed Pygments splits tokens in another way.\n"
FIX = play.block("    return number + number + 1", "    return number + number")
ALL = f"NOT THIS CODE: {OTHER}, {RED}\nBoth need another Pygments.\n"
OFFER = "NOT THIS CODE: ids of the tests"
Messages = Callable[[str], dict[str, str]]


def fail_by_code(code: str) -> dict[str, str]:
    """One test fails for the code, one whatever the code is."""
    return {RED: "" if "+ 1" not in code else "assert 5 == 4", OTHER: "assert 'a' == 'b'", GREEN: ""}


def play_suite(rig: Rig, get_messages: Messages) -> None:
    def run(execution: Execution) -> Completed:
        code = (rig.trees.read(execution.snapshot, CODE) or b"").decode()
        if "pytest" not in " ".join(execution.argv):
            return create_neutral_result(4 if "+ 1" not in code else 5)
        altered = altered_ids((rig.trees.read(execution.snapshot, TESTS) or b"").decode())
        selected = [argument for argument in execution.argv if "::" in argument]
        messages = {
            id_: message or ("assert False" if id_ in altered else "")
            for id_, message in get_messages(code).items()
            if not selected or id_ in selected
        }
        cases = "".join(
            f'<testcase classname="test_calc" name="{id_.rpartition("::")[2]}" file="{TESTS}" time="0.01">'
            + (f"<failure message={quoteattr(message)}>{message}</failure>" if message else "")
            + "</testcase>"
            for id_, message in messages.items()
        )
        xml = f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
        failed = any(messages.values())
        cause = ExitCause.failed if failed else ExitCause.ok
        return Completed(exit_code=int(failed), cause=cause, output="", files={"junit.xml": xml}, wall=0.01)

    rig.with_suite(run)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    play_suite(test_rig, fail_by_code)
    yield test_rig
    test_rig.trees.close()


class Played:
    """A run with scripted answers; `answer` continues it with a person's answer."""

    def __init__(self, rig: Rig, *answers: str, policy: SetAsidePolicy, attempts: int = 3, brief: bool = False) -> None:
        remaining = list(answers)
        self.questions: list[str] = []
        self._rig = rig

        def reply(ask: Ask) -> str:
            if ask.question != "patch":
                return play.CARD
            self.questions.append("\n".join(message.text for message in ask.messages))
            return remaining.pop(0) if len(remaining) > 1 else remaining[0]

        rig.with_model(reply)

        async def begin() -> str:
            asks = QuestionOptions(brief=brief)
            return await rig.begin(limits=Limits(attempts=attempts), set_aside=policy, asks=asks)

        self.run_id = asyncio.run(begin())
        self.state = self._drive()

    def answer(self, word: PersonWord, text: str = "") -> RunState:
        asyncio.run(self._rig.adapters.store.send_message(self.run_id, word, text, version=self.state.version))
        self.state = self._drive()
        return self.state

    def _drive(self) -> RunState:
        async def go() -> RunState:
            claim = await self._rig.adapters.store.claim(self.run_id)
            return (await drive(self._rig.adapters, claim, run_inline)).state

        return asyncio.run(go())


def list_fixed(state: RunState) -> tuple[str, ...]:
    assert state.now.test is not None
    assert state.now.test.verdict.is_green
    return state.now.test.verdict.fixed.first


def test_nobody_to_ask_and_edits_for_the_rest_end_partial(rig):
    played = Played(rig, f"{CLAIM}\n{FIX}", policy=SetAsidePolicy.alone)
    assert (played.state.result, exit_code(played.state)) == (Result.partial, 9)
    assert list_fixed(played.state) == (RED,)
    assert "1 failing test now passes" in played.state.reason
    assert "the model: The installed Pygments splits tokens" in played.state.reason
    assert played.state.now.remember is not None
    assert played.state.now.remember.card is None, "the first failure may be the one that was set aside"
    assert asyncio.run(replay(rig.adapters, played.run_id)).state == played.state


def test_nobody_to_ask_and_no_edits_continues_with_the_other_target(rig):
    played = Played(rig, CLAIM, FIX, policy=SetAsidePolicy.alone, attempts=1)
    assert played.state.result is Result.partial, "what is set aside is no attempt at the fix"
    assert list_fixed(played.state) == (RED,)
    assert OTHER in played.questions[0]
    assert f"id: {OTHER}" not in played.questions[1]


def test_a_person_is_asked_and_agrees(rig):
    played = Played(rig, CLAIM, FIX, policy=SetAsidePolicy.ask)
    decision = played.state.now.decide
    assert (played.state.status, decision and decision.action) == (Status.needs_input, Action.ask)
    assert OTHER in played.state.reason
    assert "splits tokens" in played.state.reason
    assert played.answer(PersonWord.accept).result is Result.verified
    assert list_fixed(played.state) == (RED,)
    assert "set aside" in played.state.reason
    assert [entry.approved for entry in played.state.set_aside] == [True]


def test_a_person_who_declines_is_quoted_to_the_model(rig):
    played = Played(rig, CLAIM, FIX, policy=SetAsidePolicy.ask, attempts=2)
    state = played.answer(PersonWord.reject, "we pin Pygments")
    assert state.result is Result.unsolved
    assert f"NOT THIS CODE was declined: the code must pass {OTHER}" in played.questions[1]
    assert f"id: {OTHER}" in played.questions[1]
    assert not state.set_aside


def test_a_person_is_asked_about_a_patch_that_sets_tests_aside(rig):
    played = Played(rig, f"{CLAIM}\n{FIX}", policy=SetAsidePolicy.ask)
    assert played.state.status is Status.needs_input
    assert "the patch needs your approval: 1 failing test now passes" in played.state.reason
    assert played.answer(PersonWord.accept).result is Result.verified


def test_a_partial_result_is_verified_once_a_person_accepts_it(rig):
    played = Played(rig, f"{CLAIM}\n{FIX}", policy=SetAsidePolicy.alone)
    state = played.answer(PersonWord.accept)
    assert (state.result, exit_code(state)) == (Result.verified, 0)
    assert all(entry.approved for entry in state.set_aside)


@pytest.mark.parametrize(
    ("policy", "result"), [(SetAsidePolicy.alone, Result.unsolved), (SetAsidePolicy.ask, Result.environment)]
)
def test_nothing_left_to_fix_is_never_partial(rig, policy, result):
    played = Played(rig, f"{ALL}\n{FIX}", policy=policy)
    if policy is SetAsidePolicy.ask:
        played.answer(PersonWord.accept)
    assert (played.state.result, len(played.questions)) == (result, 1)
    assert "Both need another Pygments" in played.state.reason
    assert played.state.now.made is None


def test_every_target_without_a_reason_is_refused(rig):
    played = Played(rig, f"NOT THIS CODE: {OTHER}, {RED}\n", policy=SetAsidePolicy.alone, attempts=1)
    assert played.state.result is Result.unsolved
    assert played.state.now.patch is not None
    assert "gives no reason" in played.state.now.patch.fault


@pytest.mark.parametrize("other", ["", "assert 'c' == 'd'"], ids=["passes", "fails in another way"])
def test_patch_that_changes_a_test_set_aside_is_not_green(rig, other):
    play_suite(rig, lambda code: {**fail_by_code(code), **({} if "+ 1" in code else {OTHER: other})})
    played = Played(rig, f"{CLAIM}\n{FIX}", policy=SetAsidePolicy.alone, attempts=2)
    assert played.state.result is Result.unsolved
    assert played.state.now.test is not None
    assert played.state.now.test.verdict.changed.first == (OTHER,)
    assert f"NOT THIS CODE is wrong: the edits change how {OTHER} ends" in played.questions[1]


def test_test_set_aside_earlier_becomes_a_target_again_if_a_patch_makes_it_pass(rig):
    play_suite(rig, lambda code: {**fail_by_code(code), **({} if "+ 1" in code else {OTHER: ""})})
    played = Played(
        rig, CLAIM, FIX, FIX.replace("number + number\n>", "number + number  # right\n>"), policy=SetAsidePolicy.alone
    )
    assert played.state.result is Result.verified
    assert set(list_fixed(played.state)) == {RED, OTHER}
    assert not played.state.set_aside


@pytest.mark.parametrize(
    ("policy", "brief", "offered"),
    [
        (SetAsidePolicy.alone, False, True),
        (SetAsidePolicy.ask, False, True),
        (SetAsidePolicy.alone, True, False),
        (SetAsidePolicy.all_red, False, False),
        (SetAsidePolicy.never, False, False),
    ],
)
def test_form_is_offered_only_where_it_counts(rig, policy, brief, offered):
    played = Played(rig, f"{CLAIM}\n{FIX}", policy=policy, attempts=1, brief=brief)
    assert (OFFER in played.questions[0]) is offered
    assert (played.state.result in (Result.partial, Result.needs_human)) is offered
