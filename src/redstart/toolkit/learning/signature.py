"""Compute the signature of a failure: a bug keeps the same signature on another machine and after other edits.

With a frame in the repo's source, the exception, its message and the function that raised it identify the bug,
whichever test saw it. Without such a frame, a test found a wrong value: the test, its line and the comparison identify
the bug. Or the code lacks a name that its tests use: the tests' file and the name identify the bug.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from redstart.core.frozen import clip
from redstart.core.learning import ASSERTION_TYPES, Signature
from redstart.core.report import Case
from redstart.toolkit.base.tracebacks import Traceback, parse_tracebacks, strip_colors
from redstart.toolkit.learning.failure_text import (
    LINE_LIMIT,
    OMISSION_MARK,
    FailurePlace,
    add_missing_attribute,
    generalize_line,
    mask_values,
    normalize_line,
    normalize_type_name,
    place,
)

_SCRIPT = re.compile(r"^[^:>]*\.[cm]?[jt]sx?(?=::| > |$)")
_QUOTES = re.compile(r"(?<!\w)(?:'([^']*)'|\"([^\"]*)\"|`([^`]*)`)(?!\w)")
_LITERAL = re.compile(r"(?<![\w.])-?\d[\w.]*|'[^']*'|\"[^\"]*\"")
_MOST_LITERALS = 40
_NAMED_BY_PLACE = re.compile(r"(?:^|-)[A-Za-z_]\w*?\d+(?=-|$)")
"""pytest names a parameter that is not a plain value `name0`, `name1`."""
_VALUE = re.compile(
    r"(?<!\w)(?:'(?P<single>[^']+)'|\"(?P<double>[^\"]+)\"|`(?P<back>[^`]+)`)(?!\w)|(?<=: )(?P<last>[^:'\"]+)$"
)
"""A value that a message shows: in quotes, or at its end."""


class CaseId(NamedTuple):
    """The parts of a test ID."""

    file: str
    name: str
    """The ID without parameters."""
    parameters: str
    """All parameter values, as text."""
    script: bool
    """Whether it is a Node.js test."""


def read_id(id_: str) -> CaseId:
    name, _, parameters = id_.partition("[")
    script = _SCRIPT.match(id_)
    if script is None:
        return CaseId(id_.partition("::")[0], name, parameters.removesuffix("]"), script=False)
    quoted = ("".join(item) for item in _QUOTES.findall(id_[script.end() :]))
    return CaseId(script[0], name, "\n".join(quoted), script=True)


def has_common_literal(text: str, values: str) -> bool:
    """Whether a literal in `text` also occurs in `values`."""
    literals = dict.fromkeys(literal.strip("'\"") for literal in _LITERAL.findall(text))
    patterns = [re.escape(item) for item in literals if item][:_MOST_LITERALS]
    return bool(patterns) and re.search(rf"(?<![\w.])(?:{'|'.join(patterns)})(?![\w.])", values) is not None


def depends_on_parameters(test: CaseId, message: str, test_lines: str) -> bool:
    """Whether an assertion's values come from the test's parameters. One bug then has different values for each set."""
    if test.script or not test.parameters:
        return False
    return has_common_literal(message, test.parameters) or (
        _NAMED_BY_PLACE.search(test.parameters) is not None and not has_common_literal(message, test_lines)
    )


def mask_parameters(message: str, parameters: str) -> str:
    """Replace each value in a message that is a parameter of the test with a mark."""

    def mark(match: re.Match[str]) -> str:
        occurrence = re.search(rf"(?<!\w){re.escape(match[match.lastindex or 0])}(?!\w)", parameters)
        return "<given>" if occurrence else match[0]

    return _VALUE.sub(mark, message) if parameters else message


MESSAGE_LIMIT = 300

_PHASE = re.compile(r'^failed on (?:setup|teardown) with "(.*)"$', re.DOTALL)
_EXCEPTION_LINE = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.(?:<locals>\.)?)*(?:_*[A-Z]\w*|(?<=\.)[a-z_]\w*))(?: \[[A-Z][A-Z0-9_]*\])?"
    r"(?::(?:\s+(?P<text>.*))?)?$",
)
_SAYS_NOTHING = ("", "collection failure")
_SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))
"""Each Python version words these differently."""
_UNPARSED_SOURCE = re.compile(
    r'^(?:E[ \t])?[ \t]*File "[^"\n]+", line \d+\n((?:E[ \t])?[ \t]*)(\S.*)\n((?:E[ \t])?[ \t]*)\^', re.MULTILINE
)
_NOT_CLOSED = re.compile(r"was never closed$|^unexpected EOF")
_CODE_ERRORS = frozenset(
    ("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "ReferenceError", "TypeError")
)
"""Exceptions that mention only names from the code. Other exceptions mention values too."""
_MISSING_NAME = re.compile(
    r"(?<!'NoneType' object )\bhas no attribute '|\bname '\w+' is not defined|\bcannot import name |\bNo module named "
    r"|(?<!\bundefined)(?<!\bnull) is not (?:a function|a constructor|defined)$|^Can't instantiate abstract class "
    r"|\bunexpected keyword argument '|\bmissing \d+ required "
)
"""Messages that name something the code lacks, whichever test uses it."""
_NOT_RAISED = re.compile(r"\bDID NOT RAISE\b|\bnot raised\b")
"""Each Python version reports a different line if a `with` block ends without the exception."""
_ASSERTION_VALUE = re.compile(r"^(?:E\s+)?\+\s+where (.*)$")
_ASSERTION_LINE = re.compile(r"^(assert .*)$")
"""The assertion below the test's own message."""
_REGEX_DETAIL = re.compile(r"^(?:Expected regex|Regex|Actual message|Input): (.*)$")
_DIFFERENCE = re.compile(
    r"^(?:At index .* diff: |(?:Left|Right) contains |Extra items in |\{.*\} != \{|First differing |[-+] ?\S)"
)
_ORDERED = re.compile(
    r"\s(?:<|>|<=|>=)\s| (?:less|greater) than | within | to be (?:below|above|at least|at most|close to) "
    r"|toBe(?:Less|Greater)Than|toBeCloseTo"
)
"""Comparisons that are typical of times and estimates."""
_LEGEND = re.compile(r"[-+] (?:Expected|Received)\b")
_MOST_DIFFERENCES = 3


