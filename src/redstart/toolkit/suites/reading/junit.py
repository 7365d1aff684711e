"""Read JUnit XML into cases."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from junitparser import Attr, Error, Failure, JUnitXml, JUnitXmlError, TestCase

from redstart.core.frozen import clip
from redstart.core.report import CAPTURED_LIMIT, Case, Outcome
from redstart.toolkit.suites.reading.assertion_values import parse_comparison

SIZE_LIMIT = 64 << 20
DETAIL_LIMIT = 20_000
MESSAGE_LIMIT = 1000
MESSAGE_LINES = 6

_DECLARATION = re.compile(r"^\ufeff?\s*<\?xml[^>]*\?>")
_PHASE = re.compile(r'^failed on (?:setup|teardown) with "(.*)"$', re.DOTALL)
_SHORTENED = re.compile(r"\n\[(?:\+\d+ more lines?|truncated); full report in element text\]")
_ERROR_LINE = re.compile(r"^E +(?=\S)(.*)$", re.MULTILINE)
_RANK = (Outcome.failed, Outcome.error, Outcome.passed, Outcome.skipped)
"""The outcome that wins, first to last, for a test that the report names or rates more than once."""


class TestAddress(NamedTuple):
    """The attributes by which a report names a test."""

    file: str
    classname: str
    name: str


class XunitCase(TestCase):
    """A test case with the attributes of the `xunit1` family."""

    file = Attr()


class CaseResult(NamedTuple):
    """One result of one test case."""

    outcome: Outcome
    message: str = ""
    detail: str = ""


class CapturedOutput(NamedTuple):
    """What a report says that a test printed."""

    stdout: str = ""
    stderr: str = ""


class ReportedCase(NamedTuple):
    """A test case as a report lists it."""

    address: TestAddress
    entries: list[CaseResult]
    seconds: float
    output: CapturedOutput
    suite: str = ""
    """The name of the enclosing suite."""


def build_dotted_ids(addresses: Sequence[TestAddress]) -> list[str]:
    """Build `package.module.Class.test` for each address."""
    return [f"{address.classname}.{address.name}" if address.classname else address.name for address in addresses]


def read_cases(
    xml: str | Sequence[str], list_ids: Callable[[Sequence[TestAddress]], Sequence[str | None]]
) -> list[Case] | None:
    """Read the cases of one or more reports in order, one for each test ID. None if a text is not JUnit XML.

    `list_ids` returns the runner's IDs, with None for anything that is not a test. A test that several reports name
    gets its worst result. The texts come from the sandbox and are not trusted: a text with a document type (and so any
    entity), or above `SIZE_LIMIT`, is rejected unread.
    """
    texts = [xml] if isinstance(xml, str) else xml
    read = [_read(text) for text in texts]
    if any(item is None for item in read):
        return None
    reported = [case for item in read for case in item or ()]
    ids = list_ids([case.address for case in reported])
    pairs = [(id_, case) for id_, case in zip(ids, reported, strict=True) if id_ is not None]
    return _merge_cases([id_ for id_, _ in pairs], [case for _, case in pairs])


def read_foreign(reports: Mapping[str, str]) -> list[Case] | None:
    """Read the cases of an unknown runner's reports, given by path. None if a text is not JUnit XML.

    An ID is `classname::name`, with the file's or suite's name if there is no class. Tests that would share an ID get
    their report's path and then a number added, so that none hides another.
    """
    reported: list[ReportedCase] = []
    places: list[str] = []
    for path in sorted(reports):
        read = _read(reports[path])
        if read is None:
            return None
        reported += read
        places += [path] * len(read)
    names = [_build_foreign_id(case) for case in reported]
    paths_by_name: dict[str, set[str]] = {}
    for name, place in zip(names, places, strict=True):
        paths_by_name.setdefault(name, set()).add(place)
    pairs = zip(names, places, strict=True)
    names = [f"{name} ({place})" if len(paths_by_name[name]) > 1 else name for name, place in pairs]
    return _merge_cases(_number_duplicates(names), reported)


def _read(xml: str) -> list[ReportedCase] | None:
    if len(xml) > SIZE_LIMIT or "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        return None
    try:
        # Without its declaration, the text is parsed as UTF-8, which it is here, whatever encoding it claims.
        document = JUnitXml.fromstring(_DECLARATION.sub("", xml, count=1).encode("utf-8", "replace"))
        # Some runners put cases beside suites.
        top_level = cast("Iterable[TestCase]", document.iterchildren(TestCase))  # pyright: ignore[reportUnknownMemberType]
        pairs = [(case, "") for case in top_level]
        pairs += [(case, _get_text(suite, "name")) for suite in document for case in suite]
        return [
            ReportedCase(_get_address(case), _list_results(case), _get_seconds(case), _get_output(case), suite)
            for case, suite in pairs
        ]
    except (SyntaxError, ValueError, RecursionError, JUnitXmlError):
        return None


def _merge_cases(ids: Sequence[str], reported: Sequence[ReportedCase]) -> list[Case]:
    entries: dict[str, list[CaseResult]] = {}
    seconds: dict[str, float] = {}
    outputs: dict[str, CapturedOutput] = {}
    for case_id, case in zip(ids, reported, strict=True):
        entries.setdefault(case_id, []).extend(case.entries)
        seconds[case_id] = seconds.get(case_id, 0.0) + case.seconds
        if any(case.output):
            outputs.setdefault(case_id, case.output)
    cases = [_merge_results(case_id, results, seconds[case_id]) for case_id, results in entries.items()]
    return [
        case.model_copy(update=outputs[case.id]._asdict()) if case.is_red and case.id in outputs else case
        for case in cases
    ]


def _build_foreign_id(case: ReportedCase) -> str:
    owner = case.address.classname or case.address.file or case.suite
    return f"{owner}::{case.address.name}" if owner else case.address.name


def _number_duplicates(names: Sequence[str]) -> list[str]:
    counts: Counter[str] = Counter()
    unique_names: list[str] = []
    for name in names:
        counts[name] += 1
        unique_names.append(name if counts[name] == 1 else f"{name} #{counts[name]}")
    return unique_names


def _get_text(element: object, name: str) -> str:
    value: object = getattr(element, name)
    return "" if value is None else str(value)


def _get_address(case: TestCase) -> TestAddress:
    xunit_case = XunitCase.fromelem(case)  # pyright: ignore[reportUnknownMemberType] (its argument has no type there)
    return TestAddress(*(_get_text(xunit_case, name) for name in ("file", "classname", "name")))


def _get_seconds(case: TestCase) -> float:
    value = float(_get_text(case, "time") or 0.0)
    return value if math.isfinite(value) else 0.0


def _get_output(case: TestCase) -> CapturedOutput:
    texts = (_get_text(case, name).strip("\n") for name in ("system_out", "system_err"))
    return CapturedOutput(*(clip(text, CAPTURED_LIMIT) for text in texts))


def _list_results(case: TestCase) -> list[CaseResult]:
    entries: list[CaseResult] = []
    for result in case.result:
        message, detail = _get_text(result, "message"), _get_text(result, "text")
        if isinstance(result, Failure):
            entries.append(CaseResult(Outcome.failed, message, detail))
        elif isinstance(result, Error):
            entries.append(CaseResult(Outcome.error, message, detail))
        else:
            entries.append(CaseResult(Outcome.skipped, message, detail))
    return entries or [CaseResult(Outcome.passed)]


def _merge_results(case_id: str, entries: list[CaseResult], seconds: float) -> Case:
    outcome = min((entry.outcome for entry in entries), key=_RANK.index)
    relevant = [entry for entry in entries if entry.outcome is outcome]
    message = _get_full_message(relevant[0])
    if outcome in (Outcome.failed, Outcome.error):
        values = parse_comparison(message)
        details = _list_distinct(entry.detail for entry in entries if entry.outcome in (Outcome.failed, Outcome.error))
    else:
        values, details = parse_comparison(""), _list_distinct(entry.detail for entry in relevant)
    return Case(
        id=case_id,
        outcome=outcome,
        message=_get_first_lines(message),
        expected=values.expected,
        actual=values.actual,
        detail=clip("\n\n".join(details), DETAIL_LIMIT),
        seconds=round(seconds, 3),
    )


def _list_distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text.strip()))


def _get_full_message(entry: CaseResult) -> str:
    """Return the exception's own message, without pytest's frame and from the traceback if pytest gives none."""
    message = entry.message
    if message == "collection failure":
        lines: list[str] = _ERROR_LINE.findall(entry.detail)
        return lines[-1] if lines else (_get_last_line(entry.detail) or message)
    message = _SHORTENED.sub("", message)
    if match := _PHASE.match(message):
        return match.group(1)
    return message


def _get_last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _get_first_lines(message: str) -> str:
    lines: list[str] = []
    for line in message.strip().splitlines()[:MESSAGE_LINES]:
        if not line.strip():
            break
        lines.append(line.rstrip())
    return clip("\n".join(lines), MESSAGE_LIMIT)
