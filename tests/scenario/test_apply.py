"""Apply a finished run to the user's files and undo it, by command."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from redstart.app.handover import apply_run, undo_run
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.core.errors import ConfigError, StoreError
from redstart.toolkit.repo.handover import HandoverEvent
from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")


def git(repo: Path, *arguments: str) -> str:
    completed = subprocess.run(("git", *arguments), cwd=repo, check=True, capture_output=True, text=True)
    return completed.stdout


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
    with open_app(Settings(home=user.home)) as app:
        yield app


def find_last_run(house: AppContext) -> str:
    return asyncio.run(house.adapters.store.list_runs())[0].run_id


def run_project_tests(user, repo: Path) -> int:
    """Return the exit code of the project's own tests."""
    return user.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=repo).code


def test_apply_makes_tests_pass_and_undo_restores_the_failure(user, repo, house):
    run_id, before, index = (
        find_last_run(house),
        (repo / "pager.py").read_bytes(),
        (repo / ".git" / "index").read_bytes(),
    )
    outcome = asyncio.run(apply_run(house, run_id, branch=None))
    assert [(file.path, file.what) for file in outcome.files] == [("pager.py", "written")]
    assert run_project_tests(user, repo) == 0
    assert asyncio.run(apply_run(house, run_id)).happened is HandoverEvent.already
    assert sorted(json.loads((user.home / "applied" / f"{run_id}.json").read_bytes())["files"]) == ["pager.py"]
    assert asyncio.run(undo_run(house, run_id)).happened is HandoverEvent.done
    assert ((repo / "pager.py").read_bytes(), (repo / ".git" / "index").read_bytes()) == (before, index)
    assert run_project_tests(user, repo) == 1
    assert asyncio.run(undo_run(house, run_id)).happened is HandoverEvent.unknown


@pytest.mark.soak
def test_branch_holds_the_patch_and_files_stay_unchanged(user, repo, house):
    before = (repo / "pager.py").read_bytes()
    outcome = asyncio.run(apply_run(house, find_last_run(house), branch="fix"))
    assert (repo / "pager.py").read_bytes() == before
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "log", "--format=%H", "main..fix").split() == [outcome.commit]
    assert git(repo, "log", "-1", "--format=%s", "fix") != "Make red tests green\n"
    git(repo, "checkout", "-q", "fix")
    assert run_project_tests(user, repo) == 0


@pytest.mark.soak
def test_run_without_a_verified_patch_is_refused(user, repo, house):
    with pytest.raises(StoreError):
        asyncio.run(undo_run(house, "nosuchrun"))
    with ScriptedServer(lambda request: SCENARIO.wrong) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--max-iters", "1").code == 1
    with pytest.raises(ConfigError, match="no verified patch"):
        asyncio.run(apply_run(house, find_last_run(house)))


@pytest.mark.soak
def test_missing_repo_directory_is_reported(repo, house):
    repo.rename(repo.with_name("moved"))
    with pytest.raises(ConfigError, match="no longer exists"):
        asyncio.run(apply_run(house, find_last_run(house)))


def test_apply_and_undo_commands_report_their_result(user, repo):
    result = user.redstart("apply", cwd=repo)
    assert result.code == 0, result.out + result.err
    assert "  written   pager.py\nApplied. Undo with: redstart undo " in result.out
    second_result = user.redstart("apply", cwd=repo)
    assert (second_result.code, "Already applied" in second_result.out) == (0, True)
    undone = user.redstart("undo", result.out.split()[-1], cwd=repo)
    assert (undone.code, "Undone. Apply again with: redstart apply" in undone.out) == (0, True)
    empty_result = user.redstart("undo", cwd=repo)
    assert (empty_result.code, "Nothing to undo" in empty_result.out) == (0, True)


@pytest.mark.soak
def test_apply_and_undo_exit_codes(user, repo, tmp_path):
    assert user.redstart("apply", "nosuchrun", cwd=repo).code == 2
    assert user.redstart("apply", cwd=tmp_path).code == 2
    assert user.redstart("apply", "--branch", "main", cwd=repo).code == 2
    assert user.redstart("apply", "--branch", "fix", cwd=repo).code == 0
    (repo / "pager.py").write_text("something else\n")
    result = user.redstart("apply", cwd=repo)
    assert result.code == 1
    assert "refused   pager.py: it was changed in the same place\nerror: the patch conflicts" in result.err
    assert (repo / "pager.py").read_text() == "something else\n"
