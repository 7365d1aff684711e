"""Where the altered tests are defined, even if a class inherits them from another file."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Snapshot
from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.toolkit.honesty.controls.alteration import AlterationKind
from redstart.toolkit.honesty.controls.subjects import Subject, collect_subjects, get_alterer
from redstart.toolkit.honesty.examination import GreenPatch
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.request import SuiteRequest

TREE = Snapshot(tree="", base="", pack="")
MIXIN = b"""class SizeMixin:
    def test_size(self):
        self.assertEqual(self.make().size, 3)
"""
OWN = b"""import unittest

from tests import SizeMixin


class BoxTest(SizeMixin, unittest.TestCase):
    def test_own(self):
        self.assertEqual(1, 1)
"""


class Files:
    """A tree that is never run."""

    is_concurrent = False

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        raise AssertionError(activity)

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        raise AssertionError(activity)

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return list(self._files)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._files.get(path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return tree


def create_green_patch(target: str) -> GreenPatch:
    before = Case(id=target, outcome=Outcome.failed, detail='File "tests/__init__.py", line 3, in test_size')
    after = Case(id=target, outcome=Outcome.passed)
    environment = Environment(mount="/repo", python="python")
    return GreenPatch(TREE, TREE, Suite(runner="pytest"), environment, (target,), (before,), (), (), "seed", (after,))


def test_inherited_test_is_altered_where_it_is_defined() -> None:
    selection = collect_subjects(
        create_green_patch("tests/test_box.py::BoxTest::test_size"),
        Files({"tests/__init__.py": MIXIN, "tests/test_box.py": OWN}),
    )
    (subject,) = selection.selected
    assert (subject.path, subject.name, subject.failed) == ("tests/__init__.py", "BoxTest::test_size", 3)
    assert b"size, 4)" in subject.alterations[0].apply_to(MIXIN)
    assert selection.left_out == ()


def test_parameter_sets_other_than_targets_are_not_counted() -> None:
    text = b"import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n):\n    assert n == 1 or n == 2\n"
    target, neighbor = "tests/test_n.py::test_n[1]", "tests/test_n.py::test_n[2]"
    patch = create_green_patch(target)
    passing_case = Case(id=neighbor, outcome=Outcome.passed)
    patch = patch._replace(
        before=(*patch.before, passing_case), after=(*patch.after, passing_case), nearby=(target, neighbor)
    )
    selection = collect_subjects(patch, Files({"tests/test_n.py": text}))
    assert [(subject.ids, subject.is_target) for subject in selection.selected] == [((target,), True)]
    assert selection.targets == 1


def test_test_defined_in_two_files_is_excluded() -> None:
    files = {"tests/__init__.py": MIXIN, "tests/other.py": MIXIN, "tests/test_box.py": OWN}
    selection = collect_subjects(create_green_patch("tests/test_box.py::BoxTest::test_size"), Files(files))
    assert selection.selected == ()
    assert selection.left_out == ("tests/test_box.py::BoxTest::test_size: it has no assertion that can be altered",)


def create_assertions(count: int) -> bytes:
    return b"def test_n():\n" + b"".join(b"    assert f(%d) == %d\n" % (number, number) for number in range(count))


def collect_one(text: bytes, detail: str, **changes: object) -> Subject:
    """Collect the only subject of a file with the target `test_n`, which failed as `detail` says."""
    patch = create_green_patch("tests/test_n.py::test_n")
    patch = patch._replace(before=(patch.before[0].model_copy(update={"detail": detail, **changes}),))
    (subject,) = collect_subjects(patch, Files({"tests/test_n.py": text})).selected
    return subject


def test_alterations_of_the_failed_line_come_first_and_none_comes_twice() -> None:
    subject = collect_one(create_assertions(3), "tests/test_n.py:3: AssertionError")
    lines = [alteration.line for alteration in subject.alterations]
    assert subject.failed == 3
    assert lines[:3] == [3, 3, 3]
    assert sorted(lines[3:]) == [2, 2, 4, 4]
    assert len(set(subject.alterations)) == len(lines)
    assert [alteration.kind for alteration in subject.alterations[:3]] == ["literal", "inserted", "negated"]


def test_at_most_twelve_alterations_are_drawn() -> None:
    assert len(collect_one(create_assertions(30), "tests/test_n.py:3: AssertionError").alterations) == 12


def test_literals_of_other_comparisons_come_last() -> None:
    others = b"def test_n():\n    assert f() != 5\n    assert 6 in f()\n    assert f() is 7\n"
    text = others + create_assertions(3).partition(b"\n")[2]
    kinds = [alteration.kind for alteration in collect_one(text, "").alterations]
    assert kinds.count(AlterationKind.other) > 0
    assert kinds == sorted(kinds, key=lambda kind: kind is AlterationKind.other)


def test_failed_line_is_the_innermost_of_the_test_file() -> None:
    detail = 'File "tests/test_n.py", line 2, in a\nFile "src/n.py", line 9\nFile "tests/test_n.py", line 4, in b'
    assert collect_one(create_assertions(5), detail).failed == 4
    assert collect_one(create_assertions(5), "src/n.py:4: ValueError").failed is None
    assert collect_one(create_assertions(5), detail, outcome=Outcome.passed).failed is None


def test_short_name_is_that_of_the_test() -> None:
    subject = collect_one(create_assertions(2), "")
    assert subject.short == "test_n"
    assert subject._replace(id="tests/test_n.py::T::test_m").short == "test_m"
    assert subject._replace(id="tests.test_n.T.test_m").short == "test_m"
    assert subject._replace(id="tests/test_n.py").short == "tests/test_n.py"


def test_only_languages_with_an_alterer_are_altered() -> None:
    assert get_alterer("tests/test_n.py") is not None
    assert get_alterer("src/n.test.js") is not None
    assert get_alterer("n_test.go") is None


def collect_nearby(neighbor: str, outcome_before: Outcome, files: dict[str, bytes], *changed: str) -> list[str]:
    """Collect with one neighbor and return the IDs of the subjects."""
    patch = create_green_patch("tests/test_n.py::test_n")
    patch = patch._replace(
        before=(*patch.before, Case(id=neighbor, outcome=outcome_before)),
        after=(*patch.after, Case(id=neighbor, outcome=Outcome.passed)),
        nearby=(neighbor,),
        changed=changed,
    )
    selection = collect_subjects(patch, Files({"tests/test_n.py": create_assertions(1), **files}))
    assert selection.left_out == ()
    return [subject.id for subject in selection.selected]


def test_neighbor_is_altered_if_it_passed_before_in_a_file_that_the_patch_keeps() -> None:
    target, neighbor = "tests/test_n.py::test_n", "tests/test_m.py::test_n"
    files = {"tests/test_m.py": create_assertions(1)}
    assert collect_nearby(neighbor, Outcome.passed, files) == [target, neighbor]
    assert collect_nearby(neighbor, Outcome.failed, files) == [target]
    assert collect_nearby(neighbor, Outcome.passed, files, "tests/test_m.py") == [target]
    assert collect_nearby(neighbor, Outcome.passed, files, "src/n.py") == [target, neighbor]
    assert collect_nearby(neighbor, Outcome.passed, {"tests/test_m.py": b"test_n = None\n"}) == [target]


def test_at_most_six_neighbors_are_altered() -> None:
    ids = [f"tests/test_m.py::test_{number}" for number in range(9)]
    cases = tuple(Case(id=id_, outcome=Outcome.passed) for id_ in ids)
    patch = create_green_patch("tests/test_n.py::test_n")
    patch = patch._replace(before=(*patch.before, *cases), after=(*patch.after, *cases), nearby=tuple(ids))
    text = b"".join(b"def test_%d():\n    assert f() == 1\n" % number for number in range(9))
    selection = collect_subjects(patch, Files({"tests/test_n.py": create_assertions(1), "tests/test_m.py": text}))
    assert [subject.is_target for subject in selection.selected] == [True] + [False] * 6
    assert selection.targets == 1


def test_test_without_a_file_in_its_id_is_found_by_its_class_and_name() -> None:
    text = OWN.replace(b"SizeMixin, ", b"")
    patch = create_green_patch("BoxTest::test_own")
    helper = {"src/box.py": text}
    (subject,) = collect_subjects(patch, Files({"tests/test_box.py": text, **helper})).selected
    assert (subject.path, subject.is_target) == ("tests/test_box.py", True)
    for files in ({"tests/test_box.py": text, "tests/test_two.py": text}, helper):
        selection = collect_subjects(patch, Files(files))
        assert selection.selected == ()
        assert selection.left_out == ("BoxTest::test_own: it is not known in which file it is written",)


def test_target_in_another_language_is_left_out() -> None:
    selection = collect_subjects(create_green_patch("n_test.go::TestN"), Files({"n_test.go": b"func TestN() {}\n"}))
    assert (selection.selected, selection.targets) == ((), 1)
    assert selection.left_out == ("n_test.go: not altered",)
