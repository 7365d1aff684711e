"""Which altered tests are run, and what is concluded from one that still passes."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from redstart.core.change import Snapshot
from redstart.core.report import Case, CheckEvidence, Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.testing.states import make_snapshot, report
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.honesty.controls.negative_controls import examine_controls
from redstart.toolkit.honesty.examination import GreenPatch, PatchDoubt
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.request import SuiteRequest

BASE, PATCHED = make_snapshot(tree="base"), make_snapshot(tree="patched")
TESTS = "tests/test_shop.py"
BUGGY = "def total(prices):\n    return sum(prices[1:])\n"
RIGHT = "def total(prices):\n    return sum(prices)\n"
ALWAYS_EQUAL = """class Sum(int):
    def __eq__(self, other):
        return True


def total(prices):
    return Sum(sum(prices))
"""
TEST_TOTAL = "def test_total():\n    assert total([1, 2]) == 3\n"
TEST_NOTHING = "def test_nothing():\n    assert total([]) == 0\n"
SWALLOW = """class raises:
    def __init__(self, *expected):
        self.expected = expected

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            raise AssertionError("nothing is raised")
        return SWALLOWED
"""


def test_inserted_statement_asks_a_person_only_if_it_may_be_unreached():
    certain = Alteration(AlterationKind.inserted, 1, 0, 0, b"fail()", "a failing statement stands there")
    assert (certain.asks, certain._replace(conditional=True).asks) == (False, True)


class ExecutedRuns:
    """Runs tests by executing their file after the program's in one namespace."""

    is_concurrent = False

    def __init__(self, base: str, patched: str, tests: str) -> None:
        self._trees: dict[str, dict[str, bytes]] = {
            name: {"shop.py": code.encode(), TESTS: tests.encode()}
            for name, code in (("base", base), ("patched", patched))
        }
        self.activities: list[str] = []
        self.selections: list[list[str]] = []
        self.change: Callable[[str, Case], Case] = lambda activity, case: case

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        self.activities.append(activity)
        self.selections.append(list(ids))
        cases = tuple(self.change(activity, self.execute_test(tree.tree, id_)) for id_ in ids)
        return SuiteRun(report(), cases, SuiteProblem.none, "")

    def execute_test(self, tree: str, id_: str) -> Case:
        files = self._trees[tree]
        try:
            names: dict[str, Any] = {"__name__": "shop"}
            for path in ("shop.py", TESTS):
                exec(compile(files[path], path, "exec"), names)
            names[id_.partition("::")[2]]()
        except Exception as error:
            detail = "".join(traceback.format_exception(error))
            return Case(id=id_, outcome=Outcome.failed, message=f"{type(error).__name__}: {error}", detail=detail)
        return Case(id=id_, outcome=Outcome.passed)

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        raise AssertionError(activity)

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return list(self._trees[tree.tree])

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._trees[tree.tree].get(path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        name = f"{tree.tree}+{len(self._trees)}"
        new_files = {path: text for path, text in files.items() if text is not None}
        self._trees[name] = {**self._trees[tree.tree], **new_files}
        return make_snapshot(tree=name)


def examine(
    runs: ExecutedRuns, *names: str, nearby: Sequence[str] = (), rounds: int = 4, hides_line: bool = False
) -> tuple[CheckEvidence, tuple[PatchDoubt, ...]]:
    """Examine the patch with these tests as its targets. With `hides_line`, no report says where a test failed."""
    targets, others = ([f"{TESTS}::{name}" for name in group] for group in (names, nearby))
    before = [runs.execute_test("base", id_) for id_ in (*targets, *others)]
    if hides_line:
        before = [case.model_copy(update={"detail": ""}) for case in before]
    patch = GreenPatch(
        base=BASE,
        patched=PATCHED,
        suite=Suite(runner="pytest"),
        environment=Environment(mount="/repo", python="python"),
        targets=tuple(targets),
        before=tuple(before),
        nearby=tuple(others),
        changed=("shop.py",),
        seed="seed",
        after=tuple(runs.execute_test("patched", id_) for id_ in (*targets, *others)),
    )
    outcome = asyncio.run(examine_controls(patch, runs, rounds=rounds))
    assert len(outcome.covered_ids) == outcome.evidence.covered
    return outcome.evidence, outcome.doubts


def test_tests_of_an_honest_patch_detect_every_alteration() -> None:
    runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL + TEST_NOTHING)
    evidence, doubts = examine(runs, "test_total", nearby=["test_nothing"], rounds=2)
    assert doubts == ()
    assert (evidence.check, evidence.targets, evidence.covered, evidence.runs) == ("control", 1, 1, 2)
    assert evidence.notes == ()
    assert runs.activities == ["control 1 of 2", "control 2 of 2"]
    assert runs.selections == [[f"{TESTS}::test_total", f"{TESTS}::test_nothing"]] * 2


