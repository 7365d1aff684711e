"""The header before the first model call, and systems on which Redstart is unsupported or untested."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.app.doctor.checks import examine
from redstart.app.runs import RunRequest, create_fix_run
from redstart.app.settings import Models, Settings
from redstart.app.wire import AppContext, open_app
from redstart.cli.event_text import describe_step, format_warning
from redstart.cli.main import is_refused
from redstart.cli.session import DriveMode, describe_limits, drive_run, format_header
from redstart.core.chat import Answer, Ask
from redstart.core.errors import ModelError
from redstart.core.events import Event, Phase
from redstart.core.report import OutcomeCounts, Report, ReproductionResult
from redstart.core.run import Limits, RunState
from redstart.core.shell import Environment, ExitCause

ON_WINDOWS = """
import sys, typer, zoneinfo
sys.platform = "win32"
from redstart.cli.main import main
main()
"""
"""Modules that look for Windows modules when they are imported have to be imported first."""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    with open_app(Settings(home=tmp_path / "home", models=Models(strong="openai:x"))) as app:
        yield app


@pytest.fixture
def state(house: AppContext, tmp_path: Path) -> RunState:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "test_it.py").write_text("def test_it():\n    assert True\n")
    return asyncio.run(create_fix_run(house, folder, RunRequest(Limits(), own_python=True)))


@pytest.mark.slow
def test_header_is_two_short_lines_of_known_facts(house: AppContext, state: RunState):
    summary_line, location_line = format_header(house, state, "linux").splitlines()
    assert summary_line == f"run {state.run_id} · shop · pytest · {Path(sys.executable).name} (redstart's own)"
    assert location_line == "sandbox none · model openai:x at api.openai.com · limits 5 attempts, $2, 30 min"
    assert "tests:" not in summary_line, "the number of tests is unknown before they run"


@pytest.mark.slow
@pytest.mark.parametrize(("runner", "words"), [("node", "node:test · node 20.20.2"), ("jest", "jest · node 20.20.2")])
def test_header_of_node_project_names_node_once(runner, words, house: AppContext, state: RunState):
    environment = Environment(mount="/x", python="python3", chosen="node 20.20.2")
    environment_id = house.adapters.blobs.put(environment.model_dump_json().encode())
    suite = state.spec.suite.model_copy(update={"runner": runner, "environment": environment_id})
    node = state.model_copy(update={"spec": state.spec.model_copy(update={"suite": suite})})
    assert format_header(house, node, "linux").splitlines()[0] == f"run {state.run_id} · shop · {words}"


@pytest.mark.slow
def test_header_names_the_command_whose_report_is_read(house: AppContext, state: RunState):
    def get_first_line(*command: str) -> str:
        suite = state.spec.suite.model_copy(update={"command": command, "junit": "out.xml"})
        foreign = state.model_copy(update={"spec": state.spec.model_copy(update={"suite": suite})})
        return format_header(house, foreign, "linux").splitlines()[0]

    assert get_first_line("make", "check") == f"run {state.run_id} · shop · make check"
    assert get_first_line("python", "manage.py", "test").startswith(
        f"run {state.run_id} · shop · python manage.py test · py"
    )


def test_run_until_green_shows_no_attempt_limit():
    assert describe_limits(Limits(attempts=1000)) == "$2, 30 min"
    assert describe_limits(Limits(attempts=1, usd=None, minutes=None), cycles=3) == "3 cycles, 1 attempt"


@pytest.mark.slow
def test_header_of_continued_run_shows_the_number_of_tests(house: AppContext, state: RunState):
    counts = OutcomeCounts(passed=9, failed=2, errors=1, skipped=4)
    report = Report(runner="pytest", counts=counts, cause=ExitCause.failed, exit_code=1)
    attempt = state.now.model_copy(update={"reproduce": ReproductionResult(report=report)})
    line = format_header(house, state.model_copy(update={"now": attempt}), "linux")
    assert "16 tests: 3 fail, 9 pass, 4 skipped" in line


@pytest.mark.parametrize(
    ("red", "passed", "skipped", "said"),
    [(3, 9, 0, "12 tests: 3 fail, 9 pass"), (1, 0, 0, "1 test: 1 fails"), (1, 1, 1, "3 tests: 1 fails, 1 passes, 1 ")],
)
def test_reproduce_line_shows_the_number_of_tests(red, passed, skipped, said):
    data = {"red": red, "passed": passed, "skipped": skipped, "trouble": "", "targets": ["t.py::test_a"]}
    data |= {"target_count": 1, "grounds": [], "flaky": [], "forecast": 0.0}
    event = Event(run="r", seq=0, time=0.0, attempt=1, name="reproduce", phase=Phase.end, data=data)
    assert describe_step(event).startswith(said)
    assert describe_step(event).endswith("; to fix: test_a")


@pytest.mark.parametrize(
    ("trend", "said"),
    [("improving", "retrying: why"), ("stable", "retrying: why"), (None, "retrying: why")],
)
def test_decide_line_shows_trend_and_warns_of_the_end(trend, said):
    data = {"action": "retry", "reason": "why", "warning": "12 attempts brought nothing"}
    data |= {} if trend is None else {"trend": trend}
    event = Event(run="r", seq=0, time=0.0, attempt=1, name="decide", phase=Phase.end, data=data)
    assert describe_step(event) == said
    assert format_warning(event) == "warning: 12 attempts brought nothing"
    assert format_warning(event.model_copy(update={"data": {"action": "retry", "reason": "why"}})) == ""


class Silent:
    """A model that records what was on the screen at a question, and gives no answer."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.screens: list[str] = []

    async def ask(self, ask: Ask) -> Answer:
        del ask
        self.screens.append(self._capsys.readouterr().out)
        raise ModelError("no answer")


