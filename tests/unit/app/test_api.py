"""The Python API beside the command line."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import redstart
from redstart.app.aside import Aside
from redstart.app.results import AuditResult, RunResult
from redstart.core.errors import ConfigError
from redstart.core.events import Event
from redstart.core.finding import FindingList, Risk
from redstart.core.run import Result, RunState, Spend, Status
from redstart.testing.states import state

NAMES = ("fix", "create", "improve", "audit")


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


def test_an_audit_needs_neither_a_model_nor_a_sandbox_and_returns_what_it_found(repo):
    found = redstart.audit(repo)
    assert [(one.path, one.line, one.risk) for one in found] == [("calc.py", 2, Risk.high)]
    assert redstart.audit(repo / "plain.py") == ()
    assert sorted(one.name for one in repo.iterdir()) == ["calc.py", "plain.py"]


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
    assert [(one.path, one.line) for one in found] == [("calc.py", 2)]
    assert {thread for _, thread in events} == {threading.main_thread()}
    assert [event.name for event, _ in events if event.phase == "end"][-1] == "run"
    assert ticks > 3


def test_two_runs_at_once_in_one_loop(repo):
    async def main() -> list[AuditResult]:
        return await asyncio.gather(redstart.aaudit(repo), redstart.aaudit(repo / "plain.py"))

    both, plain = asyncio.run(main())
    assert (len(both), len(plain)) == (1, 0)
    assert both.run_id != plain.run_id


@pytest.mark.parametrize("name", NAMES)
def test_a_blocking_call_in_a_running_loop_names_its_twin(name, tmp_path):
    arguments = {"create": ("a goal", tmp_path / "new")}.get(name, (tmp_path,))
    options = {"cycles": 1} if name == "improve" else {}

    async def main() -> None:
        getattr(redstart, name)(*arguments, **options)

    with pytest.raises(ConfigError, match=rf"running event loop.*await redstart\.a{name}\(") as caught:
        asyncio.run(main())
    assert caught.value.remedy == f"await redstart.a{name}(...)"


@pytest.mark.parametrize("name", NAMES)
def test_twins_take_the_same_arguments(name):
    blocking, awaitable = getattr(redstart, name), getattr(redstart, f"a{name}")
    assert inspect.signature(blocking) == inspect.signature(awaitable)
    assert inspect.iscoroutinefunction(awaitable)


def test_cancelling_the_task_stops_the_work_and_waits_for_it():
    begun, ended = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(1000):  # as a run that still has something to put away
                await asyncio.sleep(0)
            ended.set()

    async def main() -> None:
        task = asyncio.create_task(Aside(work).run())
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()

    asyncio.run(main())


def test_a_listener_that_raises_stops_the_run_with_its_error(repo):
    def listen(event: Event) -> None:
        raise ValueError(event.name)

    with pytest.raises(ValueError, match="run"):
        asyncio.run(redstart.aaudit(repo, on_event=listen))


def test_an_error_of_the_work_reaches_whoever_awaits_it(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        asyncio.run(redstart.aaudit(tmp_path / "nothing"))


def test_the_public_names_are_listed_and_each_is_there():
    assert {"fix", "afix", "audit", "aaudit", "RunResult", "Limits", "__version__"} <= set(dir(redstart))
    assert dir(redstart) == sorted(redstart.__all__)
    assert [name for name in dir(redstart) if not hasattr(redstart, name)] == []
    assert not hasattr(redstart, "nothing")


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


@pytest.mark.parametrize("result", [one for one in Result if one is not Result.verified])
def test_only_what_exits_with_0_is_ok(result):
    fine = {Result.already_green, Result.reported}
    assert RunResult.of(ended(result), "", None).ok is (result in fine)


def test_an_audit_result_is_one_line_and_says_what_could_not_be_done(repo):
    found = redstart.audit(repo)
    assert repr(found) == f"<AuditResult findings=1 warnings=0 run_id={found.run_id}>"
    warned = AuditResult.of(state(), FindingList(warnings=("3 of 3 model answers could not be read",)))
    assert (found.ok, warned.ok, AuditResult.of(state(), FindingList()).ok) == (False, False, True)
    assert warned.warnings == ("3 of 3 model answers could not be read",)


def test_there_is_nothing_to_improve_in_an_empty_folder_without_a_goal(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is empty"):
        redstart.improve(tmp_path / "empty", cycles=1, model="openai:none")
