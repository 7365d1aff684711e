from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, PolicyViolation, StoreError
from redstart.ports.store.port.trees import DiffRefused
from redstart.toolkit.base.git import git
from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs

pytestmark = pytest.mark.slow


def sh(folder: Path, *command: str) -> None:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env={**os.environ, **identity})


def fingerprint(folder: Path) -> dict[str, tuple[str, float]]:
    """Return the hash and the modification time of every file below a folder, `.git` included."""
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.lstat().st_mtime)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture
def repo(tmp_path) -> Path:
    """Provide a git repo with staged, changed, deleted, untracked and ignored files, and a stash."""
    folder = tmp_path / "repo"
    folder.mkdir()
    sh(folder, "git", "init", "-q")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "kept.py").write_text("kept\n")
    (folder / "changed.py").write_text("old\n")
    (folder / "deleted.py").write_text("gone\n")
    (folder / "forced.log").write_text("tracked although ignored\n")
    sh(folder, "git", "add", "-A")
    sh(folder, "git", "add", "-f", "forced.log")
    sh(folder, "git", "commit", "-qm", "one")
    (folder / "kept.py").write_text("stashed\n")
    sh(folder, "git", "stash", "-q")
    (folder / "changed.py").write_text("new\n")
    (folder / "deleted.py").unlink()
    (folder / "staged.py").write_text("staged\n")
    sh(folder, "git", "add", "staged.py")
    (folder / "untracked.py").write_text("untracked\n")
    (folder / "ignored.log").write_text("noise\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("kept.py")
    return folder


def test_a_dirty_tree_is_taken_as_it_lies_there_and_nothing_of_it_is_touched(trees, repo):
    before = fingerprint(repo)
    taken = trees.take(repo)
    assert fingerprint(repo) == before
    names = [".gitignore", "changed.py", "forced.log", "kept.py", "link", "run.sh", "staged.py", "untracked.py"]
    assert trees.files(taken) == names
    assert trees.read(taken, "changed.py") == b"new\n"
    assert trees.read(taken, "link") is None


def test_a_folder_that_is_no_git_repo(trees, tmp_path):
    folder = tmp_path / "plain"
    (folder / ".venv" / "lib").mkdir(parents=True)
    (folder / ".venv" / "lib" / "x.py").write_text("x")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(b"\0")
    (folder / "a.py").write_text("a\n")
    (folder / "noise.log").write_text("n")
    (folder / ".gitignore").write_text("*.log\n")
    assert trees.files(trees.take(folder)) == [".gitignore", "a.py"]


def test_bytes_survive_whatever_the_attributes_say(trees, repo):
    (repo / ".gitattributes").write_text("* text=auto eol=lf\n*.py filter=evil ident\n")
    sh(repo, "git", "config", "filter.evil.clean", "touch pwned; cat")
    (repo / "crlf.py").write_bytes(b"a\r\nb\n$Id$\r\n")
    taken = trees.take(repo)
    assert trees.read(taken, "crlf.py") == b"a\r\nb\n$Id$\r\n"
    with trees.checkout(taken) as folder:
        assert (folder / "crlf.py").read_bytes() == b"a\r\nb\n$Id$\r\n"
    assert not (repo / "pwned").exists()


def test_no_hook_or_monitor_of_a_hostile_repo_is_run(trees, repo, tmp_path):
    mark = tmp_path / "pwned"
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    sh(repo, "git", "config", "core.fsmonitor", f"touch {mark}")
    trees.take(repo)
    assert not mark.exists()


def test_a_checkout_is_the_snapshot_and_is_removed_at_the_end(trees, repo):
    with trees.checkout(trees.take(repo)) as folder:
        assert (folder / "untracked.py").read_text() == "untracked\n"
        assert os.access(folder / "run.sh", os.X_OK)
        assert (folder / "link").readlink() == Path("kept.py")
        assert not (folder / "deleted.py").exists()
        assert not (folder / ".git").exists()
        (folder / "untracked.py").write_text("dirt")
    assert not folder.exists()


def test_another_machine_rebuilds_it_from_the_blobs(repo, tmp_path):
    blobs = MemoryBlobs()
    here, there = GitTrees(tmp_path / "here", blobs), GitTrees(tmp_path / "there", blobs)
    taken = here.take(repo)
    changed = here.write(taken, {"kept.py": b"kept\x00binary\n", "new/file.py": b"n\n", "staged.py": None})
    assert there.files(changed) == here.files(changed)
    assert there.read(changed, "kept.py") == b"kept\x00binary\n"
    with there.checkout(changed) as folder:
        assert (folder / "new" / "file.py").read_text() == "n\n"
    here.close()
    there.close()


def test_blobs_that_do_not_give_the_tree_are_an_error(repo, tmp_path):
    blobs = MemoryBlobs()
    here, there = GitTrees(tmp_path / "here", blobs), GitTrees(tmp_path / "there", blobs)
    forged = here.take(repo).model_copy(update={"tree": "1" * 40})
    with pytest.raises(StoreError, match="do not contain its files"):
        there.files(forged)
    here.close()
    there.close()


def test_changes_diff_and_modes(trees, repo):
    taken = trees.take(repo)
    changed = trees.write(taken, {"run.sh": b"#!/bin/sh\nexit\n", "staged.py": None, "new.py": b"n\n"})
    found = {change.path: (change.old_mode, change.new_mode) for change in trees.changes(taken, changed)}
    assert found == {
        "new.py": ("000000", "100644"),
        "run.sh": ("100755", "100755"),
        "staged.py": ("100644", "000000"),
    }
    assert b"+exit\n" in trees.diff(taken, changed)
    assert trees.write(changed, {"run.sh": b"#!/bin/sh\n", "staged.py": b"staged\n", "new.py": None}) == taken


def test_a_diff_is_applied_whole_or_not_at_all(trees, repo):
    taken = trees.take(repo)
    good = b"--- a/kept.py\n+++ b/kept.py\n@@ -1 +1 @@\n-kept\n+better\n"
    bad = b"--- a/changed.py\n+++ b/changed.py\n@@ -1 +1 @@\n-not there\n+x\n"
    applied = trees.apply(taken, good)
    assert not isinstance(applied, DiffRefused)
    assert trees.read(applied, "kept.py") == b"better\n"
    refused = trees.apply(taken, good + bad)
    assert isinstance(refused, DiffRefused)
    assert "changed.py" in refused.message


@pytest.mark.parametrize(
    "path",
    ["../x", "/abs", "a/../b", ".git/config", ".GIT/x", ".git ./x", "git~1/x", ".g\u200cit/x", "a//b", "a\\b", ""],
)
def test_paths_that_no_tree_may_hold(trees, path):
    with pytest.raises(PolicyViolation):
        trees.write(trees.empty(), {path: b"x"})


@pytest.mark.parametrize("path", ["../x", "/abs/x", ".git/hooks/x", "a/../../x"])
def test_a_diff_cannot_reach_them_either(trees, path):
    diff = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n".encode()
    assert isinstance(trees.apply(trees.empty(), diff), DiffRefused)


def test_what_a_dead_process_left_is_cleared_away(tmp_path):
    work = tmp_path / "snapshots" / "work"
    (work / "99999999-dead" / "x").mkdir(parents=True)
    (work / f"{os.getpid()}-alive").mkdir()
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    assert [path.name for path in work.iterdir()] == [f"{os.getpid()}-alive"]
    trees.close()


def test_names_that_git_would_quote(trees, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    names = ['"quoted".py', "line\nend.py", "back\\slash.py", "tab\t.py", "snow\u2603.py", " blank .py", "-dash.py"]
    for name in names:
        (folder / name).write_text(name)
    (folder / os.fsdecode(b"latin\xe9.py")).write_text("raw bytes")
    taken = trees.take(folder)
    assert trees.files(taken) == sorted([*names, os.fsdecode(b"latin\xe9.py")])
    assert trees.read(taken, names[1]) == names[1].encode()


def test_an_empty_folder(trees, tmp_path):
    (tmp_path / "empty").mkdir()
    assert trees.files(trees.take(tmp_path / "empty")) == []


def test_two_changes_of_one_base_are_merged(tmp_path):
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    base = trees.write(trees.empty(), {"a.txt": b"1\n2\n3\n4\n5\n6\n7\n", "gone.txt": b"x"})
    ours = trees.write(base, {"a.txt": b"one\n2\n3\n4\n5\n6\n7\n", "ours.txt": b"o"})
    theirs = trees.write(base, {"a.txt": b"1\n2\n3\n4\n5\n6\nseven\n", "theirs.txt": b"t", "gone.txt": None})
    merged = trees.merge(base, ours, theirs)
    assert not isinstance(merged, tuple)
    assert trees.files(merged) == ["a.txt", "ours.txt", "theirs.txt"]
    assert trees.read(merged, "a.txt") == b"one\n2\n3\n4\n5\n6\nseven\n"
    again = trees.merge(base, ours, theirs)
    assert again == merged
    trees.close()


def test_changes_that_are_at_odds_are_named_and_nothing_is_merged(tmp_path):
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    base = trees.write(trees.empty(), {"a.txt": b"1\n", "b.txt": b"b"})
    ours = trees.write(base, {"a.txt": b"2\n", "new.txt": b"ours", "same.txt": b"same"})
    theirs = trees.write(base, {"a.txt": b"3\n", "new.txt": b"theirs", "same.txt": b"same", "b.txt": b"c"})
    assert trees.merge(base, ours, theirs) == ("a.txt", "new.txt")
    removed = trees.write(base, {"a.txt": None})
    assert trees.merge(base, ours, removed) == ("a.txt",)
    trees.close()


def test_the_same_change_twice_is_no_contradiction(tmp_path):
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    base = trees.write(trees.empty(), {"a.txt": b"1\n"})
    same = trees.write(base, {"a.txt": b"2\n", "new.txt": b"n"})
    merged = trees.merge(base, same, same)
    assert not isinstance(merged, tuple)
    assert merged.tree == same.tree
    trees.close()


def test_a_machine_without_git_is_told_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git was not found") as raised:
        git("--version")
    assert "install git" in raised.value.remedy
