"""Normalize failure texts: remove what differs between machines, runs and Python versions."""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Callable, Sequence
from posixpath import basename, normpath
from typing import NamedTuple

from redstart.toolkit.base.tracebacks import INSTALLED_PATH, Frame, Traceback

_HINT = re.compile(
    r"(?:\.|,)? (?:Did you mean|Or did you forget|Did you forget|Perhaps you forgot|Maybe you meant)\b.*$"
    r"| \(consider renaming .*$"
)
_QUALIFIER = re.compile(r"\b(?:\w+\.)+(?:<locals>\.)?(?=\w+\(\) (?:missing|takes|got|argument after) )")
_TYPES = {"re.error": "re.PatternError"}
"""New exception names by old name."""

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
_REWORDINGS = tuple((re.compile(pattern), wording) for pattern, wording in (*_PYTHON, *_V8))
_UNNAMED_ATTRIBUTE = re.compile(r"^can't (?:set|delete) attribute$")
_CHANGED = re.compile(r"\.(\w+)(?:\s*[-+*/|&]?=(?!=)|\s*$)")
_QUOTED_NAMES = re.compile(r"^(?P<head>Can't instantiate abstract class \w+: |.*\(choose from )(?P<names>.*)$")
"""Lists of names that only newer or only older versions quote."""


def add_missing_attribute(text: str, line: str) -> str:
    """Add the attribute that Python did not name before 3.10, taken from the `line` of code that failed."""
    changed = _CHANGED.search(line) if _UNNAMED_ATTRIBUTE.match(text) else None
    return f"{text} '{changed[1]}'" if changed else text


def unify_wording(text: str) -> str:
    """Unify the wording of one line across versions, without the suggestions of newer versions."""
    text = _HINT.sub("", text)
    for pattern, replacement in _REWORDINGS:
        text = pattern.sub(replacement, text)
    text = _QUOTED_NAMES.sub(lambda match: match["head"] + match["names"].replace("'", ""), text)
    return _QUALIFIER.sub("", text)


def normalize_type_name(name: str) -> str:
    """Return the exception's name in the newest version."""
    return _TYPES.get(name, name)


_HEAD = re.compile(r"@|(?:async )?def ")
"""A line of a test's head. If a test is wrapped, as by Hypothesis, each version reports another one for the call."""


class FailurePlace(NamedTuple):
    """Where in the repo a failure is."""

    source: str
    """`path:function` of the innermost frame in the repo's source, or `path:<module>` outside a named function.

    Empty if there is no such frame.
    """
    test_line: str
    """The test's own failing line and, if it was in a test helper, the helper's line too."""


def place(
    chain: Sequence[Traceback], is_source: Callable[[str], bool], roots: Sequence[str], *, test: str, recursive: bool
) -> FailurePlace:
    """Find the place of the exception that reached the test, else of its causes.

    `test` is the test's file relative to the repo's root. `recursive` means that the innermost frame is random.
    """
    view = _find_view([frame for item in chain for frame in item.frames], roots, test)
    source = ""
    for item in reversed(chain):
        source_frames = [
            (path, frame.name)
            for frame in item.frames
            if (path := view.get_relative_path(frame.path)) and is_source(path)
        ]
        if source_frames:
            source = _find_recurring(source_frames) if recursive else _find_innermost(source_frames)
            break
    code_lines = (frame.code for frame in chain[-1].frames if view.get_relative_path(frame.path))
    test_lines = [line for line in code_lines if line and not _HEAD.match(line)]
    failing_lines = " ".join(dict.fromkeys((test_lines[0], test_lines[-1]))) if test_lines and not source else ""
    return FailurePlace(source, " ".join(failing_lines.split()))


class _View(NamedTuple):
    """How the repo looks from the directory in which the tests were started."""

    roots: Sequence[str]
    """The roots, longest first."""
    before: str = ""
    """The prefix of each path of the repo if the tests were started outside it: `../copy/`."""
    test_directory: str = ""
    """The directory in the repo where the tests were started: `tests/`."""

    def get_relative_path(self, path: str) -> str:
        """Return a traceback's path relative to the repo. Empty if it is not in the repo."""
        relative = normpath(path)
        root = next((root for root in self.roots if relative.startswith(root + "/")), "")
        if root:
            relative = relative[len(root) + 1 :]
        elif relative.startswith("/") or (self.before and not relative.startswith(self.before)):
            return ""
        else:
            relative = normpath(self.test_directory + relative[len(self.before) :])
            relative = _from_above(relative, self.roots) if relative.startswith("../") else relative
        return "" if relative.startswith(("..", "<")) or INSTALLED_PATH.search(relative) else relative


def _find_view(frames: Sequence[Frame], roots: Sequence[str], test: str) -> _View:
    """Find the view from the frame of the test's own file, whose path from the repo's root is known."""
    view = _View(sort_longest_first(roots))
    for path in (normpath(frame.path) for frame in frames):
        if path == test:
            return view
        prefix = path.removesuffix(f"/{test}")
        if prefix != path and (prefix.startswith("../") or any(f"{root}/".endswith(f"/{prefix}/") for root in roots)):
            return view._replace(before=prefix + "/")
        if not path.startswith(("/", "../")) and test.endswith(f"/{path}"):
            return view._replace(test_directory=test[: -len(path)])
    return view


