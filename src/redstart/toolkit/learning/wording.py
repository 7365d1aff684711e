"""What a failure says, without what another machine, another run or another Python says otherwise."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from posixpath import basename

from redstart.toolkit.learning.frames import longest_first

LINE_LIMIT = 4000
"""Of a line, so much is looked at: the rest of a longer one says nothing more about what kind of failure it is."""

CUT = re.compile(r"\.\.\.|\[\d+ chars\]")
"""Where pytest or unittest left out the middle of a value."""

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+")
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
# with a letter and a digit: what has no digit may be a word; what has no letter, or an exponent, is left to `_NUMBER`
_HEX = re.compile(r"\b0x[0-9a-f]+\b|(?<![\w.])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b(?![+-]\d)", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w.>/])/[^\s'\"`:,;()\[\]{}<>|]+")
_TEMPORARY = re.compile(r"^(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/|$)")
_SITE = re.compile(r"^.*/(?:site|dist)-packages/")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_]*(?:\.\d+)*\.?(?:e[-+]?\d+)?j?", re.IGNORECASE)
_NUMBERS = re.compile(r"<n>(?:, <n>)+")
_QUOTED = re.compile(r"(?<!\w)[bru]{0,2}(?P<quote>['\"])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)(?!\w)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CONTAINER = re.compile(r"\w*(?:\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\})")
_SET = re.compile(r"\{(?P<items>[^{}:]+)\}")
_CALLED = re.compile(r"\b(?:\w+\.)+(?:<locals>\.)?(?=\w+\(\) (?:missing|takes|got) )")
_HINT = re.compile(
    r"(?:\.|,)? (?:Did you mean|Or did you forget|Did you forget|Perhaps you forgot|Maybe you meant)\b.*$"
)

_SAID = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"^maximum recursion depth exceeded.*$", "maximum recursion depth exceeded"),
        (r"^Maximum call stack size exceeded.*$", "maximum recursion depth exceeded"),
        (r"^local variable ('\w+') referenced before assignment$", r"local \1 has no value"),
        (r"^cannot access local variable ('\w+') where it is not associated with a value$", r"local \1 has no value"),
        (r"^free variable ('\w+') referenced before assignment in enclosing scope$", r"free \1 has no value"),
        (
            r"^cannot access free variable ('\w+') where it is not associated with a value in enclosing scope$",
            r"free \1 has no value",
        ),
        (r"^property ('\w+') of '.*' object has no (setter|deleter)$", r"cannot change \1"),
        (r"^can't (?:set|delete) attribute(?: ('\w+'))?$", r"cannot change \1"),
        (r"^cannot use '\w+' as a .* \((unhashable type: '\w+')\)$", r"\1"),
        (r"^(expected string or bytes-like object)(?:, got '\w+')?$", r"\1"),
        (r"^too many values to unpack \(expected (\d+)(?:, got \d+)?\)$", r"too many values to unpack (expected \1)"),
        (r"^Can't instantiate abstract class (\w+) .*method(?:s)? .*$", r"Can't instantiate abstract class \1"),
        (r"\bDID NOT RAISE <class '(?:[\w.]+\.)?(\w+)'>", r"DID NOT RAISE \1"),
        (r"^partially initialized module ('[\w.]+')(?: from '[^']*')? has no", r"module \1 has no"),
        (r"^(cannot import name '\w+' from )(?:partially initialized module )?('[\w.]+').*$", r"\1\2"),
        (
            r"^(?:Illegal trailing comma before end of \w+|Expecting property name enclosed in double quotes):",
            "bad JSON:",
        ),
        (r"^Cannot read property ('[^']*') of (\w+)$", r"Cannot read properties of \2 (reading \1)"),
        (r"^Cannot set property ('[^']*') of (\w+)$", r"Cannot set properties of \2 (setting \1)"),
        (
            r"^(?:Unexpected token .* (?:in JSON at position \d+|is not valid JSON)|Unexpected end of JSON input)$",
            "bad JSON",
        ),
    )
)
"""What Python and V8 say in one version and said in another: one wording for both."""


def normal(line: str, roots: Sequence[str], *, numbers: bool = False) -> str:
    """One line with addresses, times, ids and places replaced by what kind of thing stood there.

    Numbers are, too, unless `numbers` says that they are part of the failure; those of all spellings have one mark, as
    a short hash may happen to have no letter. Quoted text stays: which attribute is missing is the failure.
    """
    text = _HINT.sub("", line[:LINE_LIMIT])
    for root in longest_first(roots):
        text = re.sub(re.escape(root) + r"(?![\w.-])", "<repo>", text)
    for pattern, said in _SAID:
        text = pattern.sub(said, text)
    text = CUT.sub("...", _CALLED.sub("", text))
    text = _URL.sub("<url>", text)
    text = _PATH.sub(lambda found: _place(found[0]), text)
    text = _TIME.sub("<time>", text)
    text = _UUID.sub("<n>", text)
    text = _HEX.sub("<n>", text)
    if not numbers:
        text = _NUMBERS.sub("<n>", _NUMBER.sub("<n>", text))
    text = _SET.sub(_sorted, text)
    text = _QUOTED.sub(lambda found: f"'{found['text']}'", text)
    return " ".join(text.split())


def general(said: str, *, assertion: bool) -> str:
    """The kind of failure that a normal line tells of, in any repo: without values and without the repo's own names."""
    text = _NUMBERS.sub("<n>", _NUMBER.sub("<n>", said))
    text = _QUOTED.sub(_quoted_in_general, text)
    if assertion:
        shorter = ""
        while shorter != text:
            shorter, text = text, _CONTAINER.sub("<values>", text)
    return " ".join(text.split())


def _quoted_in_general(found: re.Match[str]) -> str:
    text = found["text"]
    if text == "NoneType" or isinstance(getattr(builtins, text, None), type):
        return f"'{text}'"
    return "<name>" if _DOTTED.fullmatch(text) else "<str>"


def _place(path: str) -> str:
    if _TEMPORARY.match(path):
        return "<tmp>"
    site = _SITE.match(path)
    return f"<site>/{path[site.end() :]}" if site else basename(path.rstrip("/")) or path


def _sorted(found: re.Match[str]) -> str:
    """A set shows its items in an order of chance; one that was cut short shows some of them by chance."""
    items = found["items"]
    return "{<set>}" if "..." in items else "{" + ", ".join(sorted(items.split(", "))) + "}"
