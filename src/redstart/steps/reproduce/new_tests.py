"""The question for tests, and the test files in its answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from redstart.core.change import Edit, EditKind
from redstart.core.chat import Answer, AnswerFault, Ask, Message, Tier
from redstart.core.run import RunState
from redstart.toolkit.languages.registry import find_test_language
from redstart.toolkit.patching.reading.parse import parse
from redstart.toolkit.prompts.answers import ParsedAnswer
from redstart.toolkit.suites.new_tests.written_tests import drop_incomplete_test, explain_unusable_test

ANSWER = 4096
"""Maximum tokens of the requested tests."""


def build_test_request(run: RunState, messages: tuple[Message, ...]) -> Ask:
    return Ask(question="reproduce", tier=Tier.strong, messages=messages, max_tokens=run.spec.asks.answer(ANSWER))


def read_new_tests(existing: Collection[str], answer: Answer) -> ParsedAnswer[Sequence[Edit]]:
    parsed = _read_tests(answer)
    taken_paths = [edit.path for edit in parsed.value or () if edit.path in existing]
    return ParsedAnswer(None, f"{taken_paths[0]} is there already: choose another name") if taken_paths else parsed


def _read_tests(answer: Answer) -> ParsedAnswer[Sequence[Edit]]:
    is_cut = answer.fault is AnswerFault.truncated
    parsed = parse(drop_incomplete_test(answer.text) if is_cut else answer.text)
    fault = parsed.fault or _find_fault(parsed.edits)
    return ParsedAnswer(None, fault) if fault or (answer.fault and not is_cut) else ParsedAnswer(parsed.edits)


def _find_fault(edits: Sequence[Edit]) -> str:
    """Return why these edits are unusable as new tests; empty if they are usable."""
    if not edits:
        return "the answer held no test file"
    for edit in edits:
        if (
            edit.kind not in (EditKind.block, EditKind.whole)
            or edit.search.strip()
            or not find_test_language(edit.path)
        ):
            return f"{edit.path or 'a diff'} is no new test file"
        if fault := explain_unusable_test(edit.path, edit.text):
            return fault
    return ""
