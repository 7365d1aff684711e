"""Make untrusted text safe to display: nothing in it is hidden, and a terminal obeys none of it.

A repo, a model, a test report and memory can contain escape sequences, C1 controls and direction marks. All text goes
to the screen through `escape_hidden`; only `cli/output.py` writes there.
"""

from __future__ import annotations

import json
import re
import unicodedata

LINE = 300
"""Maximum characters of a line in a list."""
_HIDDEN = frozenset(("Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp"))
"""Unicode categories that control the surrounding text, are unassigned or private, or break a line."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks that are part of a text but are not displayed."""
_LINE_END = re.compile(r"\r+\n")


def is_seen(sign: str) -> bool:
    """Return whether this character is displayed, or is a plain blank."""
    return unicodedata.category(sign) not in _HIDDEN and sign not in _BLANK


def visible(text: str) -> str:
    """Escape every character that is not displayed, for example as `\\x1b`.

    Newlines and tabs stay. A second call changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" or is_seen(sign) else _spelled(sign) for sign in _LINE_END.sub("\n", text))


def visible_line(text: str, limit: int = LINE) -> str:
    """Escape the text as one line. A line longer than `limit` is cut, with a note that says so."""
    shown = visible(text).replace("\n", "\\n")
    return shown if len(shown) <= limit else f"{shown[:limit]} [… {len(shown) - limit:,} more characters]"


def visible_json(text: str) -> str:
    """Escape every character of the JSON text that is not displayed.

    The meaning stays the same: such characters occur only in strings.
    """
    return "".join(sign if sign in "\n\t" or is_seen(sign) else json.dumps(sign)[1:-1] for sign in text)


def one_line(text: str) -> str:
    """Join the words of a text with single spaces, for a prompt or a title. Characters that are not displayed are
    dropped."""
    return " ".join("".join(sign for sign in text if sign.isspace() or is_seen(sign)).split())


def _spelled(sign: str) -> str:
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not valid UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode()
