"""Run the snippet or the tests that a model asks for before it edits."""

from __future__ import annotations

from functools import partial

from redstart.core.change import Probe
from redstart.core.report import OutcomeCounts, PatchTestResult, Report
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.looking import probes
from redstart.toolkit.suites.execute import run_suite


async def run_probe(run: RunState, ports: Ports, probe: Probe) -> PatchTestResult:
    """Run a probe on the current code. Its result says nothing about any patch."""
    spec, ground = run.spec, run.ground
    ports.announce("snippet", tests=len(probe.ids))
    if probe.ids:
        unsigned = partial(sign, is_source=lambda _: False)
        done = await run_suite(ports.sandbox, ports.blobs, spec, ground, sign=unsigned, ids=probe.ids)
        output = ports.blobs.get(done.report.output).decode(errors="replace")
        told = probes.outcomes(probe, done.cases, done.report.fault, output)
        return PatchTestResult(report=done.report, probe=ports.blobs.put(told.encode()))
    environment = Environment.model_validate_json(ports.blobs.get(spec.suite.environment))
    asked = probes.execution(probe, ground, environment, spec.suite, ports.trees.files(ground))
    completed = await ports.sandbox.run(asked)
    report = Report(
        runner="probe",
        counts=OutcomeCounts(),
        cause=completed.cause,
        exit_code=completed.exit_code,
        seconds=round(completed.wall, 3),
    )
    return PatchTestResult(report=report, probe=ports.blobs.put(probes.printed(probe, completed).encode()))
