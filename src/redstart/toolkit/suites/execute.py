"""One run of a suite in the sandbox, as a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.learning import Signature
from redstart.core.report import FIRST, Case, CaseList, Counts, Report
from redstart.core.run import RunSpec
from redstart.core.shell import Environment, Execution
from redstart.ports.sandbox.port import Sandbox
from redstart.ports.store.port import Blobs
from redstart.toolkit.suites import runner


class SuiteRun(NamedTuple):
    report: Report
    cases: tuple[Case, ...]
    trouble: str
    """Why there are no results per test, as one word; empty where there are."""
    unexplained: str
    """Where the exit code and the report contradict each other."""
    misplaced: str = ""
    """Where the tests import a copy of the project that no edit would reach: what to do about it."""


async def run_suite(
    sandbox: Sandbox,
    blobs: Blobs,
    spec: RunSpec,
    snapshot: Snapshot,
    *,
    sign: Callable[[Case], Signature],
    ids: Sequence[str] = (),
    packages: Sequence[str] = (),
) -> SuiteRun:
    """Runs the suite, or only the tests `ids`, on a fresh copy of the snapshot. Raises what the sandbox raises.

    With `packages` (the project's own) it also looks where the tests import those from.
    """
    environment = Environment.model_validate_json(blobs.get(spec.suite.environment))
    asked = runner.request(spec.suite, environment, ids, sentinel=packages)
    completed = await sandbox.run(
        Execution(
            argv=asked.argv,
            snapshot=snapshot,
            environment=environment,
            limits=spec.sandbox,
            variables=dict(asked.variables),
            files_in=dict(asked.files_in),
            collect=tuple(asked.collect),
        )
    )
    parsed = runner.read(spec.suite, completed)
    cases = tuple(parsed.cases)
    red = [case for case in cases if case.red]
    report = Report(
        runner=spec.suite.runner,
        counts=Counts.of(cases),
        cases=tuple(case.brief() for case in red[:FIRST]),
        full=blobs.put(CaseList(cases=cases).model_dump_json().encode()),
        output=blobs.put(completed.output.encode()),
        cause=completed.cause,
        exit_code=completed.exit_code,
        seconds=round(completed.wall, 3),
        signature=sign(red[0]) if red else None,
        fault=parsed.fault,
    )
    seen = runner.read_sentinel(completed, environment) if packages else None
    misplaced = f"{seen.fault} {seen.remedy}" if seen and seen.fault else ""
    return SuiteRun(report, cases, parsed.kind, runner.contradiction(cases, completed), misplaced)
