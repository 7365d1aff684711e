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
from redstart.app.objects import object_name
from redstart.app.results import AuditResult, RunResult
from redstart.core.errors import ConfigError
from redstart.core.events import Event, Phase
from redstart.core.finding import FindingList, Risk
from redstart.core.run import Result, RunState, Spend, Status
from redstart.ports.sandbox.process import Process
from redstart.testing.model import ScriptedModel
from redstart.testing.states import state

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
def test_an_audit_needs_neither_a_model_nor_a_sandbox_and_returns_what_it_found(repo):
    found = redstart.audit(repo)
    assert [(item.path, item.line, item.risk) for item in found] == [("calc.py", 2, Risk.high)]
    assert redstart.audit(repo / "plain.py") == ()
    assert sorted(item.name for item in repo.iterdir()) == ["calc.py", "plain.py"]


@pytest.mark.slow
def test_the_async_twin_works_in_a_running_loop_and_leaves_it_free(repo):
    events: list[tuple[Event, threading.Thread]] = []
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def main() -> AuditResult:
        ticking = asyncio.create_task(tick())
        found = await redstart.aaudit(repo, on_event=lambda event: events.append((event, threading.current_thread())))
        ticking.cancel()
        return found

    found = asyncio.run(main())
    assert [(item.path, item.line) for item in found] == [("calc.py", 2)]
    assert {thread for _, thread in events} == {threading.main_thread()}
    assert [event.name for event, _ in events if event.phase == "end"][-1] == "run"
    assert ticks > 3


@pytest.mark.slow
def test_two_runs_at_once_in_one_loop(repo):
    async def main() -> list[AuditResult]:
        return await asyncio.gather(redstart.aaudit(repo), redstart.aaudit(repo / "plain.py"))

    both, plain = asyncio.run(main())
    assert (len(both), len(plain)) == (1, 0)
    assert both.run_id != plain.run_id


