"""Computes the signature of a failure, so that a bug has the same name on another machine and after other edits.

With a frame in the repo's source, the exception, its message and the function that raised it identify the bug,
whichever test saw it. Without such a frame, a test found a wrong value: the test, its line and the comparison identify
the bug. Or the code lacks a name that its tests use: the tests' file and the name identify the bug.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import Case
from redstart.toolkit.base.tracebacks import Traceback, plain, tracebacks
from redstart.toolkit.learning.wording import (
    CUT,
    LINE_LIMIT,
    FailurePlace,
    general,
    normal,
    one_type,
    place,
    shape,
    told_in_full,
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
    given: str
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


def shows(said: str, wanted: str) -> bool:
    """Whether a literal in `text` also occurs in `values`."""
    shown = dict.fromkeys(literal.strip("'\"") for literal in _LITERAL.findall(said))
    telling = [re.escape(item) for item in shown if item][:_MOST_LITERALS]
    return bool(telling) and re.search(rf"(?<![\w.])(?:{'|'.join(telling)})(?![\w.])", wanted) is not None


def decides(test: CaseId, said: str, asked: str) -> bool:
    """Whether an assertion's values come from the test's parameters. One bug then has different values for each set."""
    if test.script or not test.given:
        return False
    return shows(said, test.given) or (_NAMED_BY_PLACE.search(test.given) is not None and not shows(said, asked))


def taken_out(said: str, given: str) -> str:
    """Replace each value in a message that is a parameter of the test with a mark."""

    def mark(found: re.Match[str]) -> str:
        known = re.search(rf"(?<!\w){re.escape(found[found.lastindex or 0])}(?!\w)", given)
        return "<given>" if known else found[0]

    return _VALUE.sub(mark, said) if given else said


MESSAGE_LIMIT = 300

_PHASE = re.compile(r'^failed on (?:setup|teardown) with "(.*)"$', re.DOTALL)
_RAISED = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.(?:<locals>\.)?)*(?:_*[A-Z]\w*|(?<=\.)[a-z_]\w*))(?: \[[A-Z][A-Z0-9_]*\])?"
    r"(?::(?:\s+(?P<text>.*))?)?$",
)
_SAYS_NOTHING = ("", "collection failure")
_ASSERTIONS = frozenset(("AssertionError", "JestAssertionError", "Failed", "failureException"))
_SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))
"""Each Python version words these differently."""
_UNREAD = re.compile(
    r'^(?:E[ \t])?[ \t]*File "[^"\n]+", line \d+\n((?:E[ \t])?[ \t]*)(\S.*)\n((?:E[ \t])?[ \t]*)\^', re.MULTILINE
)
_NOT_CLOSED = re.compile(r"was never closed$|^unexpected EOF")
_OF_CODE = frozenset(
    ("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "ReferenceError", "TypeError")
)
"""Exceptions that mention only names from the code. Other exceptions mention values too."""
_LACKS = re.compile(
    r"(?<!'NoneType' object )\bhas no attribute '|\bname '\w+' is not defined|\bcannot import name |\bNo module named "
    r"|(?<!\bundefined)(?<!\bnull) is not (?:a function|a constructor|defined)$|^Can't instantiate abstract class "
    r"|\bunexpected keyword argument '|\bmissing \d+ required "
)
"""Messages that name something the code lacks, whichever test uses it."""
_NOT_RAISED = re.compile(r"\bDID NOT RAISE\b|\bnot raised\b")
"""Each Python version reports a different line if a `with` block ends without the exception."""
_WHERE = re.compile(r"^(?:E\s+)?\+\s+where (.*)$")
_ASSERTED = re.compile(r"^(assert .*)$")
"""The assertion below the test's own message."""
_MATCHED = re.compile(r"^(?:Expected regex|Regex|Actual message|Input): (.*)$")
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
    found = tracebacks(plain(case.detail))
    message = plain(case.message).strip()
    test = read_id(case.id)
    raised = _raised(message, found[-1].text)
    short = raised.type.rpartition(".")[2]
    where = place(found, is_source, roots, test=test.file, recursive=short in ("RecursionError", "RangeError"))
    assertion = short in _ASSERTIONS or raised.text.startswith("expect(")
    misspelt = short in _SYNTAX and not test.script
    first = _misspelt(raised.text, found[-1].text) if misspelt else told_in_full(raised.text, _last_line(found[-1]))
    lacks = not assertion and _LACKS.search(first[:LINE_LIMIT]) is not None
    if assertion:
        told = " ".join([first, *_below(message, raised, found[-1])])
        said = _said(told, " ".join(_differences(raised, found[-1])), test, where, roots)
    else:
        given = "" if short in _OF_CODE else test.given
        told = first
        said = normal(taken_out(first[:LINE_LIMIT], given[:LINE_LIMIT]), roots)
    return Signature(
        exception=raised.type,
        message=clip(said, MESSAGE_LIMIT),
        frame=where.source or (test.file if lacks else test.name),
        kind="" if misspelt else clip(general(normal(first, roots), assertion=assertion), MESSAGE_LIMIT),
        at="" if lacks or short in _SYNTAX or _NOT_RAISED.search(told) else clip(where.asked, MESSAGE_LIMIT),
    )


