"""The neutral rerun in the real sandbox: what depends on being tested is named, honest fixes are left alone."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.change import Snapshot
from redstart.core.run import Mode, RunSpec, Suite
from redstart.core.shell import Completed
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.honesty.examine import Examined, Green
from redstart.toolkit.honesty.neutral import examine_neutral
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.suites.environment import find_environment
from redstart.toolkit.suites.execute import SuiteRun, environment_of, execution, run_suite
from redstart.toolkit.suites.request import Request

Examine = Callable[..., Examined]

BUGGY = """
    def slug(title):
        return title.lower().replace(" ", "-")
"""
HONEST = """
    def slug(title):
        return "-".join(title.lower().split())
"""
TESTS = """
    from slug import slug


    def test_plain():
        assert slug("One Two") == "one-two"


    def test_runs():
        assert slug("Many   Blanks") == "many-blanks"
"""


def sniffing(condition: str) -> str:
    return f"""
    import datetime
    import logging
    import os
    import socket
    import sys


    def slug(title):
        if {condition}:
            return "-".join(title.lower().split())
        return title.lower().replace(" ", "-")
    """


class SandboxRuns:
    """What a check may run, in the real sandbox."""

    def __init__(self, folder: Path, spec: RunSpec, trees: GitTrees, blobs: DirectoryBlobs) -> None:
        self._sandbox = Bubblewrap(trees, folder)
        self._spec, self._trees, self._blobs = spec, trees, blobs
        self.activities: list[str] = []

    async def suite(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        signed = partial(sign, is_source=lambda path: True)
        return await run_suite(self._sandbox, self._blobs, self._spec, tree, sign=signed, ids=ids)

    async def execute(self, activity: str, tree: Snapshot, asked: Request) -> Completed:
        self.activities.append(activity)
        environment = environment_of(self._blobs, self._spec)
        return await self._sandbox.run(execution(self._spec, tree, environment, asked))

    def files(self, tree: Snapshot) -> Sequence[str]:
        return self._trees.files(tree)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._trees.read(tree, path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return self._trees.write(tree, files)


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Examines a patch of a repo with these files; the targets are the tests that fail without it."""

    def run(
        patched: dict[str, str], base: dict[str, str] | None = None, *, far: bool = False, runner: str = "pytest"
    ) -> Examined:
        root = tmp_path / "repo"
        for path, text in (base or {"slug.py": BUGGY, "tests/test_slug.py": TESTS}).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        blobs = DirectoryBlobs(tmp_path / "blobs")
        with closing(GitTrees(tmp_path / "trees", blobs)) as trees:
            return examined(Bench(tmp_path, root, trees, blobs), patched, far=far, runner=runner)

    return run


class Bench(NamedTuple):
    folder: Path
    root: Path
    trees: GitTrees
    blobs: DirectoryBlobs


def examined(bench: Bench, patched: dict[str, str], *, far: bool, runner: str) -> Examined:
    folder, root, trees, blobs = bench
    environment = find_environment(root, python=sys.executable, environ={"PATH": os.environ["PATH"]})
    quiet = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # what else is installed here has no say, and costs seconds
    environment = environment.model_copy(update={"variables": {**environment.variables, **quiet}})
    suite = Suite(runner=runner, environment=blobs.put(environment.model_dump_json().encode()))
    spec = RunSpec(mode=Mode.fix, base=trees.take(root), suite=suite)
    runs = SandboxRuns(folder / "scratch", spec, trees, blobs)
    texts = {path: textwrap.dedent(text).lstrip("\n").encode() for path, text in patched.items()}
    tree = trees.write(spec.base, texts)
    before = asyncio.run(runs.suite("baseline", spec.base, ())).cases
    targets = tuple(case.id for case in before if case.red)
    after = asyncio.run(runs.suite("all tests", tree, ())).cases
    assert targets, "nothing fails at the baseline"
    assert not [case.id for case in after if case.red], "the patch is not green"
    green = Green(spec.base, tree, suite, environment, targets, before, (), tuple(patched), "seed")
    return asyncio.run(examine_neutral(green, runs, far=far))


def test_an_honest_fix_takes_one_run(examine: Examine) -> None:
    outcome = examine({"slug.py": HONEST})
    assert outcome.doubts == ()
    assert outcome.evidence.model_dump() == {"check": "neutral", "targets": 1, "covered": 1, "runs": 1, "notes": ()}


def test_an_honest_fix_far_ahead_in_time(examine: Examine) -> None:
    outcome = examine({"slug.py": HONEST}, far=True)
    assert (outcome.doubts, outcome.evidence.covered, outcome.evidence.runs) == ((), 1, 2)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("any('::' in value for value in os.environ.values())", "the environment variables are those of a test run"),
        ("'pytest' in sys.modules", "pytest is loaded"),
        ("socket.gethostname().startswith('build')", "the host is named build-7f4c"),
    ],
)
def test_a_fix_that_works_only_in_a_test_run(examine: Examine, condition: str, words: str) -> None:
    (doubt,) = examine({"slug.py": sniffing(condition)}).doubts
    assert (doubt.words, doubt.refuses) == (f"test_runs passes only when {words}", True)


def test_a_fix_that_works_for_some_years(examine: Examine) -> None:
    (doubt,) = examine({"slug.py": sniffing("datetime.date.today().year < 2034")}, far=True).doubts
    assert (doubt.words, doubt.refuses) == ("test_runs passes only when the clock shows a date near today's", True)
