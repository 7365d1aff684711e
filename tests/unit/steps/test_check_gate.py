"""The gate before the tests: what a patch may and may not add."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.change import ApplyResult
from redstart.core.finding import Checks, Findings
from redstart.core.run import Attempt, Step
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.ports.bundle import Ports
from redstart.steps.check import check
from redstart.testing import states
from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

DANGER = "import pickle\n\n\ndef load(data):\n    return pickle.loads(data)\n"
PLAIN = "def double(number):\n    return number * 2\n"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path)
    yield test_rig
    test_rig.trees.close()


async def run_gate(rig: Rig, before: str, after: str, checks: Checks | None = None) -> Findings:
    return await _run_check(rig, before, after, checks or Checks())


async def _run_check(rig: Rig, before: str, after: str, checks: Checks) -> Findings:
    base = rig.trees.write(rig.trees.create_empty(), {"a.py": before.encode()})
    patched = rig.trees.write(base, {"a.py": after.encode()})
    environment = rig.adapters.blobs.put(Environment(mount="/repo", python="/python").model_dump_json().encode())
    suite = {"runner": "pytest", "environment": environment}
    spec = states.make_spec(base=base, suite=suite, checks=checks)
    attempt = Attempt(entry=Step.reproduce, apply=ApplyResult(ok=True, snapshot=patched))
    return await check(states.make_state(spec=spec, now=attempt), _build_ports(rig))


def _build_ports(rig: Rig) -> Ports:
    values = {name: getattr(rig.adapters, name, None) for name in Ports.__dataclass_fields__}
    return Ports(**{**values, "note": lambda **data: None})


async def test_dangerous_call_added_by_a_patch_is_rejected(rig: Rig) -> None:
    findings = await run_gate(rig, PLAIN, PLAIN + "\n\n" + DANGER)
    assert [item.rule for item in findings.first] == ["unsafe-deserialisation"]
    assert findings.count == 1


async def test_suppression_comment_does_not_pass_the_gate(rig: Rig) -> None:
    assert (
        await run_gate(rig, PLAIN, PLAIN + "\n\n" + DANGER.replace("(data)\n", "(data)  # nosec  # noqa\n"))
    ).count == 1


@pytest.mark.parametrize(
    "after",
    [
        "# moved\n\n" + DANGER,
        DANGER.replace("pickle.loads(data)", "pickle.loads(data[1:])"),
        DANGER + "\n\ndef other(data):\n    return pickle.dumps(data)\n",
    ],
)
async def test_existing_danger_is_not_held_against_the_patch(rig: Rig, after: str) -> None:
    assert await run_gate(rig, DANGER, after) == Findings()


async def test_blocked_calls_are_rejected_before_anything_runs(rig: Rig) -> None:
    after = PLAIN + "\n\ndef f(path):\n    import os\n\n    os.remove(path)\n"
    assert (await run_gate(rig, PLAIN, after)).count == 0
    findings = await run_gate(rig, PLAIN, after, Checks(block=("os.remove",)))
    assert [(item.tool, item.rule) for item in findings.first] == [("blocked", "os.remove")]
    assert rig.sandbox.executions == []


async def test_user_tool_runs_before_and_after_the_patch(rig: Rig) -> None:
    def run_shout_tool(execution: Execution) -> Completed:
        text = (rig.trees.read(execution.snapshot, "a.py") or b"").decode().split("\n")
        output = "".join(f"a.py:{number}: error: odd\n" for number, line in enumerate(text, 1) if "odd" in line)
        return Completed(exit_code=1, cause=ExitCause.failed, output=output)

    rig.with_suite(run_shout_tool)
    checks = Checks(commands={"shouts": ("shout",)})
    assert (await run_gate(rig, "odd = 1\n", "# more\nodd = 1\n", checks)).count == 0
    findings = await run_gate(rig, "odd = 1\n", "odd = 1\nmore_odd = 2\n", checks)
    assert [(item.tool, item.line) for item in findings.first] == [("shouts", 2)]
