"""The part of a repo's history that is kept, for every kind of checkout."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from redstart.toolkit.suites.detection import history
from redstart.toolkit.suites.detection.environment import find_environment, moved
from redstart.toolkit.suites.detection.history import find_history, work_root

pytestmark = pytest.mark.slow

ENVIRON = {"PATH": "/usr/bin:/bin"}
Git = Callable[..., str]


@pytest.fixture
def git(monkeypatch: pytest.MonkeyPatch) -> Git:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "someone")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "someone@example.invalid")

    def run(folder: Path, *arguments: str) -> str:
        words = ("git", "-c", "protocol.file.allow=always", "-C", folder, *arguments)
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

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


def test_commit_tags_and_branch(repo: Path, git: Git) -> None:
    found = find_history(repo)
    assert found is not None
    assert (found.objects, found.head) == (repo / ".git/objects", git(repo, "rev-parse", "HEAD"))
    assert (found.shallow, found.borrowed) == ("", ())
    lines = found.refs.splitlines()
    assert lines[1:] == [
        f"{found.head} refs/heads/main",
        f"{git(repo, 'rev-parse', 'HEAD~1')} refs/tags/light",
        f"{git(repo, 'rev-parse', 'v1')} refs/tags/v1",
        f"^{found.head}",
    ]


def test_a_stash_is_not_shown(repo: Path, git: Git) -> None:
    (repo / "a.txt").write_text("not ready")
    git(repo, "stash")
    found = find_history(repo)
    assert found is not None
    assert "stash" not in found.refs


def test_a_part_of_a_repo(repo: Path) -> None:
    assert work_root(repo / "part") == work_root(repo) == repo
    assert find_history(repo / "part") is None


def test_a_folder_of_which_git_tracks_nothing_stands_alone(repo: Path) -> None:
    (repo / "scratch").mkdir()
    (repo / "scratch" / "new.py").write_text("")
    assert work_root(repo / "scratch") == repo / "scratch"


def test_a_repo_around_the_home_folder_is_not_meant(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(repo))
    assert work_root(repo / "part") == repo / "part"
    monkeypatch.setenv("HOME", str(repo / "part" / "someone"))
    assert work_root(repo / "part") == repo / "part"


def test_no_repo_and_no_commit(tmp_path: Path, git: Git) -> None:
    (tmp_path / "empty").mkdir()
    assert find_history(tmp_path / "empty") is None
    git(tmp_path / "empty", "init", "-q")
    assert find_history(tmp_path / "empty") is None


def test_a_work_tree_and_a_detached_head(repo: Path, tmp_path: Path, git: Git) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"), "HEAD~1")
    found = find_history(tmp_path / "tree")
    assert found is not None
    assert (found.objects, found.head) == (repo / ".git/objects", git(repo, "rev-parse", "HEAD~1"))
    assert "refs/heads" not in found.refs


def test_a_submodule(repo: Path, tmp_path: Path, git: Git) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "submodule", "--quiet", "add", str(repo), "inner")
    found = find_history(outer / "inner")
    assert found is not None
    assert found.objects == outer / ".git/modules/inner/objects"


def test_a_shallow_clone(repo: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "clone")
    found = find_history(tmp_path / "clone")
    assert found is not None
    assert found.shallow == f"{found.head}\n"


def test_a_clone_that_borrows(repo: Path, tmp_path: Path, git: Git) -> None:
    git(tmp_path, "clone", "-q", "--shared", str(repo), "clone")
    found = find_environment(tmp_path / "clone", environ=ENVIRON)
    assert found.git_objects == str(tmp_path / "clone/.git/objects")
    assert str(repo / ".git/objects") in found.read_only


def test_what_only_claims_to_be_a_folder_of_objects_is_not_shown(repo: Path, tmp_path: Path) -> None:
    for name in ("keys", "objects"):
        (tmp_path / name).mkdir()
    (repo / ".git/objects/info/alternates").write_text(f"{tmp_path / 'keys'}\n{tmp_path / 'objects'}\n")
    found = find_history(repo)
    assert found is not None
    assert found.borrowed == ()


def test_very_many_tags(repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        git(repo, "tag", f"t{number}")
    monkeypatch.setattr(history, "MOST_REFS", 10)
    found = find_history(repo)
    assert found is not None
    assert len(found.refs.splitlines()) <= 10
    names = [line.split()[1] for line in found.refs.splitlines()[1:] if not line.startswith("^")]
    assert names == sorted(names)
    assert "refs/heads/main" in names


def test_another_folder_gets_the_interpreter_alone(repo: Path, tmp_path: Path) -> None:
    (repo / ".gitignore").write_text("*.so\n")
    (repo / "a.so").touch()
    found = find_environment(repo, environ=ENVIRON)
    assert (found.copies, bool(found.git_objects)) == (("a.so",), True)
    elsewhere = moved(found, tmp_path / "new")
    assert (elsewhere.mount, elsewhere.copies, elsewhere.git_objects) == (str(tmp_path / "new"), (), "")
    assert (elsewhere.python, elsewhere.read_only, elsewhere.chosen) == (found.python, found.read_only, found.chosen)
