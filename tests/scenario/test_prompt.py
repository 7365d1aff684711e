"""The prompt contains what a model needs: with any part removed, the run no longer ends verified."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import redstart
from redstart.core.run import Limits, Result
from redstart.toolkit.prompts import sections
from support.sample import short_form
from support.scenarios import Scenario
from support.server import ScriptedServer

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")

REMOVALS: dict[str, tuple[str, ...]] = {
    "the failing test's id": SCENARIO.needs.ids,
    "its assertion text": SCENARIO.needs.assertion,
    "the lines to edit": SCENARIO.needs.lines,
    "what the last attempt tried": SCENARIO.tried,
    "why it failed": SCENARIO.failed,
}


def fixed(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Result | None:
    repo = tmp_path / "repo"
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    with ScriptedServer(SCENARIO.reply) as server:
        monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("VIRTUAL_ENV", str(project))
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        return redstart.fix(repo, model="openai:scripted", limits=Limits(attempts=3)).result


def test_with_all_of_it_the_run_ends_green(tmp_path, project, monkeypatch):
    assert fixed(tmp_path, project, monkeypatch) is Result.verified


@pytest.mark.parametrize("what", short_form([*REMOVALS], 1))
def test_without(what: str, tmp_path, project, monkeypatch):
    def without(texts: tuple[str, ...], section: Callable[..., str]) -> Callable[..., str]:
        def cut(*arguments: object, **named: object) -> str:
            shown = section(*arguments, **named)
            for text in texts:
                shown = shown.replace(text, "")
            return shown

        return cut

    for name in ("failing", "code", "tried"):
        monkeypatch.setattr(sections, name, without(REMOVALS[what], getattr(sections, name)))
    assert fixed(tmp_path, project, monkeypatch) is not Result.verified
