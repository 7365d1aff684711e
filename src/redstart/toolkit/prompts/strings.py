"""Strings as models write them: any quotes, raw line breaks, quotes inside that nothing escapes."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

DOUBLE = '"“”„‟'
SINGLE = "'‘’‚‛"

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
"""Not `\\b` and `\\f`: no model means a backspace or a form feed, but some write `\\frac` as it stands."""
_LITERAL = "\"'\\/`“”‘’"
_CODED = re.compile(r"u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})")
_LOW = re.compile(r"\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_AFTER_COMMA_IN_OBJECT = re.compile(r"""\s*(?:["'“”‘’`]?[^\W\d][\w -]*["'“”‘’`]?\s*[:：=]|[}\]])""")
_AFTER_COMMA_IN_LIST = re.compile(r"""\s*(?:["'“‘{\[\]}\d-])""")
_HIDES_STRUCTURE = re.compile(r"""["'“”]\s*[:：,，\[\]{}"“”\\]|[:：,，\[{]\s*["'“”]""")
"""Quotes beside what holds JSON together: more likely two strings and what is between them than one."""
_SPACES = re.compile(r"\s*")


class Unreadable(ValueError):
    """What stands there is no JSON, however loosely it is read; the message says what and where."""


class Cut(Exception):
    """The text ends before the value does."""


class Said(NamedTuple):
    text: str
    end: int
    """Where the text goes on after the closing quote."""


def read_string(text: str, at: int, *, guess: bool, key: bool, in_list: bool) -> Said:
    """The string that opens at `at`. With `guess`, a quote closes it only where what follows fits.

    Raises `Cut` where it is not closed, and `Unreadable` where quotes inside it cannot be told from the closing one.
    """
    opener = text[at]
    if text.startswith((opener * 3,), at) and opener in "\"'":
        return _tripled(text, at)
    closers = opener if opener in "\"`'" else DOUBLE if opener in DOUBLE else SINGLE
    parts: list[str] = []
    inner, start = 0, at + 1
    at += 1
    plain = _run_without(closers)
    while at < len(text):
        if run := plain.match(text, at):
            parts.append(run[0])
            at = run.end()
            continue
        char = text[at]
        if char == "\\":
            part, at = _escape(text, at)
            parts.append(part)
            continue
        at += 1
        if char not in closers or _apostrophe(text, at - 1):
            parts.append(char)
        elif not guess or _closes(text, at, key=key, in_list=in_list):
            if inner % 2 or (inner and _HIDES_STRUCTURE.search("".join(parts))):
                raise Unreadable(f"quotes inside a text are not escaped: {''.join(parts)[-40:]!r}")
            return Said("".join(parts), at)
        else:
            inner += 1
            parts.append(char)
    if opener in "'`" and '"' in text[start:]:
        raise Unreadable(f"a text that opens with {opener} is not closed: {text[start : start + 30]!r}")
    raise Cut(f"a text is not closed: {text[start : start + 30]!r}")


@cache
def _run_without(closers: str) -> re.Pattern[str]:
    return re.compile(rf"[^\\{re.escape(closers)}]+")


def _apostrophe(text: str, at: int) -> bool:
    """Whether the quote at `at` stands inside a word."""
    return text[at] in SINGLE and 0 < at < len(text) - 1 and text[at - 1].isalnum() and text[at + 1].isalnum()


def _closes(text: str, at: int, *, key: bool, in_list: bool) -> bool:
    found = _SPACES.match(text, at)
    at = found.end() if found else at
    if at >= len(text):
        return True
    if key:
        return text[at] in ":："
    if text[at] in "]}":
        return True
    pattern = _AFTER_COMMA_IN_LIST if in_list else _AFTER_COMMA_IN_OBJECT
    return text[at] in ",，" and pattern.match(text, at + 1) is not None


def _escape(text: str, at: int) -> tuple[str, int]:
    """What the backslash at `at` stands for, and where the text goes on. An unknown one stands for itself."""
    if at + 1 >= len(text):
        raise Cut("the answer ends in the middle of a text")
    char = text[at + 1]
    if char in _SIMPLE:
        return _SIMPLE[char], at + 2
    if char in _LITERAL:
        return char, at + 2
    coded = _CODED.match(text, at + 1)
    if coded is None:
        return "\\", at + 1
    number = int(coded[1] or coded[2] or coded[3], 16)
    low = _LOW.match(text, coded.end())
    if 0xD800 <= number < 0xDC00 and low is not None:
        return chr(0x10000 + ((number - 0xD800) << 10) + int(low[1], 16) - 0xDC00), low.end()
    plain = number < 0x110000 and not 0xD800 <= number < 0xE000
    return (chr(number) if plain else "\ufffd"), coded.end()


def _tripled(text: str, at: int) -> Said:
    quote = text[at : at + 3]
    end = text.find(quote, at + 3)
    if end < 0:
        raise Cut("the answer ends in the middle of a text")
    return Said(text[at + 3 : end], end + 3)
