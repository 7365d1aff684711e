"""Text of any origin in Markdown."""

from __future__ import annotations

import re

from redstart.core.safe_text import escape_line

_SAFE_CHARACTER = re.compile(r"[A-Za-z0-9 .,:;()/'+-]")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally: every character with a possible meaning becomes an entity."""
    return "".join(item if _SAFE_CHARACTER.match(item) else f"&#{ord(item)};" for item in escape_line(text))
