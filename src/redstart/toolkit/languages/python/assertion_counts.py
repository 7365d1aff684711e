"""Count the assertions that a test call executes without and with the patch.

Code can make unchanged tests check less: a list that a test iterates over gets shorter, or a condition on which it
branches becomes false. Such assertions are in loops, branches and callbacks. If a test has one, the targets and some
nearby tests run on both trees with a counter before each assertion.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.controls.subjects import find_test_file, group_by_function, name_in_file
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.languages.python.read_tests import SourceEdit, TestFile
from redstart.toolkit.languages.python.syntax import Function, is_python
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.request import loading
from redstart.toolkit.suites.view import TreeView

CHECK = "assertions"
COUNTER = "redstart_counted"
COUNTED = "counted.txt"
BESIDE = 20
"""The maximum number of other tests that are counted besides the targets."""
_DRAWN = 0.5
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
    drawn: set[str]
    """Tests whose inputs are generated."""


async def examine_assertions(green: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
    """Check that tests execute as many assertions as before; None if every assertion is unconditional."""
    passed = {case.id for case in green.after if case.outcome == "passed"}
    before = {case.id for case in green.before if case.outcome == "passed"}
    beside = [id_ for id_ in green.nearby if id_ in passed & before and id_ not in green.targets][:BESIDE]
    ids = (*green.targets, *beside)
    plan = _plan(green, runs, ids)
    if not plan.files:
        return None
    without = await _counted(green, runs, green.base, plan, ids)
    with_it = await _counted(green, runs, green.patched, plan, ids)
    doubts = [_words(test, *fewer) for test in without if (fewer := _fewer(test, plan, without, with_it))]
    count = len(set(green.targets))
    evidence = CheckEvidence(check=CHECK, targets=count, covered=count, runs=2, notes=tuple(doubts[:20]))
    return CheckOutcome(evidence, tuple(PatchDoubt(words, refuses=False) for words in doubts[:1]))


def _plan(green: GreenPatch, runs: CheckRuns, ids: Sequence[str]) -> CountingPlan:
    view = TreeView(green.suite, runs.files(green.patched), partial(runs.read, green.patched))
    tests: dict[str, dict[str, str]] = {}
    for function, _ in group_by_function(ids):
        if (shown := find_test_file(view, function)).endswith(".py") and view.kept[shown] not in green.changed:
            tests.setdefault(shown, {})[name_in_file(function, shown)] = function
    plan = CountingPlan({}, [], set())
    for shown, names in tests.items():
        text = view.read(shown) or b""
        first = len(plan.places)
        if not is_python(text):
            continue
        file = TestFile(text)
        for name, test in names.items():
            node = file.function(name)
            if node is not None and (places := list(_places(file, node, test))):
                plan.places.extend(places)
                plan.drawn.update([test] if any("given" in ast.unparse(mark) for mark in node.decorator_list) else [])
        edits = [
            place.edit._replace(new=place.edit.new.replace(b"(0)", b"(%d)" % number, 1))
            for number, place in enumerate(plan.places[first:], first)
        ]
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.new + text[edit.end :]
        if edits and is_python(text):
            plan.files[view.kept[shown]] = text
    return plan


def _places(file: TestFile, test: Function, name: str) -> Iterator[CountedPlace]:
    """List the start of a test and each of its assertions; empty if all assertions are unconditional."""
    found = list(_assertions(test.body, ""))
    if not any(kind for _, kind in found):
        return
    body = test.body[1:] if ast.get_docstring(test) is not None else test.body
    yield CountedPlace(name, "call", file.insert_before(body[0], f'__import__("{COUNTER}").at(0)'))
    for statement, kind in found:
        yield CountedPlace(name, kind or "own", file.insert_before(statement, f'__import__("{COUNTER}").at(0)'))


def _assertions(body: Sequence[ast.stmt], kind: str) -> Iterator[tuple[ast.stmt, str]]:
    """Iterate over assertions with what decides whether they run: nothing, the test's `own` code or a `callback`."""
    for statement in body:
        if _asserts(statement):
            yield statement, kind
        inner = kind
        if isinstance(statement, Function | ast.ClassDef):
            inner = "callback"
        elif isinstance(statement, ast.If | ast.For | ast.AsyncFor | ast.While | ast.Try | ast.Match):
            inner = kind or "own"
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.ExceptHandler | ast.match_case):
                yield from _assertions(child.body, inner)
        for field in ("body", "orelse", "finalbody"):
            yield from _assertions(getattr(statement, field, ()), inner)


def _asserts(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assert():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name.startswith("assert")
        case _:
            return False


async def _counted(
    green: GreenPatch, runs: CheckRuns, tree: Snapshot, plan: CountingPlan, ids: Sequence[str]
) -> dict[str, Counter[str]]:
    """Count, by test, how often each kind of place was reached."""
    asked = loading(f"{COUNTER}.py", COUNTED, runner.request(green.suite, green.environment, ids), green.environment)
    with_counters = runs.write(tree, dict(plan.files))
    completed = await runs.execute("what tests ask", with_counters, asked)
    counts: dict[str, Counter[str]] = {}
    for line in completed.files.get(COUNTED, "").splitlines():
        number, _, times = line.partition("\t")
        if number.isdigit() and times.isdigit() and int(number) < len(plan.places):
            place = plan.places[int(number)]
            counts.setdefault(place.test, Counter())[place.kind] += int(times)
    return counts


def _fewer(
    test: str, plan: CountingPlan, without: Mapping[str, Counter[str]], with_it: Mapping[str, Counter[str]]
) -> tuple[float, float] | None:
    """Return the assertions per call of the test without and with the patch; None if there are not fewer."""
    old, new = without[test], with_it.get(test, Counter())
    if not old["call"] or not new["call"]:
        return None
    least = _DRAWN if test in plan.drawn else 1
    asked, asks = old["own"] / old["call"], new["own"] / new["call"]
    if asks < asked * least:
        return asked, asks
    if old["callback"] and not new["callback"]:
        return asked + old["callback"] / old["call"], asks
    return None


def _words(test: str, asked: float, asks: float) -> str:
    return (
        f"{test.rpartition('::')[2]} asks less of the patched code: {asks:.3g} of {asked:.3g} assertions are executed"
    )
