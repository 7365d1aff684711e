"""kill -9 before, during and after each of the eleven steps: resumed, it ends the same and pays nothing twice."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redstart.core.run import Step
from redstart.testing.scenarios import Scenario
from redstart.testing.server import ScriptedServer, Wire
from redstart.testing.user import User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")
CALLS = 3
"""Two patches and a card: the scenario needs two attempts, so that every step is on its way."""

DIFFERS = {"run_id", "run", "id", "seconds", "full", "output", "report", "environment", "forecast"}
"""What no two runs share: ids, times, the names of blobs that hold times, and where the repo lies."""


def masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "…" if name in DIFFERS else masked(one) for name, one in value.items()}
    if isinstance(value, list):
        return [masked(one) for one in value]
    return value


def final_state(user: User, repo: Path) -> dict[str, Any]:
    shown = user.redstart("show", "--json", cwd=repo)
    assert shown.code == 0, shown.err
    state = json.loads(shown.out)
    return masked(state)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, project) -> dict[str, Any]:
    """The final state of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    repo = folder / "projects" / SCENARIO.name
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    user = User(folder, project)
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo).code == 0
    return final_state(user, repo)


SOAK = [pytest.mark.soak]


def places() -> Iterator[Any]:
    """During each step, and around the two that leave something outside the run's own rows; the rest takes minutes."""
    for step in Step:
        for moment in ("before", "during", "after"):
            prompt = moment == "during" or step in (Step.patch, Step.remember)
            yield pytest.param(step, moment, id=f"{step.value}-{moment}", marks=() if prompt else SOAK)


@pytest.mark.parametrize(("step", "moment"), [*places()])
def test_kill(step: Step, moment: str, user, repo_of, undisturbed):
    repo = repo_of(SCENARIO.name)
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        killed = user.python(HERE / "drivers" / "crash.py", step.value, moment, "fix", repo)
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        resumed = user.redstart("resume", cwd=repo)
        assert resumed.code == 0, resumed.out + resumed.err
        bodies = [str(request.body) for request in server.requests]
    assert len(bodies) == len(set(bodies)) == CALLS
    assert final_state(user, repo) == undisturbed
