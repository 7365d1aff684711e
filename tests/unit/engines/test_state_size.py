"""The state stays under 64 KB as JSON, whatever the repo."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redstart.core.finding import Findings
from redstart.core.run import Limits, Result, Step
from redstart.core.shell import Completed, Execution, ExitCause
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import make_rig

pytestmark = pytest.mark.slow

TESTS, RED, FINDINGS, LIMIT = 10_000, 3_000, 2_000, 64 * 1024


def run_big_suite(execution: Execution) -> Completed:
    """Report 10,000 tests; 3,000 fail with long messages made of four-byte letters."""
    long = "𝒶" * 400
    failure = f'<failure message="assert {long} == 1">{play.TESTS}:5: AssertionError</failure>'
    cases = "".join(
        f'<testcase classname="test_calc" name="test_{number}_{"x" * 150}" file="{play.TESTS}" time="0.01">'
        f"{failure if number < RED else ''}</testcase>"
        for number in range(TESTS)
    )
    xml = f"<testsuites><testsuite>{cases}</testsuite></testsuites>"
    return Completed(exit_code=1, cause=ExitCause.failed, output="x" * 1_000_000, files={"junit.xml": xml})


@pytest.mark.parametrize("iterations", [2, pytest.param(15, marks=pytest.mark.soak)])
def test_state_of_a_large_repo_stays_small(iterations: int, tmp_path: Path):
    rig = make_rig(tmp_path / "snapshots")
    rig.with_suite(run_big_suite)
    smelly = "\n".join(f"def f{number}():\n    return undefined_{number}" for number in range(FINDINGS))
    number = iter(range(10**6))

    def reply(ask):
        if ask.question != "patch":
            return '{"summary": "' + "s" * 5_000 + '", "subtasks": [{"title": "' + "t" * 5_000 + '"}]}'
        line = "    return number + number + 1"
        return play.block(line, f"    return number + {next(number) + 2}  # {'𝒷' * 3000}", why="w" * 5_000)

    rig.with_model(reply)

    async def go() -> tuple[list[int], Result | None, Findings]:
        run_id = await rig.begin(limits=Limits(attempts=iterations, tokens=None, usd=None), goal="𝒸" * 4_000)
        claim = await rig.adapters.store.claim(run_id)
        with_findings = {play.CODE: (play.BUGGY + "\n" + smelly + "\n").encode()}
        base = rig.trees.write(claim.state.base, with_findings)
        spec = claim.state.spec.model_copy(update={"base": base})
        state = claim.state.model_copy(update={"base": base, "spec": spec})
        report = await drive(rig.adapters, claim._replace(state=state), run_inline)
        rows = await rig.adapters.store.list_steps(run_id)
        audit_findings = next(Findings.model_validate_json(row.artifact) for row in rows if row.step is Step.audit)
        return [len(row.state.model_dump_json().encode()) for row in rows], report.state.result, audit_findings

    sizes, result, audit_findings = asyncio.run(go())
    rig.trees.close()
    assert result is Result.unsolved
    assert audit_findings.count >= FINDINGS
    assert len(sizes) >= iterations * 8
    assert max(sizes) < LIMIT
