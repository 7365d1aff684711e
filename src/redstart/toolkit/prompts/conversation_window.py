"""Make room in a long conversation: the oldest tool results are shortened, rarely, and many at once."""

from __future__ import annotations

from redstart.core.chat import Message, Role
from redstart.ports.bundle import ProgressNote
from redstart.toolkit.prompts.fit_window import estimate_tokens

KEPT_CHARACTERS = 200
"""How much of a shortened tool result stays."""
_OLD = "(The rest of this old result is no longer shown.)"
_NEW = "(There is no room for the rest of this result: ask for less at once.)"


def shorten_conversation(note: ProgressNote, room: int, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Shorten old tool results if the messages exceed `room` tokens; a `room` of 0 means no limit.

    One cut makes the conversation half as long as may be, so that the next is far off: each cut changes the beginning
    of the conversation, which the provider then has to read anew. Results that the model has not seen yet are shortened
    only if they do not fit otherwise, and the last one never. `note` receives how many results were shortened.
    """
    total = sum(map(_estimate, messages))
    if not room or total <= room:
        return messages
    shortened = list(messages)
    count = 0
    seen = max((number for number, message in enumerate(messages) if message.role is Role.assistant), default=0)
    for number, message in enumerate(messages[:-1]):
        if total <= (room // 2 if number < seen else room):
            continue
        if message.role is not Role.tool or len(message.text) <= 2 * KEPT_CHARACTERS:
            continue
        text = f"{message.text[:KEPT_CHARACTERS]}\n{_OLD if number < seen else _NEW}"
        shortened[number] = message.model_copy(update={"text": text})
        total += _estimate(shortened[number]) - _estimate(message)
        count += 1
    if count:
        note(shortened=count)
    return tuple(shortened)


def _estimate(message: Message) -> int:
    return estimate_tokens(message.text) + sum(estimate_tokens(call.arguments) for call in message.calls)
