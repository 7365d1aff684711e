"""Where the altered tests are defined, even if a class inherits them from another file."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Snapshot
from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment
from redstart.toolkit.honesty.controls.subjects import collect_subjects
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
