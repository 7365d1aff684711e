"""The policy decides when a model reflects on a failed attempt; the next attempt and the card use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.core.chat import Ask, Tier
from redstart.core.learning import Reflection, ReflectionPolicy
from redstart.core.run import AttemptSummary, Limits, Mode, Result, RunSpec, RunState, Step
from redstart.core.run_preferences import QuestionOptions
from redstart.engines.inline import run_inline
from redstart.engines.replay import replay
from redstart.engines.step_driver import drive
from redstart.ports.model.tiers import ModelRoster
from redstart.testing.states import make_spec
from redstart.toolkit.prompts.sections import build_reflections_section
from support import rig as play
from support.rig import Rig, make_rig

LINE = "    return number + number + 1"
REFLECTION = json.dumps({"root_cause": "the flamingo", "what_failed": "the heron", "try_next": "the kestrel"})


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def build_wrong_patch(number: int, *, reflects: bool = True) -> str:
    """Build a different failing patch for each number, with a reflection on the previous attempt."""
    reflection = (
        f"ROOT CAUSE: cause-{number}\nWHAT FAILED: failed-{number}\nTRY NEXT: next-{number}\n" if reflects else ""
    )
    return reflection + play.block(LINE, f"    return number + {number + 40}")


def run(
    rig: Rig,
    reply: Callable[[Ask], str],
    policy: ReflectionPolicy,
    iterations: int = 4,
    asks: QuestionOptions | None = None,
) -> tuple[RunState, list[Ask]]:
    model = rig.with_model(reply)

    async def go() -> RunState:
        limits = Limits(attempts=iterations, tokens=None, usd=None)
        run_id = await rig.begin(limits=limits, asks=asks, reflect=policy)
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state

    return asyncio.run(go()), model.questions


def create_scripted_reply(*patches: str) -> Callable[[Ask], str]:
    remaining_patches = iter(patches)

    def reply(ask: Ask) -> str:
        canned_answers = {"reflect": REFLECTION, "remember": play.CARD, "plan": '{"summary": ""}'}
        return canned_answers[ask.question] if ask.question in canned_answers else next(remaining_patches)

    return reply


def list_prompts(asks: list[Ask], question: str) -> list[str]:
    return ["\n".join(message.text for message in ask.messages) for ask in asks if ask.question == question]


@pytest.mark.slow
@pytest.mark.parametrize("asks", [QuestionOptions(), QuestionOptions(brief=True)])
def test_reflection_in_an_answer_appears_in_the_next_prompt(rig: Rig, asks: QuestionOptions) -> None:
    script = create_scripted_reply(build_wrong_patch(1, reflects=False), build_wrong_patch(2), play.RIGHT)
    final_state, sent_asks = run(rig, script, ReflectionPolicy.never, asks=asks)
    assert final_state.result is Result.verified
    first_prompt, second_prompt, third_prompt = list_prompts(sent_asks, "patch")
    assert "cause-2" not in first_prompt + second_prompt
    for phrase in ("ROOT CAUSE: cause-2", "WHAT FAILED: failed-2", "TRY NEXT: next-2"):
        assert phrase in third_prompt


@pytest.mark.slow
def test_reflections_on_the_last_three_attempts_are_kept_in_full(rig: Rig) -> None:
    patches = [build_wrong_patch(1, reflects=False), *(build_wrong_patch(number) for number in range(2, 7)), play.RIGHT]
    _, sent_asks = run(rig, create_scripted_reply(*patches), ReflectionPolicy.never, iterations=7)
    last_prompt = list_prompts(sent_asks, "patch")[-1]
    # This is the question of attempt 7. It shows attempts 4 to 6; attempts 5 and 6 hold the reflections on 4 and 5.
    assert [number for number in range(1, 8) if f"cause-{number}" in last_prompt] == [5, 6]


@pytest.mark.slow
def test_card_prompt_includes_the_reflections(rig: Rig) -> None:
    script = create_scripted_reply(build_wrong_patch(1, reflects=False), build_wrong_patch(2), play.RIGHT)
    _, sent_asks = run(rig, script, ReflectionPolicy.never)
    assert "TRY NEXT: next-2" in list_prompts(sent_asks, "remember")[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ReflectionPolicy.never, []),
        (ReflectionPolicy.auto, [2]),
        (ReflectionPolicy.always, [1, 2, 3]),
    ],
)
def test_policy_decides_which_failed_attempts_get_a_reflection(
    rig: Rig, policy: ReflectionPolicy, expected: list[int]
) -> None:
    final_state, sent_asks = run(
        rig,
        create_scripted_reply(build_wrong_patch(1), build_wrong_patch(2), build_wrong_patch(3)),
        policy,
        iterations=3,
    )
    assert final_state.result is not Result.verified
    rows = asyncio.run(rig.adapters.store.list_steps(final_state.run_id))
    reflected = [row.attempt for row in rows if row.step is Step.reflect and "flamingo" in row.artifact]
    assert reflected == expected
    questions = [ask for ask in sent_asks if ask.question == "reflect"]
    assert [ask.tier for ask in questions] == [Tier.strong] * len(expected)


@pytest.mark.slow
def test_requested_reflection_is_shown_and_not_requested_again(rig: Rig) -> None:
    final_state, sent_asks = run(
        rig, create_scripted_reply(build_wrong_patch(1, reflects=False), play.RIGHT), ReflectionPolicy.always
    )
    assert final_state.result is Result.verified
    second_prompt = list_prompts(sent_asks, "patch")[1]
    for phrase in ("ROOT CAUSE: the flamingo", "WHAT FAILED: the heron", "TRY NEXT: the kestrel"):
        assert phrase in second_prompt
    assert "Before WHY" not in second_prompt


def test_small_model_writing_a_program_sees_only_explained_reflections() -> None:
    summary = AttemptSummary(number=1, reflection=Reflection(root_cause="a", try_next="b"))
    assert "TRY NEXT: b" in build_reflections_section([summary])
    assert build_reflections_section([AttemptSummary(number=1, reflection=Reflection(what_failed="only noted"))]) == ""


@pytest.mark.slow
def test_schema_bound_model_reflects_within_the_schema(rig: Rig) -> None:
    def answer(number: int) -> str:
        edit = {"path": play.CODE, "search": LINE, "text": f"    return number + {number}"}
        reflection_fields = {"root_cause": f"cause-{number}", "what_failed": "it", "try_next": f"next-{number}"}
        return json.dumps({"why": "a guess", "edits": [edit], **(reflection_fields if number > 50 else {})})

    script = create_scripted_reply(answer(50), answer(51), answer(52))
    _, sent_asks = run(rig, script, ReflectionPolicy.never, iterations=3, asks=QuestionOptions(shaped=True))
    shapes = [json.dumps(ask.shape) for ask in sent_asks if ask.question == "patch"]
    assert ["root_cause" in shape for shape in shapes] == [False, True, True]
    assert "TRY NEXT: next-51" in list_prompts(sent_asks, "patch")[2]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ReflectionPolicy)
def test_run_with_reflections_can_be_replayed(rig: Rig, policy: ReflectionPolicy) -> None:
    final_state, _ = run(rig, create_scripted_reply(build_wrong_patch(1), build_wrong_patch(2), play.RIGHT), policy)
    assert asyncio.run(replay(rig.adapters, final_state.run_id)).state == final_state


def test_model_configured_for_the_step_is_used() -> None:
    ask = Ask(question="reflect", tier=Tier.strong, messages=(), max_tokens=1)
    assert ModelRoster("a:fast", "a:strong").choose_models(ask) == ["a:strong"]
    assert ModelRoster("a:fast", "a:strong", steps={"reflect": "b:other"}).choose_models(ask) == ["b:other"]


def test_run_of_an_earlier_version_requests_no_reflection() -> None:
    old = json.loads(make_spec(mode=Mode.fix).model_dump_json())
    del old["reflect"]
    assert RunSpec.model_validate(old).reflect is ReflectionPolicy.never
