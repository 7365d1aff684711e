"""Every attempt recalls earlier failures by its own failure and shows them to the model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.core.chat import Ask
from redstart.core.failures import RecalledFailure
from redstart.core.learning import FailureRecord, NewMemories, ReflectionPolicy
from redstart.core.run import Limits, Result, RunState, Step
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.testing.states import failure
from redstart.toolkit.learning.failures import changed_lines
from redstart.toolkit.prompts.render import render
from redstart.toolkit.prompts.sections import tried_before
from support import rig as play
from support.rig import Rig, make_rig

LINE = "    return number + number + 1"
TITLE = "## Tried before and failed"
REFLECTION = json.dumps({"root_cause": "a constant too many", "what_failed": "", "try_next": "leave it out"})


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def run(
    rig: Rig,
    *patches: str | Callable[[str], str],
    policy: ReflectionPolicy = ReflectionPolicy.never,
    asks: QuestionOptions | None = None,
) -> tuple[RunState, list[str]]:
    """Run once with these answers to the questions for edits; return the final state and those questions."""
    left, prompts = iter(patches), list[str]()

    def reply(ask: Ask) -> str:
        plain = {"reflect": REFLECTION, "remember": play.CARD, "plan": '{"summary": ""}'}
        if ask.question in plain:
            return plain[ask.question]
        prompts.append("\n".join(message.text for message in ask.messages))
        answer = next(left)
        return answer if isinstance(answer, str) else answer(prompts[-1])

    rig.with_model(reply)

    async def go() -> RunState:
        limits = Limits(attempts=len(patches), tokens=None, usd=None)
        run_id = await rig.begin(limits=limits, reflect=policy, asks=asks)
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    return asyncio.run(go()), prompts


def records(rig: Rig, ended: RunState) -> list[FailureRecord]:
    rows = asyncio.run(rig.adapters.store.steps(ended.run_id))
    left = [NewMemories.model_validate_json(row.artifact) for row in rows if row.step is Step.remember]
    return [item.failure for item in left if item.failure is not None]


@pytest.mark.slow
def test_a_record_says_what_was_tried_how_it_failed_and_why(rig: Rig) -> None:
    ended, _ = run(rig, play.WRONG, policy=ReflectionPolicy.always)
    (left,) = records(rig, ended)
    assert (left.tried, left.files) == ("one too many", (play.CODE,))
    assert left.change.splitlines() == [
        play.CODE,
        "-    return number + number + 1",
        "+    return number + number + 2",
    ]
    assert "assert 6 == 4" in left.what_failed
    assert (left.root_cause, left.try_next) == ("a constant too many", "leave it out")


@pytest.mark.slow
@pytest.mark.parametrize("asks", [QuestionOptions(), QuestionOptions(brief=True)])
def test_what_failed_in_another_run_is_shown_from_the_first_attempt_on(rig: Rig, asks: QuestionOptions) -> None:
    first, (plain,) = run(rig, play.WRONG, asks=asks)
    assert TITLE not in plain
    second, prompts = run(rig, play.WORSE, play.RIGHT, asks=asks)
    assert second.result is Result.verified
    for prompt in prompts:
        assert TITLE in prompt
        assert f"in run {first.run_id}" in prompt
        assert "what was tried: one too many" in prompt
        assert "+    return number + number + 2" in prompt.partition(TITLE)[2]
    patches = [event.data for event in rig.events if event.name == "patch" and "failed_before" in event.data]
    assert [data["failed_before"] for data in patches] == [[f"{first.run_id}-1"]] * 2


@pytest.mark.slow
def test_what_this_run_tried_itself_is_not_told_twice(rig: Rig) -> None:
    _, prompts = run(rig, play.WRONG, play.WORSE, play.RIGHT)
    assert not any(TITLE in prompt for prompt in prompts)


@pytest.mark.slow
def test_every_attempt_recalls_by_its_own_failure(rig: Rig) -> None:
    """An earlier run fixed the failure `assert 6 == 4`; a wrong patch leads another run to the same failure."""
    worse = play.BUGGY.replace("+ 1", "+ 2")
    usual, play.BUGGY = play.BUGGY, worse
    try:
        fixed, _ = run(rig, play.block("    return number + number + 2", "    return number + number"))
    finally:
        play.BUGGY = usual
    assert fixed.result is Result.verified
    ended, (first, second) = run(rig, play.WRONG, play.RIGHT)
    assert ended.result is Result.verified
    mark = f"memory {fixed.run_id}-1"
    same = "the same failure, fixed before"
    assert same not in first
    assert same in second
    assert mark in second
    events = [event.data for event in rig.events if event.name == "patch" and event.run == ended.run_id and event.data]
    assert ended.history[0].failure is not None
    assert events


@pytest.mark.slow
def test_a_run_that_was_shown_failures_can_be_replayed(rig: Rig) -> None:
    run(rig, play.WRONG)
    ended, _ = run(rig, play.WORSE, play.RIGHT)
    run(rig, play.block(LINE, "    return number * 9"))
    assert asyncio.run(replay(rig.adapters, ended.run_id)).state == ended


def test_a_record_of_before_can_still_be_read_and_shown() -> None:
    old = '{"id": "r-1", "error_signature": "k", "family": "f", "test_id": "t", "patch": "p", "what_failed": "it did"}'
    record = FailureRecord.model_validate_json(old)
    assert (record.tried, record.change, record.likeness) == ("", "", "t\nit did")


def test_only_lines_that_a_diff_changes_are_kept() -> None:
    diff = (
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n"
        "diff --git a/y.py b/y.py\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-d\n+e\n"
    )
    assert changed_lines(diff).splitlines() == ["x.py", "--- b", "+++ c", "y.py", "-d", "+e"]


@pytest.mark.parametrize("question", ["patch", "create/patch", "brief/patch", "brief/create"])
def test_every_question_for_edits_has_a_place_for_what_failed_before(question: str) -> None:
    """A cycle of `improve` asks the same question as `fix`."""
    told = RecalledFailure(record=failure("f-1", tried="a default of None"), repo="shop", source="signature")
    text = render(question, failed=tried_before([told], "shop"))[-1].text
    assert TITLE in text
    assert "what was tried: a default of None" in text


def test_lines_of_code_stay_in_their_repo() -> None:
    told = RecalledFailure(record=failure("f-1", change="+    secret_line()"), repo="shop", source="signature")
    assert "secret_line" in tried_before([told], "shop")
    assert "secret_line" not in tried_before([told], "bank")
    assert tried_before([], "shop") == ""
