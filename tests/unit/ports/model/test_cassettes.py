"""Cassettes that record questions: the same question gets its answer, a different one an error with the difference."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from redstart.core.chat import Answer, Ask, Message, Role, Tier, ToolCall, Usage
from redstart.core.errors import ModelError
from redstart.ports.model.replay import Cassette, ReplayModel

SYSTEM = Message(role=Role.system, text="redstart question: patch\nYou repair code.")
CODE = Message(role=Role.user, text="## Code\nx = 1\ny = 2\nz = 3\n")
LOOK = ToolCall(id="c1", name="read", arguments='{"path": "a.py"}')
CALLED = Message(role=Role.assistant, text="", calls=(LOOK,))
SEEN = Message(role=Role.tool, text="def a(): ...", reply_to="c1")


def create_cassette() -> Cassette:
    """Build a cassette of two turns of a conversation and the next attempt."""
    cassette = Cassette(model="openai:large").with_call(
        "1/patch/0", Answer(text="", model="openai:large", calls=(LOOK,)), (SYSTEM, CODE)
    )
    cassette = cassette.with_call(
        "1/patch/1", Answer(text="an edit", model="openai:small"), (SYSTEM, CODE, CALLED, SEEN)
    )
    retry_message = Message(role=Role.user, text=CODE.text + "## Tried\nan edit\n")
    return cassette.with_call("2/patch/0", Answer(text="another", model="openai:large"), (SYSTEM, retry_message))


def answer(cassette: Cassette, site: str, *messages: Message) -> Answer:
    return asyncio.run(ReplayModel(cassette).ask(Ask(question="patch", tier=Tier.strong, messages=messages, site=site)))


def get_miss_message(site: str, *messages: Message) -> str:
    with pytest.raises(ModelError) as caught:
        answer(create_cassette(), site, *messages)
    assert caught.value.remedy
    assert not caught.value.is_transient
    return str(caught.value)


def test_conversation_with_tools_is_answered_turn_by_turn() -> None:
    first_answer = answer(create_cassette(), "1/patch/0", SYSTEM, CODE)
    assert (first_answer.text, first_answer.calls, first_answer.fault, first_answer.usage) == (
        "",
        (LOOK,),
        None,
        Usage(),
    )
    second_answer = answer(create_cassette(), "1/patch/1", SYSTEM, CODE, CALLED, SEEN)
    assert (second_answer.text, second_answer.model) == ("an edit", "openai:small")


def test_saved_cassette_is_readable_and_loads_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    create_cassette().save(path)
    assert Cassette.load(path) == create_cassette()
    assert '"y = 2",\n' in path.read_text()
    saved_data = json.loads(path.read_text())
    assert saved_data["v"] == 3
    assert saved_data["calls"]["1/patch/1"]["messages"][2]["calls"] == [LOOK.model_dump()]
    assert saved_data["calls"]["1/patch/1"]["messages"][3]["reply_to"] == "c1"


def test_question_that_moved_within_the_run_still_finds_its_answer() -> None:
    assert answer(create_cassette(), "1/patch/4", SYSTEM, CODE, CALLED, SEEN).text == "an edit"


def test_site_decides_between_two_identical_calls() -> None:
    cassette = create_cassette().with_call("3/patch/0", Answer(text="later", model="openai:large"), (SYSTEM, CODE))
    assert answer(cassette, "3/patch/0", SYSTEM, CODE).text == "later"
    assert answer(cassette, "1/patch/0", SYSTEM, CODE).calls == (LOOK,)


def test_miss_shows_only_the_line_that_differs() -> None:
    message = get_miss_message(
        "1/patch/0", SYSTEM, CODE.model_copy(update={"text": CODE.text.replace("y = 2", "y = 5")})
    )
    assert "'1/patch/0': message 2 (user) differs" in message
    assert "\n-y = 2\n+y = 5\n" in message
    assert "## Code" not in message


def test_long_difference_is_truncated() -> None:
    message = get_miss_message("1/patch/0", SYSTEM, Message(role=Role.user, text="\n".join(str(n) for n in range(500))))
    assert message.endswith("more lines")
    assert len(message) < 1000


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((SYSTEM.model_copy(update={"text": "You sing."}), CODE), "message 1 (system) differs"),
        ((SYSTEM, CODE, CALLED), "message 4 (tool) was recorded but is missing now"),
        ((SYSTEM, CODE, CALLED, SEEN, CODE), "message 5 (user) is not in the recording: ## Code"),
        ((SYSTEM, CODE, CODE, SEEN), "message 3 has role user, but was recorded with role assistant"),
        (
            (SYSTEM, CODE, CALLED.model_copy(update={"calls": (LOOK.model_copy(update={"name": "search"}),)}), SEEN),
            "+calls search",
        ),
        ((SYSTEM, CODE, CALLED, SEEN.model_copy(update={"reply_to": "c2"})), "+in reply to c2"),
    ],
)
def test_miss_names_the_first_message_that_differs(messages: tuple[Message, ...], expected: str) -> None:
    assert expected in get_miss_message("1/patch/1", *messages)


def test_unrecorded_call_is_compared_with_the_nearest_of_its_step() -> None:
    message = get_miss_message("1/patch/7", SYSTEM, CODE, CALLED, SEEN.model_copy(update={"text": "def b(): ..."}))
    assert "has no call '1/patch/7'; the nearest is '1/patch/1': message 4 (tool) differs" in message


def test_volatile_values_are_ignored_when_matching() -> None:
    def create_message(address: str, seconds: str, folder: int) -> Message:
        text = f"<Box at {address}> in {seconds}s, /tmp/pytest-of-me/pytest-{folder}/a.txt; x = 1"
        return Message(role=Role.user, text=text)

    cassette = Cassette(model="m").with_call(
        "1/patch/0", Answer(text="yes", model="m"), [create_message("0x7f01", "0.12", 3)]
    )
    assert answer(cassette, "1/patch/0", create_message("0x7fab", "1.40", 12)).text == "yes"
    with pytest.raises(ModelError):
        answer(cassette, "1/patch/0", create_message("0x7f01", "0.12", 3).model_copy(update={"text": "x = 2"}))
