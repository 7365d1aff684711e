"""What a workspace gets besides its snapshot, in cases that a contract cannot create."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.shell import Environment
from redstart.ports.sandbox.workspace import bring_copies, make_git
from redstart.testing.contracts.fixtures import with_history


def run_git(folder: Path, *arguments: str) -> str:
    argv = ("git", "--git-dir", folder / ".git", "--work-tree", folder, *arguments)
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(mount=str(tmp_path / "real"), python="/usr/bin/python3")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["git_objects", "git_head"])
def test_missing_history_creates_no_git_directory(environment: Environment, workspace: Path, missing: str) -> None:
    git_environment = with_history(environment)
    assert not make_git(git_environment.model_copy(update={missing: ""}), workspace / ".git", objects="/nowhere")
    assert not make_git(
        git_environment.model_copy(update={"git_objects": "/nowhere"}), workspace / ".git", objects="/nowhere"
    )
    assert list(workspace.iterdir()) == []


@pytest.mark.slow
def test_missing_commit_leaves_a_git_directory_without_an_index(environment: Environment, workspace: Path) -> None:
    git_environment = with_history(environment).model_copy(update={"git_head": "1" * 40})
    assert make_git(git_environment, workspace / ".git", objects=git_environment.git_objects)
    assert not (workspace / ".git" / "index").exists()


@pytest.mark.slow
def test_sha256_repo_is_supported(environment: Environment, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    git_environment = with_history(environment)
    assert len(git_environment.git_head) == 64
    assert make_git(git_environment, workspace / ".git", objects=git_environment.git_objects)
    assert run_git(workspace, "describe", "--tags") == "v1.0"
    assert run_git(workspace, "ls-files") == "hello.txt\npkg/inner.txt"


def test_only_files_directories_and_links_are_copied(environment: Environment, workspace: Path) -> None:
    real_root = Path(environment.mount)
    (real_root / "data").mkdir(parents=True)
    (real_root / "data" / "tool").write_text("tool")
    (real_root / "data" / "tool").chmod(0o4755)
    (real_root / "data" / "sealed").write_text("sealed")
    (real_root / "data" / "sealed").chmod(0o400)
    os.mkfifo(real_root / "data" / "fifo")
    (real_root / "data" / "dangling").symlink_to("/no/such/place")
    bring_copies(environment.model_copy(update={"copies": ("data",)}), workspace)
    copied = workspace / "data"
    assert sorted(path.name for path in copied.iterdir()) == ["dangling", "sealed", "tool"]
    assert (copied / "tool").stat().st_mode & 0o7777 == 0o755
    assert (copied / "sealed").stat().st_mode & 0o7777 == 0o600
    assert (copied / "dangling").readlink() == Path("/no/such/place")


def test_copies_are_never_hard_links(environment: Environment, workspace: Path) -> None:
    real_root = Path(environment.mount)
    real_root.mkdir()
    (real_root / "a").write_text("a")
    bring_copies(environment.model_copy(update={"copies": ("a",)}), workspace)
    (workspace / "a").write_text("changed")
    assert ((real_root / "a").read_text(), (real_root / "a").stat().st_nlink) == ("a", 1)


@pytest.mark.parametrize("name", ["/etc/hostname", "../beside", "a/../../beside", ".."])
def test_path_outside_the_workspace_is_not_copied(environment: Environment, workspace: Path, name: str) -> None:
    real_root = Path(environment.mount)
    (real_root / "a").mkdir(parents=True)
    (real_root.parent / "beside").write_text("beside")
    before = sorted(workspace.parent.rglob("*"))
    bring_copies(environment.model_copy(update={"copies": (name,)}), workspace)
    assert sorted(workspace.parent.rglob("*")) == before
