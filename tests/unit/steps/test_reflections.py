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
from redstart.core.wishes import QuestionOptions
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from redstart.engines.replay import replay
from redstart.ports.model.tiers import ModelRoster
from redstart.testing.states import spec
from redstart.toolkit.prompts.sections import learned
from support import rig as play
from support.rig import Rig, make_rig

LINE = "    return number + number + 1"
REFLECTION = json.dumps({"root_cause": "the flamingo", "what_failed": "the heron", "try_next": "the kestrel"})


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def wrong(number: int, *, reflects: bool = True) -> str:
    """Build a different failing patch for each number, with a reflection on the previous attempt."""
    said = f"ROOT CAUSE: cause-{number}\nWHAT FAILED: failed-{number}\nTRY NEXT: next-{number}\n" if reflects else ""
    return said + play.block(LINE, f"    return number + {number + 40}")


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
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    return asyncio.run(go()), model.asks


def by_script(*patches: str) -> Callable[[Ask], str]:
    left = iter(patches)

    def reply(ask: Ask) -> str:
        plain = {"reflect": REFLECTION, "remember": play.CARD, "plan": '{"summary": ""}'}
        return plain[ask.question] if ask.question in plain else next(left)

    return reply


def prompts(asks: list[Ask], question: str) -> list[str]:
    return ["\n".join(message.text for message in ask.messages) for ask in asks if ask.question == question]


@pytest.mark.slow
@pytest.mark.parametrize("asks", [QuestionOptions(), QuestionOptions(brief=True)])
def test_what_an_answer_says_of_the_last_attempt_is_in_the_next_question(rig: Rig, asks: QuestionOptions) -> None:
    script = by_script(wrong(1, reflects=False), wrong(2), play.RIGHT)
    ended, asked = run(rig, script, ReflectionPolicy.never, asks=asks)
    assert ended.result is Result.verified
    first, second, third = prompts(asked, "patch")
    assert "cause-2" not in first + second
    for said in ("ROOT CAUSE: cause-2", "WHAT FAILED: failed-2", "TRY NEXT: next-2"):
        assert said in third


@pytest.mark.slow
def test_the_reflections_on_the_last_three_attempts_are_carried_in_full(rig: Rig) -> None:
    patches = [wrong(1, reflects=False), *(wrong(number) for number in range(2, 7)), play.RIGHT]
    _, asked = run(rig, by_script(*patches), ReflectionPolicy.never, iterations=7)
    last = prompts(asked, "patch")[-1]
    # This is the question of attempt 7. It shows attempts 4 to 6; attempts 5 and 6 hold the reflections on 4 and 5.
    assert [number for number in range(1, 8) if f"cause-{number}" in last] == [5, 6]


@pytest.mark.slow
def test_the_card_is_written_with_the_reflections_in_view(rig: Rig) -> None:
    script = by_script(wrong(1, reflects=False), wrong(2), play.RIGHT)
    _, asked = run(rig, script, ReflectionPolicy.never)
    assert "TRY NEXT: next-2" in prompts(asked, "remember")[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ReflectionPolicy.never, []),
        (ReflectionPolicy.auto, [2]),
        (ReflectionPolicy.always, [1, 2, 3]),
    ],
)
def test_the_policy_says_after_which_failed_attempts_a_model_is_asked(
    rig: Rig, policy: ReflectionPolicy, expected: list[int]
) -> None:
    ended, asked = run(rig, by_script(wrong(1), wrong(2), wrong(3)), policy, iterations=3)
    assert ended.result is not Result.verified
    rows = asyncio.run(rig.adapters.store.steps(ended.run_id))
    reflected = [row.attempt for row in rows if row.step is Step.reflect and "flamingo" in row.artifact]
    assert reflected == expected
    questions = [ask for ask in asked if ask.question == "reflect"]
    assert [ask.tier for ask in questions] == [Tier.strong] * len(expected)


@pytest.mark.slow
def test_a_reflection_that_was_asked_for_is_shown_and_not_asked_for_again(rig: Rig) -> None:
    ended, asked = run(rig, by_script(wrong(1, reflects=False), play.RIGHT), ReflectionPolicy.always)
    assert ended.result is Result.verified
    second = prompts(asked, "patch")[1]
    for said in ("ROOT CAUSE: the flamingo", "WHAT FAILED: the heron", "TRY NEXT: the kestrel"):
        assert said in second
    assert "Before WHY" not in second


def test_a_small_model_that_writes_a_program_is_shown_explanations_alone() -> None:
    kept = AttemptSummary(number=1, reflection=Reflection(root_cause="a", try_next="b"))
    assert "TRY NEXT: b" in learned([kept])
    assert learned([AttemptSummary(number=1, reflection=Reflection(what_failed="only noted"))]) == ""


@pytest.mark.slow
def test_a_model_that_is_held_to_a_shape_reflects_in_it(rig: Rig) -> None:
    def answer(number: int) -> str:
        edit = {"path": play.CODE, "search": LINE, "text": f"    return number + {number}"}
        said = {"root_cause": f"cause-{number}", "what_failed": "it", "try_next": f"next-{number}"}
        return json.dumps({"why": "a guess", "edits": [edit], **(said if number > 50 else {})})

    script = by_script(answer(50), answer(51), answer(52))
    _, asked = run(rig, script, ReflectionPolicy.never, iterations=3, asks=QuestionOptions(shaped=True))
    shapes = [json.dumps(ask.shape) for ask in asked if ask.question == "patch"]
    assert ["root_cause" in shape for shape in shapes] == [False, True, True]
    assert "TRY NEXT: next-51" in prompts(asked, "patch")[2]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ReflectionPolicy)
def test_a_run_that_reflected_can_be_replayed(rig: Rig, policy: ReflectionPolicy) -> None:
    ended, _ = run(rig, by_script(wrong(1), wrong(2), play.RIGHT), policy)
    assert asyncio.run(replay(rig.adapters, ended.run_id)).state == ended


def test_the_model_named_for_the_step_is_asked() -> None:
    ask = Ask(question="reflect", tier=Tier.strong, messages=(), max_tokens=1)
    assert ModelRoster("a:fast", "a:strong").chosen(ask) == ["a:strong"]
    assert ModelRoster("a:fast", "a:strong", steps={"reflect": "b:other"}).chosen(ask) == ["b:other"]


def test_a_run_of_before_asks_nobody() -> None:
    old = json.loads(spec(mode=Mode.fix).model_dump_json())
    del old["reflect"]
    assert RunSpec.model_validate(old).reflect is ReflectionPolicy.never
