"""JUnit XML as pytest and our unittest runner write it, read into cases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from junitparser import Attr, Error, Failure, JUnitXml, JUnitXmlError, TestCase

from redstart.core.noun import clip
from redstart.core.report import Case, Outcome
from redstart.toolkit.suites.nodeids import Address, node_ids
from redstart.toolkit.suites.values import compared

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


class XunitCase(TestCase):
    """A test case with the attributes of the family `xunit1`."""

    file = Attr()


class Entry(NamedTuple):
    """One result of one test case."""

    outcome: Outcome
    message: str = ""
    detail: str = ""


def read_cases(xml: str, runner: str) -> list[Case] | None:
    """The cases of a report in its order, one for each test id; None where the text is not JUnit XML.

    The text comes out of the sandbox and is not trusted: a document type (and so any entity) is refused unread, and so
    is a text above `SIZE_LIMIT`.
    """
    if len(xml) > SIZE_LIMIT or "<!DOCTYPE" in xml or "<!ENTITY" in xml:
        return None
    try:
        # Without its declaration the text is parsed as the UTF-8 it is here, whatever encoding it claims.
        document = JUnitXml.fromstring(_DECLARATION.sub("", xml, count=1).encode("utf-8", "replace"))
        found = [(_address(case), _entries(case), _seconds(case)) for suite in document for case in suite]
    except (SyntaxError, ValueError, RecursionError, JUnitXmlError):
        return None
    addresses = [address for address, _, _ in found]
    ids = node_ids(addresses) if runner == "pytest" else [_dotted_id(address) for address in addresses]
    entries: dict[str, list[Entry]] = {}
    seconds: dict[str, float] = {}
    for case_id, (_, results, duration) in zip(ids, found, strict=True):
        entries.setdefault(case_id, []).extend(results)
        seconds[case_id] = seconds.get(case_id, 0.0) + duration
    return [_merged(case_id, results, seconds[case_id]) for case_id, results in entries.items()]


def _dotted_id(address: Address) -> str:
    return f"{address.classname}.{address.name}" if address.classname else address.name


def _text(element: object, name: str) -> str:
    value: object = getattr(element, name)
    return "" if value is None else str(value)


def _address(case: TestCase) -> Address:
    whole = XunitCase.fromelem(case)  # pyright: ignore[reportUnknownMemberType] (its argument has no type there)
    return Address(*(_text(whole, name) for name in ("file", "classname", "name")))


def _seconds(case: TestCase) -> float:
    value = float(_text(case, "time") or 0.0)
    return value if math.isfinite(value) else 0.0


def _entries(case: TestCase) -> list[Entry]:
    entries: list[Entry] = []
    for result in case.result:
        message, detail = _text(result, "message"), _text(result, "text")
        if isinstance(result, Failure):
            entries.append(Entry(Outcome.failed, message, detail))
        elif isinstance(result, Error):
            entries.append(Entry(Outcome.error, message, detail))
        else:
            entries.append(Entry(Outcome.skipped, message, detail))
    return entries or [Entry(Outcome.passed)]


def _merged(case_id: str, entries: list[Entry], seconds: float) -> Case:
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


def _whole_message(entry: Entry) -> str:
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
