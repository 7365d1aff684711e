"""Reads the loosely written JSON of models, which looks like people's chat messages, not a program's output."""

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
_CODED = re.compile(r"u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})")
_LOW = re.compile(r"\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
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


def read_string(text: str, at: int, *, guess: bool, key: bool, in_list: bool) -> ReadString:
    """Read the string that opens at `at`. With `guess`, a quote closes it only if the following text fits.

    Raises `TextCut` if the string is not closed, and `UnreadableJson` if quotes inside it cannot be told from the
    closing one.
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
                raise UnreadableJson(f"quotes inside a text are not escaped: {''.join(parts)[-40:]!r}")
            return ReadString("".join(parts), at)
        else:
            inner += 1
            parts.append(char)
    if opener in "'`" and '"' in text[start:]:
        raise UnreadableJson(f"a text that opens with {opener} is not closed: {text[start : start + 30]!r}")
    raise TextCut(f"a text is not closed: {text[start : start + 30]!r}")


@cache
def _run_without(closers: str) -> re.Pattern[str]:
    return re.compile(rf"[^\\{re.escape(closers)}]+")


def _apostrophe(text: str, at: int) -> bool:
    """Whether the quote at `at` is inside a word."""
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
    """Read the escape at `at`. Return its text and the next position. An unknown backslash means itself."""
    if at + 1 >= len(text):
        raise TextCut("the answer ends in the middle of a text")
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


def _tripled(text: str, at: int) -> ReadString:
    quote = text[at : at + 3]
    end = text.find(quote, at + 3)
    if end < 0:
        raise TextCut("the answer ends in the middle of a text")
    return ReadString(text[at + 3 : end], end + 3)


DEEPEST = 40
LONGEST_NUMBER = 30
MOST_STARTS = 50
"""How many opening braces of an answer are examined. A text with more is not an answer."""

FAR = 20_000
"""How many characters after an object are searched for more of it."""

_SPACE = re.compile(r"(?:[\s\u200b\ufeff]|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_BARE_KEY = re.compile(r"[^\W\d][\w$-]*")
_BARE = re.compile(r"[^\W\d]\w*|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\.\.|…")
_COLON = re.compile(r"=>|[:：=]")
_PLUS = re.compile(r"\s*\+\s*(?=[\"'])")
_NOTHING_MORE = re.compile(r"\s*\Z")
_COMMA = re.compile(r"[,，]")
_NEXT_KEY = re.compile(r"""["'“”‘’`]?[^\W\d][\w -]*["'“”‘’`]?\s*[:：]""")
_QUOTED_KEY = re.compile(r"""\w["”]\s*[:：]""")
_CODE = re.compile(r"""["'”]\s*[,:\]}]""")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}


class LooseObject(NamedTuple):
    """An object in a text. If the text ends too early, `value` omits the incomplete items."""

    value: dict[str, object]
    start: int
    end: int
    cut: bool = False
    elided: bool = False
    """Whether it contains `...`: an example, or something that was not written out."""


class BrokenObject(NamedTuple):
    """Text that begins like an object and cannot be read, with the reason and the name of its first field."""

    reason: str
    start: int
    first_key: str


def objects(text: str, *, truncated: bool = False) -> Iterator[LooseObject | BrokenObject]:
    """Yield the outermost objects of `text`, in order, whatever surrounds them. Never raises.

    `truncated` means that the model reached its token limit: a string that ends with the text may then be incomplete.
    """
    at = 0
    for _ in range(MOST_STARTS):
        start = text.find("{", at)
        if start < 0:
            return
        found = _object_at(text, start, truncated)
        yield found
        at = found.end if isinstance(found, LooseObject) else start + 1


def _object_at(text: str, start: int, truncated: bool) -> LooseObject | BrokenObject:
    fence = _FENCE.search(text, start)
    ends = [(len(text), truncated)] if fence is None else [(len(text), truncated), (fence.start(), False)]
    partial: LooseObject | None = None
    reason = ""
    for guess in (False, True):
        for end, unsure in ends:
            reader = _Reader(text[:end], start, guess=guess, unsure=unsure)
            try:
                value = reader.outermost()
            except (UnreadableJson, TextCut) as error:
                reason = reason or str(error)
                continue
            found = LooseObject(value, start, reader.at, reader.cut, reader.elided)
            if not found.cut:
                return found
            # To guess both where a string ends and what followed it would mean to invent an answer.
            if not guess:
                partial = found
    if partial is not None:
        return partial
    key = re.compile(r"\{[\s{]*[\"'“”‘’`]?([^\W\d][\w -]*)").match(text, start)
    return BrokenObject(reason, start, key[1] if key else "")


def _goes_on(text: str, start: int, end: int) -> bool:
    """Whether the text after an object reads like more of it. In a list, it may be the next object instead."""
    rest = text[end : end + FAR].lstrip("\n\r\t ]}")
    if rest[:1] in (",", "，") and not text[:start].rstrip().endswith(("[", ",")):
        return re.match(r"""[,，]\s*["'“{\[]""", rest) is not None or _NEXT_KEY.match(rest[1:].lstrip()) is not None
    if rest[:1] in ('"', "“") or _QUOTED_KEY.search(rest.partition("{")[0]):
        return True
    # An unmatched closing bracket closes something that was already taken for closed.
    open_before = sum(text.count(mark, 0, start) for mark in "[{") - sum(text.count(mark, 0, start) for mark in "]}")
    return _lowest(rest) + max(open_before, 0) < 0


def _lowest(text: str) -> int:
    """Find the lowest bracket depth, relative to the start of the text."""
    depth = lowest = 0
    for mark in re.findall(r"[\[\]{}]", text):
        depth += 1 if mark in "[{" else -1
        lowest = min(lowest, depth)
    return lowest


class _Reader:
    """Reads one value. `guess` allows unescaped quotes inside strings. `unsure` is `truncated`."""

    def __init__(self, text: str, start: int, *, guess: bool, unsure: bool) -> None:
        self._text, self.at, self._guess, self._unsure = text, start, guess, unsure
        self._open: list[str] = []
        self.cut = self.elided = False

    def outermost(self) -> dict[str, object]:
        start = self.at
        value = self._object()
        if not self.cut and _goes_on(self._text, start, self.at):
            raise UnreadableJson("the object is closed before its last field")
        return value

    def _peek(self) -> str:
        """Return the next significant character. Raises `TextCut` at the end of the text."""
        passed = _SPACE.match(self._text, self.at)
        if passed is not None:
            if _CODE.search(passed[0]):
                raise UnreadableJson(self._where("a comment hides a part of the answer"))
            self.at = passed.end()
        if self.at >= len(self._text):
            raise TextCut("the answer ends in the middle")
        return self._text[self.at]

    def _value(self) -> object:
        char = self._peek()
        if char == "{":
            return self._object()
        if char == "[":
            return self._list()
        if char in DOUBLE or char in SINGLE or char == "`":
            return self._string(key=False)
        return self._bare()

    def _bare(self) -> object:
        found = _BARE.match(self._text, self.at)
        if found is None:
            raise UnreadableJson(self._where("a value was expected"))
        self.at = found.end()
        if found.end() == len(self._text):
            raise self._ended("the answer ends in the middle of a value")
        word = found[0]
        if word in ("...", "…"):
            self.elided = True
            return _ELIDED
        if word.casefold() in _WORDS:
            return _WORDS[word.casefold()]
        if not re.match(r"[-\d]", word) or len(word) > LONGEST_NUMBER:
            self.at = found.start()
            raise UnreadableJson(self._where("text without quotes"))
        return float(word) if re.search(r"[.eE]", word) else int(word)

    def _string(self, *, key: bool) -> str:
        whole = self._literal(key=key)
        while not key and (more := _PLUS.match(self._text, self.at)):
            self.at = more.end()
            whole += self._literal(key=False)
        if self._unsure and _NOTHING_MORE.match(self._text, self.at):
            raise TextCut("the answer ends in the middle of a text")
        return whole

    def _literal(self, *, key: bool) -> str:
        try:
            said = read_string(self._text, self.at, guess=self._guess, key=key, in_list=self._open[-1:] == ["]"])
        except TextCut as error:
            raise self._ended(str(error)) from None
        self.at = said.end
        return said.text

    def _ended(self, reason: str) -> Exception:
        """Build the error for a text that ends inside a value: without a token limit, an earlier part is wrong."""
        return TextCut(reason) if self._unsure else UnreadableJson(reason)

    def _object(self) -> dict[str, object]:
        self._enter("}")
        value: dict[str, object] = {}
        try:
            if self._peek() == "{":  # {{ ... }}, as in a template
                value = self._object()
            while not self._ends("}"):
                self._pair(value)
        except TextCut:
            self._cut_off()
        return value

    def _pair(self, value: dict[str, object]) -> None:
        char = self._peek()
        if self._text.startswith(("...", "…"), self.at):
            self._bare()
            self._separate(value)
            return
        if char in DOUBLE or char in SINGLE or char == "`":
            key = self._string(key=True)
        elif bare := _BARE_KEY.match(self._text, self.at):
            key, self.at = bare[0], bare.end()
        else:
            raise UnreadableJson(self._where("the name of a field was expected"))
        self._peek()
        colon = _COLON.match(self._text, self.at)
        if colon is None:
            raise UnreadableJson(self._where(f"a colon was expected after {key[:40]!r}"))
        self.at = colon.end()
        found = self._value()
        if found is not _ELIDED:
            if key in value and value[key] != found:
                raise UnreadableJson(f"the field {key[:40]!r} is there twice, with different values")
            value[key] = found
        self._separate(value)

    def _list(self) -> list[object]:
        self._enter("]")
        items: list[object] = []
        try:
            while not self._ends("]"):
                found = self._value()
                # An item that the end of the text cut off does not count. The items before it are complete.
                if found is not _ELIDED and not self.cut:
                    items.append(found)
                if not self.cut:
                    self._separate(found)
        except TextCut:
            self._cut_off()
            return items
        if self._text[self.at - 1] != "]" and items and isinstance(last := items[-1], str):
            # The list was not closed: its bracket may be inside the last quotes.
            items[-1] = last[:-1] if last.endswith("]") and "[" not in last else last
        return items

    def _separate(self, before: object) -> None:
        """Skip the comma after an item. It may be missing between containers and before a field's name."""
        if self.cut:
            return
        ended = self.at
        char = self._peek()
        if comma := _COMMA.match(self._text, self.at):
            self.at = comma.end()
            return
        if char in "]}":
            return
        if self._open[-1] == "}":
            missing = "\n" in self._text[ended : self.at] and _NEXT_KEY.match(self._text, self.at) is not None
        else:
            missing = isinstance(before, dict) and char == "{"
        if not missing:
            raise UnreadableJson(self._where("a comma or the end was expected"))

    def _enter(self, closer: str) -> None:
        if len(self._open) >= DEEPEST:
            raise UnreadableJson("it is nested too deeply")
        self._open.append(closer)
        self.at += 1

    def _ends(self, closer: str) -> bool:
        """Whether the container ends here. The closing bracket of an outer container ends it too."""
        if self.cut:
            return self._popped()
        char = self._peek()
        if char == closer:
            self.at += 1
            return self._popped()
        if char in "]}":
            if char not in self._open[:-1]:
                raise UnreadableJson(self._where(f"{closer!r} was expected"))
            return self._popped()
        return False

    def _popped(self) -> bool:
        self._open.pop()
        return True

    def _cut_off(self) -> None:
        self.cut = True
        self.at = len(self._text)
        self._open.pop()

    def _where(self, what: str) -> str:
        line = self._text.count("\n", 0, self.at) + 1
        return f"{what} at line {line}, before {self._text[self.at : self.at + 30]!r}"


_ELIDED = object()
