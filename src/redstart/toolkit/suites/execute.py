"""Run a suite once in the sandbox and build the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.learning import Signature
from redstart.core.report import FIRST, Case, CaseList, OutcomeCounts, Report, compute_ids_digest
from redstart.core.run import RunSpec
from redstart.core.shell import PINNED, Environment, Execution, Variation
from redstart.ports.sandbox.port import Sandbox, SandboxSession, open_sandbox_session
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.request import PLUGINS, SuiteRequest


class SuiteRun(NamedTuple):
    report: Report
    cases: tuple[Case, ...]
    problem: SuiteProblem
    """Why there are no results per test."""
    unexplained: str
    """How the exit code and the report contradict each other. Empty if they agree."""
    misplaced: str = ""
    """What to do if the tests import a copy of the project that no edit would reach."""


def warm_session(sandbox: Sandbox, blobs: Blobs, spec: RunSpec) -> AbstractAsyncContextManager[SandboxSession]:
    """Open a session for consecutive runs of this suite. None of these runs may decide a verdict."""
    return open_sandbox_session(sandbox, load_environment(blobs, spec), spec.sandbox)


async def run_suite(
    sandbox: SandboxSession,
    blobs: Blobs,
    spec: RunSpec,
    snapshot: Snapshot,
    *,
    sign: Callable[[Case], Signature],
    ids: Sequence[str] = (),
    packages: Sequence[str] = (),
    variation: Variation = PINNED,
) -> SuiteRun:
    """Run the suite, or only the tests `ids`, on a fresh copy of the snapshot. Raises what the sandbox raises.

    `sandbox` is a sandbox or one of its sessions.

    With `packages` (the project's own), it also records where the tests import those from. `variation` is what a repeat
    does differently from the first run. `ids` have no effect if `can_select_tests` is false or our plugin is not
    importable.
    """
    environment = load_environment(blobs, spec)
    suite_request = runner.request(
        spec.suite, environment, ids, sentinel=packages, variation=variation, test_cpu=spec.test_cpu
    )
    completed = await sandbox.run(build_execution(spec, snapshot, environment, suite_request))
    if replacement := runner.build_replacement_request(spec.suite, environment, completed, variation):
        completed = await sandbox.run(build_execution(spec, snapshot, environment, replacement))
    parsed = runner.read(spec.suite, completed)
    cases = tuple(parsed.cases)
    failing = [case for case in cases if case.is_red]
    report = Report(
        runner=spec.suite.runner,
        counts=OutcomeCounts.from_cases(cases),
        cases=tuple(case.shorten() for case in failing[:FIRST]),
        failing=compute_ids_digest(case.id for case in failing),
        full=blobs.put(CaseList(cases=cases).model_dump_json().encode()),
        output=blobs.put(completed.output.encode()),
        cause=completed.cause,
        exit_code=completed.exit_code,
        seconds=round(completed.wall, 3),
        signature=sign(failing[0]) if failing else None,
        plugins=_store_plugins(blobs, completed.files.get(PLUGINS, "")),
        fault=parsed.fault,
    )
    suite_runner = runner.get_suite_runner(spec.suite) if packages else None
    misplaced = suite_runner.explain_misplaced_imports(spec.suite, environment, completed) if suite_runner else ""
    return SuiteRun(report, cases, parsed.kind, runner.find_contradiction(spec.suite, cases, completed), misplaced)


def load_environment(blobs: Blobs, spec: RunSpec) -> Environment:
    """Load the environment of the run's suite."""
    return Environment.model_validate_json(blobs.get(spec.suite.environment))


def _store_plugins(blobs: Blobs, names: str) -> str:
    """Store the plugin names, each once: a command may start pytest several times."""
    return blobs.put("\n".join(sorted(set(names.splitlines()))).encode()) if names else ""


def build_execution(
    spec: RunSpec, snapshot: Snapshot, environment: Environment, suite_request: SuiteRequest
) -> Execution:
    """Build the execution of the suite's request on that snapshot, with the run's own limits."""
    return Execution(
        argv=suite_request.argv,
        snapshot=snapshot,
        environment=environment,
        limits=spec.sandbox,
        variables=dict(suite_request.variables),
        cwd=spec.suite.folder,
        files_in=dict(suite_request.files_in),
        collect=tuple(suite_request.collect),
        hostname=suite_request.hostname,
    )
