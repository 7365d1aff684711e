"""Text that is not ours, as it may be shown: nothing in it is hidden, and a terminal obeys none of it.

A repo, a model, a test report and memory can hold escape sequences, C1 controls and marks of direction. Every text goes
to the screen through `visible`; `cli/output.py` is the only place that writes there.
"""

from __future__ import annotations

import json
import re
import unicodedata

LINE = 300
"""Characters of a line that is shown in a list."""
_HIDDEN = frozenset(("Cf", "Cc", "Co", "Cn", "Cs", "Zl", "Zp"))
"""Categories that steer the text around them, are not assigned, belong to nobody, or break a line."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Letters and marks that take part in a text without showing."""
_LINE_END = re.compile(r"\r+\n")


def is_seen(sign: str) -> bool:
    """Whether this character shows, or is a blank that does nothing else."""
    return unicodedata.category(sign) not in _HIDDEN and sign not in _BLANK


def visible(text: str) -> str:
    """The text with everything that does not show spelled out, as `\\x1b`. Lines and tabs stay; showing it twice
    changes nothing."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" or is_seen(sign) else _spelled(sign) for sign in _LINE_END.sub("\n", text))


def visible_line(text: str, limit: int = LINE) -> str:
    """The same as one line, which is cut, and says so, where it is longer than `limit`."""
    shown = visible(text).replace("\n", "\\n")
    return shown if len(shown) <= limit else f"{shown[:limit]} [… {len(shown) - limit:,} more characters]"


def visible_json(text: str) -> str:
    """JSON in which everything that does not show is escaped. Its meaning is the same: only a string can hold it."""
    return "".join(sign if sign in "\n\t" or is_seen(sign) else json.dumps(sign)[1:-1] for sign in text)


def one_line(text: str) -> str:
    """The words of a text with single blanks between them, for a prompt or a title: what does not show is left out."""
    return " ".join("".join(sign for sign in text if sign.isspace() or is_seen(sign)).split())


def _spelled(sign: str) -> str:
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not valid UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode()
