"""Taking the words of a card, or of a lesson, out of what runs have written down."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, cast

FORGOTTEN = "[forgotten]"
LEAST = 12
"""A shorter text may stand anywhere, and says nothing by itself; where it is told what it is of, it goes too."""
PROBE = 24
"""Of a longer text its beginning and its end are looked for: a question may have had no room for the middle."""
_CUT = re.compile(r" \[…\] |</?data(?=\b)", re.IGNORECASE)
"""Where a text may stand otherwise than it was said: where it was cut, and where it would end a block of data."""
_LEVELS = 3
"""Texts in JSON, which is a text in JSON, and that again."""
_WORDS = ("summary", "root_cause", "fix", "verification", "test_id")


class Scrub:
    """Finds what has one of these ids in JSON, and what it said wherever else that stands, cut or not."""

    def __init__(self, ids: Collection[str], said: Iterable[str]) -> None:
        self._ids = frozenset(ids)
        pieces = dict.fromkeys(piece.strip() for text in said for piece in _CUT.split(text))
        self.texts = tuple(sorted((one for one in pieces if len(one) >= LEAST), key=len, reverse=True))
        self._forms = _spellings(self.texts)
        self.traces = Traces(self.texts)

    def __call__(self, written: str) -> str:
        """The same JSON without the words; the same text where they are not in it."""
        if not any(one in written for one in self._ids) and not any(form in written for form in self._forms):
            return written
        try:
            found = json.loads(written)
        except ValueError:
            return self._plain(written)
        clean = self._clean(found)
        return written if clean == found else json.dumps(clean, ensure_ascii=False, separators=(",", ":"))

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
        named = [one for one in (fields.get("id"), fields.get("lesson")) if isinstance(one, str)]
        if "advice" in fields and not self._ids.isdisjoint(named):
            return {"when": FORGOTTEN, "advice": FORGOTTEN}
        return {}

    def _plain(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, FORGOTTEN)
        return text


class Traces:
    """Finds texts, or what was left of them, in bytes of any kind."""

    def __init__(self, texts: Iterable[str]) -> None:
        ends = [part.strip() for one in texts for part in _ends(one)]
        self._forms = tuple(form.encode() for form in _spellings(ends))

    def are_in(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)


def _ends(text: str) -> tuple[str, ...]:
    return (text,) if len(text) <= 2 * PROBE else (text[:PROBE], text[-PROBE:])


def _spellings(texts: Iterable[str]) -> tuple[str, ...]:
    """As they are, and as JSON has them, the longest first: one may be a part of another."""
    found = dict.fromkeys(texts)
    for _ in range(_LEVELS):
        found |= {json.dumps(one, ensure_ascii=plain)[1:-1]: None for one in found for plain in (True, False)}
    return tuple(sorted(found, key=len, reverse=True))
