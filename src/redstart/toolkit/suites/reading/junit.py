"""JUnit XML, read into cases."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from junitparser import Attr, Error, Failure, JUnitXml, JUnitXmlError, TestCase

from redstart.core.noun import clip
from redstart.core.report import Case, Outcome
from redstart.toolkit.suites.reading.values import compared

SIZE_LIMIT = 64 << 20
DETAIL_LIMIT = 20_000
MESSAGE_LIMIT = 1000
MESSAGE_LINES = 6

_DECLARATION = re.compile(r"^\ufeff?\s*<\?xml[^>]*\?>")
_PHASE = re.compile(r'^failed on (?:setup|teardown) with "(.*)"$', re.DOTALL)
_SHORTENED = re.compile(r"\n\[(?:\+\d+ more lines?|truncated); full report in element text\]")
_ERROR_LINE = re.compile(r"^E +(?=\S)(.*)$", re.MULTILINE)
_RANK = (Outcome.failed, Outcome.error, Outcome.passed, Outcome.skipped)
"""Which outcome a test has that the report names more than once, or gives more than one result."""


class TestAddress(NamedTuple):
    """The attributes by which a report names a test."""

    file: str
    classname: str
    name: str


class XunitCase(TestCase):
    """A test case with the attributes of the family `xunit1`."""

    file = Attr()


class CaseResult(NamedTuple):
    """One result of one test case."""

    outcome: Outcome
    message: str = ""
    detail: str = ""


class ReportedCase(NamedTuple):
    """A test case as it stands in a report."""

    address: TestAddress
    entries: list[CaseResult]
    seconds: float
    suite: str = ""
    """The name of the suite around it."""


def dotted_ids(addresses: Sequence[TestAddress]) -> list[str]:
    """`package.module.Class.test` for each address."""
    return [f"{address.classname}.{address.name}" if address.classname else address.name for address in addresses]


def read_cases(
    xml: str | Sequence[str], ids_of: Callable[[Sequence[TestAddress]], Sequence[str | None]]
) -> list[Case] | None:
    """The cases of a report, or of several, in their order, one for each test id; None where a text is not JUnit XML.

    `ids_of` gives the runner's ids, None for what is no test. A test that several reports name has the worst of its
    results. The texts come out of the sandbox and are not trusted: a document type (and so any entity) is refused
    unread, and so is a text above `SIZE_LIMIT`.
    """
    texts = [xml] if isinstance(xml, str) else xml
    read = [_read(text) for text in texts]
    if any(item is None for item in read):
        return None
    found = [case for item in read for case in item or ()]
    ids = ids_of([case.address for case in found])
    named = [(id_, case) for id_, case in zip(ids, found, strict=True) if id_ is not None]
    return _joined([id_ for id_, _ in named], [case for _, case in named])


def read_foreign(reports: Mapping[str, str]) -> list[Case] | None:
    """The same for the reports, by path, of a runner of which nothing is known.

    An id is `classname::name`, or the file's or the suite's name in place of a class. Tests that would share one are
    told apart by their report and then by a number, so that none hides another.
    """
    found: list[ReportedCase] = []
    places: list[str] = []
    for path in sorted(reports):
        read = _read(reports[path])
        if read is None:
            return None
        found += read
        places += [path] * len(read)
    names = [_foreign_id(case) for case in found]
    reports_of: dict[str, set[str]] = {}
    for name, place in zip(names, places, strict=True):
        reports_of.setdefault(name, set()).add(place)
    told = zip(names, places, strict=True)
    names = [f"{name} ({place})" if len(reports_of[name]) > 1 else name for name, place in told]
    return _joined(_numbered(names), found)


def _read(xml: str) -> list[ReportedCase] | None:
    if len(xml) > SIZE_LIMIT or "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        return None
    try:
        # Without its declaration the text is parsed as the UTF-8 it is here, whatever encoding it claims.
        document = JUnitXml.fromstring(_DECLARATION.sub("", xml, count=1).encode("utf-8", "replace"))
        # Some runners put cases beside suites.
        loose = cast("Iterable[TestCase]", document.iterchildren(TestCase))  # pyright: ignore[reportUnknownMemberType]
        placed = [(case, "") for case in loose]
        placed += [(case, _text(suite, "name")) for suite in document for case in suite]
        return [ReportedCase(_address(case), _entries(case), _seconds(case), suite) for case, suite in placed]
    except (SyntaxError, ValueError, RecursionError, JUnitXmlError):
        return None


def _joined(ids: Sequence[str], found: Sequence[ReportedCase]) -> list[Case]:
    entries: dict[str, list[CaseResult]] = {}
    seconds: dict[str, float] = {}
    for case_id, case in zip(ids, found, strict=True):
        entries.setdefault(case_id, []).extend(case.entries)
        seconds[case_id] = seconds.get(case_id, 0.0) + case.seconds
    return [_merged(case_id, results, seconds[case_id]) for case_id, results in entries.items()]


def _foreign_id(case: ReportedCase) -> str:
    owner = case.address.classname or case.address.file or case.suite
    return f"{owner}::{case.address.name}" if owner else case.address.name


def _numbered(names: Sequence[str]) -> list[str]:
    seen: Counter[str] = Counter()
    numbered: list[str] = []
    for name in names:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return numbered


def _text(element: object, name: str) -> str:
    value: object = getattr(element, name)
    return "" if value is None else str(value)


def _address(case: TestCase) -> TestAddress:
    whole = XunitCase.fromelem(case)  # pyright: ignore[reportUnknownMemberType] (its argument has no type there)
    return TestAddress(*(_text(whole, name) for name in ("file", "classname", "name")))


def _seconds(case: TestCase) -> float:
    value = float(_text(case, "time") or 0.0)
    return value if math.isfinite(value) else 0.0


def _entries(case: TestCase) -> list[CaseResult]:
    entries: list[CaseResult] = []
    for result in case.result:
        message, detail = _text(result, "message"), _text(result, "text")
        if isinstance(result, Failure):
            entries.append(CaseResult(Outcome.failed, message, detail))
        elif isinstance(result, Error):
            entries.append(CaseResult(Outcome.error, message, detail))
        else:
            entries.append(CaseResult(Outcome.skipped, message, detail))
    return entries or [CaseResult(Outcome.passed)]


def _merged(case_id: str, entries: list[CaseResult], seconds: float) -> Case:
    outcome = min((entry.outcome for entry in entries), key=_RANK.index)
    telling = [entry for entry in entries if entry.outcome is outcome]
    message = _whole_message(telling[0])
    if outcome in (Outcome.failed, Outcome.error):
        sides = compared(message)
        details = _distinct(entry.detail for entry in entries if entry.outcome in (Outcome.failed, Outcome.error))
    else:
        sides, details = compared(""), _distinct(entry.detail for entry in telling)
    return Case(
        id=case_id,
        outcome=outcome,
        message=_first_lines(message),
        expected=sides.expected,
        actual=sides.actual,
        detail=clip("\n\n".join(details), DETAIL_LIMIT),
        seconds=round(seconds, 3),
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _whole_message(entry: CaseResult) -> str:
    """The exception's own words: without pytest's frame around them, and from the traceback where pytest has none."""
    message = entry.message
    if message == "collection failure":
        lines: list[str] = _ERROR_LINE.findall(entry.detail)
        return lines[-1] if lines else (_last_line(entry.detail) or message)
    message = _SHORTENED.sub("", message)
    if found := _PHASE.match(message):
        return found.group(1)
    return message


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _first_lines(message: str) -> str:
    lines: list[str] = []
    for line in message.strip().splitlines()[:MESSAGE_LINES]:
        if not line.strip():
            break
        lines.append(line.rstrip())
    return clip("\n".join(lines), MESSAGE_LIMIT)
