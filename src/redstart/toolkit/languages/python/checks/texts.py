"""What is known of one value while a module is read."""

from __future__ import annotations

import ast
from typing import NamedTuple

LONGEST = 4000
"""Characters of a text that are kept; the rest adds nothing to what is asked of it."""
HOLE = "\x00"
"""Stands in a text for what gets in from elsewhere."""


class KnownText(NamedTuple):
    """What is known of a value. `text` is None where it is not known to be a string at all."""

    text: str | None = None
    loose: int = 0
    """The line where something from elsewhere gets in; 0 where nothing does."""
    items: KnownText | None = None
    """Of a collection: what any one of its items is."""

    @property
    def fixed(self) -> bool:
        return not self.loose

    def either(self, other: KnownText) -> KnownText:
        """What it is where it is one or the other."""
        text = (
            self.text
            if other.text is None
            else other.text
            if self.text is None
            else max(self.text, other.text, key=len)
        )
        items = self.items.either(other.items) if self.items and other.items else self.items or other.items
        return KnownText(text, self.loose or other.loose, items)

    def plus(self, other: KnownText) -> KnownText:
        known = self.text is not None or other.text is not None
        text = (_or_hole(self) + _or_hole(other))[:LONGEST] if known else None
        return KnownText(text, self.loose or other.loose)


NOTHING = KnownText("")


def _or_hole(one: KnownText) -> str:
    return one.text if one.text is not None else (HOLE if one.loose else "0")


def elsewhere(node: ast.AST) -> KnownText:
    return KnownText(None, getattr(node, "lineno", 1) or 1)


def as_part(value: KnownText) -> KnownText:
    """The value as a part of a string: of a collection, what its items bring along."""
    if value.items is not None and value.text is None:
        return KnownText("0", value.items.loose)
    if value.text is None and value.fixed:
        return KnownText("0")
    return value


def item_of(value: KnownText, node: ast.AST) -> KnownText:
    if value.items is not None:
        return value.items
    if value.text is not None:
        return value if value.loose else KnownText("0")
    return elsewhere(node)
