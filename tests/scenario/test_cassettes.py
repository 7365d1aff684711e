"""A run is exported and replayed from its file without tokens; the first difference is reported."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.scenarios import Scenario
from support.server import ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")


@pytest.fixture
def recorded(user: User, repo_of: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return the cassette of a run that needed two attempts. Its provider is down and its lessons are gone."""
    repo, cassette = repo_of(SCENARIO.name), tmp_path / "run.json"
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo).code == 0
    result = user.redstart("runs", "export", "--cassette", cassette, cwd=repo)
    assert result.code == 0, result.err
    assert "wrote 3 calls to" in result.out
    user.environ["REDSTART_HOME"] = str(tmp_path / "another-home")
    return cassette


def test_exported_run_replays_without_spending_tokens(user: User, recorded: Path, tmp_path: Path) -> None:
    result = user.redstart("fix", tmp_path / "projects" / SCENARIO.name, "-m", f"replay:{recorded}", "--json")
    assert result.code == 0, result.out + result.err
    assert (result.ending["result"], result.ending["attempts"], result.ending["calls"]) == ("verified", 2, 3)
    assert (result.ending["tokens"], result.ending["usd"]) == (0, 0.0)
    cassette_data = json.loads(recorded.read_text())
    assert list(cassette_data["calls"]) == ["1/patch/0", "2/patch/0", "2/remember/0"]
    assert cassette_data["calls"]["1/patch/0"]["input_tokens"] > 0


@pytest.mark.soak
def test_replay_on_a_changed_repo_reports_the_first_differing_message(
    user: User, recorded: Path, tmp_path: Path
) -> None:
    code = tmp_path / "projects" / SCENARIO.name / "pager.py"
    code.write_text(code.read_text().replace("def page_count(total, size):", "def page_count(total, size=10):"))
    result = user.redstart("fix", code.parent, "-m", f"replay:{recorded}")
    assert result.code == 3
    assert "has another question at '1/patch/0': message 2 (user) differs" in result.err
    assert "\n-def page_count(total, size):\n+def page_count(total, size=10):\n" in result.err
    assert re.search(r"resume with: redstart resume \w+", result.err)


def test_failed_export_or_replay_is_reported(user: User, repo_of: Callable[[str], Path], tmp_path: Path) -> None:
    repo = repo_of(SCENARIO.name)
    missing_result = user.redstart("fix", repo, "-m", f"replay:{tmp_path / 'gone.json'}")
    assert missing_result.code == 2
    assert "gone.json cannot be read" in missing_result.err
    assert user.redstart("fix", repo, "--dry-run", "-m", "command:true").code == 0
    empty_result = user.redstart("runs", "export", "--cassette", tmp_path / "none.json", cwd=repo)
    assert empty_result.code == 2
    assert "called no model" in empty_result.err
    invalid_result = user.redstart("runs", "export", "--cassette", repo / "pager.py", cwd=repo)
    assert invalid_result.code == 2
    assert "is not a cassette" in invalid_result.err
    assert "def page_count" in (repo / "pager.py").read_text()
