"""The gate before the tests: what a patch may and may not add."""

from __future__ import annotations

import asyncio
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
    made = make_rig(tmp_path)
    yield made
    made.trees.close()


def gate(rig: Rig, before: str, after: str, checks: Checks | None = None) -> Findings:
    return asyncio.run(_gate(rig, before, after, checks or Checks()))


async def _gate(rig: Rig, before: str, after: str, checks: Checks) -> Findings:
    base = rig.trees.write(rig.trees.empty(), {"a.py": before.encode()})
    made = rig.trees.write(base, {"a.py": after.encode()})
    environment = rig.adapters.blobs.put(Environment(mount="/repo", python="/python").model_dump_json().encode())
    suite = {"runner": "pytest", "environment": environment}
    spec = states.spec(base=base, suite=suite, checks=checks)
    now = Attempt(entry=Step.reproduce, apply=ApplyResult(ok=True, snapshot=made))
    return await check(states.state(spec=spec, now=now), _ports(rig))


def _ports(rig: Rig) -> Ports:
    given = {name: getattr(rig.adapters, name, None) for name in Ports.__dataclass_fields__}
    return Ports(**{**given, "note": lambda **data: None})


def test_a_danger_that_a_patch_adds_goes_back(rig: Rig) -> None:
    found = gate(rig, PLAIN, PLAIN + "\n\n" + DANGER)
    assert [item.rule for item in found.first] == ["unsafe-deserialisation"]
    assert found.count == 1


def test_a_comment_does_not_let_it_through(rig: Rig) -> None:
    assert gate(rig, PLAIN, PLAIN + "\n\n" + DANGER.replace("(data)\n", "(data)  # nosec  # noqa\n")).count == 1


@pytest.mark.parametrize(
    "after",
    [
        "# moved\n\n" + DANGER,
        DANGER.replace("pickle.loads(data)", "pickle.loads(data[1:])"),
        DANGER + "\n\ndef other(data):\n    return pickle.dumps(data)\n",
    ],
)
def test_what_was_there_before_is_nobodys_fault(rig: Rig, after: str) -> None:
    assert gate(rig, DANGER, after) == Findings()


def test_refused_calls_go_back_before_anything_runs(rig: Rig) -> None:
    after = PLAIN + "\n\ndef f(path):\n    import os\n\n    os.remove(path)\n"
    assert gate(rig, PLAIN, after).count == 0
    found = gate(rig, PLAIN, after, Checks(block=("os.remove",)))
    assert [(item.tool, item.rule) for item in found.first] == [("blocked", "os.remove")]
    assert rig.sandbox.executions == []


def test_a_tool_of_the_users_is_asked_before_and_after(rig: Rig) -> None:
    def shout(execution: Execution) -> Completed:
        text = (rig.trees.read(execution.snapshot, "a.py") or b"").decode().split("\n")
        said = "".join(f"a.py:{number}: error: odd\n" for number, line in enumerate(text, 1) if "odd" in line)
        return Completed(exit_code=1, cause=ExitCause.failed, output=said)

    rig.with_suite(shout)
    checks = Checks(commands={"shouts": ("shout",)})
    assert gate(rig, "odd = 1\n", "# more\nodd = 1\n", checks).count == 0
    found = gate(rig, "odd = 1\n", "odd = 1\nmore_odd = 2\n", checks)
    assert [(item.tool, item.line) for item in found.first] == [("shouts", 2)]
