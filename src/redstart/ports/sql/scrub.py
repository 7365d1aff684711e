"""Taking the words of a card, or of a lesson, out of what runs have written down."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, cast

FORGOTTEN = "[forgotten]"
LEAST = 12
"""A shorter text may stand anywhere, and says nothing by itself; where it is told what it is of, it goes too."""
_CUT = " […] "
_WORDS = ("summary", "root_cause", "fix", "verification", "test_id")


class Scrub:
    """Finds what has one of these ids in JSON, and what it said wherever else that stands, cut or not."""

    def __init__(self, ids: Collection[str], said: Sequence[str]) -> None:
        self._ids = frozenset(ids)
        pieces = dict.fromkeys(piece.strip() for text in said for piece in text.split(_CUT))
        self.texts = tuple(sorted((one for one in pieces if len(one) >= LEAST), key=len, reverse=True))
        self._forms = tuple(form for one in self.texts for form in _spellings(one))

    def __call__(self, written: str) -> str:
        """The same JSON without the words; the same text where they are not in it."""
        if not any(one in written for one in self._ids) and not self.is_in(written.encode()):
            return written
        try:
            found = json.loads(written)
        except ValueError:
            return self._plain(written)
        clean = self._clean(found)
        return written if clean == found else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))

    def is_in(self, data: bytes) -> bool:
        return any(form.encode() in data for form in self._forms)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._plain(value)
        if isinstance(value, list):
            return [self._clean(one) for one in cast(list[Any], value)]
        if isinstance(value, dict):
            fields = {name: self._clean(one) for name, one in cast(dict[str, Any], value).items()}
            return {**fields, **self._emptied(fields)}
        return value

    def _emptied(self, fields: dict[str, Any]) -> dict[str, Any]:
        if fields.get("id") in self._ids and "debug_steps" in fields:
            return {**dict.fromkeys(_WORDS, FORGOTTEN), "debug_steps": [], "signature": None}
        if self._ids & {fields.get("id"), fields.get("lesson")} and "advice" in fields:
            return {"when": FORGOTTEN, "advice": FORGOTTEN}
        return {}

    def _plain(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, FORGOTTEN)
        return text


def _spellings(text: str) -> tuple[str, ...]:
    """As it is, and as JSON has it."""
    return tuple(dict.fromkeys((text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])))
