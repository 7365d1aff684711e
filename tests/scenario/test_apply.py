"""Apply a finished run to the user's files and undo it, by command."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from redstart.app.handover import apply_run, undo_run
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_house
from redstart.core.errors import ConfigError, StoreError
from redstart.toolkit.repo.handover import HandoverEvent
from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")


def git(repo: Path, *arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def repo(user, repo_of) -> Path:
    """A git repo with a finished run."""
    folder = repo_of(SCENARIO.name)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "a")
    git(folder, "config", "user.email", "a@b")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", folder).code == 0
    return folder


@pytest.fixture
def house(user):
    with open_house(Settings(home=user.home)) as opened:
        yield opened


def last_run(house: AppContext) -> str:
    return asyncio.run(house.adapters.store.runs())[0].run_id


def red(user, repo: Path) -> int:
    """Return the exit code of the project's own tests."""
    return user.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=repo).code


def test_apply_makes_the_tests_green_and_undo_red_again(user, repo, house):
    run_id, before, index = last_run(house), (repo / "pager.py").read_bytes(), (repo / ".git" / "index").read_bytes()
    outcome = asyncio.run(apply_run(house, run_id, branch=None))
    assert [(file.path, file.what) for file in outcome.files] == [("pager.py", "written")]
    assert red(user, repo) == 0
    assert asyncio.run(apply_run(house, run_id)).happened is HandoverEvent.already
    assert sorted(json.loads((user.home / "applied" / f"{run_id}.json").read_bytes())["files"]) == ["pager.py"]
    assert asyncio.run(undo_run(house, run_id)).happened is HandoverEvent.done
    assert ((repo / "pager.py").read_bytes(), (repo / ".git" / "index").read_bytes()) == (before, index)
    assert red(user, repo) == 1
    assert asyncio.run(undo_run(house, run_id)).happened is HandoverEvent.unknown


@pytest.mark.soak
def test_a_branch_holds_the_patch_and_the_files_stay(user, repo, house):
    before = (repo / "pager.py").read_bytes()
    outcome = asyncio.run(apply_run(house, last_run(house), branch="fix"))
    assert (repo / "pager.py").read_bytes() == before
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "log", "--format=%H", "main..fix").split() == [outcome.commit]
    assert git(repo, "log", "-1", "--format=%s", "fix") != "Make red tests green\n"
    git(repo, "checkout", "-q", "fix")
    assert red(user, repo) == 0


@pytest.mark.soak
def test_what_is_no_verified_run_is_refused(user, repo, house):
    with pytest.raises(StoreError):
        asyncio.run(undo_run(house, "nosuchrun"))
    with ScriptedServer(lambda request: SCENARIO.wrong) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--max-iters", "1").code == 1
    with pytest.raises(ConfigError, match="no verified patch"):
        asyncio.run(apply_run(house, last_run(house)))


@pytest.mark.soak
def test_a_folder_that_is_gone_is_said(repo, house):
    repo.rename(repo.with_name("moved"))
    with pytest.raises(ConfigError, match="no longer exists"):
        asyncio.run(apply_run(house, last_run(house)))


def test_the_commands(user, repo):
    ran = user.redstart("apply", cwd=repo)
    assert ran.code == 0, ran.out + ran.err
    assert "  written   pager.py\nApplied. Undo with: redstart undo " in ran.out
    again = user.redstart("apply", cwd=repo)
    assert (again.code, "Already applied" in again.out) == (0, True)
    undone = user.redstart("undo", ran.out.split()[-1], cwd=repo)
    assert (undone.code, "Undone. Apply again with: redstart apply" in undone.out) == (0, True)
    nothing = user.redstart("undo", cwd=repo)
    assert (nothing.code, "Nothing to undo" in nothing.out) == (0, True)


@pytest.mark.soak
def test_the_commands_exit_codes(user, repo, tmp_path):
    assert user.redstart("apply", "nosuchrun", cwd=repo).code == 2
    assert user.redstart("apply", cwd=tmp_path).code == 2
    assert user.redstart("apply", "--branch", "main", cwd=repo).code == 2
    assert user.redstart("apply", "--branch", "fix", cwd=repo).code == 0
    (repo / "pager.py").write_text("something else\n")
    ran = user.redstart("apply", cwd=repo)
    assert ran.code == 1
    assert "refused   pager.py: it was changed in the same place\nerror: the patch conflicts" in ran.err
    assert (repo / "pager.py").read_text() == "something else\n"
