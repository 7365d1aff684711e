"""What a workspace gets besides its snapshot, in cases that a contract cannot create."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.shell import Environment
from redstart.ports.sandbox.prepare import bring_copies, make_git
from redstart.testing.contracts.ground import with_history


def git(folder: Path, *arguments: str) -> str:
    words = ("git", "--git-dir", folder / ".git", "--work-tree", folder, *arguments)
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


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
def test_no_history_to_show(environment: Environment, workspace: Path, missing: str) -> None:
    known = with_history(environment)
    assert not make_git(known.model_copy(update={missing: ""}), workspace / ".git", objects="/nowhere")
    assert not make_git(known.model_copy(update={"git_objects": "/nowhere"}), workspace / ".git", objects="/nowhere")
    assert list(workspace.iterdir()) == []


@pytest.mark.slow
def test_a_commit_that_is_gone_leaves_a_folder_without_an_index(environment: Environment, workspace: Path) -> None:
    known = with_history(environment).model_copy(update={"git_head": "1" * 40})
    assert make_git(known, workspace / ".git", objects=known.git_objects)
    assert not (workspace / ".git" / "index").exists()


@pytest.mark.slow
def test_a_repo_with_long_names(environment: Environment, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    known = with_history(environment)
    assert len(known.git_head) == 64
    assert make_git(known, workspace / ".git", objects=known.git_objects)
    assert git(workspace, "describe", "--tags") == "v1.0"
    assert git(workspace, "ls-files") == "hello.txt\npkg/inner.txt"


def test_only_files_folders_and_links_are_copied(environment: Environment, workspace: Path) -> None:
    real = Path(environment.mount)
    (real / "data").mkdir(parents=True)
    (real / "data" / "tool").write_text("tool")
    (real / "data" / "tool").chmod(0o4755)
    (real / "data" / "sealed").write_text("sealed")
    (real / "data" / "sealed").chmod(0o400)
    os.mkfifo(real / "data" / "fifo")
    (real / "data" / "dangling").symlink_to("/no/such/place")
    bring_copies(environment.model_copy(update={"copies": ("data",)}), workspace)
    copied = workspace / "data"
    assert sorted(path.name for path in copied.iterdir()) == ["dangling", "sealed", "tool"]
    assert (copied / "tool").stat().st_mode & 0o7777 == 0o755
    assert (copied / "sealed").stat().st_mode & 0o7777 == 0o600
    assert (copied / "dangling").readlink() == Path("/no/such/place")


def test_a_second_name_is_never_made(environment: Environment, workspace: Path) -> None:
    real = Path(environment.mount)
    real.mkdir()
    (real / "a").write_text("a")
    bring_copies(environment.model_copy(update={"copies": ("a",)}), workspace)
    (workspace / "a").write_text("changed")
    assert ((real / "a").read_text(), (real / "a").stat().st_nlink) == ("a", 1)


@pytest.mark.parametrize("name", ["/etc/hostname", "../beside", "a/../../beside", ".."])
def test_a_name_that_leads_out(environment: Environment, workspace: Path, name: str) -> None:
    real = Path(environment.mount)
    (real / "a").mkdir(parents=True)
    (real.parent / "beside").write_text("beside")
    before = sorted(workspace.parent.rglob("*"))
    bring_copies(environment.model_copy(update={"copies": (name,)}), workspace)
    assert sorted(workspace.parent.rglob("*")) == before
