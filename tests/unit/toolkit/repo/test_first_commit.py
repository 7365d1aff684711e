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
    made = tmp_path / "shop"
    made.mkdir()
    (made / "a.txt").write_text("a")
    (made / "b.log").write_text("b")
    (made / ".gitignore").write_text("*.log\n")
    return made


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def test_everything_is_committed_once(folder):
    assert commit_first(folder, "Create shop\n\nA shop.\n")
    assert git(folder, "log", "--format=%an <%ae>: %s") == "redstart <redstart@localhost>: Create shop\n"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "ls-files").split() == [".gitignore", "a.txt"]
    assert not commit_first(folder, "Again")
    assert len(git(folder, "log", "--format=%s").splitlines()) == 1


def test_the_users_own_name_is_taken(folder, tmp_path):
    (tmp_path / "home" / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[commit]\n\tgpgsign = true\n"
    )
    assert commit_first(folder, "Create shop")
    assert git(folder, "log", "--format=%an <%ae>") == "Ada <ada@example.org>\n"


def test_what_was_interrupted_is_finished(folder):
    git(folder, "init", "--quiet")
    assert commit_first(folder, "Create shop")
    assert git(folder, "log", "--format=%s") == "Create shop\n"


def test_a_folder_in_a_repo_stays_as_it_is(folder):
    git(folder, "init", "--quiet")
    inner = folder / "inner"
    inner.mkdir()
    (inner / "c.txt").write_text("c")
    assert not commit_first(inner, "Create inner")
    assert not (inner / ".git").exists()
