"""The first commit of a new project: made once, with the identity that the user's git is configured with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from redstart.toolkit.repo.trees import commit_first

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide a project, and a git that does not know its user."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "home").mkdir()
    project = tmp_path / "shop"
    project.mkdir()
    (project / "a.txt").write_text("a")
    (project / "b.log").write_text("b")
    (project / ".gitignore").write_text("*.log\n")
    return project


def run_git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True).stdout


def test_everything_is_committed_once(folder):
    assert commit_first(folder, "Create shop\n\nA shop.\n")
    assert run_git(folder, "log", "--format=%an <%ae>: %s") == "redstart <redstart@localhost>: Create shop\n"
    assert run_git(folder, "status", "--porcelain") == ""
    assert run_git(folder, "ls-files").split() == [".gitignore", "a.txt"]
    assert not commit_first(folder, "Again")
    assert len(run_git(folder, "log", "--format=%s").splitlines()) == 1


def test_configured_user_name_is_used(folder, tmp_path):
    (tmp_path / "home" / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[commit]\n\tgpgsign = true\n"
    )
    assert commit_first(folder, "Create shop")
    assert run_git(folder, "log", "--format=%an <%ae>") == "Ada <ada@example.org>\n"


def test_interrupted_first_commit_is_completed(folder):
    run_git(folder, "init", "--quiet")
    assert commit_first(folder, "Create shop")
    assert run_git(folder, "log", "--format=%s") == "Create shop\n"


def test_directory_inside_a_repo_is_left_unchanged(folder):
    run_git(folder, "init", "--quiet")
    inner = folder / "inner"
    inner.mkdir()
    (inner / "c.txt").write_text("c")
    assert not commit_first(inner, "Create inner")
    assert not (inner / ".git").exists()
