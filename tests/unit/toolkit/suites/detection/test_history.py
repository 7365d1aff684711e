"""The part of a repo's history that is kept, for every kind of checkout."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.toolkit.suites.detection import history
from redstart.toolkit.suites.detection.environment import find_environment, move_environment
from redstart.toolkit.suites.detection.history import find_history, find_work_root

pytestmark = pytest.mark.slow

ENVIRON = {"PATH": "/usr/bin:/bin"}
Git = Callable[..., str]


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Git:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "someone")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "someone@example.invalid")

    def run(folder: Path, *arguments: str) -> str:
        argv = ("git", "-c", "protocol.file.allow=always", "-C", folder, *arguments)
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    return run


@pytest.fixture
def repo(tmp_path: Path, git: Git) -> Path:
    folder = tmp_path / "repo"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "a.py").touch()
    git(folder, "init", "-q", "-b", "main")
    for number in (1, 2):
        (folder / "a.txt").write_text(str(number))
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", f"commit {number}")
    git(folder, "tag", "light", "HEAD~1")
    git(folder, "tag", "-m", "annotated", "v1")
    git(folder, "branch", "another")
    return folder


def test_history_includes_commit_tags_and_branch(repo: Path, git: Git) -> None:
    git_history = find_history(repo)
    assert git_history is not None
    assert (git_history.objects, git_history.head) == (repo / ".git/objects", git(repo, "rev-parse", "HEAD"))
    assert (git_history.shallow_commits, git_history.borrowed) == ("", ())
    lines = git_history.refs.splitlines()
    assert lines[1:] == [
        f"{git_history.head} refs/heads/main",
        f"{git(repo, 'rev-parse', 'HEAD~1')} refs/tags/light",
        f"{git(repo, 'rev-parse', 'v1')} refs/tags/v1",
        f"^{git_history.head}",
    ]


def test_stash_is_not_exposed(repo: Path, git: Git) -> None:
    (repo / "a.txt").write_text("not ready")
    git(repo, "stash")
    git_history = find_history(repo)
    assert git_history is not None
    assert "stash" not in git_history.refs


def test_subdirectory_of_a_repo_has_no_history(repo: Path) -> None:
    assert find_work_root(repo / "part") == find_work_root(repo) == repo
    assert find_history(repo / "part") is None


def test_untracked_directory_is_its_own_root(repo: Path) -> None:
    (repo / "scratch").mkdir()
    (repo / "scratch" / "new.py").write_text("")
    assert find_work_root(repo / "scratch") == repo / "scratch"


def test_repo_around_the_home_directory_is_ignored(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repo))
    assert find_work_root(repo / "part") == repo / "part"
    monkeypatch.setenv("HOME", str(repo / "part" / "someone"))
    assert find_work_root(repo / "part") == repo / "part"


def test_directory_without_repo_or_commit_has_no_history(tmp_path: Path, git: Git) -> None:
    (tmp_path / "empty").mkdir()
    assert find_history(tmp_path / "empty") is None
    git(tmp_path / "empty", "init", "-q")
    assert find_history(tmp_path / "empty") is None


def test_worktree_with_a_detached_head_has_history(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD~1")
    git_history = find_history(tmp_path / "tree")
    assert git_history is not None
    assert (git_history.objects, git_history.head) == (repo / ".git/objects", git(repo, "rev-parse", "HEAD~1"))
    assert "refs/heads" not in git_history.refs


def test_submodule_has_its_own_history(repo: Path, tmp_path: Path, git: Git) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    git_history = find_history(outer / "inner")
    assert git_history is not None
    assert git_history.objects == outer / ".git/modules/inner/objects"


def test_shallow_clone_is_detected(repo: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "clone")
    git_history = find_history(tmp_path / "clone")
    assert git_history is not None
    assert git_history.shallow_commits == f"{git_history.head}\n"


def test_borrowed_objects_of_a_shared_clone_are_visible(repo: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(repo), "clone")
    environment = find_environment(tmp_path / "clone", environ=ENVIRON)
    assert environment.git_objects == str(tmp_path / "clone/.git/objects")
    assert str(repo / ".git/objects") in environment.read_only


def test_fake_object_directory_is_not_exposed(repo: Path, tmp_path: Path) -> None:
    for name in ("keys", "objects"):
        (tmp_path / name).mkdir()
    (repo / ".git/objects/info/alternates").write_text(f"{tmp_path / 'keys'}\n{tmp_path / 'objects'}\n")
    git_history = find_history(repo)
    assert git_history is not None
    assert git_history.borrowed == ()


def test_number_of_refs_is_limited(repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        git(repo, "tag", f"t{number}")
    monkeypatch.setattr(history, "MOST_REFS", 10)
    git_history = find_history(repo)
    assert git_history is not None
    assert len(git_history.refs.splitlines()) <= 10
    names = [line.split()[1] for line in git_history.refs.splitlines()[1:] if not line.startswith("^")]
    assert names == sorted(names)
    assert "refs/heads/main" in names


def test_another_directory_keeps_only_the_interpreter(repo: Path, tmp_path: Path) -> None:
    (repo / ".gitignore").write_text("*.so\n")
    (repo / "a.so").touch()
    environment = find_environment(repo, environ=ENVIRON)
    assert (environment.copies, bool(environment.git_objects)) == (("a.so",), True)
    moved_environment = move_environment(environment, tmp_path / "new")
    assert (moved_environment.mount, moved_environment.copies, moved_environment.git_objects) == (
        str(tmp_path / "new"),
        (),
        "",
    )
    assert (moved_environment.python, moved_environment.read_only, moved_environment.chosen) == (
        environment.python,
        environment.read_only,
        environment.chosen,
    )
