"""Taking a card's words out of what runs have written down."""

from __future__ import annotations

import json
from typing import Any, cast

from redstart.core.learning import FixCard

FORGOTTEN = "[forgotten]"
LEAST = 12
"""A shorter text may stand anywhere, and says nothing by itself; inside of the card it goes too."""
_CUT = " […] "
_WORDS = ("summary", "root_cause", "fix", "verification", "test_id")


class Scrub:
    """Finds a card in JSON by its id, and what it said wherever else that stands, cut or not."""

    def __init__(self, card: FixCard) -> None:
        self._id = card.id
        said = (card.summary, card.root_cause, card.fix, *card.debug_steps)
        pieces = dict.fromkeys(piece.strip() for text in said for piece in text.split(_CUT))
        self.texts = tuple(sorted((one for one in pieces if len(one) >= LEAST), key=len, reverse=True))
        self._forms = tuple(form for one in self.texts for form in _spellings(one))

    def __call__(self, written: str) -> str:
        """The same JSON without the card's words; the same text where they are not in it."""
        if self._id not in written and not self.is_in(written.encode()):
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
        if fields.get("id") != self._id or "debug_steps" not in fields:
            return {}
        return {**dict.fromkeys(_WORDS, FORGOTTEN), "debug_steps": [], "signature": None}

    def _plain(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, FORGOTTEN)
        return text


def _spellings(text: str) -> tuple[str, ...]:
    """As it is, and as JSON has it."""
    return tuple(dict.fromkeys((text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])))
