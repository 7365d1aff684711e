"""Check whether a requested test fails for the intended reason and not because of its own mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from redstart.core.frozen import clip
from redstart.core.report import Case
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, classify
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.reading.exceptions import RaisedException, list_exceptions

CONFIDENCE_LINE = re.compile(
    r"^[ \t>*#-]*SURE[ \t*]*:[ \t*]*(?P<level>high|medium|low)\b[ \t*,.:;-]*(?P<why>.*)$", re.I | re.M
)

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
    reason: str = ""


class NewTestContext(NamedTuple):
    """What a new test is checked against."""

    description: str
    """What the test is about. It may name things that do not exist yet."""
    project: ProjectView
    """The project, including the new test."""
    is_new: Callable[[str], bool]
    """Tells whether a test ID or a file path belongs to the new test."""


class TestExample(NamedTuple):
    """An existing test of the project, as a style example for the next one."""

    path: str
    text: str


def find_example(tests: Iterable[str], read: Callable[[str], bytes | None]) -> TestExample | None:
    """Find the shortest of the project's test files that contains a check. None if there is none."""
    texts = ((path, (read(path) or b"").decode(errors="replace")) for path in tests)
    examples = [TestExample(path, text) for path, text in texts if _CHECKS.search(text)]
    return min(examples, key=lambda item: (len(item.text), item.path), default=None)


def parse_confidence(answer: str) -> TestConfidence:
    """Parse the `SURE:` line of an answer. Both fields are empty if there is none."""
    match = CONFIDENCE_LINE.search(answer)
    return TestConfidence(match["level"].lower(), clip(match["why"].strip(), _LONGEST)) if match else TestConfidence()


def find_test_problem(before: Sequence[Case], after: Sequence[Case], context: NewTestContext) -> str:
    """Explain to its writer why the new test cannot be used. Empty if it can.

    `before` and `after` are the cases of the whole suite without and with the new test, on the same code.
    """
    new = [case for case in after if context.is_new(case.id)]
    if not new:
        return "no test was found in it"
    if changed := _describe_disturbance(before, [case for case in after if not context.is_new(case.id)]):
        return f"with it in place {changed}"
    failing = [case for case in new if case.is_red]
    if not failing:
        return "all of it passes on the code as it is, so it does not show what is asked for"
    mistakes = ((case, find_mistake(case, context)) for case in failing)
    return next((clip(f"{case.id}: {reason}", _LONGEST) for case, reason in mistakes if reason), "")


def find_mistake(case: Case, context: NewTestContext) -> str:
    """Find the test's own mistake, which no change of the program can make pass. Empty if none is visible."""
    if match := _FIXTURE.search(f"{case.message}\n{case.detail}"):
        return f"it asks for the fixture {match[1]}, which is not there"
    links = list_exceptions(case)
    exception = links[-1] if links else RaisedException("", "")
    if missing := _find_unknown_name(exception, context):
        return f"it uses {missing}, which is neither in the project nor in what was asked for"
    if exception.type == "NameError" and _in_test(exception, context) and (match := _NO_NAME.search(exception.text)):
        return f"it uses the name {match[1]}, which it does not define"
    if exception.type in ("SyntaxError", "IndentationError", "TabError") and _in_test(exception, context):
        return f"it does not parse: {exception.text}"
    problem = classify(case, context.project)
    return _describe_problem(problem) if problem is not None and not _is_to_be_made(exception) else ""


def _describe_problem(problem: EnvironmentProblem) -> str:
    return f"it needs what is not there ({problem.words})"


def _is_to_be_made(exception: RaisedException) -> bool:
    """Whether only a module or name is missing. A name that nothing mentions was already reported before this check."""
    return exception.type in ("ModuleNotFoundError", "ImportError")


def _find_unknown_name(exception: RaisedException, context: NewTestContext) -> str:
    """Find the first name that an import or lookup missed and that nothing mentions."""
    text = exception.text
    match = _NO_MODULE.search(text) or _NO_IMPORT.search(text)
    if exception.type in ("ModuleNotFoundError", "ImportError") and match:
        return next((name for name in match[1].split(".") if not _is_known(name, context)), "")
    attribute = _NO_ATTRIBUTE.search(text)
    if exception.type == "AttributeError" and attribute and not _is_known(attribute[1], context):
        return attribute[1]
    return ""


def _is_known(name: str, context: NewTestContext) -> bool:
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    if name in context.project.modules or pattern.search(context.description):
        return True
    # The new test's own text proves nothing.
    return any(
        pattern.search(context.project.read_text(path)) for path in context.project.paths if not context.is_new(path)
    )


def _in_test(exception: RaisedException, context: NewTestContext) -> bool:
    """Whether the exception was raised in the test's own file."""
    return not exception.path or context.is_new(context.project.get_relative_path(exception.path) or exception.path)


def _describe_disturbance(before: Sequence[Case], after: Sequence[Case]) -> str:
    """Describe how the existing tests changed. Empty if they are unchanged."""
    current = {case.id: case for case in after}
    missing = [case.id for case in before if case.id not in current]
    newly_failing = _find_newly_failing(before, current)
    if newly_failing:
        return f"{newly_failing[0]} fails, which passed before"
    return f"{missing[0]} is not run any more" if missing else ""


def _find_newly_failing(before: Sequence[Case], current: dict[str, Case]) -> list[str]:
    failed_before: Collection[str] = {case.id for case in before if case.is_red}
    return [id_ for id_, case in current.items() if case.is_red and id_ not in failed_before]