def call_of(name: str, tmp_path: Path) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return arguments that the function accepts."""
    arguments = {"create": ("a goal", tmp_path / "new"), "resume": ("1234",)}.get(name, (tmp_path,))
    return arguments, {"cycles": 1} if name == "improve" else {}


@pytest.mark.parametrize("name", NAMES)
def test_a_blocking_call_in_a_running_loop_names_its_twin(name, tmp_path):
    arguments, options = call_of(name, tmp_path)

    async def main() -> None:
        getattr(redstart, name)(*arguments, **options)

    with pytest.raises(ConfigError, match=rf"running event loop.*await redstart\.a{name}\(") as caught:
        asyncio.run(main())
    assert caught.value.remedy == f"await redstart.a{name}(...)"


@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_started_in_a_running_loop_only(name, tmp_path):
    arguments, options = call_of(name, tmp_path)
    with pytest.raises(ConfigError, match="needs a running event loop") as caught:
        getattr(redstart, f"start_{name}")(*arguments, **options)
    assert caught.value.remedy == f"redstart.{name}(...)"


@pytest.mark.parametrize("name", NAMES)
def test_a_misspelt_option_is_refused(name, tmp_path):
    arguments, options = call_of(name, tmp_path)
    for form in ("", "start_"):
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'modle'"):
            getattr(redstart, f"{form}{name}")(*arguments, **options, modle="openai:x")


@pytest.mark.slow
def test_events_come_from_the_first_to_the_last_to_each_who_asks(repo):
    async def listed(run: redstart.Run[AuditResult]) -> list[Event]:
        return [event async for event in run.events()]

    async def main() -> None:
        heard: list[Event] = []
        run = redstart.start_audit(repo, on_event=heard.append)
        assert run.id == ""
        first, second = await asyncio.gather(listed(run), listed(run))
        found = await run.result()
        assert first == second == heard == await listed(run)
        assert [(event.name, event.phase.value) for event in (first[0], first[-1])] == [
            ("run", "start"),
            ("run", "end"),
        ]
        assert run.id == found.run_id == first[0].run
        assert repr(run) == f"<Run {run.id} ended>"

    asyncio.run(main())


@pytest.mark.slow
def test_events_end_where_the_run_breaks_and_the_result_raises_why(tmp_path):
    async def main() -> None:
        run = redstart.start_audit(tmp_path / "nothing")
        assert [event async for event in run.events()] == []
        with pytest.raises(ConfigError, match="does not exist"):
            await run.result()

    asyncio.run(main())


def test_a_run_that_is_stopped_ends_its_work_and_its_events():
    ended = threading.Event()
    event = Event(run="7", seq=0, time=0.0, attempt=1, name="run", phase=Phase.start)

    async def work(listen: Callable[[Event], None]) -> None:
        listen(event)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def main() -> None:
        run = redstart.Run(work)
        heard: list[Event] = []
        async for each in run.events():
            heard.append(each)
            run.stop()
        assert (heard, ended.is_set(), repr(run)) == ([event], True, "<Run 7 stopped>")
        with pytest.raises(asyncio.CancelledError):
            await run.result()

    asyncio.run(main())


@pytest.mark.slow
def test_a_model_of_the_callers_own_is_asked_with_secrets_masked(repo, monkeypatch):
    monkeypatch.setenv("SHOP_API_KEY", "k3y-9f2b7c41d8e6")
    (repo / "calc.py").write_text("KEY = 'k3y-9f2b7c41d8e6'\n\n\ndef value(text):\n    return eval(text)\n")
    model = ScriptedModel(lambda ask: "[]")
    redstart.audit(repo, review=True, model=model)
    asked = model.asks[0]
    words = "".join(message.text for message in asked.messages)
    assert "return eval(text)" in words
    assert "k3y-9f2b7c41d8e6" not in words


@pytest.mark.slow
def test_a_sandbox_of_the_callers_own_is_used_as_it_is_or_made(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("REDSTART_CHECKS__COMMANDS", '{"own": "grep -n eval calc.py"}')
    made: list[tuple[object, Path]] = []

    class Recording(Process):
        def __init__(self, workspaces: redstart.Workspaces, scratch: Path) -> None:
            super().__init__(workspaces, scratch)
            made.append((workspaces, scratch))

        async def run(self, execution: redstart.Execution) -> redstart.Completed:
            made.append((execution.argv[0], Path()))
            return await super().run(execution)

    redstart.audit(repo, sandbox=Recording)
    assert made[0][1] == tmp_path / "home" / "scratch"
    assert [what for what, _ in made[1:]] == ["grep"]
    redstart.audit(repo, sandbox=Recording(*made[0]))
    assert [what for what, _ in made[3:]] == ["grep"]


@pytest.mark.slow
def test_the_name_of_an_object_is_refused_where_the_object_is_missing(repo, monkeypatch):
    assert object_name(ScriptedModel([])) == object_name(ScriptedModel) == "python:ScriptedModel"
    with pytest.raises(ConfigError, match="python:ScriptedModel is an object of a Python program") as caught:
        redstart.fix(repo, model="python:ScriptedModel", sandbox=Process)
    assert "redstart.resume" in caught.value.remedy


def test_cancelling_the_task_stops_the_work_and_waits_for_it():
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):  # like a run that still has cleanup to do
                await asyncio.sleep(0)
            ended.set()

    async def main() -> None:
        task = asyncio.create_task(ThreadLoop(work).run())
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(main())


@pytest.mark.slow
def test_a_listener_that_raises_stops_the_run_with_its_error(repo):
    def listen(event: Event) -> None:
        raise ValueError(event.name)

    with pytest.raises(ValueError, match="run"):
        asyncio.run(redstart.aaudit(repo, on_event=listen))


@pytest.mark.slow
def test_an_error_of_the_work_reaches_whoever_awaits_it(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        asyncio.run(redstart.aaudit(tmp_path / "nothing"))


def test_the_public_names_are_listed_and_each_is_there():
    assert dir(redstart) == sorted(redstart.__all__)
    assert [name for name in dir(redstart) if not hasattr(redstart, name)] == []
    assert not hasattr(redstart, "nothing")


@pytest.mark.slow
def test_listing_the_names_loads_nothing():
    code = "import redstart, sys; dir(redstart); print(sorted(set(sys.modules) & {'pydantic', 'redstart.app'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def ended(result: Result, **over: object) -> RunState:
    return state(status=Status.finished, result=result, **over)


def test_a_result_is_one_line_and_is_the_state_still():
    run = ended(Result.verified, spend=Spend(calls=3, usd=0.0123))
    result = RunResult.of(run, "--- a/calc.py\n", None)
    assert repr(result) == str(result) == f"<RunResult verified run_id={run.run_id} attempts=1 cost=$0.012>"
    assert (result.ok, result.diff, result.proof) == (True, "--- a/calc.py\n", None)
    assert (result.result, result.spend, result.now) == (run.result, run.spend, run.now)
    assert result.model_dump() == run.model_dump()
    assert isinstance(result, RunState)


@pytest.mark.parametrize("result", [item for item in Result if item is not Result.verified])
def test_only_what_exits_with_0_is_ok(result):
    fine = {Result.already_green, Result.reported}
    assert RunResult.of(ended(result), "", None).ok is (result in fine)


@pytest.mark.slow
def test_an_audit_result_is_one_line_and_says_what_could_not_be_done(repo):
    found = redstart.audit(repo)
    assert repr(found) == f"<AuditResult findings=1 warnings=0 run_id={found.run_id}>"
    warned = AuditResult.of(state(), FindingList(warnings=("3 of 3 model answers could not be read",)))
    assert (found.ok, warned.ok, AuditResult.of(state(), FindingList()).ok) == (False, False, True)
    assert warned.warnings == ("3 of 3 model answers could not be read",)


@pytest.mark.slow
def test_there_is_nothing_to_improve_in_an_empty_folder_without_a_goal(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is empty"):
        redstart.improve(tmp_path / "empty", cycles=1, model="openai:none")