class _Raised(NamedTuple):
    type: str
    text: str


def sign(case: Case, *, is_source: Callable[[str], bool], roots: Sequence[str] = ()) -> Signature:
    """Compute a failing case's signature from the runner's message and its traceback (pytest's, Python's or Node's).

    `is_source` tells the repo's source from its tests, for paths relative to the repo. `roots` are the absolute
    directories where the repo may lie, as tracebacks show them. An absolute path under none of them is not in the repo.
    Never fails: facts that the text does not contain are empty. The frame is then the test's own ID without
    parameters, or its file alone if any test in it would report the same.
    """
    chain = parse_tracebacks(strip_colors(case.detail))
    message = strip_colors(case.message).strip()
    test = read_id(case.id)
    exception = _parse_exception(message, chain[-1].text)
    short_name = exception.type.rpartition(".")[2]
    location = place(chain, is_source, roots, test=test.file, recursive=short_name in ("RecursionError", "RangeError"))
    assertion = short_name in ASSERTION_TYPES or exception.text.startswith("expect(")
    misspelt = short_name in _SYNTAX and not test.script
    first_line = (
        _find_unparsable_line(exception.text, chain[-1].text)
        if misspelt
        else add_missing_attribute(exception.text, _get_last_line(chain[-1]))
    )
    lacks_name = not assertion and _MISSING_NAME.search(first_line[:LINE_LIMIT]) is not None
    if assertion:
        text = " ".join([first_line, *_find_comparison_lines(message, exception, chain[-1])])
        normalized = _normalize_assertion(
            text, " ".join(_find_differences(exception, chain[-1])), test, location, roots
        )
    else:
        parameters = "" if short_name in _CODE_ERRORS else test.parameters
        text = first_line
        normalized = normalize_line(mask_parameters(first_line[:LINE_LIMIT], parameters[:LINE_LIMIT]), roots)
    return Signature(
        exception=exception.type,
        message=clip(normalized, MESSAGE_LIMIT),
        frame=location.source or (test.file if lacks_name else test.name),
        kind=""
        if misspelt
        else clip(generalize_line(normalize_line(first_line, roots), assertion=assertion), MESSAGE_LIMIT),
        at=""
        if lacks_name or short_name in _SYNTAX or _NOT_RAISED.search(text)
        else clip(location.test_line, MESSAGE_LIMIT),
    )


