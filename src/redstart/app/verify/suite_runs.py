"""Run a suite on the trees of a change, each time on a fresh copy."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from posixpath import join

from redstart.app.settings.store import find_tenant_folder
from redstart.app.verify.kept_results import KeptResults
from redstart.app.verify.service_reset import reset_services
from redstart.app.wire import AppContext
from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.report import Case
from redstart.core.run import RunSpec
from redstart.core.shell import PINNED, Completed, Environment, Variation
from redstart.engines.progress import StepWatch
from redstart.toolkit.languages.registry import find_runner_language
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.suites.execute import SuiteRun, build_execution, load_environment, run_suite
from redstart.toolkit.suites.problems.environment import EnvironmentProblem, classify, classify_run
from redstart.toolkit.suites.problems.project import ProjectView, create_project_view
from redstart.toolkit.suites.request import SuiteRequest
from redstart.toolkit.suites.suite_directory import TreeView

MOST_AT_ONCE = 4
"""The most suites that run at the same time: each of them needs memory of its own."""


class SuiteRuns:
    """Executes and reports the runs of one verification. Implements `CheckRuns`, with the suite of the new tests.

    As many suites run at the same time as there are processors, but only one if the tests share a service. The user's
    command then resets the services before each suite. If it fails, a run raises `ServicesNotReset`.
    """

    is_concurrent = True

    def __init__(self, app: AppContext, spec: RunSpec, watch: StepWatch) -> None:
        """`spec` says how the new tests run. Raises `SandboxUnavailable` if `app` has no sandbox."""
        if app.adapters.sandbox is None:
            raise SandboxUnavailable("verification needs a sandbox")
        self._sandbox, self._trees = app.adapters.sandbox, app.trees
        self.blobs = app.adapters.blobs
        self._spec, self._watch = spec, watch
        self._kept = KeptResults(find_tenant_folder(app.settings.home, app.settings.tenant), self.blobs)
        environment = load_environment(self.blobs, spec)
        self._reset_command = app.settings.sandbox.services_reset if environment.services else ""
        self._folder = Path(environment.mount)
        self._free = asyncio.Semaphore(1 if environment.services else min(os.cpu_count() or 1, MOST_AT_ONCE))
        self.kept_trees: set[str] = set()
        """The sides of the change whose results are those of an earlier verification, by the ID of their tree."""
        self._environments: dict[str, str] = {}
        """The blob of the environment by tree, for trees with another one than that of the new code."""

    def set_environment(self, tree: Snapshot, environment: Environment) -> None:
        """Run the suites on this tree in another environment than the others."""
        self._environments[tree.tree] = self.blobs.put(environment.model_dump_json().encode())

    def share_environment(self, tree: Snapshot, other: Snapshot) -> None:
        """Run the suites on the other tree in the environment of this one."""
        if tree.tree in self._environments:
            self._environments[other.tree] = self._environments[tree.tree]

    async def run_kept(self, activity: str, tree: Snapshot, spec: RunSpec, *, reuses: bool) -> SuiteRun:
        """Run the whole suite on a side of the change and keep the results, or return its kept results."""
        spec = self._equip(spec, tree)
        key = self._kept.compute_key(tree, spec)
        if reuses and (kept := self._kept.find(key)):
            self.kept_trees.add(tree.tree)
            return kept
        suite_run = await self.run_suite(activity, tree, spec)
        self._kept.save(key, suite_run)
        return suite_run

    async def run_suite(
        self,
        activity: str,
        tree: Snapshot,
        spec: RunSpec,
        ids: Sequence[str] = (),
        *,
        variation: Variation = PINNED,
        tests: int = 0,
        seconds: float = 0.0,
    ) -> SuiteRun:
        """Run the suite of `spec`, or only the tests `ids`, on that tree. A whole run checks where imports come from.

        `tests` and `seconds` are what the run will probably take.
        """
        language = find_runner_language(spec.suite.runner)
        spec = self._equip(spec, tree)
        paths = [path for path in self._create_view(spec, tree).snapshot_paths if not path.startswith("../")]
        async with self._free:
            await self._reset_services()
            self._watch.announce(activity, tests=tests, seconds=seconds)
            with self._watch.report_execution():
                return await run_suite(
                    self._sandbox,
                    self.blobs,
                    spec,
                    tree,
                    sign=partial(sign, is_source=lambda _: False),
                    ids=ids,
                    packages=language.list_own_packages(paths) if language and not ids else (),
                    variation=variation,
                )

    async def run_tests(self, activity: str, tree: Snapshot, ids: Sequence[str]) -> SuiteRun:
        return await self.run_suite(activity, tree, self._spec, ids, tests=len(ids))

    async def execute(self, activity: str, tree: Snapshot, request: SuiteRequest) -> Completed:
        spec = self._equip(self._spec, tree)
        environment = load_environment(self.blobs, spec)
        async with self._free:
            await self._reset_services()
            self._watch.announce(activity)
            with self._watch.report_execution():
                return await self._sandbox.run(build_execution(spec, tree, environment, request))

    def list_files(self, tree: Snapshot) -> Sequence[str]:
        return self._trees.list_files(tree)

    def read(self, tree: Snapshot, path: str) -> bytes | None:
        return self._trees.read(tree, path)

    def write(self, tree: Snapshot, files: dict[str, bytes | None]) -> Snapshot:
        return self._trees.write(tree, files) if files else tree

    def create_test_view(self, tree: Snapshot) -> TreeView:
        """Return the tree as the runner of the new tests sees it."""
        return self._create_view(self._spec, tree)

    def find_environment_problems(self, tree: Snapshot, cases: Iterable[Case]) -> dict[str, EnvironmentProblem]:
        """Find the failing tests that lack something of this machine, by ID."""
        project = self._create_project_view(tree)
        classified = ((case.id, classify(case, project)) for case in cases if case.is_red)
        return {id_: problem for id_, problem in classified if problem is not None}

    def explain_missing_results(self, tree: Snapshot, suite_run: SuiteRun) -> EnvironmentProblem | None:
        """Find what a run without results per test lacks. None if that is unknown."""
        output = self.blobs.get(suite_run.report.output).decode("utf-8", "replace")
        return classify_run(suite_run.problem, output, suite_run.report.cause, self._create_project_view(tree))

    def _create_project_view(self, tree: Snapshot) -> ProjectView:
        """Return the view that tells a missing dependency from a mistake."""
        environment, view = load_environment(self.blobs, self._spec), self.create_test_view(tree)
        root = join(environment.mount, self._spec.suite.folder).rstrip("/")
        return create_project_view(view.snapshot_paths, view.read, root, environment.python)

    async def _reset_services(self) -> None:
        if self._reset_command:
            await reset_services(self._reset_command, self._folder)

    def _equip(self, spec: RunSpec, tree: Snapshot) -> RunSpec:
        """Return how that suite runs on that tree."""
        environment = self._environments.get(tree.tree, spec.suite.environment)
        return spec.model_copy(update={"suite": spec.suite.model_copy(update={"environment": environment})})

    def _create_view(self, spec: RunSpec, tree: Snapshot) -> TreeView:
        return TreeView.open(spec.suite, self._trees, tree)
