"""The kept results of a base, and suites that run at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redstart.app.verify.kept_results import MOST_KEPT, KeptResults
from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.report import Case, CaseList, Outcome, OutcomeCounts, Report
from redstart.core.run import RunSpec
from redstart.core.shell import Environment, ExitCause
from redstart.core.suite import Suite
from redstart.core.tasks import FixTask
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.suites.execute import SuiteRun
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from support.store import MemoryBlobs

CASES = (Case(id="test_a.py::test_a", outcome=Outcome.passed),)


def create_snapshot(tree: str) -> Snapshot:
    return Snapshot(base="", pack="", tree=tree)


TREE = create_snapshot("1" * 40)


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """The environment of a project, with one package."""
    folder = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    (folder / "six-1.0.dist-info").mkdir(parents=True)
    return tmp_path / "venv"


def create_spec(blobs: MemoryBlobs, prefix: Path, **changes: object) -> RunSpec:
    environment = Environment(mount="/repo", python=str(prefix / "bin" / "python"), read_only=(str(prefix),))
    environment = environment.model_copy(update=changes)
    suite = Suite(runner="pytest", environment=blobs.put(environment.model_dump_json().encode()))
    return RunSpec(task=FixTask(), base=TREE, suite=suite, repo="shop")


def create_suite_run(blobs: MemoryBlobs, problem: SuiteProblem = SuiteProblem.none) -> SuiteRun:
    report = Report(
        runner="pytest",
        counts=OutcomeCounts.from_cases(CASES),
        full=blobs.put(CaseList(cases=CASES).model_dump_json().encode()),
        output=blobs.put(b"1 passed"),
        cause=ExitCause.ok,
        exit_code=0,
    )
    return SuiteRun(report, CASES, problem, "")


def find(kept: KeptResults, tree: Snapshot, spec: RunSpec) -> SuiteRun | None:
    return kept.find(kept.compute_key(tree, spec))


def test_results_are_found_again_until_something_else_could_come_out(tmp_path: Path, prefix: Path):
    blobs = MemoryBlobs()
    kept, spec = KeptResults(tmp_path, blobs), create_spec(blobs, prefix)
    suite_run = create_suite_run(blobs)
    assert find(kept, TREE, spec) is None
    kept.save(kept.compute_key(TREE, spec), suite_run)
    assert find(kept, TREE, spec) == suite_run
    assert find(kept, TREE, create_spec(blobs, prefix, git_head="2" * 40)) == suite_run, "the head has moved"
    assert find(kept, create_snapshot("2" * 40), spec) is None
    other_command = spec.suite.model_copy(update={"command": ("pytest", "-x")})
    assert find(kept, TREE, spec.model_copy(update={"suite": other_command})) is None
    assert find(kept, TREE, create_spec(blobs, prefix, variables={"SLOW": "1"})) is None
    (prefix / "lib" / "python3.11" / "site-packages" / "attrs-2.0.dist-info").mkdir()
    assert find(kept, TREE, spec) is None, "a package was installed"


def test_file_that_git_ignores_is_a_part_of_the_environment(tmp_path: Path, prefix: Path):
    blobs, ignored = MemoryBlobs(), tmp_path / "repo" / "settings.ini"
    ignored.parent.mkdir()
    ignored.write_text("a")
    spec = create_spec(blobs, prefix, mount=str(ignored.parent), copies=("settings.ini",))
    kept = KeptResults(tmp_path, blobs)
    kept.save(kept.compute_key(TREE, spec), create_suite_run(blobs))
    assert find(kept, TREE, spec) is not None
    ignored.write_text("other")
    assert find(kept, TREE, spec) is None


def test_results_without_tests_or_with_a_service_are_not_kept(tmp_path: Path, prefix: Path):
    blobs = MemoryBlobs()
    kept, spec = KeptResults(tmp_path, blobs), create_spec(blobs, prefix)
    kept.save(kept.compute_key(TREE, spec), create_suite_run(blobs, SuiteProblem.no_tests))
    assert find(kept, TREE, spec) is None
    shared = create_spec(blobs, prefix, services=("127.0.0.1:5432",))
    kept.save(kept.compute_key(TREE, shared), create_suite_run(blobs))
    assert find(kept, TREE, shared) is None


def test_pruned_and_damaged_results_are_not_found_and_old_ones_are_removed(tmp_path: Path, prefix: Path):
    blobs = MemoryBlobs()
    kept, spec = KeptResults(tmp_path, blobs), create_spec(blobs, prefix)
    for number in range(MOST_KEPT + 3):
        kept.save(kept.compute_key(create_snapshot(f"{number:040}"), spec), create_suite_run(blobs))
    files = list(tmp_path.rglob("*.json"))
    assert len(files) == MOST_KEPT
    last = create_snapshot(f"{MOST_KEPT + 2:040}")
    assert find(kept, last, spec) is not None
    pruned = MemoryBlobs()
    pruned.put(blobs.get(spec.suite.environment))
    assert find(KeptResults(tmp_path, pruned), last, spec) is None
    for file in files:
        file.write_text("{")
    assert find(kept, last, spec) is None


async def test_failure_of_one_run_ends_the_others():
    ended: list[str] = []

    async def wait() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("waiting")
        return 1

    async def fail() -> int:
        raise SandboxUnavailable("no sandbox")

    with pytest.raises(SandboxUnavailable, match="no sandbox"):
        await run_together([wait(), fail()])
    assert ended == ["waiting"]