def _normalize_assertion(
    text: str, differences: str, test: CaseId, location: FailurePlace, roots: Sequence[str]
) -> str:
    """Normalize the part of an assertion that identifies the bug. If a test parameter decides the values, leave them
    out. Otherwise leave out only random values."""
    full_text = f"{text} {differences}"[:LINE_LIMIT]
    if not location.source and depends_on_parameters(test, full_text, location.test_line):
        return mask_values(text, roots)
    # Node's tracebacks do not show the test's own line.
    exact = not _ORDERED.search(full_text) and (
        test.script or has_common_literal(full_text, location.test_line[:LINE_LIMIT])
    )
    return normalize_line(f"{text} {differences}", roots, numbers=exact)


def _get_last_line(traceback: Traceback) -> str:
    return traceback.frames[-1].code if traceback.frames else ""


def _find_unparsable_line(message: str, traceback: str) -> str:
    """Find the line that Python could not parse, because each version words the error differently.

    An unclosed bracket is the same error wherever it is: before 3.10, Python showed the first word after it.
    """
    matches = list(_UNPARSED_SOURCE.finditer(traceback))
    if not matches:
        return ""
    margin, line, caret = matches[-1].groups()
    return "not closed" if _NOT_CLOSED.search(message) or caret == margin else line


def _parse_exception(message: str, traceback: str) -> _Raised:
    phase = _PHASE.match(message)
    first_line = _get_first_line(phase[1] if phase else message)
    parsed = _parse_raised(first_line)
    if parsed is not None:
        return parsed
    for line in traceback.splitlines():
        match = re.match(r"^E\s+(.*)$", line)
        parsed = _parse_raised(match[1] if match else line)
        if parsed is None or (match is None and not parsed.type.endswith(("Error", "Exception"))):
            continue
        return parsed if first_line in _SAYS_NOTHING else _Raised(parsed.type, first_line)
    return _Raised("", first_line)


def _parse_raised(line: str) -> _Raised | None:
    line = line.strip()
    if line.startswith("assert "):
        return _Raised("AssertionError", line)
    match = _EXCEPTION_LINE.match(line)
    if match is None:
        return None
    return _Raised(normalize_type_name(match["type"].replace("<locals>.", "")), (match["text"] or "").strip())


def _get_first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _find_comparison_lines(message: str, exception: _Raised, traceback: Traceback) -> Iterator[str]:
    """Yield the lines below an assertion's first line that describe the comparison."""
    lines = [line.strip() for line in message.splitlines()[1:] if line.strip()]
    if traceback.script:
        yield from _parse_comparison(
            lines or [line.strip() for line in _get_lines_after(traceback.text, exception.text)]
        )
        return
    matches = (
        _ASSERTION_LINE.match(line) or _ASSERTION_VALUE.match(line) or _REGEX_DETAIL.match(line) for line in lines
    )
    yield from (match[1] for match in matches if match)


def _find_differences(exception: _Raised, traceback: Traceback) -> Iterator[str]:
    """Yield the differences of two values if one of them was shortened."""
    if traceback.script:
        return
    if OMISSION_MARK.search(exception.text) or not exception.text:
        lines = (re.sub(r"^E\s*", "", line).strip() for line in _get_lines_after(traceback.text, exception.text))
        yield from [line for line in lines if _DIFFERENCE.match(line)][:_MOST_DIFFERENCES]


def _parse_comparison(output_lines: Sequence[str]) -> list[str]:
    """Read what a Node.js runner prints about two values above the frames.

    Each version of Node.js formats its diff differently, so the result has both values. Of another diff, it has only
    the differing lines.
    """
    head_lines = list(takewhile(lambda line: not line.startswith("at "), (line for line in output_lines if line)))
    if head_lines and head_lines[0].startswith("+ actual - expected"):
        lines = [(line[0], line.lstrip("+- ").rstrip(",")) for line in head_lines[1:] if not line.startswith("...")]
        actual, expected = ([text for mark, text in lines if mark != other_mark] for other_mark in "-+")
        return [*actual, "!==", *expected]
    differing = [line for line in head_lines if re.match(r"[-+] ?\S", line) and not _LEGEND.match(line)]
    return differing or [line for line in head_lines if line.strip("^ ")]


def _get_lines_after(text: str, marker: str) -> list[str]:
    """Return the lines below the first one that contains `marker`."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if marker and marker in line), 0)
    return lines[start + 1 :]
