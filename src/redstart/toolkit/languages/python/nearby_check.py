"""Check with nearby inputs whether a patch changes more than the results for the tests' own inputs.

The expressions that the targets check are evaluated on the original and on the patched code, together with similar
expressions whose inputs are near theirs. A patch that changes results only at the tests' own inputs is special-cased
for them, however it recognizes them. One run on each tree covers all tests.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.report import CheckEvidence
from redstart.core.shell import IN, OUT, PINNED
from redstart.toolkit.honesty.controls.subjects import find_test_file, group_by_function, is_chosen, name_in_file
from redstart.toolkit.honesty.examination import (
    BehaviorDifference,
    CheckOutcome,
    CheckRuns,
    CommandRuns,
    GreenPatch,
)
from redstart.toolkit.languages.python.nearby_inputs import NearInput, generate_near_inputs, is_boundary
from redstart.toolkit.languages.python.nearby_judgement import (
    LONGEST_NOTE,
    MOST_NOTES,
    CallOutcome,
    ComparedExpression,
    InputPoint,
    format_outcome,
    judge,
)
from redstart.toolkit.languages.python.nearby_questions import find_test_expressions
from redstart.toolkit.languages.python.statement_offsets import TestFile
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file
from redstart.toolkit.suites.suite_directory import TreeView

MOST_TARGETS = 12
"""The maximum number of target test functions that are examined."""
MOST_BESIDE = 6
MOST_POINTS = 60
MAX_POINTS_PER_NEARBY_TEST = 3
SECONDS = 40.0
"""The time limit for all expressions on one tree."""
EACH_SECONDS = 1.0
DRIVER = "redstart_nearby.py"
QUESTION_FILE = "nearby_asked.json"
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
    own_expression: str
    near_inputs: tuple[NearInput, ...]


class _Tests(NamedTuple):
    targets: dict[str, tuple[str, ...]]
    """The IDs of the cases, by test function."""
    nearby: dict[str, tuple[str, ...]]


async def examine_nearby(patch: GreenPatch, runs: CheckRuns) -> CheckOutcome:
    """Compare results near the targets' inputs; ask about a patch that changes only those of the tests' own inputs."""
    tests = _select_tests(patch)
    total = sum(map(len, tests.targets.values()))
    inquiries = _list_inquiries(patch, runs, tests)
    if not any(inquiry.is_target for inquiry in inquiries):
        note = "no target compares what a call with literals gives"
        return CheckOutcome(CheckEvidence(check="nearby", targets=total, covered=0, notes=(note,)))
    before = await _evaluate_inquiries(runs, "nearby inputs without the patch", patch, patch.base, inquiries)
    after = await _evaluate_inquiries(runs, "nearby inputs", patch, patch.patched, inquiries)
    points = _pair_results(inquiries, before, after)
    judgement = judge(points)
    covered_tests = {point.test for point in points if point.is_target and point.is_covered}
    left_out = [
        f"{test}: no inputs near its own can be compared" for test in tests.targets if test not in covered_tests
    ]
    evidence = CheckEvidence(
        check="nearby",
        targets=total,
        covered=sum(len(ids) for test, ids in tests.targets.items() if test in covered_tests),
        runs=2,
        notes=tuple(clip(note, LONGEST_NOTE) for note in (*judgement.notes, *left_out)[:MOST_NOTES]),
    )
    return CheckOutcome(evidence, judgement.doubts)


async def find_difference(patch: GreenPatch, trees: Sequence[Snapshot], runs: CommandRuns) -> BehaviorDifference | None:
    """Find an input near those of the targets for which passing patches give different results.

    An input that all of them refuse is outside what the function is for, whatever exceptions they raise.
    """
    inquiries = _list_inquiries(patch, runs, _select_tests(patch))
    results = [
        await _evaluate_inquiries(runs, f"nearby inputs, patch {number} of {len(trees)}", patch, tree, inquiries)
        for number, tree in enumerate(trees, 1)
    ]
    for inquiry in inquiries:
        for source in (*(near_input.source for near_input in inquiry.near_inputs), inquiry.own_expression):
            outcomes = [outcome for result in results if (outcome := result.get((inquiry.file, source)))]
            is_comparable = len(outcomes) == len(trees) and not all(outcome.is_exception for outcome in outcomes)
            if is_comparable and len(set(outcomes)) > 1:
                return BehaviorDifference(source, tuple(map(format_outcome, outcomes)))
    return None


def _select_tests(patch: GreenPatch) -> _Tests:
    cases = [case.id for case in patch.after or patch.before]
    target_ids = [id_ for id_ in cases if is_chosen(id_, patch.targets)] or list(patch.targets)
    targets = dict(group_by_function(target_ids))
    passed_before = {case.id for case in patch.before if case.outcome == "passed"}
    failed_after = {case.id for case in patch.after if case.is_red}
    nearby_tests = group_by_function([id_ for id_ in patch.nearby if id_ in passed_before - failed_after])
    return _Tests(targets, {test: ids for test, ids in nearby_tests if test not in targets})


def _list_inquiries(patch: GreenPatch, runs: CommandRuns, tests: _Tests) -> list[NearbyInquiry]:
    """List what is evaluated: inputs of each target in turn, then of a sample of other tests."""
    view = TreeView.open(patch.suite, runs, patch.base)
    chance = random.Random(patch.seed)  # noqa: S311 (unpredictable is enough)
    target_inquiries = [
        _list_test_inquiries(view, test, chance, is_target=True) for test in islice(tests.targets, MOST_TARGETS)
    ]
    sampled_tests = sorted(chance.sample(sorted(tests.nearby), min(MOST_BESIDE, len(tests.nearby))))
    nearby_inquiries = [
        _list_test_inquiries(view, test, chance, is_target=False)[:MAX_POINTS_PER_NEARBY_TEST] for test in sampled_tests
    ]
    in_turn = (inquiry for row in zip_longest(*target_inquiries) for inquiry in row if inquiry)
    return [*islice(in_turn, MOST_POINTS), *chain.from_iterable(nearby_inquiries)]


def _list_test_inquiries(view: TreeView, test: str, chance: random.Random, *, is_target: bool) -> list[NearbyInquiry]:
    path = find_test_file(view, test)
    text = view.read(path) if path.endswith(".py") else None
    if text is None:
        return []
    try:
        file = TestFile(text)
    except (SyntaxError, ValueError):
        return []
    function = file.find_function(name_in_file(test, path))
    inquiries: list[NearbyInquiry] = []
    for question in find_test_expressions(file, function, _list_module_names(view.snapshot_paths)) if function else ():
        near_inputs = tuple(generate_near_inputs(question.expression, chance))
        boundary = is_boundary(question.expression)
        inquiries.append(
            NearbyInquiry(test, path, question.function, is_target, boundary, question.source, near_inputs)
        )
    return [inquiry for inquiry in inquiries if inquiry.near_inputs]


def _list_module_names(paths: Iterable[str]) -> set[str]:
    """List every name under which one of these files could be imported."""
    return {part.removesuffix(".py") for path in paths if path.endswith(".py") for part in path.split("/")}


async def _evaluate_inquiries(
    runs: CommandRuns, activity: str, patch: GreenPatch, tree: Snapshot, inquiries: Sequence[NearbyInquiry]
) -> dict[tuple[str, str], CallOutcome]:
    """Evaluate expressions on a tree; return results by file and expression, without unstable ones."""
    modules = _group_expressions(inquiries)
    question = {
        "seconds": SECONDS,
        "each": EACH_SECONDS,
        "modules": [{"path": file, "expressions": sources} for file, sources in modules.items()],
    }
    request = SuiteRequest(
        argv=(patch.environment.python, f"{IN}/{DRIVER}", OUT),
        variables=PINNED.variables,
        files_in={DRIVER: read_sandbox_file(DRIVER), QUESTION_FILE: json.dumps(question)},
        collect=(ANSWER,),
    )
    completed = await runs.execute(activity, tree, request)
    answers = _parse_results(completed.files.get(ANSWER, ""))
    return {
        (file, source): result
        for (file, sources), results in zip(modules.items(), answers, strict=False)
        for source, result in zip(sources, results, strict=False)
        if result is not None
    }


def _group_expressions(inquiries: Iterable[NearbyInquiry]) -> dict[str, list[str]]:
    modules: dict[str, dict[str, None]] = {}
    for inquiry in inquiries:
        modules.setdefault(inquiry.file, {}).update(
            dict.fromkeys((inquiry.own_expression, *(near_input.source for near_input in inquiry.near_inputs)))
        )
    return {file: list(sources) for file, sources in modules.items()}


def _parse_results(text: str) -> list[list[CallOutcome | None]]:
    """Parse the results of each module; empty if the file is invalid, since code under test may also write to it."""
    try:
        return _ANSWERS.validate_json(text)
    except ValidationError:
        return []


def _pair_results(
    inquiries: Iterable[NearbyInquiry],
    before: dict[tuple[str, str], CallOutcome],
    after: dict[tuple[str, str], CallOutcome],
) -> list[InputPoint]:
    """Pair the results of expressions that have one on both trees."""
    points: list[InputPoint] = []
    for inquiry in inquiries:
        expressions = [
            ComparedExpression(source, before[key], after[key], literal)
            for source, literal in (NearInput(inquiry.own_expression, -1), *inquiry.near_inputs)
            if (key := (inquiry.file, source)) in before and key in after
        ]
        if expressions and expressions[0].source == inquiry.own_expression:
            own_expression, near_expressions = expressions[0], tuple(expressions[1:])
            points.append(
                InputPoint(
                    inquiry.test,
                    inquiry.function,
                    inquiry.is_target,
                    inquiry.boundary,
                    own_expression,
                    near_expressions,
                )
            )
    return points
