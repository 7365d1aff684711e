"""What every noun has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class FrozenValue(BaseModel):
    """A frozen value. Unknown fields are refused, so that a misspelt one fails where it is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def many(count: int, noun: str) -> str:
    """So many of them, in words: `1 test`, `2 tests`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def clip(text: str, limit: int) -> str:
    """`text` cut to `limit` bytes of UTF-8, head and tail kept, with the cut marked where it was made."""
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return text
    mark = " […] "
    keep = max(limit - len(mark.encode()), 2)
    head = keep * 2 // 3
    return data[:head].decode(errors="ignore") + mark + data[head - keep :].decode(errors="ignore")
