"""The question for tests, and the test files in its answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from redstart.core.change import Edit, EditKind
from redstart.core.chat import Answer, AnswerFault, Ask, Message, Tier
from redstart.core.run import RunState
from redstart.toolkit.languages.registry import language_of_test
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.prompts.answers import ParsedAnswer
from redstart.toolkit.suites.new_tests.written import said_in_full, why_no_test

ANSWER = 4096
"""Maximum tokens of the requested tests."""


def question_for_tests(run: RunState, messages: tuple[Message, ...]) -> Ask:
    return Ask(question="reproduce", tier=Tier.strong, messages=messages, max_tokens=run.spec.asks.answer(ANSWER))


def read_new_tests(there: Collection[str], answer: Answer) -> ParsedAnswer[Sequence[Edit]]:
    reading = _read_tests(answer)
    taken = [edit.path for edit in reading.value or () if edit.path in there]
    return ParsedAnswer(None, f"{taken[0]} is there already: choose another name") if taken else reading


def _read_tests(answer: Answer) -> ParsedAnswer[Sequence[Edit]]:
    is_cut = answer.fault is AnswerFault.truncated
    parsed = parse(said_in_full(answer.text) if is_cut else answer.text)
    fault = parsed.fault or _why_not(parsed.edits)
    return ParsedAnswer(None, fault) if fault or (answer.fault and not is_cut) else ParsedAnswer(parsed.edits)


def _why_not(edits: Sequence[Edit]) -> str:
    """Return why these edits are unusable as new tests; empty if they are usable."""
    if not edits:
        return "the answer held no test file"
    for edit in edits:
        if edit.kind not in (EditKind.block, EditKind.whole) or edit.search.strip() or not language_of_test(edit.path):
            return f"{edit.path or 'a diff'} is no new test file"
        if fault := why_no_test(edit.path, edit.text):
            return fault
    return ""
