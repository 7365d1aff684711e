"""Checks whether a requested test fails for the intended reason and not because of its own mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from redstart.core.noun import clip
from redstart.core.report import Case
from redstart.toolkit.suites.problems.ground import EnvironmentProblem, classify
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.reading.raised import RaisedException, chain

SURE = re.compile(r"^[ \t>*#-]*SURE[ \t*]*:[ \t*]*(?P<level>high|medium|low)\b[ \t*,.:;-]*(?P<why>.*)$", re.I | re.M)

_FIXTURE = re.compile(r"\bfixture '(\w+)' not found")
_NO_NAME = re.compile(r"name '(\w+)' is not defined")
_NO_ATTRIBUTE = re.compile(r"has no attribute '(\w+)'")
_NO_IMPORT = re.compile(r"cannot import name '(\w+)'")
_NO_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_CHECKS = re.compile(r"\bassert|\bexpect\(")
_LONGEST = 300


class TestConfidence(NamedTuple):
    """A model's confidence that its test matches the request."""

    level: str = ""
    why: str = ""


class NewTestContext(NamedTuple):
    """What a new test is checked against."""

    told: str
    """What the test is about. It may name things that do not exist yet."""
    project: ProjectView
    """The project, including the new test."""
    is_new: Callable[[str], bool]
    """Tells whether a test ID or a file path belongs to the new test."""


class TestExample(NamedTuple):
    """An existing test of the project, as a style example for the next one."""

    path: str
    text: str


def example_of(tests: Iterable[str], read: Callable[[str], bytes | None]) -> TestExample | None:
    """Find the shortest of the project's test files that contains a check. None if there is none."""
    texts = ((path, (read(path) or b"").decode(errors="replace")) for path in tests)
    telling = [TestExample(path, text) for path, text in texts if _CHECKS.search(text)]
    return min(telling, key=lambda item: (len(item.text), item.path), default=None)


def sureness(answer: str) -> TestConfidence:
    """Parse the `SURE:` line of an answer. Both fields are empty if there is none."""
    found = SURE.search(answer)
    return TestConfidence(found["level"].lower(), clip(found["why"].strip(), _LONGEST)) if found else TestConfidence()


def why_unfit(before: Sequence[Case], after: Sequence[Case], asked: NewTestContext) -> str:
    """Explain to its writer why the new test cannot be used. Empty if it can.

    `before` and `after` are the cases of the whole suite without and with the new test, on the same code.
    """
    new = [case for case in after if asked.is_new(case.id)]
    if not new:
        return "no test was found in it"
    if changed := _disturbed(before, [case for case in after if not asked.is_new(case.id)]):
        return f"with it in place {changed}"
    red = [case for case in new if case.red]
    if not red:
        return "all of it passes on the code as it is, so it does not show what is asked for"
    mistakes = ((case, mistake(case, asked)) for case in red)
    return next((clip(f"{case.id}: {words}", _LONGEST) for case, words in mistakes if words), "")


def mistake(case: Case, asked: NewTestContext) -> str:
    """Find the test's own mistake, which no change of the program can make pass. Empty if none is visible."""
    if found := _FIXTURE.search(f"{case.message}\n{case.detail}"):
        return f"it asks for the fixture {found[1]}, which is not there"
    links = chain(case)
    raised = links[-1] if links else RaisedException("", "")
    if missing := _unknown(raised, asked):
        return f"it uses {missing}, which is neither in the project nor in what was asked for"
    if raised.type == "NameError" and _in_test(raised, asked) and (found := _NO_NAME.search(raised.text)):
        return f"it uses the name {found[1]}, which it does not define"
    if raised.type in ("SyntaxError", "IndentationError", "TabError") and _in_test(raised, asked):
        return f"it does not parse: {raised.text}"
    ground = classify(case, asked.project)
    return _words(ground) if ground is not None and not _is_to_be_made(raised) else ""


def _words(ground: EnvironmentProblem) -> str:
    return f"it needs what is not there ({ground.words})"


def _is_to_be_made(raised: RaisedException) -> bool:
    """Whether only a module or name is missing. A name that nothing mentions was already reported before this check."""
    return raised.type in ("ModuleNotFoundError", "ImportError")


def _unknown(raised: RaisedException, asked: NewTestContext) -> str:
    """Find the first name that an import or lookup missed and that nothing mentions."""
    text = raised.text
    found = _NO_MODULE.search(text) or _NO_IMPORT.search(text)
    if raised.type in ("ModuleNotFoundError", "ImportError") and found:
        return next((name for name in found[1].split(".") if not _is_known(name, asked)), "")
    attribute = _NO_ATTRIBUTE.search(text)
    if raised.type == "AttributeError" and attribute and not _is_known(attribute[1], asked):
        return attribute[1]
    return ""


def _is_known(name: str, asked: NewTestContext) -> bool:
    word = re.compile(rf"\b{re.escape(name)}\b")
    if name in asked.project.modules or word.search(asked.told):
        return True
    # The new test's own text proves nothing.
    return any(word.search(asked.project.text(path)) for path in asked.project.paths if not asked.is_new(path))


def _in_test(raised: RaisedException, asked: NewTestContext) -> bool:
    """Whether the exception was raised in the test's own file."""
    return not raised.path or asked.is_new(asked.project.local(raised.path) or raised.path)


def _disturbed(before: Sequence[Case], others: Sequence[Case]) -> str:
    """Describe how the existing tests changed. Empty if they are unchanged."""
    now = {case.id: case for case in others}
    lost = [case.id for case in before if case.id not in now]
    red = _red_now(before, now)
    if red:
        return f"{red[0]} fails, which passed before"
    return f"{lost[0]} is not run any more" if lost else ""


def _red_now(before: Sequence[Case], now: dict[str, Case]) -> list[str]:
    were: Collection[str] = {case.id for case in before if case.red}
    return [id_ for id_, case in now.items() if case.red and id_ not in were]
