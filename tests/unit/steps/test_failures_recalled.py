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
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.testing.states import make_failure
from redstart.toolkit.learning.failures import extract_changed_lines
from redstart.toolkit.prompts.render import render
from redstart.toolkit.prompts.sections import build_failed_before_section
from support import rig as play
from support.rig import Rig, make_rig

LINE = "    return number + number + 1"
TITLE = "## Tried before and failed"
REFLECTION = json.dumps({"root_cause": "a constant too many", "what_failed": "", "try_next": "leave it out"})


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def run(
    rig: Rig,
    *patches: str | Callable[[str], str],
    policy: ReflectionPolicy = ReflectionPolicy.never,
    asks: QuestionOptions | None = None,
) -> tuple[RunState, list[str]]:
    """Run once with these answers to the questions for edits; return the final state and those questions."""
    remaining_patches, prompts = iter(patches), list[str]()

    def reply(ask: Ask) -> str:
        canned_answers = {"reflect": REFLECTION, "remember": play.CARD, "plan": '{"summary": ""}'}
        if ask.question in canned_answers:
            return canned_answers[ask.question]
        prompts.append("\n".join(message.text for message in ask.messages))
        answer = next(remaining_patches)
        return answer if isinstance(answer, str) else answer(prompts[-1])

    rig.with_model(reply)

    async def go() -> RunState:
        limits = Limits(attempts=len(patches), tokens=None, usd=None)
        run_id = await rig.begin(limits=limits, reflect=policy, asks=asks)
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state

    return asyncio.run(go()), prompts


def load_failure_records(rig: Rig, ended: RunState) -> list[FailureRecord]:
    rows = asyncio.run(rig.adapters.store.list_steps(ended.run_id))
    memories = [NewMemories.model_validate_json(row.artifact) for row in rows if row.step is Step.remember]
    return [item.failure for item in memories if item.failure is not None]


@pytest.mark.slow
def test_record_holds_the_change_the_failure_and_the_reason(rig: Rig) -> None:
    final_state, _ = run(rig, play.WRONG, policy=ReflectionPolicy.always)
    (failure_record,) = load_failure_records(rig, final_state)
    assert (failure_record.tried, failure_record.files) == ("one too many", (play.CODE,))
    assert failure_record.change.splitlines() == [
        play.CODE,
        "-    return number + number + 1",
        "+    return number + number + 2",
    ]
    assert "assert 6 == 4" in failure_record.what_failed
    assert (failure_record.root_cause, failure_record.try_next) == ("a constant too many", "leave it out")


@pytest.mark.slow
@pytest.mark.parametrize("asks", [QuestionOptions(), QuestionOptions(brief=True)])
def test_failure_of_another_run_is_shown_from_the_first_attempt(rig: Rig, asks: QuestionOptions) -> None:
    first_state, (first_prompt,) = run(rig, play.WRONG, asks=asks)
    assert TITLE not in first_prompt
    second_state, prompts = run(rig, play.WORSE, play.RIGHT, asks=asks)
    assert second_state.result is Result.verified
    for prompt in prompts:
        assert TITLE in prompt
        assert f"in run {first_state.run_id}" in prompt
        assert "what was tried: one too many" in prompt
        assert "+    return number + number + 2" in prompt.partition(TITLE)[2]
    patches = [event.data for event in rig.events if event.name == "patch" and "failed_before" in event.data]
    assert [data["failed_before"] for data in patches] == [[f"{first_state.run_id}-1"]] * 2


@pytest.mark.slow
def test_failures_of_the_same_run_are_not_repeated(rig: Rig) -> None:
    _, prompts = run(rig, play.WRONG, play.WORSE, play.RIGHT)
    assert not any(TITLE in prompt for prompt in prompts)


@pytest.mark.slow
def test_each_attempt_recalls_by_its_own_failure(rig: Rig) -> None:
    """An earlier run fixed the failure `assert 6 == 4`; a wrong patch leads another run to the same failure."""
    worse_code = play.BUGGY.replace("+ 1", "+ 2")
    original_code, play.BUGGY = play.BUGGY, worse_code
    try:
        fixed, _ = run(rig, play.block("    return number + number + 2", "    return number + number"))
    finally:
        play.BUGGY = original_code
    assert fixed.result is Result.verified
    final_state, (first_prompt, second_prompt) = run(rig, play.WRONG, play.RIGHT)
    assert final_state.result is Result.verified
    mark = f"memory {fixed.run_id}-1"
    label = "the same failure, fixed before"
    assert label not in first_prompt
    assert label in second_prompt
    assert mark in second_prompt
    events = [
        event.data for event in rig.events if event.name == "patch" and event.run == final_state.run_id and event.data
    ]
    assert final_state.history[0].failure is not None
    assert events


@pytest.mark.slow
def test_run_with_recalled_failures_can_be_replayed(rig: Rig) -> None:
    run(rig, play.WRONG)
    final_state, _ = run(rig, play.WORSE, play.RIGHT)
    run(rig, play.block(LINE, "    return number * 9"))
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


def test_older_record_can_be_read_and_shown() -> None:
    old = '{"id": "r-1", "error_signature": "k", "family": "f", "test_id": "t", "patch": "p", "what_failed": "it did"}'
    record = FailureRecord.model_validate_json(old)
    assert (record.tried, record.change, record.likeness) == ("", "", "t\nit did")


def test_only_changed_lines_of_a_diff_are_kept() -> None:
    diff = (
        "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n--- b\n+++ c\n"
        "diff --git a/y.py b/y.py\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-d\n+e\n"
    )
    assert extract_changed_lines(diff).splitlines() == ["x.py", "--- b", "+++ c", "y.py", "-d", "+e"]


@pytest.mark.parametrize("question", ["patch", "create/patch", "brief/patch", "brief/create"])
def test_every_edit_prompt_has_a_section_for_earlier_failures(question: str) -> None:
    """A cycle of `improve` asks the same question as `fix`."""
    recalled_failure = RecalledFailure(
        record=make_failure("f-1", tried="a default of None"), repo="shop", source="signature"
    )
    text = render(question, failed=build_failed_before_section([recalled_failure], "shop"))[-1].text
    assert TITLE in text
    assert "what was tried: a default of None" in text


def test_code_lines_stay_in_their_repo() -> None:
    recalled_failure = RecalledFailure(
        record=make_failure("f-1", change="+    secret_line()"), repo="shop", source="signature"
    )
    assert "secret_line" in build_failed_before_section([recalled_failure], "shop")
    assert "secret_line" not in build_failed_before_section([recalled_failure], "bank")
    assert build_failed_before_section([], "shop") == ""
