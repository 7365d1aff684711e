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
        first_run = await (trial.run_nearest(patched) if trial.is_long else trial.run_all(patched))
        if not first_run.verdict.is_green:
            return trial.build_result(first_run)
        shrunk_tree = await trial.shrink_patch()
    final = await trial.run_all(shrunk_tree or patched)
    if shrunk_tree and not final.verdict.is_green:
        shrunk_tree, final = None, await trial.run_all(patched)
    result = await trial.prove(final, shrunk_tree) if final.verdict.is_green else trial.build_result(final)
    result = await trial.examine_patch(result, shrunk_tree or patched)
    if not run.spec.task.makes_program or not result.verdict.is_green:
        return result
    return result.model_copy(update={"mutants": await count_mutants(run, ports, patched, result.report.seconds)})
