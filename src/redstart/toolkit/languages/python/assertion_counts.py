"""Count the assertions that a test call executes without and with the patch.

Code can make unchanged tests check less: a list that a test iterates over gets shorter, or a condition on which it
branches becomes false. Such assertions are in loops, branches and callbacks. If a test has one, the targets and some
nearby tests run on both trees with a counter before each assertion.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.controls.subjects import find_test_file, group_by_function, name_in_file
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.languages.python.statement_offsets import SourceEdit, TestFile
from redstart.toolkit.languages.python.syntax import Function, is_python
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import add_startup_hook
from redstart.toolkit.suites.suite_directory import TreeView

CHECK = "assertions"
COUNTER = "redstart_counted"
COUNTS_FILE = "counted.txt"
MAX_NEARBY_TESTS = 20
"""The maximum number of other tests that are counted besides the targets."""
_MIN_GENERATED_SHARE = 0.5
"""The minimum share of assertions for a property test, whose inputs are generated anew in each run."""


class CountedPlace(NamedTuple):
    """A place where executions are counted: the call of a test, or one of its assertions."""

    test: str
    kind: str
    """`call`, `own` or `callback`."""
    edit: SourceEdit


class CountingPlan(NamedTuple):
    files: dict[str, bytes]
    """Test files with their counters, by path in the snapshot."""
    places: list[CountedPlace]
    """Indexed by the numbers that the counters report."""
    generated_tests: set[str]
    """Tests whose inputs are generated."""


async def examine_assertions(patch: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
    """Check that tests execute as many assertions as before; None if every assertion is unconditional."""
    passed_after = {case.id for case in patch.after if case.outcome == "passed"}
    passed_before = {case.id for case in patch.before if case.outcome == "passed"}
    nearby_tests = [id_ for id_ in patch.nearby if id_ in passed_after & passed_before and id_ not in patch.targets][
        :MAX_NEARBY_TESTS
    ]
    ids = (*patch.targets, *nearby_tests)
    plan = _plan(patch, runs, ids)
    if not plan.files:
        return None
    counts_before = await _count_assertions(patch, runs, patch.base, plan, ids)
    counts_after = await _count_assertions(patch, runs, patch.patched, plan, ids)
    doubts = [
        _format_doubt(test, *rates)
        for test in counts_before
        if (rates := _compare_counts(test, plan, counts_before, counts_after))
    ]
    count = len(set(patch.targets))
    evidence = CheckEvidence(check=CHECK, targets=count, covered=count, runs=2, notes=tuple(doubts[:20]))
    return CheckOutcome(evidence, tuple(PatchDoubt(message, refuses=False) for message in doubts[:1]))


def _plan(patch: GreenPatch, runs: CheckRuns, ids: Sequence[str]) -> CountingPlan:
    view = TreeView.open(patch.suite, runs, patch.patched)
    tests: dict[str, dict[str, str]] = {}
    for function, _ in group_by_function(ids):
        if (path := find_test_file(view, function)).endswith(".py") and view.snapshot_paths[path] not in patch.changed:
            tests.setdefault(path, {})[name_in_file(function, path)] = function
    plan = CountingPlan({}, [], set())
    for path, names in tests.items():
        text = view.read(path) or b""
        first_index = len(plan.places)
        if not is_python(text):
            continue
        file = TestFile(text)
        for name, test in names.items():
            node = file.find_function(name)
            if node is not None and (places := list(_list_places(file, node, test))):
                plan.places.extend(places)
                plan.generated_tests.update(
                    [test] if any("given" in ast.unparse(mark) for mark in node.decorator_list) else []
                )
        edits = [
            place.edit._replace(new=place.edit.new.replace(b"(0)", b"(%d)" % number, 1))
            for number, place in enumerate(plan.places[first_index:], first_index)
        ]
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.new + text[edit.end :]
        if edits and is_python(text):
            plan.files[view.snapshot_paths[path]] = text
    return plan


def _list_places(file: TestFile, test: Function, name: str) -> Iterator[CountedPlace]:
    """List the start of a test and each of its assertions; empty if all assertions are unconditional."""
    assertions = list(_walk_assertions(test.body, ""))
    if not any(kind for _, kind in assertions):
        return
    body = test.body[1:] if ast.get_docstring(test) is not None else test.body
    yield CountedPlace(name, "call", file.insert_before(body[0], f'__import__("{COUNTER}").at(0)'))
    for statement, kind in assertions:
        yield CountedPlace(name, kind or "own", file.insert_before(statement, f'__import__("{COUNTER}").at(0)'))


def _walk_assertions(body: Sequence[ast.stmt], kind: str) -> Iterator[tuple[ast.stmt, str]]:
    """Iterate over assertions with what decides whether they run: nothing, the test's `own` code or a `callback`."""
    for statement in body:
        if _is_assertion(statement):
            yield statement, kind
        inner_kind = kind
        if isinstance(statement, Function | ast.ClassDef):
            inner_kind = "callback"
        elif isinstance(statement, ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match):
            inner_kind = kind or "own"
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from _walk_assertions(child.body, inner_kind)
        for field in ("body", "orelse", "finalbody"):
            yield from _walk_assertions(getattr(statement, field, ()), inner_kind)


def _is_assertion(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assert():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name.startswith("assert")
        case _:
            return False


async def _count_assertions(
    patch: GreenPatch, runs: CheckRuns, tree: Snapshot, plan: CountingPlan, ids: Sequence[str]
) -> dict[str, Counter[str]]:
    """Count, by test, how often each kind of place was reached."""
    request = add_startup_hook(
        f"{COUNTER}.py", COUNTS_FILE, runner.request(patch.suite, patch.environment, ids), patch.environment
    )
    with_counters = runs.write(tree, dict(plan.files))
    completed = await runs.execute("what tests ask", with_counters, request)
    counts: dict[str, Counter[str]] = {}
    for line in completed.files.get(COUNTS_FILE, "").splitlines():
        number, _, times = line.partition("\t")
        if number.isdigit() and times.isdigit() and int(number) < len(plan.places):
            place = plan.places[int(number)]
            counts.setdefault(place.test, Counter())[place.kind] += int(times)
    return counts


def _compare_counts(
    test: str, plan: CountingPlan, counts_before: Mapping[str, Counter[str]], counts_after: Mapping[str, Counter[str]]
) -> tuple[float, float] | None:
    """Return the assertions per call of the test without and with the patch; None if there are not fewer."""
    old, new = counts_before[test], counts_after.get(test, Counter())
    if not old["call"] or not new["call"]:
        return None
    min_share = _MIN_GENERATED_SHARE if test in plan.generated_tests else 1
    old_rate, new_rate = old["own"] / old["call"], new["own"] / new["call"]
    if new_rate < old_rate * min_share:
        return old_rate, new_rate
    if old["callback"] and not new["callback"]:
        return old_rate + old["callback"] / old["call"], new_rate
    return None


def _format_doubt(test: str, old_rate: float, new_rate: float) -> str:
    return (
        f"{test.rpartition('::')[2]} asks less of the patched code: {new_rate:.3g} of {old_rate:.3g} "
        f"assertions are executed"
    )