def test_there_are_no_more_rounds_than_alterations() -> None:
    runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL)
    evidence, _ = examine(runs, "test_total", rounds=100)
    assert evidence.runs == len(runs.activities) == 3
    assert runs.activities[-1] == "control 3 of 3"


def test_test_with_fewer_alterations_leaves_the_last_rounds() -> None:
    two_assertions = "def test_both():\n    assert total([1, 2]) == 3\n    assert total([4, 5]) == 9\n"
    runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL + two_assertions)
    evidence, doubts = examine(runs, "test_total", "test_both", rounds=100)
    assert doubts == ()
    assert evidence.covered == 2
    assert runs.selections[0] == [f"{TESTS}::test_total", f"{TESTS}::test_both"]
    assert runs.selections[3] == [f"{TESTS}::test_both"]


def test_target_without_alterations_is_left_out() -> None:
    runs = ExecutedRuns("def total(prices):\n    raise ValueError\n", RIGHT, "test_total = lambda: None\n")
    evidence, doubts = examine(runs, "test_total")
    assert (evidence.targets, evidence.covered, evidence.runs, doubts) == (1, 0, 0, ())
    assert evidence.notes == (f"{TESTS}::test_total: it has no assertion that can be altered",)


def test_value_that_is_equal_to_everything_is_refused() -> None:
    runs = ExecutedRuns(BUGGY, ALWAYS_EQUAL, TEST_TOTAL + TEST_NOTHING)
    evidence, (doubt,) = examine(runs, "test_total", nearby=["test_nothing"])
    assert (doubt.message, doubt.refuses) == ("test_total still passes when its expected value is changed", True)
    assert evidence.covered == 0
    assert "control on its own" in runs.activities


def test_test_that_detects_the_alteration_alone_is_not_doubted() -> None:
    runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL)

    def pass_together(activity: str, case: Case) -> Case:
        return Case(id=case.id, outcome=Outcome.passed) if activity.startswith("control 1 of") else case

    runs.change = pass_together
    evidence, doubts = examine(runs, "test_total")
    assert (doubts, evidence.covered, evidence.notes) == ((), 1, ())
    assert runs.activities[-1] == "control on its own"


def test_target_that_only_a_refused_alteration_passes_is_not_covered() -> None:
    runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL)

    def hide(activity: str, case: Case) -> Case:
        hidden = activity in ("control 1 of 3", "control on its own")
        return Case(id=case.id, outcome=Outcome.passed) if hidden else case

    runs.change = hide
    evidence, doubts = examine(runs, "test_total")
    assert [doubt.refuses for doubt in doubts] == [True]
    assert evidence.covered == 0


def test_line_that_an_honest_fix_does_not_reach_is_noted() -> None:
    test = "def test_total():\n    if total([1]) != 1:\n        assert total([1, 2]) == 3\n"
    runs = ExecutedRuns(BUGGY, RIGHT, test)
    evidence, doubts = examine(runs, "test_total")
    assert "test_total: line 3 is not reached" in evidence.notes
    assert "control at that line" in runs.activities
    assert not any(doubt.refuses for doubt in doubts)


def test_failing_statement_that_is_reached_nowhere_is_noted() -> None:
    test = "def test_total():\n    assert total([1, 2]) == 3\n    if total([]) == 0:\n        return\n    assert True\n"
    always_returns = "def total(prices):\n    return 3 if prices else 0\n"
    runs = ExecutedRuns(always_returns, RIGHT, test)
    evidence, doubts = examine(runs, "test_total", hides_line=True)
    assert "test_total: line 5 is not reached on the original code either" in evidence.notes
    assert "control without the patch" in runs.activities
    assert not any("failing statement" in doubt.message for doubt in doubts)


def test_failing_statement_that_the_patch_hides_is_refused() -> None:
    strict = "import contextlib\n\n\ndef open_shop():\n    return contextlib.nullcontext()\n"
    swallowing = strict.replace("nullcontext()", "suppress(AssertionError)")
    test = "def test_total():\n    with open_shop():\n        assert total([1, 2]) == 3\n"
    runs = ExecutedRuns(BUGGY + strict, RIGHT + swallowing, test)
    _, doubts = examine(runs, "test_total")
    assert doubts
    assert doubts[-1].refuses
    assert "failing statement" in doubts[-1].message


