"""A model that never hears a secret: every message is masked before it is sent."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.chat import Answer, Ask, Message
from redstart.ports.model.mask import mask
from redstart.ports.model.port import Model


class Masked:
    """Masks the texts of a question and the arguments of calls in it, then asks `inner`.

    `values` are secrets by value, as `secrets_of` gives them; known shapes of keys are masked besides. The answer is
    given as it came: nothing puts a secret back, so that none comes into a record by way of an answer.
    """

    def __init__(self, inner: Model, values: Mapping[str, str]) -> None:
        self._inner = inner
        self._values = dict(values)

    async def ask(self, ask: Ask) -> Answer:
        messages = tuple(map(self._message, ask.messages))
        return await self._inner.ask(ask if messages == ask.messages else ask.model_copy(update={"messages": messages}))

    def _message(self, message: Message) -> Message:
        calls = tuple(
            call.model_copy(update={"arguments": mask(call.arguments, self._values)}) for call in message.calls
        )
        return message.model_copy(update={"text": mask(message.text, self._values), "calls": calls})
