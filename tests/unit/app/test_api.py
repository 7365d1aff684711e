"""The Python API beside the command line."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import redstart
from redstart.app.live_run import ThreadLoop
from redstart.app.objects import format_object_name
from redstart.app.results import AuditResult, RunResult
from redstart.core.errors import ConfigError
from redstart.core.events import Event, Phase
from redstart.core.finding import FindingList, Risk
from redstart.core.run import Result, RunState, Spend, Status
from redstart.ports.sandbox.process import Process
from redstart.testing.model import ScriptedModel
from redstart.testing.states import make_state

NAMES = ("fix", "create", "improve", "audit", "resume")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    place = tmp_path / "repo"
    place.mkdir()
    (place / "calc.py").write_text("def value(text):\n    return eval(text)\n")
    (place / "plain.py").write_text("def value(text):\n    return int(text)\n")
    return place


@pytest.mark.slow
def test_audit_needs_no_model_or_sandbox_and_returns_findings(repo):
    audit_result = redstart.audit(repo)
    assert [(item.path, item.line, item.risk) for item in audit_result] == [("calc.py", 2, Risk.high)]
    assert redstart.audit(repo / "plain.py") == ()
    assert sorted(item.name for item in repo.iterdir()) == ["calc.py", "plain.py"]


@pytest.mark.slow
def test_async_variant_works_in_a_running_loop_without_blocking_it(repo):
    events: list[tuple[Event, threading.Thread]] = []
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def main() -> AuditResult:
        ticking = asyncio.create_task(tick())
        result = await redstart.aaudit(repo, on_event=lambda event: events.append((event, threading.current_thread())))
        ticking.cancel()
        return result

    audit_result = asyncio.run(main())
    assert [(item.path, item.line) for item in audit_result] == [("calc.py", 2)]
    assert {thread for _, thread in events} == {threading.main_thread()}
    assert [event.name for event, _ in events if event.phase == "end"][-1] == "run"
    assert ticks > 3


@pytest.mark.slow
def test_two_runs_work_concurrently_in_the_same_loop(repo):
    async def main() -> list[AuditResult]:
        return await asyncio.gather(redstart.aaudit(repo), redstart.aaudit(repo / "plain.py"))

    results, plain_result = asyncio.run(main())
    assert (len(results), len(plain_result)) == (1, 0)
    assert results.run_id != plain_result.run_id


def build_call(name: str, tmp_path: Path) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return arguments that the function accepts."""
    arguments = {"create": ("a goal", tmp_path / "new"), "resume": ("1234",)}.get(name, (tmp_path,))
    return arguments, {"cycles": 1} if name == "improve" else {}


@pytest.mark.parametrize("name", NAMES)
def test_blocking_call_in_a_running_loop_names_its_async_variant(name, tmp_path):
    arguments, options = build_call(name, tmp_path)

    async def main() -> None:
        getattr(redstart, name)(*arguments, **options)

    with pytest.raises(ConfigError, match=rf"running event loop.*await redstart\.a{name}\(") as caught:
        asyncio.run(main())
    assert caught.value.remedy == f"await redstart.a{name}(...)"


@pytest.mark.parametrize("name", NAMES)
def test_run_can_be_started_only_in_a_running_loop(name, tmp_path):
    arguments, options = build_call(name, tmp_path)
    with pytest.raises(ConfigError, match="needs a running event loop") as caught:
        getattr(redstart, f"start_{name}")(*arguments, **options)
    assert caught.value.remedy == f"redstart.{name}(...)"


@pytest.mark.parametrize("name", NAMES)
def test_misspelled_option_is_rejected(name, tmp_path):
    arguments, options = build_call(name, tmp_path)
    for form in ("", "start_"):
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'modle'"):
            getattr(redstart, f"{form}{name}")(*arguments, **options, modle="openai:x")


@pytest.mark.slow
def test_every_listener_gets_all_events_in_order(repo):
    async def list_events(run: redstart.Run[AuditResult]) -> list[Event]:
        return [event async for event in run.events()]

    async def main() -> None:
        heard_events: list[Event] = []
        run = redstart.start_audit(repo, on_event=heard_events.append)
        assert run.id == ""
        first_events, second_events = await asyncio.gather(list_events(run), list_events(run))
        result = await run.result()
        assert first_events == second_events == heard_events == await list_events(run)
        assert [(event.name, event.phase.value) for event in (first_events[0], first_events[-1])] == [
            ("run", "start"),
            ("run", "end"),
        ]
        assert run.id == result.run_id == first_events[0].run
        assert repr(run) == f"<Run {run.id} ended>"

    asyncio.run(main())


@pytest.mark.slow
def test_events_end_when_the_run_fails_and_result_raises_the_error(tmp_path):
    async def main() -> None:
        run = redstart.start_audit(tmp_path / "nothing")
        assert [event async for event in run.events()] == []
        with pytest.raises(ConfigError, match="does not exist"):
            await run.result()

    asyncio.run(main())


def test_stopped_run_ends_its_work_and_its_events():
    finished = threading.Event()
    event = Event(run="7", seq=0, time=0.0, attempt=1, name="run", phase=Phase.start)

    async def work(listen: Callable[[Event], None]) -> None:
        listen(event)
        try:
            await asyncio.Event().wait()
        finally:
            finished.set()

    async def main() -> None:
        run = redstart.Run(work)
        heard_events: list[Event] = []
        async for received in run.events():
            heard_events.append(received)
            run.stop()
        assert (heard_events, finished.is_set(), repr(run)) == ([event], True, "<Run 7 stopped>")
        with pytest.raises(asyncio.CancelledError):
            await run.result()

    asyncio.run(main())


