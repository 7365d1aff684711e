"""Whole runs by the Python API, inside a running event loop and outside."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import redstart
from redstart.core.run import Limits, Result
from support.scenarios import Scenario
from support.server import ScriptedServer

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")


def test_afix_in_a_running_loop_returns_diff_and_proof(tmp_path, project, repo_of, monkeypatch: pytest.MonkeyPatch):
    repo = repo_of(SCENARIO.name)
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("REDSTART_VERIFY", "quick")
    monkeypatch.setenv("VIRTUAL_ENV", str(project))
    steps: list[str] = []

    async def main() -> redstart.RunResult:
        return await redstart.afix(
            repo,
            model="openai:scripted",
            limits=Limits(attempts=3),
            patch=tmp_path / "fix.patch",
            on_event=lambda event: steps.append(event.name),
        )

    with ScriptedServer(SCENARIO.reply) as server:
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        result = asyncio.run(main())
    assert (result.ok, result.result) == (True, Result.verified)
    assert repr(result).startswith(f"<RunResult verified run_id={result.run_id} attempts=")
    assert len(repr(result)) < 100
    assert "+++ b/pager.py" in result.diff
    assert (tmp_path / "fix.patch").read_text() == result.diff
    assert result.proof is not None
    assert (result.proof.run, result.proof.verified) == (result.run_id, True)
    assert "test" in steps