def _from_above(path: str, roots: Sequence[str]) -> str:
    """Resolve a path that climbs out of the start directory and back into the repo."""
    remainder = re.sub(r"^(?:\.\./)+", "", path)
    for root in roots:
        parts = root.strip("/").split("/")
        for start in range(len(parts)):
            if remainder.startswith(tail := f"{'/'.join(parts[start:])}/"):
                return remainder[len(tail) :]
    return path


def sort_longest_first(roots: Sequence[str]) -> list[str]:
    return sorted((root.rstrip("/") for root in roots if root.rstrip("/")), key=lambda root: (-len(root), root))


def _find_innermost(frames: Sequence[tuple[str, str]]) -> str:
    """Find the innermost frame. Code without a lasting name belongs to the enclosing function in the traceback."""
    path = frames[-1][0]
    enclosing = (name for file, name in reversed(frames) if file == path and name)
    return f"{path}:{next(enclosing, '<module>')}"


def _find_recurring(frames: Sequence[tuple[str, str]]) -> str:
    """Find one of the functions that call each other endlessly. It is always the same one, wherever the stack ends."""
    counts = Counter(f"{path}:{name}" for path, name in frames if name)
    return min((name for name in counts if counts[name] > 1), default=_find_innermost(frames))


LINE_LIMIT = 4000
"""How much of a line is examined. The rest of a longer line says nothing more about the kind of failure."""

OMISSION_MARK = re.compile(r"\.\.\.|\[\d+ chars\]")
"""The mark of pytest or unittest for the omitted middle of a value."""

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+")
_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
# With a letter and a digit: without a digit it may be a word; without a letter, or with an exponent, see `_NUMBER`.
_HEX = re.compile(r"\b0x[0-9a-f]+\b|(?<![\w.])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b(?![+-]\d)", re.IGNORECASE)
_PATH = re.compile(r"(?:<repo>|(?<![\w.>/]))/[^\s'\"`:,;()\[\]{}<>|]+")
_TEMPORARY = re.compile(
    r"^(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm)(?:/|$)|/pytest-of-[^/]+/|/tmp[a-z0-9_]{8}(?:/|$)"
)
"""Temporary paths, by location or by the names that pytest and Python give them anywhere."""
_SITE_PACKAGES = re.compile(r"^.*/(?:site|dist)-packages/")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_]*(?:\.\d+)*\.?(?:e[-+]?\d+)?j?", re.IGNORECASE)
_NUMBERS = re.compile(r"<n>(?:, <n>)+")
_STRING_LITERAL = re.compile(r"(?<!\w)[bru]{0,2}(?P<quote>['\"])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)(?!\w)")
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_CONTAINER = re.compile(r"\w*(?:\([^()\[\]{}]*\)|\[[^()\[\]{}]*\]|\{[^()\[\]{}]*\})")
_SET = re.compile(r"\{(?P<items>[^{}:]+)\}")


def normalize_line(line: str, roots: Sequence[str], *, numbers: bool = False) -> str:
    """Replace addresses, times, IDs and paths in one line with marks of their kind.

    Numbers are replaced too, unless `keep_numbers` says that they are part of the failure. All spellings get the same
    mark, because a short hash may happen to have no letter. Quoted text stays: the missing attribute is the failure.
    """
    text = unify_wording(line[:LINE_LIMIT])
    for root in sort_longest_first(roots):
        text = re.sub(re.escape(root) + r"(?![\w.-])", "<repo>", text)
    text = OMISSION_MARK.sub("...", text)
    text = _URL.sub("<url>", text)
    text = _PATH.sub(lambda match: _place(match[0]), text)
    text = _TIME.sub("<time>", text)
    text = _UUID.sub("<n>", text)
    text = _HEX.sub("<n>", text)
    if not numbers:
        text = _NUMBERS.sub("<n>", _NUMBER.sub("<n>", text))
    text = _SET.sub(_sort_set_items, text)
    text = _STRING_LITERAL.sub(lambda match: f"'{match['text']}'", text)
    return " ".join(text.split())


def generalize_line(line: str, *, assertion: bool) -> str:
    """Generalize a normalized line to its kind of failure in any repo, without values or the repo's own names."""
    text = _NUMBERS.sub("<n>", _NUMBER.sub("<n>", line))
    text = _STRING_LITERAL.sub(_generalize_quoted, text)
    return " ".join((_without_containers(text) if assertion else text).split())


def mask_values(line: str, roots: Sequence[str]) -> str:
    """Normalize a comparison and mask all values except None, True and False."""
    return _without_containers(normalize_line(_STRING_LITERAL.sub("<str>", line[:LINE_LIMIT]), roots))


def _without_containers(text: str) -> str:
    shorter = ""
    while shorter != text:
        shorter, text = text, _CONTAINER.sub("<values>", text)
    return text


def _generalize_quoted(match: re.Match[str]) -> str:
    text = match["text"]
    if text == "NoneType" or isinstance(getattr(builtins, text, None), type):
        return f"'{text}'"
    return "<name>" if _DOTTED_NAME.fullmatch(text) else "<str>"


def _place(path: str) -> str:
    if _TEMPORARY.search(path):
        return "<tmp>"
    if path.startswith("<repo>"):
        return path
    site = _SITE_PACKAGES.match(path)
    return f"<site>/{path[site.end() :]}" if site else basename(path.rstrip("/")) or path


def _sort_set_items(match: re.Match[str]) -> str:
    """Sort the items of a set, whose order is random. A shortened set shows random items, so mask all of them."""
    items = match["items"]
    return "{<set>}" if "..." in items else "{" + ", ".join(sorted(items.split(", "))) + "}"
