from __future__ import annotations

from pydantic import JsonValue

from redstart.core.chat import Message, Role
from redstart.toolkit.prompts.conversation_window import KEPT_CHARACTERS, shorten_conversation
from redstart.toolkit.prompts.fit_window import CHARACTERS_A_TOKEN


def build_conversation(*lengths: int) -> tuple[Message, ...]:
    """Return a question, and a call with a result of each length."""
    messages = [Message(role=Role.system, text="s" * 3000), Message(role=Role.user, text="u" * 3000)]
    for number, length in enumerate(lengths):
        messages.append(Message(role=Role.assistant, text=f"call {number}"))
        messages.append(Message(role=Role.tool, text="r" * length, reply_to=str(number)))
    return tuple(messages)


def shorten(room: int, messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], list[dict[str, JsonValue]]]:
    notes: list[dict[str, JsonValue]] = []

    def note(**data: JsonValue) -> None:
        notes.append(data)

    return shorten_conversation(note, room, messages), notes


def count_tokens(messages: tuple[Message, ...]) -> float:
    return sum(len(message.text) for message in messages) / CHARACTERS_A_TOKEN


def test_conversation_that_fits_is_not_touched():
    messages = build_conversation(3000, 3000)
    assert shorten(5000, messages) == (messages, [])
    assert shorten(0, messages) == (messages, [])


def test_one_cut_halves_a_conversation_that_is_too_long():
    messages = build_conversation(*[3000] * 9)
    shortened, notes = shorten(10_000, messages)
    assert count_tokens(messages) > 10_000
    assert 4000 < count_tokens(shortened) <= 5100
    changed = [number for number, pair in enumerate(zip(messages, shortened, strict=True)) if pair[0] != pair[1]]
    assert [messages[number].role for number in changed] == [Role.tool] * len(changed)
    assert changed == [3 + 2 * number for number in range(len(changed))], "the oldest first"
    assert notes == [{"shortened": len(changed)}]
    assert shortened[3].text.startswith("r" * KEPT_CHARACTERS + "\n(")
    assert shorten(10_000, shortened) == (shortened, [])


def test_newest_result_and_the_question_stay_whole():
    messages = build_conversation(60_000)
    assert shorten(1000, messages) == (messages, [])


def test_results_that_the_model_has_not_seen_stay_while_they_fit():
    *messages, last = build_conversation(*[3000] * 9)
    unseen = [last.model_copy(update={"reply_to": f"new {number}"}) for number in range(4)]
    conversation = (*messages, *unseen)
    shortened, _ = shorten(12_000, conversation)
    assert shortened[-4:] == conversation[-4:]
    assert all(message.text != "r" * 3000 for message in shortened[:-4])
    crowded, _ = shorten(6_000, conversation)
    assert count_tokens(crowded) <= 6_000
    assert crowded[-1] == last.model_copy(update={"reply_to": "new 3"})
    assert crowded[-4].text.endswith("(There is no room for the rest of this result: ask for less at once.)")
