"""Represent what is known about a value while a module is read."""

from __future__ import annotations

import ast
from typing import NamedTuple

LONGEST = 4000
"""The maximum number of characters kept of a text; the rest does not affect the checks."""
VALUE_MARK = "\x00"
"""Marks the place of an outside value in a text."""


class KnownText(NamedTuple):
    """What is known about a value. `text` is None if the value is not known to be a string."""

    text: str | None = None
    outside_line: int = 0
    """The line where an outside value enters; 0 if none does."""
    items: KnownText | None = None
    """What is known about any item of a collection."""

    @property
    def fixed(self) -> bool:
        return not self.outside_line

    def combine(self, other: KnownText) -> KnownText:
        """Combine what is known about two values, for a value that may be either of them."""
        text = (
            self.text
            if other.text is None
            else other.text
            if self.text is None
            else max(self.text, other.text, key=len)
        )
        items = self.items.combine(other.items) if self.items and other.items else self.items or other.items
        return KnownText(text, self.outside_line or other.outside_line, items)

    def concatenate(self, other: KnownText) -> KnownText:
        is_known = self.text is not None or other.text is not None
        text = (_get_text_or_hole(self) + _get_text_or_hole(other))[:LONGEST] if is_known else None
        return KnownText(text, self.outside_line or other.outside_line)


EMPTY_TEXT = KnownText("")


def _get_text_or_hole(value: KnownText) -> str:
    return value.text if value.text is not None else (VALUE_MARK if value.outside_line else "0")


def create_outside_value(node: ast.AST) -> KnownText:
    return KnownText(None, getattr(node, "lineno", 1) or 1)


def as_part(value: KnownText) -> KnownText:
    """Return the value as a part of a string; a collection contributes what its items contain."""
    if value.items is not None and value.text is None:
        return KnownText("0", value.items.outside_line)
    if value.text is None and value.fixed:
        return KnownText("0")
    return value


def get_item(value: KnownText, node: ast.AST) -> KnownText:
    if value.items is not None:
        return value.items
    if value.text is not None:
        return value if value.outside_line else KnownText("0")
    return create_outside_value(node)
