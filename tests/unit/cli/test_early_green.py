"""A verified fix is on the screen before the run asks what to remember; the patch can be applied at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redstart.app.runs import RunRequest, create_fix_run
from redstart.app.settings import Models, Settings
from redstart.app.wire import AppContext, open_app
from redstart.cli.display import Terminal
from redstart.cli.run_summary import EarlyGreen
from redstart.cli.session import DriveMode, drive_run
from redstart.core.change import ApplyResult
from redstart.core.chat import Answer, Ask
from redstart.core.report import Ids, PatchTestResult, ReproductionResult, Verdict
from redstart.core.run import Level, Limits, Mode, RunState, Step
from redstart.testing.states import make_snapshot, make_spec, make_state, report

pytestmark = pytest.mark.slow

BUGGY = "def double(number):\n    return number + 3\n"
TESTS = "from calc import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
EDIT = "WHY: twice\n\ncalc.py\n<<<<<<< SEARCH\n    return number + 3\n=======\n    return number * 2\n>>>>>>> REPLACE\n"
CARD = '{"summary": "s", "root_cause": "r", "fix": "f", "debug_steps": []}'


class Watching:
    """A model that answers, and records what was on the screen at each question."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path, *, then: str = "") -> None:
        self._capsys, self._folder, self._then = capsys, folder, then
        self.screens: dict[str, str] = {}

    async def ask(self, ask: Ask) -> Answer:
        self.screens[ask.question] = self._capsys.readouterr().out
        if ask.question == "remember" and self._then:
            (self._folder / "calc.py").write_text(self._then)
        return Answer(text=EDIT if ask.question == "patch" else CARD, model="openai:x")


def fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: DriveMode, *, then: str = ""
) -> tuple[int, Watching, Path]:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "calc.py").write_text(BUGGY)
    (folder / "test_calc.py").write_text(TESTS)
    settings = Settings(home=tmp_path / "home", models=Models(strong="openai:x", fast="openai:x"))
    model = Watching(capsys, folder, then=then)

    async def begin(house: AppContext) -> RunState:
        return await create_fix_run(
            house, folder, RunRequest(Limits(), own_python=True, verify=Level.quick, max_tool_calls=0)
        )

    code = drive_run(settings, mode._replace(model=model, engine="inline"), begin)
    return code, model, folder / "calc.py"


def test_green_and_diff_are_shown_once_and_before_the_remember_step(tmp_path, capsys):
    code, model, file = fix(tmp_path, capsys, DriveMode())
    before, after = model.screens["remember"], capsys.readouterr().out
    assert code == 0
    assert "GREEN  1 failing test now passes, and no other test got worse\n" in before
    assert "    -    return number + 3\n    +    return number * 2\n" in before
    assert "GREEN" not in after
    assert "return number" not in after
    assert after.splitlines()[0].startswith("  1  remember  saved a fix card")
    assert [line.split(":")[0] for line in after.splitlines()[1:3]] == ["patch", "apply it with"]
    assert file.read_text() == BUGGY


def test_apply_writes_the_patch(tmp_path, capsys):
    code, _, file = fix(tmp_path, capsys, DriveMode(apply=True))
    assert code == 0
    assert file.read_text() == BUGGY.replace("+ 3", "* 2")
    assert "  written   calc.py\nApplied. Undo with: redstart undo " in capsys.readouterr().out


def test_conflict_is_reported_as_by_the_apply_command(tmp_path, capsys):
    code, _, file = fix(tmp_path, capsys, DriveMode(apply=True), then="something else\n")
    assert code == 1
    assert file.read_text() == "something else\n"
    assert "error: the patch conflicts with your files; nothing was written" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "language"), [(Mode.create, ""), (Mode.improve, ""), (Mode.fix, "Go")])
def test_green_that_can_still_be_rejected_is_not_announced(mode, language, tmp_path, capsys):
    test_result = PatchTestResult(report=report(passed=1), verdict=Verdict(fixed=Ids.from_ids(["t.py::test_a"])))
    assert test_result.verdict.is_green
    reproduction = ReproductionResult(report=report(), language=language)
    attempt = make_state().now.model_copy(
        update={"reproduce": reproduction, "test": test_result, "apply": ApplyResult(ok=True, snapshot=make_snapshot())}
    )
    run = make_state(spec=make_spec(mode=mode), now=attempt)
    with open_app(Settings(home=tmp_path / "home")) as app:
        early_green = EarlyGreen(app, Terminal())
        early_green(run, Step.remember)
    assert (early_green.announced_runs, capsys.readouterr().out) == (set(), "")


@pytest.mark.parametrize("apply", [True, False])
def test_last_event_has_exit_code_patch_and_applied_flag(apply, tmp_path, capsys):
    code, _, file = fix(tmp_path, capsys, DriveMode(json=True, apply=apply))
    ending = json.loads(capsys.readouterr().out.splitlines()[-1])["data"]
    assert (code, ending["exit_code"], ending["applied"]) == (0, 0, apply)
    assert Path(ending["patch"]).read_text().count("+    return number * 2") == 1
    assert (file.read_text() != BUGGY) is apply
