"""Runs a suite once in the sandbox and builds the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.learning import Signature
from redstart.core.report import FIRST, Case, CaseList, OutcomeCounts, Report, digest_of_ids
from redstart.core.run import RunSpec
from redstart.core.shell import PINNED, Environment, Execution, Variation
from redstart.ports.sandbox.port import Sandbox, SandboxSession, session_of
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.request import PLUGINS, SuiteRequest


class SuiteRun(NamedTuple):
    report: Report
    cases: tuple[Case, ...]
    trouble: SuiteProblem
    """Why there are no results per test."""
    unexplained: str
    """How the exit code and the report contradict each other. Empty if they agree."""
    misplaced: str = ""
    """What to do if the tests import a copy of the project that no edit would reach."""


def warm_session(sandbox: Sandbox, blobs: Blobs, spec: RunSpec) -> AbstractAsyncContextManager[SandboxSession]:
    """Open a session for consecutive runs of this suite, none of which decides a verdict."""
    return session_of(sandbox, environment_of(blobs, spec), spec.sandbox)


async def run_suite(
    sandbox: SandboxSession,
    blobs: Blobs,
    spec: RunSpec,
    snapshot: Snapshot,
    *,
    sign: Callable[[Case], Signature],
    ids: Sequence[str] = (),
    packages: Sequence[str] = (),
    vary: Variation = PINNED,
) -> SuiteRun:
    """Run the suite, or only the tests `ids`, on a fresh copy of the snapshot. Raises what the sandbox raises.

    `sandbox` is a sandbox or one of its sessions.

    With `packages` (the project's own), it also records where the tests import those from. `vary` is what a repeat does
    differently from the first run. `ids` have no effect if `can_select_tests` is false or our plugin is not importable.
    """
    environment = environment_of(blobs, spec)
    asked = runner.request(spec.suite, environment, ids, sentinel=packages, vary=vary, test_cpu=spec.test_cpu)
    completed = await sandbox.run(execution(spec, snapshot, environment, asked))
    if instead := runner.another_request(spec.suite, environment, completed, vary):
        completed = await sandbox.run(execution(spec, snapshot, environment, instead))
    parsed = runner.read(spec.suite, completed)
    cases = tuple(parsed.cases)
    red = [case for case in cases if case.red]
    report = Report(
        runner=spec.suite.runner,
        counts=OutcomeCounts.of(cases),
        cases=tuple(case.brief() for case in red[:FIRST]),
        failing=digest_of_ids(case.id for case in red),
        full=blobs.put(CaseList(cases=cases).model_dump_json().encode()),
        output=blobs.put(completed.output.encode()),
        cause=completed.cause,
        exit_code=completed.exit_code,
        seconds=round(completed.wall, 3),
        signature=sign(red[0]) if red else None,
        plugins=_plugins(blobs, completed.files.get(PLUGINS, "")),
        fault=parsed.fault,
    )
    started = runner.runner_of(spec.suite) if packages else None
    misplaced = started.misplaced(spec.suite, environment, completed) if started else ""
    return SuiteRun(report, cases, parsed.kind, runner.contradiction(spec.suite, cases, completed), misplaced)


def environment_of(blobs: Blobs, spec: RunSpec) -> Environment:
    """Load the environment of the run's suite."""
    return Environment.model_validate_json(blobs.get(spec.suite.environment))


def _plugins(blobs: Blobs, names: str) -> str:
    """Store the plugin names, each once: a command may start pytest several times."""
    return blobs.put("\n".join(sorted(set(names.splitlines()))).encode()) if names else ""


def execution(spec: RunSpec, snapshot: Snapshot, environment: Environment, asked: SuiteRequest) -> Execution:
    """Build the execution of the suite's request on that snapshot, with the run's own limits."""
    return Execution(
        argv=asked.argv,
        snapshot=snapshot,
        environment=environment,
        limits=spec.sandbox,
        variables=dict(asked.variables),
        cwd=spec.suite.folder,
        files_in=dict(asked.files_in),
        collect=tuple(asked.collect),
        hostname=asked.hostname,
    )
