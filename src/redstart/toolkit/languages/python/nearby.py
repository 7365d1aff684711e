"""Check with nearby inputs whether a patch changes more than the results for the tests' own inputs.

The expressions that the targets check are evaluated on the original and on the patched code, together with similar
expressions whose inputs are near theirs. A patch that changes results only at the tests' own inputs is special-cased
for them, however it recognizes them. One run on each tree covers all tests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from redstart.core.change import Snapshot
from redstart.core.noun import clip
from redstart.core.report import CheckEvidence
from redstart.core.shell import IN, OUT, PINNED
from redstart.toolkit.honesty.controls.subjects import find_test_file, group_by_function, is_chosen, name_in_file
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch
from redstart.toolkit.languages.python.nearby_inputs import NearInput, inputs_near, is_boundary
from redstart.toolkit.languages.python.nearby_judgement import (
    LONGEST_NOTE,
    MOST_NOTES,
    CallOutcome,
    ComparedExpression,
    InputPoint,
    judge,
)
from redstart.toolkit.languages.python.nearby_questions import questions
from redstart.toolkit.languages.python.read_tests import TestFile
from redstart.toolkit.suites.request import SuiteRequest, inside
from redstart.toolkit.suites.view import TreeView

MOST_TARGETS = 12
"""The maximum number of target test functions that are examined."""
MOST_BESIDE = 6
MOST_POINTS = 60
MOST_OF_ONE_TEST_BESIDE = 3
SECONDS = 40.0
"""The time limit for all expressions on one tree."""
EACH_SECONDS = 1.0
DRIVER = "redstart_nearby.py"
ASKED = "nearby_asked.json"
ANSWER = "nearby.json"


_ANSWERS = TypeAdapter(list[list[CallOutcome | None]])


class NearbyInquiry(NamedTuple):
    """An input of a test, and the generated inputs near it."""

    test: str
    file: str
    """The path as the runner shows it."""
    function: str
    is_target: bool
    boundary: bool
    own: str
    near: tuple[NearInput, ...]


class _Tests(NamedTuple):
    targets: dict[str, tuple[str, ...]]
    """The IDs of the cases, by test function."""
    beside: dict[str, tuple[str, ...]]


async def examine_nearby(green: GreenPatch, runs: CheckRuns) -> CheckOutcome:
    """Compare results near the targets' inputs; ask about a patch that changes only those of the tests' own inputs."""
    tests = _tests(green)
    total = sum(map(len, tests.targets.values()))
    asked = _inquiries(green, runs, tests)
    if not any(inquiry.is_target for inquiry in asked):
        note = "no target compares what a call with literals gives"
        return CheckOutcome(CheckEvidence(check="nearby", targets=total, covered=0, notes=(note,)))
    before = await _results(runs, "nearby inputs without the patch", green, green.base, asked)
    after = await _results(runs, "nearby inputs", green, green.patched, asked)
    points = _points(asked, before, after)
    judgement = judge(points)
    covered = {point.test for point in points if point.is_target and point.is_covered}
    left_out = [f"{test}: no inputs near its own can be compared" for test in tests.targets if test not in covered]
    evidence = CheckEvidence(
        check="nearby",
        targets=total,
        covered=sum(len(ids) for test, ids in tests.targets.items() if test in covered),
        runs=2,
        notes=tuple(clip(note, LONGEST_NOTE) for note in (*judgement.notes, *left_out)[:MOST_NOTES]),
    )
    return CheckOutcome(evidence, judgement.doubts)


def _tests(green: GreenPatch) -> _Tests:
    cases = [case.id for case in green.after or green.before]
    chosen = [id_ for id_ in cases if is_chosen(id_, green.targets)] or list(green.targets)
    targets = dict(group_by_function(chosen))
    passed_before = {case.id for case in green.before if case.outcome == "passed"}
    failed_after = {case.id for case in green.after if case.red}
    beside = group_by_function([id_ for id_ in green.nearby if id_ in passed_before - failed_after])
    return _Tests(targets, {test: ids for test, ids in beside if test not in targets})


def _inquiries(green: GreenPatch, runs: CheckRuns, tests: _Tests) -> list[NearbyInquiry]:
    """List what is evaluated: inputs of each target in turn, then of a sample of other tests."""
    view = TreeView(green.suite, runs.files(green.base), partial(runs.read, green.base))
    chance = random.Random(green.seed)  # noqa: S311 (unpredictable is enough)
    of_targets = [_of_test(view, test, chance, is_target=True) for test in islice(tests.targets, MOST_TARGETS)]
    sampled = sorted(chance.sample(sorted(tests.beside), min(MOST_BESIDE, len(tests.beside))))
    of_beside = [_of_test(view, test, chance, is_target=False)[:MOST_OF_ONE_TEST_BESIDE] for test in sampled]
    in_turn = (inquiry for row in zip_longest(*of_targets) for inquiry in row if inquiry)
    return [*islice(in_turn, MOST_POINTS), *chain.from_iterable(of_beside)]


def _of_test(view: TreeView, test: str, chance: random.Random, *, is_target: bool) -> list[NearbyInquiry]:
    shown = find_test_file(view, test)
    text = view.read(shown) if shown.endswith(".py") else None
    if text is None:
        return []
    try:
        file = TestFile(text)
    except (SyntaxError, ValueError):
        return []
    function = file.function(name_in_file(test, shown))
    inquiries: list[NearbyInquiry] = []
    for question in questions(file, function, _modules(view.kept)) if function else ():
        near = tuple(inputs_near(question.expression, chance))
        boundary = is_boundary(question.expression)
        inquiries.append(NearbyInquiry(test, shown, question.function, is_target, boundary, question.source, near))
    return [inquiry for inquiry in inquiries if inquiry.near]


def _modules(paths: Iterable[str]) -> set[str]:
    """List every name under which one of these files could be imported."""
    return {part.removesuffix(".py") for path in paths if path.endswith(".py") for part in path.split("/")}


async def _results(
    runs: CheckRuns, activity: str, green: GreenPatch, tree: Snapshot, asked: Sequence[NearbyInquiry]
) -> dict[tuple[str, str], CallOutcome]:
    """Evaluate expressions on a tree; return results by file and expression, without unstable ones."""
    modules = _expressions(asked)
    question = {
        "seconds": SECONDS,
        "each": EACH_SECONDS,
        "modules": [{"path": file, "expressions": sources} for file, sources in modules.items()],
    }
    request = SuiteRequest(
        argv=(green.environment.python, f"{IN}/{DRIVER}", OUT),
        variables=PINNED.variables,
        files_in={DRIVER: inside(DRIVER), ASKED: json.dumps(question)},
        collect=(ANSWER,),
    )
    completed = await runs.execute(activity, tree, request)
    answers = _parsed(completed.files.get(ANSWER, ""))
    return {
        (file, source): result
        for (file, sources), results in zip(modules.items(), answers, strict=False)
        for source, result in zip(sources, results, strict=False)
        if result is not None
    }


def _expressions(asked: Iterable[NearbyInquiry]) -> dict[str, list[str]]:
    modules: dict[str, dict[str, None]] = {}
    for inquiry in asked:
        modules.setdefault(inquiry.file, {}).update(
            dict.fromkeys((inquiry.own, *(near.source for near in inquiry.near)))
        )
    return {file: list(sources) for file, sources in modules.items()}


def _parsed(text: str) -> list[list[CallOutcome | None]]:
    """Parse the results of each module; empty if the file is invalid, since code under test may also write to it."""
    try:
        return _ANSWERS.validate_json(text)
    except ValidationError:
        return []


def _points(
    asked: Iterable[NearbyInquiry],
    before: dict[tuple[str, str], CallOutcome],
    after: dict[tuple[str, str], CallOutcome],
) -> list[InputPoint]:
    """Pair the results of expressions that have one on both trees."""
    points: list[InputPoint] = []
    for inquiry in asked:
        compared = [
            ComparedExpression(source, before[key], after[key], literal)
            for source, literal in (NearInput(inquiry.own, -1), *inquiry.near)
            if (key := (inquiry.file, source)) in before and key in after
        ]
        if compared and compared[0].source == inquiry.own:
            own, near = compared[0], tuple(compared[1:])
            points.append(InputPoint(inquiry.test, inquiry.function, inquiry.is_target, inquiry.boundary, own, near))
    return points
