"""The base class of every noun, and helpers for their texts."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict


class FrozenValue(BaseModel):
    """A frozen value. Unknown fields are rejected, so a misspelled field fails where it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def format_count(count: int, noun: str) -> str:
    """Return the count with its noun: `1 test`, `2 tests`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def rephrase_validation_message(message: str) -> str:
    """Rephrase Pydantic's message about a value so that it follows the name of the value: `must be a valid number`."""
    text = message.replace("Value error, ", "").replace("Input should be", "must be")
    return re.sub(r", (?:unable to parse|unable to interpret|got a number with).*", "", text)


def clip(text: str, limit: int) -> str:
    """Shorten `text` to `limit` bytes of UTF-8. Head and tail stay, and a mark shows the cut."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return text
    mark = " […] "
    keep = max(limit - len(mark.encode()), 2)
    head = keep * 2 // 3
    return data[:head].decode(errors="ignore") + mark + data[head - keep :].decode(errors="ignore")
