"""The prompt contains what a model needs: with any part removed, the run no longer ends verified."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import redstart
from redstart.core.run import Limits, Result
from redstart.toolkit.prompts import sections
from support.sample import sample_parameters
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


def run_fix(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Result | None:
    repo = tmp_path / "repo"
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    with ScriptedServer(SCENARIO.reply) as server:
        monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("VIRTUAL_ENV", str(project))
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        return redstart.fix(repo, model="openai:scripted", limits=Limits(attempts=3)).result


def test_full_prompt_leads_to_a_verified_run(tmp_path, project, monkeypatch):
    assert run_fix(tmp_path, project, monkeypatch) is Result.verified


@pytest.mark.parametrize("what", sample_parameters([*REMOVALS], 1))
def test_prompt_missing_a_part_is_not_enough(what: str, tmp_path, project, monkeypatch):
    def drop_texts(texts: tuple[str, ...], section: Callable[..., str]) -> Callable[..., str]:
        def cut(*arguments: object, **keywords: object) -> str:
            rendered = section(*arguments, **keywords)
            for text in texts:
                rendered = rendered.replace(text, "")
            return rendered

        return cut

    for name in ("build_failing_section", "build_code_section", "build_tried_section"):
        monkeypatch.setattr(sections, name, drop_texts(REMOVALS[what], getattr(sections, name)))
    assert run_fix(tmp_path, project, monkeypatch) is not Result.verified
