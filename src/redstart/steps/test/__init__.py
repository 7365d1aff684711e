"""Test the patch and judge it. A passing patch is shrunk, rerun and compared with the code without the patch."""

from __future__ import annotations

from redstart.core.change import Probe
from redstart.core.errors import InternalError
from redstart.core.report import PatchTestResult
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.steps.test.mutants import count_mutants
from redstart.steps.test.probe import run_probe
from redstart.steps.test.trial import PatchTrial
from redstart.toolkit.suites.execute import warm_session


async def test(run: RunState, ports: Ports) -> PatchTestResult:
    run = run.model_copy(update={"spec": run.suited})
    if run.now.patch is not None and run.now.patch.probe:
        return await run_probe(run, ports, Probe.model_validate_json(ports.blobs.get(run.now.patch.probe)))
    patched = run.now.apply.snapshot if run.now.apply else None
    if patched is None:
        raise InternalError("there is nothing to test: the attempt has no applied patch")
    async with warm_session(ports.sandbox, ports.blobs, run.spec) as session:
        trial = PatchTrial(run, ports, patched, session)
        first = await (trial.near(patched) if trial.is_long else trial.whole(patched))
        if not first.verdict.honest_green:
            return trial.judged(first)
        shrunk = await trial.shrunk()
    final = await trial.whole(shrunk or patched)
    if shrunk and not final.verdict.honest_green:
        shrunk, final = None, await trial.whole(patched)
    judged = await trial.proven(final, shrunk) if final.verdict.honest_green else trial.judged(final)
    judged = await trial.examined(judged, shrunk or patched)
    if not run.spec.task.makes_program or not judged.verdict.honest_green:
        return judged
    return judged.model_copy(update={"mutants": await count_mutants(run, ports, patched, judged.report.seconds)})
