"""Read the loosely written JSON of models, which looks like people's chat messages, not a program's output."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

DOUBLE = '"“”„‟'
SINGLE = "'‘’‚‛"

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}
"""Without `\\b` and `\\f`: no model means a backspace or a form feed, but some write `\\frac` unescaped."""
_LITERAL = "\"'\\/`“”‘’"
_CHARACTER_CODE = re.compile(r"u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})")
_LOW_SURROGATE = re.compile(r"\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_AFTER_COMMA_IN_OBJECT = re.compile(r"""\s*(?:["'“”‘’`]?[^\W\d][\w -]*["'“”‘’`]?\s*[:：=]|[}\]])""")
_AFTER_COMMA_IN_LIST = re.compile(r"""\s*(?:["'“‘{\[\]}\d-])""")
_HIDES_STRUCTURE = re.compile(r"""["'“”]\s*[:：,，\[\]{}"“”\\]|[:：,，\[{]\s*["'“”]""")
"""Quotes next to JSON punctuation: more likely two strings and the text between them than one string."""
_SPACES = re.compile(r"\s*")


class UnreadableJson(ValueError):
    """The text is not JSON, however loosely it is read. The message says what is wrong and where."""


class TextCut(Exception):
    """The text ends before the value does."""


class ReadString(NamedTuple):
    text: str
    end: int
    """The position after the closing quote."""


def read_string(text: str, position: int, *, guess: bool, key: bool, in_list: bool) -> ReadString:
    """Read the string that opens at `position`. With `guess`, a quote closes it only if the following text fits.

    Raises `TextCut` if the string is not closed, and `UnreadableJson` if quotes inside it cannot be told from the
    closing one.
    """
    opener = text[position]
    if text.startswith((opener * 3,), position) and opener in "\"'":
        return _read_triple_quoted(text, position)
    closers = opener if opener in "\"`'" else DOUBLE if opener in DOUBLE else SINGLE
    parts: list[str] = []
    inner_quotes, start = 0, position + 1
    position += 1
    run_pattern = _run_without(closers)
    while position < len(text):
        if run := run_pattern.match(text, position):
            parts.append(run[0])
            position = run.end()
            continue
        char = text[position]
        if char == "\\":
            part, position = _escape(text, position)
            parts.append(part)
            continue
        position += 1
        if char not in closers or _is_apostrophe(text, position - 1):
            parts.append(char)
        elif not guess or _is_closing_quote(text, position, key=key, in_list=in_list):
            if inner_quotes % 2 or (inner_quotes and _HIDES_STRUCTURE.search("".join(parts))):
                raise UnreadableJson(f"quotes inside a text are not escaped: {''.join(parts)[-40:]!r}")
            return ReadString("".join(parts), position)
        else:
            inner_quotes += 1
            parts.append(char)
    if opener in "'`" and '"' in text[start:]:
        raise UnreadableJson(f"a text that opens with {opener} is not closed: {text[start : start + 30]!r}")
    raise TextCut(f"a text is not closed: {text[start : start + 30]!r}")


@cache
def _run_without(closers: str) -> re.Pattern[str]:
    return re.compile(rf"[^\\{re.escape(closers)}]+")


def _is_apostrophe(text: str, position: int) -> bool:
    """Whether the quote at `position` is inside a word."""
    return (
        text[position] in SINGLE
        and 0 < position < len(text) - 1
        and text[position - 1].isalnum()
        and text[position + 1].isalnum()
    )


def _is_closing_quote(text: str, position: int, *, key: bool, in_list: bool) -> bool:
    match = _SPACES.match(text, position)
    position = match.end() if match else position
    if position >= len(text):
        return True
    if key:
        return text[position] in ":："
    if text[position] in "]}":
        return True
    pattern = _AFTER_COMMA_IN_LIST if in_list else _AFTER_COMMA_IN_OBJECT
    return text[position] in ",，" and pattern.match(text, position + 1) is not None


def _escape(text: str, position: int) -> tuple[str, int]:
    """Read the escape at `position`. Return its text and the next position. An unknown backslash means itself."""
    if position + 1 >= len(text):
        raise TextCut("the answer ends in the middle of a text")
    char = text[position + 1]
    if char in _SIMPLE:
        return _SIMPLE[char], position + 2
    if char in _LITERAL:
        return char, position + 2
    code_match = _CHARACTER_CODE.match(text, position + 1)
    if code_match is None:
        return "\\", position + 1
    number = int(code_match[1] or code_match[2] or code_match[3], 16)
    low_surrogate = _LOW_SURROGATE.match(text, code_match.end())
    if 0xD800 <= number < 0xDC00 and low_surrogate is not None:
        return chr(0x10000 + ((number - 0xD800) << 10) + int(low_surrogate[1], 16) - 0xDC00), low_surrogate.end()
    is_valid = number < 0x110000 and not 0xD800 <= number < 0xE000
    return (chr(number) if is_valid else "\ufffd"), code_match.end()


def _read_triple_quoted(text: str, position: int) -> ReadString:
    quote = text[position : position + 3]
    end = text.find(quote, position + 3)
    if end < 0:
        raise TextCut("the answer ends in the middle of a text")
    return ReadString(text[position + 3 : end], end + 3)


DEEPEST = 40
LONGEST_NUMBER = 30
MOST_STARTS = 50
"""How many opening braces of an answer are examined. A text with more is not an answer."""

MAX_GAP_CHARACTERS = 20_000
"""How many characters after an object are searched for more of it."""

_SPACE = re.compile(r"(?:[\s\u200b\ufeff]|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_BARE_KEY = re.compile(r"[^\W\d][\w$-]*")
_BARE_VALUE = re.compile(r"[^\W\d]\w*|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\.\.|…")
_COLON = re.compile(r"=>|[:：=]")
_PLUS = re.compile(r"\s*\+\s*(?=[\"'])")
_NOTHING_MORE = re.compile(r"\s*\Z")
_COMMA = re.compile(r"[,，]")
_NEXT_KEY = re.compile(r"""["'“”‘’`]?[^\W\d][\w -]*["'“”‘’`]?\s*[:：]""")
_QUOTED_KEY = re.compile(r"""\w["”]\s*[:：]""")
_CODE = re.compile(r"""["'”]\s*[,:\]}]""")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_LITERAL_VALUES: dict[str, object] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "undefined": None,
    "nan": None,
}


class LooseObject(NamedTuple):
    """An object in a text. If the text ends too early, `value` omits the incomplete items."""

    value: dict[str, object]
    start: int
    end: int
    is_truncated: bool = False
    elided: bool = False
    """Whether it contains `...`: an example, or something that was not written out."""


class BrokenObject(NamedTuple):
    """Text that begins like an object and cannot be read, with the reason and the name of its first field."""

    reason: str
    start: int
    first_key: str


def find_objects(text: str, *, truncated: bool = False) -> Iterator[LooseObject | BrokenObject]:
    """Yield the outermost objects of `text`, in order, whatever surrounds them. Never raises.

    `truncated` means that the model reached its token limit: a string that ends with the text may then be incomplete.
    """
    position = 0
    for _ in range(MOST_STARTS):
        start = text.find("{", position)
        if start < 0:
            return
        parsed = _read_object_at(text, start, truncated)
        yield parsed
        position = parsed.end if isinstance(parsed, LooseObject) else start + 1


def _read_object_at(text: str, start: int, truncated: bool) -> LooseObject | BrokenObject:
    fence = _FENCE.search(text, start)
    ends = [(len(text), truncated)] if fence is None else [(len(text), truncated), (fence.start(), False)]
    partial: LooseObject | None = None
    reason = ""
    for guess in (False, True):
        for end, is_truncated in ends:
            reader = _Reader(text[:end], start, guess=guess, is_truncated=is_truncated)
            try:
                value = reader.read_outermost()
            except (UnreadableJson, TextCut) as error:
                reason = reason or str(error)
                continue
            result = LooseObject(value, start, reader.position, reader.is_truncated, reader.elided)
            if not result.is_truncated:
                return result
            # To guess both where a string ends and what followed it would mean to invent an answer.
            if not guess:
                partial = result
    if partial is not None:
        return partial
    key = re.compile(r"\{[\s{]*[\"'“”‘’`]?([^\W\d][\w -]*)").match(text, start)
    return BrokenObject(reason, start, key[1] if key else "")


def _has_more(text: str, start: int, end: int) -> bool:
    """Whether the text after an object reads like more of it. In a list, it may be the next object instead."""
    following = text[end : end + MAX_GAP_CHARACTERS].lstrip("\n\r\t ]}")
    if following[:1] in (",", "，") and not text[:start].rstrip().endswith(("[", ",")):
        return (
            re.match(r"""[,，]\s*["'“{\[]""", following) is not None
            or _NEXT_KEY.match(following[1:].lstrip()) is not None
        )
    if following[:1] in ('"', "“") or _QUOTED_KEY.search(following.partition("{")[0]):
        return True
    # An unmatched closing bracket closes something that was already taken for closed.
    open_before = sum(text.count(mark, 0, start) for mark in "[{") - sum(text.count(mark, 0, start) for mark in "]}")
    return _find_lowest_depth(following) + max(open_before, 0) < 0


def _find_lowest_depth(text: str) -> int:
    """Find the lowest bracket depth, relative to the start of the text."""
    depth = lowest = 0
    for mark in re.findall(r"[\[\]{}]", text):
        depth += 1 if mark in "[{" else -1
        lowest = min(lowest, depth)
    return lowest


class _Reader:
    """Reads one value. `guess` allows unescaped quotes inside strings. `is_truncated` marks a text that was cut off."""

    def __init__(self, text: str, start: int, *, guess: bool, is_truncated: bool) -> None:
        self._text, self.position, self._guess_quotes, self._truncated = text, start, guess, is_truncated
        self._open: list[str] = []
        self.is_truncated = self.elided = False

    def read_outermost(self) -> dict[str, object]:
        start = self.position
        value = self._read_object()
        if not self.is_truncated and _has_more(self._text, start, self.position):
            raise UnreadableJson("the object is closed before its last field")
        return value

    def _peek(self) -> str:
        """Return the next significant character. Raises `TextCut` at the end of the text."""
        match = _SPACE.match(self._text, self.position)
        if match is not None:
            if _CODE.search(match[0]):
                raise UnreadableJson(self._format_error("a comment hides a part of the answer"))
            self.position = match.end()
        if self.position >= len(self._text):
            raise TextCut("the answer ends in the middle")
        return self._text[self.position]

    def _read_value(self) -> object:
        char = self._peek()
        if char == "{":
            return self._read_object()
        if char == "[":
            return self._list()
        if char in DOUBLE or char in SINGLE or char == "`":
            return self._read_string_value(key=False)
        return self._read_bare()

    def _read_bare(self) -> object:
        match = _BARE_VALUE.match(self._text, self.position)
        if match is None:
            raise UnreadableJson(self._format_error("a value was expected"))
        self.position = match.end()
        if match.end() == len(self._text):
            raise self._create_end_error("the answer ends in the middle of a value")
        word = match[0]
        if word in ("...", "…"):
            self.elided = True
            return _ELIDED
        if word.casefold() in _LITERAL_VALUES:
            return _LITERAL_VALUES[word.casefold()]
        if not re.match(r"[-\d]", word) or len(word) > LONGEST_NUMBER:
            self.position = match.start()
            raise UnreadableJson(self._format_error("text without quotes"))
        return float(word) if re.search(r"[.eE]", word) else int(word)

    def _read_string_value(self, *, key: bool) -> str:
        text = self._read_literal(key=key)
        while not key and (plus := _PLUS.match(self._text, self.position)):
            self.position = plus.end()
            text += self._read_literal(key=False)
        if self._truncated and _NOTHING_MORE.match(self._text, self.position):
            raise TextCut("the answer ends in the middle of a text")
        return text

    def _read_literal(self, *, key: bool) -> str:
        try:
            literal = read_string(
                self._text, self.position, guess=self._guess_quotes, key=key, in_list=self._open[-1:] == ["]"]
            )
        except TextCut as error:
            raise self._create_end_error(str(error)) from None
        self.position = literal.end
        return literal.text

    def _create_end_error(self, reason: str) -> Exception:
        """Build the error for a text that ends inside a value: without a token limit, an earlier part is wrong."""
        return TextCut(reason) if self._truncated else UnreadableJson(reason)

    def _read_object(self) -> dict[str, object]:
        self._enter("}")
        value: dict[str, object] = {}
        try:
            if self._peek() == "{":  # {{ ... }}, as in a template
                value = self._read_object()
            while not self._is_at_end("}"):
                self._pair(value)
        except TextCut:
            self._cut_off()
        return value

    def _pair(self, value: dict[str, object]) -> None:
        char = self._peek()
        if self._text.startswith(("...", "…"), self.position):
            self._read_bare()
            self._skip_separator(value)
            return
        if char in DOUBLE or char in SINGLE or char == "`":
            key = self._read_string_value(key=True)
        elif match := _BARE_KEY.match(self._text, self.position):
            key, self.position = match[0], match.end()
        else:
            raise UnreadableJson(self._format_error("the name of a field was expected"))
        self._peek()
        colon = _COLON.match(self._text, self.position)
        if colon is None:
            raise UnreadableJson(self._format_error(f"a colon was expected after {key[:40]!r}"))
        self.position = colon.end()
        item = self._read_value()
        if item is not _ELIDED:
            if key in value and value[key] != item:
                raise UnreadableJson(f"the field {key[:40]!r} is there twice, with different values")
            value[key] = item
        self._skip_separator(value)

    def _list(self) -> list[object]:
        self._enter("]")
        items: list[object] = []
        try:
            while not self._is_at_end("]"):
                item = self._read_value()
                # An item that the end of the text cut off does not count. The items before it are complete.
                if item is not _ELIDED and not self.is_truncated:
                    items.append(item)
                if not self.is_truncated:
                    self._skip_separator(item)
        except TextCut:
            self._cut_off()
            return items
        if self._text[self.position - 1] != "]" and items and isinstance(last := items[-1], str):
            # The list was not closed: its bracket may be inside the last quotes.
            items[-1] = last[:-1] if last.endswith("]") and "[" not in last else last
        return items

    def _skip_separator(self, previous: object) -> None:
        """Skip the comma after an item. It may be missing between containers and before a field's name."""
        if self.is_truncated:
            return
        end = self.position
        char = self._peek()
        if comma := _COMMA.match(self._text, self.position):
            self.position = comma.end()
            return
        if char in "]}":
            return
        if self._open[-1] == "}":
            missing = "\n" in self._text[end : self.position] and _NEXT_KEY.match(self._text, self.position) is not None
        else:
            missing = isinstance(previous, dict) and char == "{"
        if not missing:
            raise UnreadableJson(self._format_error("a comma or the end was expected"))

    def _enter(self, closer: str) -> None:
        if len(self._open) >= DEEPEST:
            raise UnreadableJson("it is nested too deeply")
        self._open.append(closer)
        self.position += 1

    def _is_at_end(self, closer: str) -> bool:
        """Whether the container ends here. The closing bracket of an outer container ends it too."""
        if self.is_truncated:
            return self._close_container()
        char = self._peek()
        if char == closer:
            self.position += 1
            return self._close_container()
        if char in "]}":
            if char not in self._open[:-1]:
                raise UnreadableJson(self._format_error(f"{closer!r} was expected"))
            return self._close_container()
        return False

    def _close_container(self) -> bool:
        self._open.pop()
        return True

    def _cut_off(self) -> None:
        self.is_truncated = True
        self.position = len(self._text)
        self._open.pop()

    def _format_error(self, message: str) -> str:
        line = self._text.count("\n", 0, self.position) + 1
        return f"{message} at line {line}, before {self._text[self.position : self.position + 30]!r}"


_ELIDED = object()