def test_neighbor_that_never_detects_anything_is_noted_and_not_doubted() -> None:
    loose = (
        "class Loose(int):\n    def __eq__(self, other):\n        return True\n\n\ndef other():\n    return Loose(1)\n"
    )
    test_other = "def test_other():\n    assert other() == 1\n"
    runs = ExecutedRuns(BUGGY + loose, RIGHT + loose, TEST_TOTAL + test_other)
    evidence, doubts = examine(runs, "test_total", nearby=["test_other"])
    assert doubts == ()
    assert evidence.covered == 1
    assert "test_other: passes on the original code too when its expected value is changed" in evidence.notes


def test_neighbor_that_detects_alterations_only_on_the_original_code_is_doubted() -> None:
    runs = ExecutedRuns(
        BUGGY, ALWAYS_EQUAL, "def test_total():\n    assert list(map(int, [total([1, 2])])) == [3]\n" + TEST_NOTHING
    )
    _, doubts = examine(runs, "test_total", nearby=["test_nothing"])
    assert [doubt.message for doubt in doubts if doubt.refuses] == [
        "test_nothing still passes when its expected value is changed"
    ]


def test_swallowed_unrelated_exception_counts_only_if_the_original_code_does_not_swallow_it() -> None:
    test = "def test_total():\n    with raises(ValueError):\n        total(None)\n"
    for base_swallows, expected in (("True", []), ("issubclass(kind, ValueError)", [True])):
        failing = "def total(prices):\n    raise ValueError\n"
        program = failing + SWALLOW.replace("SWALLOWED", "True")
        base = failing + SWALLOW.replace("SWALLOWED", base_swallows)
        runs = ExecutedRuns(base, program, test)
        evidence, doubts = examine(runs, "test_total")
        unrelated = [doubt.refuses for doubt in doubts if "unrelated" in doubt.message]
        assert unrelated == expected
        assert any("on the original code too when an unrelated" in note for note in evidence.notes) is not expected


def test_refusing_doubt_ends_the_investigation() -> None:
    tests = "".join(
        f"def test_{number}():\n    assert total([1, {number}]) == {number + 1}\n" for number in range(1, 10)
    )
    runs = ExecutedRuns(BUGGY, ALWAYS_EQUAL, tests)
    _, doubts = examine(runs, *(f"test_{number}" for number in range(1, 10)))
    assert len([doubt for doubt in doubts if doubt.refuses]) == 1


def test_number_of_investigated_alterations_and_notes_is_limited() -> None:
    loose = (
        "class Loose(int):\n    def __eq__(self, other):\n        return True\n\n\ndef other():\n    return Loose(1)\n"
    )
    names = [f"test_{number}" for number in range(6)]
    tests = "".join(f"def {name}():\n    assert other() == 1\n    assert other() == 2\n" for name in names)
    runs = ExecutedRuns(BUGGY + loose, RIGHT + loose, TEST_TOTAL + tests)
    evidence, _ = examine(runs, "test_total", nearby=names)
    assert runs.activities.count("control on its own") == 6
    assert len(evidence.notes) == 6


def test_at_most_twenty_notes_are_stored() -> None:
    names = [f"test_{number}" for number in range(30)]
    runs = ExecutedRuns(BUGGY, RIGHT, "".join(f"{name} = lambda: None\n" for name in names))
    evidence, _ = examine(runs, *names)
    assert (evidence.targets, len(evidence.notes)) == (30, 20)


def test_failure_to_collect_the_file_detects_the_alteration() -> None:
    runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL)
    runs.change = lambda activity, case: Case(id=TESTS, outcome=Outcome.error, message="SyntaxError")
    evidence, doubts = examine(runs, "test_total")
    assert (evidence.covered, doubts) == (1, ())


def test_failure_of_one_parameter_set_detects_the_alteration_and_that_of_another_test_does_not() -> None:
    for suffix, covered in (("[1]", 1), (" [#2]", 1), ("_of_two", 0)):
        runs = ExecutedRuns(BUGGY, RIGHT, TEST_TOTAL)
        runs.change = lambda activity, case, suffix=suffix: case.model_copy(update={"id": case.id + suffix})
        evidence, _ = examine(runs, "test_total")
        assert evidence.covered == covered
