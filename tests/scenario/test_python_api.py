"""Whole runs with the Python API: inside and outside a running event loop, in a notebook, with custom objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager

import redstart
from redstart.core.run import Limits, Result
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.testing.model import ScriptedModel
from support.git_repo import make_repo, write
from support.scenarios import CARD, Scenario
from support.server import ScriptedServer

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")


def give_right_answer(ask: redstart.Ask) -> str:
    return SCENARIO.right if ask.question == "patch" else CARD


def test_afix_in_a_running_loop_returns_patch_and_proof(tmp_path, project, repo_of, monkeypatch: pytest.MonkeyPatch):
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


def test_run_with_custom_objects_resumes_only_if_they_are_passed_again(user, repo_of, monkeypatch: pytest.MonkeyPatch):
    for name, value in user.environ.items():
        monkeypatch.setenv(name, value)
    ids: list[str] = []
    failing_model = ScriptedModel([redstart.ModelRefused("the endpoint is down")])
    with pytest.raises(redstart.ModelRefused, match="down"):
        redstart.fix(
            repo_of(SCENARIO.name),
            model=failing_model,
            sandbox=Bubblewrap,
            on_event=lambda event: ids.append(event.run),
        )
    with pytest.raises(redstart.ConfigError, match="uses python:ScriptedModel, which is not available"):
        redstart.resume(ids[0])
    resume_result = user.redstart("resume", ids[0])
    assert (resume_result.code, "python:ScriptedModel is an object of a Python program" in resume_result.err) == (
        2,
        True,
    )
    with pytest.raises(redstart.ConfigError, match="python:Bubblewrap is an object of a Python program") as caught:
        redstart.resume(ids[0], model=ScriptedModel(give_right_answer))
    assert "sandbox=" in caught.value.remedy
    result = redstart.resume(ids[0], model=ScriptedModel(give_right_answer), sandbox=Bubblewrap)
    assert (result.ok, result.run_id, result.tries) == (True, ids[0], 1)
    assert result.verdict is not None
    assert sorted(result.verdict.fixed.first) == sorted(SCENARIO.red)


def test_fix_accepts_targets_a_hint_and_a_level(user, repo_of, monkeypatch: pytest.MonkeyPatch):
    for name, value in user.environ.items():
        monkeypatch.setenv(name, value)
    asks: list[redstart.Ask] = []

    def answer(ask: redstart.Ask) -> str:
        asks.append(ask)
        return give_right_answer(ask)

    target = SCENARIO.red[0]
    result = redstart.fix(
        repo_of(SCENARIO.name),
        model=ScriptedModel(answer),
        sandbox=Bubblewrap,
        targets=(target,),
        hint="the last page may be short",
        verify="quick",
    )
    assert (result.ok, result.proof is not None and result.proof.level) == (True, "quick")
    assert result.verdict is not None
    assert result.verdict.fixed.first == (target,)
    patches = [ask for ask in asks if ask.question == "patch"]
    assert patches
    assert all("the last page may be short" in str(ask) for ask in patches)


@pytest.fixture
def cell(user, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Return a function that runs a cell in a Jupyter kernel and returns its output."""
    manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(tmp_path / "kernel"))
    manager.start_kernel(env=user.environ, cwd=str(tmp_path))
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=120)

    def run(code: str) -> str:
        outputs: list[str] = []

        def collect_output(message: dict[str, Any]) -> None:
            content = message["content"]
            outputs.append(
                content.get("text") or content.get("data", {}).get("text/plain") or content.get("evalue", "")
            )

        client.execute_interactive(code, output_hook=collect_output, allow_stdin=False, timeout=300)
        return "".join(outputs)

    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_api_works_in_a_notebook(cell, repo_of):
    repo = repo_of(SCENARIO.name)
    output = cell(f"""
        import redstart
        from redstart.ports.sandbox.bwrap import Bubblewrap
        from redstart.testing.model import ScriptedModel
        model = ScriptedModel(lambda ask: {SCENARIO.right!r} if ask.question == "patch" else {CARD!r})
        run = redstart.start_fix({str(repo)!r}, model=model, sandbox=Bubblewrap)
        steps = [event.name async for event in run.events() if event.phase == "end"]
        print(steps[0], steps[-1])
    """)
    assert output == "reproduce run\n"
    assert cell("await run.result()").startswith("<RunResult verified run_id=")
    assert cell("len(await redstart.aaudit('pager.py'))") == "pager.py does not exist"
    assert "use: await redstart.aaudit(...)" in cell("redstart.audit('.')")


def test_verify_and_triage_return_what_the_commands_print(user, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, value in user.environ.items():
        monkeypatch.setenv(name, value)
    tests = "from shop import size\n\n\ndef test_size():\n    assert size([1]) == 1\n"
    repo = make_repo(tmp_path / "shop", {"shop.py": "def size(items):\n    return 2\n", "test_shop.py": tests})
    red = redstart.triage(repo, base="HEAD")
    assert (red.end, [test.origin for test in red.tests]) == ("not_yours", ["already_red"])
    write(repo, {"shop.py": "def size(items):\n    return len(items)\n"})

    async def main() -> redstart.Verification:
        with pytest.raises(redstart.ConfigError, match=r"use: await redstart\.averify"):
            redstart.verify(repo)
        return await redstart.averify(repo, require="proof", mutants=0)

    result = asyncio.run(main())
    assert (result.end, result.exit_code, result.level) == ("verified", 0, "quick")
    assert [(claim.test, claim.kind) for claim in result.claims] == [("test_shop.py::test_size", "fixed")]
    with pytest.raises(TypeError, match="unexpected keyword argument 'model'"):
        redstart.verify(repo, model="openai:x")  # pyright: ignore[reportCallIssue]
