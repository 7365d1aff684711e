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


def recorded() -> Cassette:
    """Build a cassette of two turns of a conversation and the next attempt."""
    cassette = Cassette(model="openai:large").with_call(
        "1/patch/0", Answer(text="", model="openai:large", calls=(LOOK,)), (SYSTEM, CODE)
    )
    cassette = cassette.with_call(
        "1/patch/1", Answer(text="an edit", model="openai:small"), (SYSTEM, CODE, CALLED, SEEN)
    )
    again = Message(role=Role.user, text=CODE.text + "## Tried\nan edit\n")
    return cassette.with_call("2/patch/0", Answer(text="another", model="openai:large"), (SYSTEM, again))


def answer(cassette: Cassette, site: str, *messages: Message) -> Answer:
    return asyncio.run(ReplayModel(cassette).ask(Ask(question="patch", tier=Tier.strong, messages=messages, site=site)))


def miss(site: str, *messages: Message) -> str:
    with pytest.raises(ModelError) as caught:
        answer(recorded(), site, *messages)
    assert caught.value.remedy
    assert not caught.value.passing
    return str(caught.value)


def test_a_conversation_with_tools_is_answered_turn_by_turn() -> None:
    first = answer(recorded(), "1/patch/0", SYSTEM, CODE)
    assert (first.text, first.calls, first.fault, first.usage) == ("", (LOOK,), None, Usage())
    second = answer(recorded(), "1/patch/1", SYSTEM, CODE, CALLED, SEEN)
    assert (second.text, second.model) == ("an edit", "openai:small")


def test_the_file_is_read_line_by_line_and_gives_the_same_cassette(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    recorded().save(path)
    assert Cassette.load(path) == recorded()
    assert '"y = 2",\n' in path.read_text()
    written = json.loads(path.read_text())
    assert written["v"] == 3
    assert written["calls"]["1/patch/1"]["messages"][2]["calls"] == [LOOK.model_dump()]
    assert written["calls"]["1/patch/1"]["messages"][3]["reply_to"] == "c1"


def test_a_question_that_moved_in_the_run_still_finds_its_answer() -> None:
    assert answer(recorded(), "1/patch/4", SYSTEM, CODE, CALLED, SEEN).text == "an edit"


def test_the_site_decides_between_two_calls_that_were_asked_the_same() -> None:
    cassette = recorded().with_call("3/patch/0", Answer(text="later", model="openai:large"), (SYSTEM, CODE))
    assert answer(cassette, "3/patch/0", SYSTEM, CODE).text == "later"
    assert answer(cassette, "1/patch/0", SYSTEM, CODE).calls == (LOOK,)


def test_a_miss_shows_the_line_that_differs_and_not_the_rest() -> None:
    said = miss("1/patch/0", SYSTEM, CODE.model_copy(update={"text": CODE.text.replace("y = 2", "y = 5")}))
    assert "'1/patch/0': message 2 (user) differs" in said
    assert "\n-y = 2\n+y = 5\n" in said
    assert "## Code" not in said


def test_a_long_difference_is_cut() -> None:
    said = miss("1/patch/0", SYSTEM, Message(role=Role.user, text="\n".join(str(n) for n in range(500))))
    assert said.endswith("more lines")
    assert len(said) < 1000


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
def test_a_miss_names_the_first_message_that_differs(messages: tuple[Message, ...], expected: str) -> None:
    assert expected in miss("1/patch/1", *messages)


def test_a_call_where_none_was_recorded_is_compared_with_the_nearest_of_its_step() -> None:
    said = miss("1/patch/7", SYSTEM, CODE, CALLED, SEEN.model_copy(update={"text": "def b(): ..."}))
    assert "has no call '1/patch/7'; the nearest is '1/patch/1': message 4 (tool) differs" in said


def test_what_changes_with_every_run_of_the_tests_is_no_difference() -> None:
    def shown(address: str, took: str, folder: int) -> Message:
        text = f"<Box at {address}> in {took}s, /tmp/pytest-of-me/pytest-{folder}/a.txt; x = 1"
        return Message(role=Role.user, text=text)

    cassette = Cassette(model="m").with_call("1/patch/0", Answer(text="yes", model="m"), [shown("0x7f01", "0.12", 3)])
    assert answer(cassette, "1/patch/0", shown("0x7fab", "1.40", 12)).text == "yes"
    with pytest.raises(ModelError):
        answer(cassette, "1/patch/0", shown("0x7f01", "0.12", 3).model_copy(update={"text": "x = 2"}))
