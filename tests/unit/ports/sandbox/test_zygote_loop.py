"""A warm sandbox alone never verifies a fix: tested through whole runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from redstart.app.runs import RunRequest, begin_fix, go_on
from redstart.app.settings import Models, Settings
from redstart.app.wire import engine_called, open_house
from redstart.core.errors import SandboxUnavailable
from redstart.core.run import Limits, Result, RunState
from redstart.core.shell import Completed, Execution
from redstart.ports.sandbox.bwrap import probe
from redstart.ports.sandbox.warm import zygote
from redstart.ports.sandbox.warm.zygote import WarmSession
from redstart.testing.model import ScriptedModel

CODE = "def double(number):\n    return number + 1\n"
TESTS = "from calc import double\n\n\ndef test_three():\n    assert double(3) == 6\n"
STRIKES = """
import contextlib, os, signal


def test_strike():
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV):
        with contextlib.suppress(OSError):
            os.kill(os.getppid(), number)
    for name in ("mem", "exe", "environ"):
        with contextlib.suppress(OSError), open(f"/proc/{os.getppid()}/{name}", "r+b", buffering=0) as file:
            file.write(bytes(64))
"""
POISON = "    import_module('_pytest.python').Function.runtest = lambda item: None\n"


@pytest.fixture(autouse=True)
def everything_is_looked_at_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        probe(tmp_path / "probe")
    except SandboxUnavailable as error:
        pytest.skip(f"{error} {error.remedy}")
    monkeypatch.setattr("redstart.steps.test.trial.LONG_SUITE", 0.0)


@pytest.fixture
def warm_colours(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the exit codes of all warm runs in sessions, in order."""
    codes: list[int] = []
    real = WarmSession.run

    async def run(self: WarmSession, execution: Execution) -> Completed:
        before = self.warm_runs
        done = await real(self, execution)
        codes.extend([done.exit_code] * (self.warm_runs - before))
        return done

    monkeypatch.setattr(WarmSession, "run", run)
    return codes


def fixed(folder: Path, line: str, **more: str) -> RunState:
    """Run a fix on a repo with one failing test, with a model that has one answer."""
    repo = folder / "repo"
    repo.mkdir()
    for name, text in {"calc.py": CODE, "test_calc.py": TESTS, **more}.items():
        (repo / name).write_text(text)
    edit = f"<<<<<<< SEARCH\n    return number + 1\n=======\n{line}\n>>>>>>> REPLACE"
    answers = [f"WHY: wrong\n\ncalc.py\n{edit}\n", '{"summary": "s", "root_cause": "r", "fix": "f", "debug_steps": []}']
    settings = Settings(home=folder / "home", models=Models(strong="openai:instant", fast="openai:instant"))

    async def run() -> RunState:
        with open_house(settings) as opened:
            house = opened.with_sandbox().with_model(ScriptedModel(answers))
            state = await begin_fix(house, repo, RunRequest(Limits(minutes=None, attempts=1), own_python=True))
            return (await go_on(house, state.run_id, engine_called("inline"))).state

    return asyncio.run(run())


@pytest.mark.slow
def test_a_poisoned_warm_sandbox_makes_no_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_colours: list[int]
) -> None:
    real = zygote.program()
    poisoned = real.replace('    import_module("pytest")\n', f'    import_module("pytest")\n{POISON}')
    assert poisoned != real
    monkeypatch.setattr(zygote, "program", lambda: poisoned)
    state = fixed(tmp_path, "    return number + 2")
    assert warm_colours[0] == 0  # it lied
    assert state.result is not Result.verified
    assert state.now.test is not None
    assert state.now.test.verdict.still_red.first == ("test_calc.py::test_three",)


@pytest.mark.soak
def test_a_test_that_strikes_at_its_parent_makes_no_green(tmp_path: Path, warm_colours: list[int]) -> None:
    state = fixed(tmp_path, "    return number + 2", **{"test_a_strike.py": STRIKES})
    assert warm_colours != []
    assert state.result is not Result.verified


@pytest.mark.slow
def test_an_honest_green_is_looked_at_ahead_and_then_proven(tmp_path: Path, warm_colours: list[int]) -> None:
    state = fixed(tmp_path, "    return number + number")
    assert state.result is Result.verified
    assert warm_colours[0] == 0
