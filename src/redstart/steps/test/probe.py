"""Run the snippet or the tests that a model asks for before it edits."""

from __future__ import annotations

from functools import partial

from redstart.core.change import Probe
from redstart.core.report import OutcomeCounts, PatchTestResult, Report
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.model_tools import probes
from redstart.toolkit.suites.execute import run_suite


async def run_probe(run: RunState, ports: Ports, probe: Probe) -> PatchTestResult:
    """Run a probe on the current code. Its result says nothing about any patch."""
    spec, workspace = run.spec, run.workspace
    ports.announce("snippet", tests=len(probe.ids))
    if probe.ids:
        sign_case = partial(sign, is_source=lambda _: False)
        suite_run = await run_suite(ports.sandbox, ports.blobs, spec, workspace, sign=sign_case, ids=probe.ids)
        output = ports.blobs.get(suite_run.report.output).decode(errors="replace")
        outcome_text = probes.describe_outcomes(probe, suite_run.cases, suite_run.report.fault, output)
        return PatchTestResult(report=suite_run.report, probe=ports.blobs.put(outcome_text.encode()))
    environment = Environment.model_validate_json(ports.blobs.get(spec.suite.environment))
    execution = probes.build_execution(probe, workspace, environment, spec.suite, ports.trees.list_files(workspace))
    completed = await ports.sandbox.run(execution)
    report = Report(
        runner="probe",
        counts=OutcomeCounts(),
        cause=completed.cause,
        exit_code=completed.exit_code,
        seconds=round(completed.wall, 3),
    )
    return PatchTestResult(report=report, probe=ports.blobs.put(probes.describe_run(probe, completed).encode()))