@pytest.mark.slow
def test_custom_model_is_asked_with_secrets_masked(repo, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "k3y-9f2b7c41d8e6")
    (repo / "calc.py").write_text("KEY = 'k3y-9f2b7c41d8e6'\n\n\ndef value(text):\n    return eval(text)\n")
    model = ScriptedModel(lambda ask: "[]")
    redstart.audit(repo, review=True, model=model)
    model_ask = model.questions[0]
    text = "".join(message.text for message in model_ask.messages)
    assert "return eval(text)" in text
    assert "k3y-9f2b7c41d8e6" not in text


@pytest.mark.slow
def test_custom_sandbox_may_be_an_object_or_a_factory(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("REDSTART_CHECKS__COMMANDS", '{"own": "grep -n eval calc.py"}')
    created: list[tuple[object, Path]] = []

    class Recording(Process):
        def __init__(self, workspaces: redstart.Workspaces, scratch: Path) -> None:
            super().__init__(workspaces, scratch)
            created.append((workspaces, scratch))

        async def run(self, execution: redstart.Execution) -> redstart.Completed:
            created.append((execution.argv[0], Path()))
            return await super().run(execution)

    redstart.audit(repo, sandbox=Recording)
    assert created[0][1] == tmp_path / "home" / "scratch"
    assert [operation for operation, _ in created[1:]] == ["grep"]
    redstart.audit(repo, sandbox=Recording(*created[0]))
    assert [operation for operation, _ in created[3:]] == ["grep"]


@pytest.mark.slow
def test_object_name_is_rejected_without_the_object(repo, monkeypatch):
    assert format_object_name(ScriptedModel([])) == format_object_name(ScriptedModel) == "python:ScriptedModel"
    with pytest.raises(ConfigError, match="python:ScriptedModel is an object of a Python program") as caught:
        redstart.fix(repo, model="python:ScriptedModel", sandbox=Process)
    assert "redstart.resume" in caught.value.remedy


def test_cancelling_the_task_stops_the_work_and_waits_for_it():
    started_event, finished_event = threading.Event(), threading.Event()

    async def work() -> None:
        started_event.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):  # like a run that still has cleanup to do
                await asyncio.sleep(0)
            finished_event.set()

    async def main() -> None:
        task = asyncio.create_task(ThreadLoop(work).run())
        await asyncio.to_thread(started_event.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert finished_event.is_set()

    asyncio.run(main())


@pytest.mark.slow
async def test_listener_error_stops_the_run(repo):
    def listen(event: Event) -> None:
        raise ValueError(event.name)

    with pytest.raises(ValueError, match="run"):
        await redstart.aaudit(repo, on_event=listen)


@pytest.mark.slow
async def test_error_of_the_work_reaches_the_caller(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        await redstart.aaudit(tmp_path / "nothing")


def test_public_names_are_listed_and_exist():
    assert dir(redstart) == sorted(redstart.__all__)
    assert [name for name in dir(redstart) if not hasattr(redstart, name)] == []
    assert not hasattr(redstart, "nothing")


@pytest.mark.slow
def test_listing_the_names_imports_nothing():
    code = "import redstart, sys; dir(redstart); print(sorted(set(sys.modules) & {'pydantic', 'redstart.app'}))"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"


def make_finished_state(result: Result, **changes: object) -> RunState:
    return make_state(status=Status.finished, result=result, **changes)


def test_result_repr_is_one_line_and_result_equals_the_state():
    run = make_finished_state(Result.verified, spend=Spend(calls=3, usd=0.0123))
    result = RunResult.from_state(run, "--- a/calc.py\n", None)
    assert repr(result) == str(result) == f"<RunResult verified run_id={run.run_id} attempts=1 cost=$0.012>"
    assert (result.ok, result.diff, result.proof) == (True, "--- a/calc.py\n", None)
    assert (result.result, result.spend, result.now) == (run.result, run.spend, run.now)
    assert result.model_dump() == run.model_dump()
    assert isinstance(result, RunState)


@pytest.mark.parametrize("result", [item for item in Result if item is not Result.verified])
def test_only_results_with_exit_code_0_are_ok(result):
    fine = {Result.already_green, Result.reported}
    assert RunResult.from_state(make_finished_state(result), "", None).ok is (result in fine)


@pytest.mark.slow
def test_audit_result_repr_is_one_line_and_warnings_are_kept(repo):
    audit_result = redstart.audit(repo)
    assert repr(audit_result) == f"<AuditResult findings=1 warnings=0 run_id={audit_result.run_id}>"
    warned = AuditResult.from_state(make_state(), FindingList(warnings=("3 of 3 model answers could not be read",)))
    assert (audit_result.ok, warned.ok, AuditResult.from_state(make_state(), FindingList()).ok) == (False, False, True)
    assert warned.warnings == ("3 of 3 model answers could not be read",)


@pytest.mark.slow
def test_improve_rejects_an_empty_directory_without_a_goal(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is empty"):
        redstart.improve(tmp_path / "empty", cycles=1, model="openai:none")