def _said(told: str, differs: str, test: CaseId, where: FailurePlace, roots: Sequence[str]) -> str:
    """Normalize the part of an assertion that identifies the bug. If a test parameter decides the values, leave them
    out. Otherwise leave out only random values."""
    seen = f"{told} {differs}"[:LINE_LIMIT]
    if not where.source and decides(test, seen, where.asked):
        return shape(told, roots)
    # Node's tracebacks do not show the test's own line.
    exact = not _ORDERED.search(seen) and (test.script or shows(seen, where.asked[:LINE_LIMIT]))
    return normal(f"{told} {differs}", roots, numbers=exact)


def _last_line(traceback: Traceback) -> str:
    return traceback.frames[-1].code if traceback.frames else ""


def _misspelt(said: str, traceback: str) -> str:
    """Find the line that Python could not parse, because each version words the error differently.

    An unclosed bracket is the same error wherever it is: before 3.10, Python showed the first word after it.
    """
    unread = list(_UNREAD.finditer(traceback))
    if not unread:
        return ""
    margin, line, caret = unread[-1].groups()
    return "not closed" if _NOT_CLOSED.search(said) or caret == margin else line


def _raised(message: str, traceback: str) -> _Raised:
    phase = _PHASE.match(message)
    said = _first_line(phase[1] if phase else message)
    found = _parse_raised(said)
    if found is not None:
        return found
    for line in traceback.splitlines():
        marked = re.match(r"^E\s+(.*)$", line)
        found = _parse_raised(marked[1] if marked else line)
        if found is None or (marked is None and not found.type.endswith(("Error", "Exception"))):
            continue
        return found if said in _SAYS_NOTHING else _Raised(found.type, said)
    return _Raised("", said)


def _parse_raised(line: str) -> _Raised | None:
    line = line.strip()
    if line.startswith("assert "):
        return _Raised("AssertionError", line)
    match = _RAISED.match(line)
    if match is None:
        return None
    return _Raised(one_type(match["type"].replace("<locals>.", "")), (match["text"] or "").strip())


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _below(message: str, raised: _Raised, traceback: Traceback) -> Iterator[str]:
    """Yield the lines below an assertion's first line that describe the comparison."""
    below = [line.strip() for line in message.splitlines()[1:] if line.strip()]
    if traceback.script:
        yield from _compared(below or [line.strip() for line in _after_first(traceback.text, raised.text)])
        return
    telling = (_ASSERTED.match(line) or _WHERE.match(line) or _MATCHED.match(line) for line in below)
    yield from (found[1] for found in telling if found)


def _differences(raised: _Raised, traceback: Traceback) -> Iterator[str]:
    """Yield the differences of two values if one of them was shortened."""
    if traceback.script:
        return
    if CUT.search(raised.text) or not raised.text:
        told = (re.sub(r"^E\s*", "", line).strip() for line in _after_first(traceback.text, raised.text))
        yield from [line for line in told if _DIFFERENCE.match(line)][:_MOST_DIFFERENCES]


def _compared(below: Sequence[str]) -> list[str]:
    """Read what a Node.js runner prints about two values above the frames.

    Each version of Node.js formats its diff differently, so the result has both values. Of another diff, it has only
    the differing lines.
    """
    told = list(takewhile(lambda line: not line.startswith("at "), (line for line in below if line)))
    if told and told[0].startswith("+ actual - expected"):
        lines = [(line[0], line.lstrip("+- ").rstrip(",")) for line in told[1:] if not line.startswith("...")]
        actual, expected = ([text for mark, text in lines if mark != other] for other in "-+")
        return [*actual, "!==", *expected]
    differs = [line for line in told if re.match(r"[-+] ?\S", line) and not _LEGEND.match(line)]
    return differs or [line for line in told if line.strip("^ ")]


def _after_first(text: str, said: str) -> list[str]:
    """Return the lines below the first one that contains `marker`."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if said and said in line), 0)
    return lines[start + 1 :]
