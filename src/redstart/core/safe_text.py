"""Make untrusted text safe to display: nothing in it stays hidden, and none of it controls the terminal.

A repo, a model, a test report and memory can contain escape sequences, C1 controls and direction marks. All text goes
to the screen through `escape_hidden`; only `cli/output.py` writes there.
"""

from __future__ import annotations

import json
import re
import unicodedata

LINE = 300
"""Maximum characters of a line in a list."""
_HIDDEN_CATEGORIES = frozenset(("Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp"))
"""Unicode categories that control the surrounding text, are unassigned or private, or break a line."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks that are part of a text but are not displayed."""
_LINE_END = re.compile(r"\r+\n")


def is_visible(char: str) -> bool:
    """Return whether this character is displayed, or is a plain blank."""
    return unicodedata.category(char) not in _HIDDEN_CATEGORIES and char not in _BLANK


def escape_hidden(text: str) -> str:
    """Escape every character that is not displayed, for example as `\\x1b`.

    Newlines and tabs stay. A second call changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char if char in "\n\t" or is_visible(char) else _escape_char(char) for char in _LINE_END.sub("\n", text)
    )


def escape_line(text: str, limit: int = LINE) -> str:
    """Escape the text as one line. A line longer than `limit` is cut, with a note that says so."""
    escaped = escape_hidden(text).replace("\n", "\\n")
    return escaped if len(escaped) <= limit else f"{escaped[:limit]} [… {len(escaped) - limit:,} more characters]"


def escape_json(text: str) -> str:
    """Escape every character of the JSON text that is not displayed.

    The meaning stays the same: such characters occur only in strings.
    """
    return "".join(char if char in "\n\t" or is_visible(char) else json.dumps(char)[1:-1] for char in text)


def to_one_line(text: str) -> str:
    """Join the words of a text with single spaces, for a prompt or a title. Characters that are not displayed are
    dropped."""
    return " ".join("".join(char for char in text if char.isspace() or is_visible(char)).split())


def _escape_char(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not valid UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()