RED = "def test_a():\n    assert False\n\n\ndef test_b():\n    pass\n"


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of progress, which a slow machine gets and a fast one does not."""
    monkeypatch.setattr("redstart.cli.display.SOON", math.inf)


def drive(tmp_path: Path, model: Silent, tests: str, *, dry_run: bool) -> int:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "test_it.py").write_text(tests)
    settings = Settings(home=tmp_path / "home", models=Models(strong="openai:x", fast="openai:x"))

    async def begin(house: AppContext) -> RunState:
        return await create_fix_run(house, folder, RunRequest(Limits(), own_python=True))

    return drive_run(settings, DriveMode(model=model, dry_run=dry_run, engine="inline"), begin)


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_the_number_of_tests_is_on_the_screen_before_a_model_is_asked(tmp_path, capsys):
    model = Silent(capsys)
    with pytest.raises(ModelError):
        drive(tmp_path, model, RED, dry_run=False)
    _, second_line, third_line, *_ = model.screens[0].splitlines()
    assert "limits 5 attempts, $2, 30 min" in second_line
    assert "2 tests: 1 fails, 1 passes; to fix: test_a" in third_line


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_a_dry_run_runs_the_tests_and_stops_there(tmp_path, capsys):
    model = Silent(capsys)
    assert drive(tmp_path, model, RED, dry_run=True) == 0
    _, second_line, third_line, last_line = capsys.readouterr().out.splitlines()
    assert "limits 5 attempts" in second_line
    assert "2 tests: 1 fails, 1 passes; to fix: test_a" in third_line
    assert "no model was asked" in last_line
    assert model.screens == []


@pytest.mark.slow
def test_dry_run_needs_no_model(tmp_path, capsys):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "test_it.py").write_text(RED)

    async def begin(house: AppContext) -> RunState:
        return await create_fix_run(house, folder, RunRequest(Limits(), own_python=True))

    assert drive_run(Settings(home=tmp_path / "home"), DriveMode(dry_run=True, engine="inline"), begin) == 0
    assert " · no model · " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "code", "said"),
    [
        ("def test_a():\n    pass\n", 0, "GREEN"),
        ("import no_such_module_at_all\n", 3, "ENVIRONMENT PROBLEM"),
        ("", 5, "NO TESTS"),
    ],
)
def test_dry_run_without_work_for_a_model_shows_the_outcome(tests, code, said, tmp_path, capsys):
    model = Silent(capsys)
    assert drive(tmp_path, model, tests, dry_run=True) == code
    output = capsys.readouterr().out
    assert said in output
    assert "resume with" not in output
    assert model.screens == []


@pytest.mark.slow
def test_macos_is_called_untested_in_one_line(house: AppContext, state: RunState):
    assert format_header(house, state, "darwin").endswith(" · macOS: untested")
    assert "macOS" not in format_header(house, state, "linux")
    [platform_check] = [check for check in examine(platform="darwin").checks if check.detail.startswith("macOS")]
    assert (platform_check.detail, "--sandbox docker" in platform_check.remedy) == ("macOS: untested", True)
    assert not [check for check in examine(platform="linux").checks if "macOS" in check.detail]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["--version"], ["fix", "--help"]])
def test_help_is_never_refused(arguments):
    assert not is_refused("win32", arguments)


@pytest.mark.parametrize("arguments", [["fix"], ["doctor"], ["runs", "list"], ["sandbox", "run", "--", "x", "--help"]])
def test_other_commands_are_refused_only_on_windows(arguments):
    assert is_refused("win32", arguments)
    assert not is_refused("linux", arguments)
    assert not is_refused("darwin", arguments)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["fix", "."], ["demo"], ["doctor"], ["config", "show"], ["no-such-command"]])
def test_command_on_windows_exits_with_3_and_a_hint(arguments, tmp_path):
    completed = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (completed.returncode, completed.stdout) == (3, "")
    error, hint = completed.stderr.splitlines()
    assert error == "error: Windows is not supported"
    assert hint.startswith("hint: install WSL2")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fix", "--help"]])
def test_help_works_on_windows(arguments):
    completed = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS, *arguments], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout


@pytest.mark.slow
async def test_header_of_node_project_names_runner_and_interpreter_once(house: AppContext, tmp_path: Path):
    folder = tmp_path / "cart"
    folder.mkdir()
    (folder / "package.json").write_text('{"scripts": {"test": "node --test"}}')
    (folder / "cart.test.js").write_text("require('node:test')('adds', () => {});\n")
    initial_state = await create_fix_run(house, folder, RunRequest(Limits()))
    line = format_header(house, initial_state, "linux")
    assert "node:test · node " in line
    assert "python" not in line
    assert " node · node" not in line
