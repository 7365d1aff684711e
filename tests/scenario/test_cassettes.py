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
    done = user.redstart("runs", "export", "--cassette", cassette, cwd=repo)
    assert done.code == 0, done.err
    assert "wrote 3 calls to" in done.out
    user.environ["REDSTART_HOME"] = str(tmp_path / "another-home")
    return cassette


def test_an_exported_run_is_done_again_without_a_token(user: User, recorded: Path, tmp_path: Path) -> None:
    ran = user.redstart("fix", tmp_path / "projects" / SCENARIO.name, "-m", f"replay:{recorded}", "--json")
    assert ran.code == 0, ran.out + ran.err
    assert (ran.ending["result"], ran.ending["attempts"], ran.ending["calls"]) == ("verified", 2, 3)
    assert (ran.ending["tokens"], ran.ending["usd"]) == (0, 0.0)
    written = json.loads(recorded.read_text())
    assert list(written["calls"]) == ["1/patch/0", "2/patch/0", "2/remember/0"]
    assert written["calls"]["1/patch/0"]["input_tokens"] > 0


@pytest.mark.soak
def test_a_changed_repo_is_named_by_the_first_message_that_differs(user: User, recorded: Path, tmp_path: Path) -> None:
    code = tmp_path / "projects" / SCENARIO.name / "pager.py"
    code.write_text(code.read_text().replace("def page_count(total, size):", "def page_count(total, size=10):"))
    ran = user.redstart("fix", code.parent, "-m", f"replay:{recorded}")
    assert ran.code == 3
    assert "has another question at '1/patch/0': message 2 (user) differs" in ran.err
    assert "\n-def page_count(total, size):\n+def page_count(total, size=10):\n" in ran.err
    assert re.search(r"resume with: redstart resume \w+", ran.err)


def test_what_cannot_be_exported_or_replayed_is_said(
    user: User, repo_of: Callable[[str], Path], tmp_path: Path
) -> None:
    repo = repo_of(SCENARIO.name)
    gone = user.redstart("fix", repo, "-m", f"replay:{tmp_path / 'gone.json'}")
    assert gone.code == 2
    assert "gone.json cannot be read" in gone.err
    assert user.redstart("fix", repo, "--dry-run", "-m", "command:true").code == 0
    unasked = user.redstart("runs", "export", "--cassette", tmp_path / "none.json", cwd=repo)
    assert unasked.code == 2
    assert "asked no model" in unasked.err
    other = user.redstart("runs", "export", "--cassette", repo / "pager.py", cwd=repo)
    assert other.code == 2
    assert "is not a cassette" in other.err
    assert "def page_count" in (repo / "pager.py").read_text()
