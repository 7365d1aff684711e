"""What a failure is called, so that the same bug has the same name on another machine and after other edits.

With a frame in the repo's source, the bug is the exception, what it said, and the function it came from: whichever test
saw it. Without one, a test found a wrong value: then it is the test, the line it was at, and what it compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from redstart.core.learning import Signature
from redstart.core.noun import clip
from redstart.core.report import Case
from redstart.toolkit.learning.frames import Traceback, place, tracebacks
from redstart.toolkit.learning.wording import CUT, LINE_LIMIT, general, normal

MESSAGE_LIMIT = 300

# pytest writes the escape character into its XML as the text `#x1B`
_ANSI = re.compile(r"(?:\x1b|#x1B)\[[0-?]*[ -/]*[@-~]")
_PHASE = re.compile(r'^failed on (?:setup|teardown) with "(.*)"$', re.DOTALL)
_RAISED = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.(?:<locals>\.)?)*(?:_*[A-Z]\w*|(?<=\.)[a-z_]\w*))(?::(?:\s+(?P<text>.*))?)?$",
)
_SAYS_NOTHING = ("", "collection failure")
_ASSERTIONS = frozenset(("AssertionError", "JestAssertionError", "Failed", "failureException"))
_SYNTAX = frozenset(("SyntaxError", "IndentationError", "TabError"))
"""Each Python has its own words for these, and before 3.10 another line: the file is the name."""
_NOT_RAISED = re.compile(r"\bDID NOT RAISE\b|\bnot raised\b")
"""At which line a `with` is left without the exception is told otherwise by each Python."""
_WHERE = re.compile(r"^(?:E\s+)?\+\s+where (.*)$")
_ASSERTED = re.compile(r"^(assert .*)$")
"""Below what the test has to say about it."""
_MATCHED = re.compile(r"^(?:Expected regex|Regex|Actual message|Input): (.*)$")
_DIFFERENCE = re.compile(
    r"^(?:At index .* diff: |(?:Left|Right) contains |Extra items in |Differing items|First differing |[-+] ?\S)"
)
_ORDERED = re.compile(
    r"\s(?:<|>|<=|>=)\s| (?:less|greater) than | within | to be (?:below|above|at least|at most|close to) "
    r"|toBe(?:Less|Greater)Than|toBeCloseTo"
)
"""How times and estimates are compared."""
_LITERAL = re.compile(r"(?<![\w.])-?\d[\w.]*|'[^']*'|\"[^\"]*\"|\b(?:True|False|None)\b")
_MOST_DIFFERENCES = 3
_MOST_LITERALS = 40


class _Raised(NamedTuple):
    type: str
    text: str


def sign(case: Case, *, is_source: Callable[[str], bool], roots: Sequence[str] = ()) -> Signature:
    """The signature of a red case, from the runner's message and its traceback (pytest's, Python's own or Node's).

    `is_source` tells the repo's source from its tests, for paths relative to the repo. `roots` are the absolute
    folders where the repo may lie, as tracebacks show them: an absolute path under none of them is not the repo's.
    Never fails: what the text does not tell is empty, and the frame is then the test's own id without parameters.
    """
    found = tracebacks(_plain(case.detail))
    message = _plain(case.message).strip()
    raised = _raised(message, found[-1].text)
    short = raised.type.rpartition(".")[2]
    where = place(found, is_source, roots, recursive=short in ("RecursionError", "RangeError"))
    assertion = short in _ASSERTIONS or raised.text.startswith("expect(")
    first = "" if short in _SYNTAX else raised.text
    said = " ".join([first, *_more(message, raised, found[-1])]) if assertion else first
    wanted = where.asked + case.id.partition("[")[2]
    numbers = assertion and _by_value(said, wanted, script=found[-1].script)
    return Signature(
        exception=raised.type,
        message=clip(normal(said, roots, numbers=numbers), MESSAGE_LIMIT),
        frame=where.source or case.id.partition("[")[0],
        kind=clip(general(normal(first, roots), assertion=assertion), MESSAGE_LIMIT),
        at="" if short in _SYNTAX or _NOT_RAISED.search(said) else clip(where.asked, MESSAGE_LIMIT),
    )


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
    return None if match is None else _Raised(match["type"].replace("<locals>.", ""), (match["text"] or "").strip())


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _more(message: str, raised: _Raised, traceback: Traceback) -> Iterator[str]:
    """What an assertion says below its first line, where that alone does not tell what was wrong."""
    below = [line.strip() for line in message.splitlines()[1:] if line.strip()]
    if traceback.script:
        yield from (line for line in below if not line.startswith("at "))
        return
    telling = (_ASSERTED.match(line) or _WHERE.match(line) or _MATCHED.match(line) for line in below)
    yield from (found[1] for found in telling if found)
    if CUT.search(raised.text) or not raised.text:
        told = (re.sub(r"^E\s*", "", line).strip() for line in _after_first(traceback.text, raised.text))
        yield from [line for line in told if _DIFFERENCE.match(line)][:_MOST_DIFFERENCES]


def _after_first(text: str, said: str) -> list[str]:
    """The lines below the one that holds `said`."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if said and said in line), 0)
    return lines[start + 1 :]


def _by_value(said: str, wanted: str, *, script: bool) -> bool:
    """Whether the numbers in an assertion are part of the failure, and not drawn by chance or measured.

    They are where the test itself names what it wants: a literal of its line, or a parameter of its id, is shown.
    Node's tracebacks do not show what the test asked.
    """
    if _ORDERED.search(said):
        return False
    shown = dict.fromkeys(literal.strip("'\"") for literal in _LITERAL.findall(said[:LINE_LIMIT]))
    telling = [re.escape(one) for one in shown if one][:_MOST_LITERALS]
    named = re.compile(rf"(?<![\w.])(?:{'|'.join(telling)})(?![\w.])")
    return script or (bool(telling) and named.search(wanted[:LINE_LIMIT]) is not None)


def _plain(text: str) -> str:
    """Without colours, and with every line ended by a newline alone."""
    return _ANSI.sub("", text).replace("\r\n", "\n")
