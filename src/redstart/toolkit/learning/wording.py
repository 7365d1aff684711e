"""What a failure says, without what another machine, another run or another Python says otherwise."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Callable, Sequence
from posixpath import basename, normpath
from typing import NamedTuple

from redstart.toolkit.base.tracebacks import INSTALLED, Frame, Traceback

_HINT = re.compile(
    r"(?:\.|,)? (?:Did you mean|Or did you forget|Did you forget|Perhaps you forgot|Maybe you meant)\b.*$"
    r"| \(consider renaming .*$"
)
_CALLED = re.compile(r"\b(?:\w+\.)+(?:<locals>\.)?(?=\w+\(\) (?:missing|takes|got|argument after) )")
_TYPES = {"re.error": "re.PatternError"}
"""By the name before it was changed."""

_BAD_JSON = "bad JSON"
_PYTHON = (
    (r"^maximum recursion depth exceeded.*$", "maximum recursion depth exceeded"),
    (r"^local variable ('\w+') referenced before assignment$", r"local \1 has no value"),
    (r"^cannot access local variable ('\w+') where it is not associated with a value$", r"local \1 has no value"),
    (r"^free variable ('\w+') referenced before assignment in enclosing scope$", r"free \1 has no value"),
    (
        r"^cannot access free variable ('\w+') where it is not associated with a value in enclosing scope$",
        r"free \1 has no value",
    ),
    (r"^property ('\w+') of '.*' object has no (?:setter|deleter)$", r"cannot change \1"),
    (r"^can't (?:set|delete) attribute(?: ('\w+'))?$", r"cannot change \1"),
    (r"^property ('\w+') of '.*' object has no getter$", r"cannot read \1"),
    (r"^unreadable attribute(?: ('\w+'))?$", r"cannot read \1"),
    (r"^cannot use '\w+' as a .* \((unhashable type: '\w+')\)$", r"\1"),
    (r"^(expected string or bytes-like object)(?:, got '\w+')?$", r"\1"),
    (r"^(string indices must be integers)(?:, not '\w+')?$", r"\1"),
    (r"^too many values to unpack \(expected (\d+)(?:, got \d+)?\)$", r"too many values to unpack (expected \1)"),
    (r"^(Can't instantiate abstract class \w+) with(?:out an implementation for)? abstract methods? ", r"\1: "),
    (r"\bDID NOT RAISE <class '(?:[\w.]+\.)?(\w+)'>", r"DID NOT RAISE \1"),
    (r"^partially initialized module ('[\w.]+')(?: from '[^']*')? has no", r"module \1 has no"),
    (r"^(cannot import name '\w+' from )(?:partially initialized module )?('[\w.]+').*$", r"\1\2"),
    (
        r"^(?:Illegal trailing comma before end of \w+|Expecting property name enclosed in double quotes):",
        f"{_BAD_JSON}:",
    ),
    (r"\ba (?:real )?number\b", "a number"),
    (r"^descriptor '(\w+)' of '(\w+)' object needs an argument$", r"unbound method \2.\1() needs an argument"),
    (r"^super\(type, obj\): obj .*$", "super(type, obj): obj is of another type"),
    (r"^(non-default argument '\w+' follows default argument)(?: '\w+')?$", r"\1"),
    (r"^object (\w+) can't be used in 'await' expression$", r"'\1' object can't be awaited"),
    (r"^(argument of type '\w+' is not) (?:iterable|a container or iterable)$", r"\1 iterable"),
    (r"^(\w+ must be in \d+\.\.\d+)(?:, not -?\d+)?$", r"\1"),
    (r"^day (?:is out of range for month|-?\d+ must be in range .*)$", "day is out of range for month"),
    (r"^(?:[a-z]+ )*(?:division|modulo)(?: or modulo)? by zero$", "division by zero"),
    (r"^0\.0 cannot be raised to a negative power$", "zero to a negative power"),
    (r"^expected a (?:\w+ )*input, got .*$", "math domain error"),
    (r"^('\S+' codec can't (?:de|en)code) \w+ .* position \S+: ", r"\1: "),
)
_V8 = (
    (r"^Maximum call stack size exceeded.*$", "maximum recursion depth exceeded"),
    (r"^Cannot read property ('[^']*') of (\w+)$", r"Cannot read properties of \2 (reading \1)"),
    (r"^Cannot set property ('[^']*') of (\w+)$", r"Cannot set properties of \2 (setting \1)"),
    (
        r"^(?:.* in JSON at position \d+.*|Unexpected token .* is not valid JSON|Unexpected end of JSON input)$",
        "bad JSON",
    ),
)
_SAID = tuple((re.compile(pattern), said) for pattern, said in (*_PYTHON, *_V8))
_UNNAMED = re.compile(r"^can't (?:set|delete) attribute$")
_CHANGED = re.compile(r"\.(\w+)(?:\s*[-+*/|&]?=(?!=)|\s*$)")
_LISTED = re.compile(r"^(?P<head>Can't instantiate abstract class \w+: |.*\(choose from )(?P<names>.*)$")
"""What newer versions quote, or older ones."""


def told_in_full(text: str, line: str) -> str:
    """With the attribute that Python did not name before 3.10, from the `line` of code that it was at."""
    changed = _CHANGED.search(line) if _UNNAMED.match(text) else None
    return f"{text} '{changed[1]}'" if changed else text


def one_wording(text: str) -> str:
    """One line as any version might say it, without what newer ones propose."""
    text = _HINT.sub("", text)
    for pattern, said in _SAID:
        text = pattern.sub(said, text)
    text = _LISTED.sub(lambda found: found["head"] + found["names"].replace("'", ""), text)
    return _CALLED.sub("", text)


def one_type(name: str) -> str:
    """The name that an exception has in the newest version."""
    return _TYPES.get(name, name)


_HEAD = re.compile(r"@|(?:async )?def ")
"""Where a test is wrapped, as Hypothesis does, each Python has another line of its head for the place of the call."""


class FailurePlace(NamedTuple):
    """Where in the repo a failure is."""

    source: str
    """`path:function` of the innermost frame in the repo's source, `path:<module>` where it stands in no function that
    has a name; empty where there is no such frame."""
    asked: str
    """What the test was at: its own line and, where it was in a helper of the tests, that line too."""


def place(
    found: Sequence[Traceback], is_source: Callable[[str], bool], roots: Sequence[str], *, test: str, recursive: bool
) -> FailurePlace:
    """Of the exception that reached the test first, then of its causes. `test` is the file of the test, from the repo's
    root. `recursive`: the innermost frame is chance."""
    view = _view([frame for item in found for frame in item.frames], roots, test)
    source = ""
    for item in reversed(found):
        within = [(path, frame.name) for frame in item.frames if (path := view.local(frame.path)) and is_source(path)]
        if within:
            source = _recurring(within) if recursive else _innermost(within)
            break
    shown = (frame.code for frame in found[-1].frames if view.local(frame.path))
    own = [line for line in shown if line and not _HEAD.match(line)]
    asked = " ".join(dict.fromkeys((own[0], own[-1]))) if own and not source else ""
    return FailurePlace(source, " ".join(asked.split()))


class _View(NamedTuple):
    """How the folder in which the tests were begun shows the repo."""

    roots: Sequence[str]
    """Longest first."""
    before: str = ""
    """What stands before each path of the repo, where it was begun outside of it: `../copy/`."""
    within: str = ""
    """Where in the repo it was begun: `tests/`."""

    def local(self, path: str) -> str:
        """A traceback's path relative to the repo; empty where it is not the repo's."""
        plain = normpath(path)
        root = next((root for root in self.roots if plain.startswith(root + "/")), "")
        if root:
            plain = plain[len(root) + 1 :]
        elif plain.startswith("/") or (self.before and not plain.startswith(self.before)):
            return ""
        else:
            plain = normpath(self.within + plain[len(self.before) :])
            plain = _from_above(plain, self.roots) if plain.startswith("../") else plain
        return "" if plain.startswith(("..", "<")) or INSTALLED.search(plain) else plain


def _view(frames: Sequence[Frame], roots: Sequence[str], test: str) -> _View:
    """By the frame of the test's own file, which is known from the repo's root."""
    plain = _View(longest_first(roots))
    for path in (normpath(frame.path) for frame in frames):
        if path == test:
            return plain
        before = path.removesuffix(f"/{test}")
        if before != path and (before.startswith("../") or any(f"{root}/".endswith(f"/{before}/") for root in roots)):
            return plain._replace(before=before + "/")
        if not path.startswith(("/", "../")) and test.endswith(f"/{path}"):
            return plain._replace(within=test[: -len(path)])
    return plain


def _from_above(path: str, roots: Sequence[str]) -> str:
    """A path that climbs out of the folder where the tests were begun and comes down into the repo, from there on."""
    down = re.sub(r"^(?:\.\./)+", "", path)
    for root in roots:
        parts = root.strip("/").split("/")
        for first in range(len(parts)):
            if down.startswith(tail := f"{'/'.join(parts[first:])}/"):
                return down[len(tail) :]
    return path


def longest_first(roots: Sequence[str]) -> list[str]:
    return sorted((root.rstrip("/") for root in roots if root.rstrip("/")), key=lambda root: (-len(root), root))


def _innermost(within: Sequence[tuple[str, str]]) -> str:
    """What has no lasting name belongs to the function around it, as far as that stands in the traceback."""
    path = within[-1][0]
    around = (name for file, name in reversed(within) if file == path and name)
    return f"{path}:{next(around, '<module>')}"


def _recurring(within: Sequence[tuple[str, str]]) -> str:
    """Of functions that call each other without end, always the same one, wherever the stack was full."""
    often = Counter(f"{path}:{name}" for path, name in within if name)
    return min((name for name in often if often[name] > 1), default=_innermost(within))


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
