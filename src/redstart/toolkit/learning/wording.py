"""What a failure says, without what another machine, another run or another Python says otherwise."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from posixpath import basename

from redstart.toolkit.learning.places import longest_first
from redstart.toolkit.learning.versions import one_wording

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
_PATH = re.compile(r"(?:<repo>|(?<![\w.>/]))/[^\s'\"`:,;()\[\]{}<>|]+")
_TEMPORARY = re.compile(
    r"^(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/|$)|/pytest-of-[^/]+/|/tmp[a-z0-9_]{8}(?:/|$)"
)
"""By where it lies, or by how pytest and Python name what is temporary, wherever that is."""
_SITE = re.compile(r"^.*/(?:site|dist)-packages/")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_]*(?:\.\d+)*\.?(?:e[-+]?\d+)?j?", re.IGNORECASE)
_NUMBERS = re.compile(r"<n>(?:, <n>)+")
_QUOTED = re.compile(r"(?<!\w)[bru]{0,2}(?P<quote>['\"])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)(?!\w)")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CONTAINER = re.compile(r"\w*(?:\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\})")
_SET = re.compile(r"\{(?P<items>[^{}:]+)\}")


def normal(line: str, roots: Sequence[str], *, numbers: bool = False) -> str:
    """One line with addresses, times, ids and places replaced by what kind of thing stood there.

    Numbers are, too, unless `numbers` says that they are part of the failure; those of all spellings have one mark, as
    a short hash may happen to have no letter. Quoted text stays: which attribute is missing is the failure.
    """
    text = one_wording(line[:LINE_LIMIT])
    for root in longest_first(roots):
        text = re.sub(re.escape(root) + r"(?![\w.-])", "<repo>", text)
    text = CUT.sub("...", text)
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
    return " ".join((_without_containers(text) if assertion else text).split())


def shape(line: str, roots: Sequence[str]) -> str:
    """What a line compares, normal and without any value but None, True and False."""
    return _without_containers(normal(_QUOTED.sub("<str>", line[:LINE_LIMIT]), roots))


def _without_containers(text: str) -> str:
    shorter = ""
    while shorter != text:
        shorter, text = text, _CONTAINER.sub("<values>", text)
    return text


def _quoted_in_general(found: re.Match[str]) -> str:
    text = found["text"]
    if text == "NoneType" or isinstance(getattr(builtins, text, None), type):
        return f"'{text}'"
    return "<name>" if _DOTTED.fullmatch(text) else "<str>"


def _place(path: str) -> str:
    if _TEMPORARY.search(path):
        return "<tmp>"
    if path.startswith("<repo>"):
        return path
    site = _SITE.match(path)
    return f"<site>/{path[site.end() :]}" if site else basename(path.rstrip("/")) or path


def _sorted(found: re.Match[str]) -> str:
    """A set shows its items in an order of chance; one that was cut short shows some of them by chance."""
    items = found["items"]
    return "{<set>}" if "..." in items else "{" + ", ".join(sorted(items.split(", "))) + "}"
