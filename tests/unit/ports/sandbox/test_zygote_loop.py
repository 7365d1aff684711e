"""A warm sandbox alone never verifies a fix: tested through whole runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.runs import RunRequest, create_fix_run, go_on
from redstart.app.settings import Models, Settings
from redstart.app.wire import load_engine, open_app
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
    original_run = WarmSession.run

    async def run(self: WarmSession, execution: Execution) -> Completed:
        runs_before = self.warm_runs
        completed = await original_run(self, execution)
        codes.extend([completed.exit_code] * (self.warm_runs - runs_before))
        return completed

    monkeypatch.setattr(WarmSession, "run", run)
    return codes


async def run_fix(folder: Path, line: str, **extra_files: str) -> RunState:
    """Run a fix on a repo with one failing test, with a model that has one answer."""
    repo = folder / "repo"
    repo.mkdir()
    for name, text in {"calc.py": CODE, "test_calc.py": TESTS, **extra_files}.items():
        (repo / name).write_text(text)
    edit = f"<<<<<<< SEARCH\n    return number + 1\n=======\n{line}\n>>>>>>> REPLACE"
    answers = [f"WHY: wrong\n\ncalc.py\n{edit}\n", '{"summary": "s", "root_cause": "r", "fix": "f", "debug_steps": []}']
    settings = Settings(home=folder / "home", models=Models(strong="openai:instant", fast="openai:instant"))

    async def run() -> RunState:
        with open_app(settings) as opened_app:
            app = opened_app.with_sandbox().with_model(ScriptedModel(answers))
            state = await create_fix_run(app, repo, RunRequest(Limits(minutes=None, attempts=1), own_python=True))
            return (await go_on(app, state.run_id, load_engine("inline"))).state

    return await run()


@pytest.mark.slow
async def test_poisoned_warm_sandbox_cannot_fake_a_verified_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_colours: list[int]
) -> None:
    original = zygote.read_program()
    poisoned = original.replace('    import_module("pytest")\n', f'    import_module("pytest")\n{POISON}')
    assert poisoned != original
    monkeypatch.setattr(zygote, "read_program", lambda: poisoned)
    state = await run_fix(tmp_path, "    return number + 2")
    assert warm_colours[0] == 0  # it lied
    assert state.result is not Result.verified
    assert state.now.test is not None
    assert state.now.test.verdict.still_red.first == ("test_calc.py::test_three",)


@pytest.mark.soak
async def test_test_that_attacks_its_parent_cannot_fake_a_verified_run(tmp_path: Path, warm_colours: list[int]) -> None:
    state = await run_fix(tmp_path, "    return number + 2", **{"test_a_strike.py": STRIKES})
    assert warm_colours != []
    assert state.result is not Result.verified


@pytest.mark.slow
async def test_honest_green_is_previewed_warm_and_then_proven(tmp_path: Path, warm_colours: list[int]) -> None:
    state = await run_fix(tmp_path, "    return number + number")
    assert state.result is Result.verified
    assert warm_colours[0] == 0
