from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, PolicyViolation, StoreError
from redstart.ports.store.port.trees import DiffRefused
from redstart.toolkit.base.git import run_git
from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs

pytestmark = pytest.mark.slow


def run_command(folder: Path, *command: str) -> None:
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
    run_command(folder, "git", "init", "-q")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "kept.py").write_text("kept\n")
    (folder / "changed.py").write_text("old\n")
    (folder / "deleted.py").write_text("gone\n")
    (folder / "forced.log").write_text("tracked although ignored\n")
    run_command(folder, "git", "add", "-A")
    run_command(folder, "git", "add", "-f", "forced.log")
    run_command(folder, "git", "commit", "-qm", "one")
    (folder / "kept.py").write_text("stashed\n")
    run_command(folder, "git", "stash", "-q")
    (folder / "changed.py").write_text("new\n")
    (folder / "deleted.py").unlink()
    (folder / "staged.py").write_text("staged\n")
    run_command(folder, "git", "add", "staged.py")
    (folder / "untracked.py").write_text("untracked\n")
    (folder / "ignored.log").write_text("noise\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("kept.py")
    return folder


def test_snapshot_of_a_dirty_tree_leaves_the_repo_untouched(trees, repo):
    before = fingerprint(repo)
    base_snapshot = trees.take(repo)
    assert fingerprint(repo) == before
    names = [".gitignore", "changed.py", "forced.log", "kept.py", "link", "run.sh", "staged.py", "untracked.py"]
    assert trees.list_files(base_snapshot) == names
    assert trees.read(base_snapshot, "changed.py") == b"new\n"
    assert trees.read(base_snapshot, "link") is None


def test_snapshot_of_a_directory_without_git_skips_ignored_files(trees, tmp_path):
    folder = tmp_path / "plain"
    (folder / ".venv" / "lib").mkdir(parents=True)
    (folder / ".venv" / "lib" / "x.py").write_text("x")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.pyc").write_bytes(b"\0")
    (folder / "a.py").write_text("a\n")
    (folder / "noise.log").write_text("n")
    (folder / ".gitignore").write_text("*.log\n")
    assert trees.list_files(trees.take(folder)) == [".gitignore", "a.py"]


def test_bytes_survive_any_git_attributes(trees, repo):
    (repo / ".gitattributes").write_text("* text=auto eol=lf\n*.py filter=evil ident\n")
    run_command(repo, "git", "config", "filter.evil.clean", "touch pwned; cat")
    (repo / "crlf.py").write_bytes(b"a\r\nb\n$Id$\r\n")
    base_snapshot = trees.take(repo)
    assert trees.read(base_snapshot, "crlf.py") == b"a\r\nb\n$Id$\r\n"
    with trees.checkout(base_snapshot) as folder:
        assert (folder / "crlf.py").read_bytes() == b"a\r\nb\n$Id$\r\n"
    assert not (repo / "pwned").exists()


def test_hooks_and_monitors_of_a_hostile_repo_do_not_run(trees, repo, tmp_path):
    mark = tmp_path / "pwned"
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    run_command(repo, "git", "config", "core.fsmonitor", f"touch {mark}")
    trees.take(repo)
    assert not mark.exists()


def test_checkout_matches_the_snapshot_and_is_removed_at_the_end(trees, repo):
    with trees.checkout(trees.take(repo)) as folder:
        assert (folder / "untracked.py").read_text() == "untracked\n"
        assert os.access(folder / "run.sh", os.X_OK)
        assert (folder / "link").readlink() == Path("kept.py")
        assert not (folder / "deleted.py").exists()
        assert not (folder / ".git").exists()
        (folder / "untracked.py").write_text("dirt")
    assert not folder.exists()


def test_another_machine_rebuilds_the_snapshot_from_blobs(repo, tmp_path):
    blobs = MemoryBlobs()
    local_trees, remote_trees = GitTrees(tmp_path / "here", blobs), GitTrees(tmp_path / "there", blobs)
    base_snapshot = local_trees.take(repo)
    changed = local_trees.write(
        base_snapshot, {"kept.py": b"kept\x00binary\n", "new/file.py": b"n\n", "staged.py": None}
    )
    assert remote_trees.list_files(changed) == local_trees.list_files(changed)
    assert remote_trees.read(changed, "kept.py") == b"kept\x00binary\n"
    with remote_trees.checkout(changed) as folder:
        assert (folder / "new" / "file.py").read_text() == "n\n"
    local_trees.close()
    remote_trees.close()


def test_blobs_that_do_not_match_the_tree_are_an_error(repo, tmp_path):
    blobs = MemoryBlobs()
    local_trees, remote_trees = GitTrees(tmp_path / "here", blobs), GitTrees(tmp_path / "there", blobs)
    forged = local_trees.take(repo).model_copy(update={"tree": "1" * 40})
    with pytest.raises(StoreError, match="do not contain its files"):
        remote_trees.list_files(forged)
    local_trees.close()
    remote_trees.close()


def test_changes_diff_and_modes_are_reported(trees, repo):
    base_snapshot = trees.take(repo)
    changed = trees.write(base_snapshot, {"run.sh": b"#!/bin/sh\nexit\n", "staged.py": None, "new.py": b"n\n"})
    modes = {change.path: (change.old_mode, change.new_mode) for change in trees.list_changes(base_snapshot, changed)}
    assert modes == {
        "new.py": ("000000", "100644"),
        "run.sh": ("100755", "100755"),
        "staged.py": ("100644", "000000"),
    }
    assert b"+exit\n" in trees.diff(base_snapshot, changed)
    assert trees.write(changed, {"run.sh": b"#!/bin/sh\n", "staged.py": b"staged\n", "new.py": None}) == base_snapshot


def test_diff_is_applied_completely_or_not_at_all(trees, repo):
    base_snapshot = trees.take(repo)
    good_diff = b"--- a/kept.py\n+++ b/kept.py\n@@ -1 +1 @@\n-kept\n+better\n"
    bad_diff = b"--- a/changed.py\n+++ b/changed.py\n@@ -1 +1 @@\n-not there\n+x\n"
    applied = trees.apply(base_snapshot, good_diff)
    assert not isinstance(applied, DiffRefused)
    assert trees.read(applied, "kept.py") == b"better\n"
    refused = trees.apply(base_snapshot, good_diff + bad_diff)
    assert isinstance(refused, DiffRefused)
    assert "changed.py" in refused.message


@pytest.mark.parametrize(
    "path",
    ["../x", "/abs", "a/../b", ".git/config", ".GIT/x", ".git ./x", "git~1/x", ".g\u200cit/x", "a//b", "a\\b", ""],
)
def test_forbidden_path_is_a_policy_violation(trees, path):
    with pytest.raises(PolicyViolation):
        trees.write(trees.create_empty(), {path: b"x"})


@pytest.mark.parametrize("path", ["../x", "/abs/x", ".git/hooks/x", "a/../../x"])
def test_diff_cannot_write_a_forbidden_path(trees, path):
    diff = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n".encode()
    assert isinstance(trees.apply(trees.create_empty(), diff), DiffRefused)


def test_leftovers_of_a_dead_process_are_removed(tmp_path):
    work = tmp_path / "snapshots" / "work"
    (work / "99999999-dead" / "x").mkdir(parents=True)
    (work / f"{os.getpid()}-alive").mkdir()
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    assert [path.name for path in work.iterdir()] == [f"{os.getpid()}-alive"]
    trees.close()


def test_names_that_git_would_quote_are_kept(trees, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    names = ['"quoted".py', "line\nend.py", "back\\slash.py", "tab\t.py", "snow\u2603.py", " blank .py", "-dash.py"]
    for name in names:
        (folder / name).write_text(name)
    (folder / os.fsdecode(b"latin\xe9.py")).write_text("raw bytes")
    base_snapshot = trees.take(folder)
    assert trees.list_files(base_snapshot) == sorted([*names, os.fsdecode(b"latin\xe9.py")])
    assert trees.read(base_snapshot, names[1]) == names[1].encode()


def test_empty_directory_gives_an_empty_snapshot(trees, tmp_path):
    (tmp_path / "empty").mkdir()
    assert trees.list_files(trees.take(tmp_path / "empty")) == []


def test_two_changes_to_one_base_are_merged(tmp_path):
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    base = trees.write(trees.create_empty(), {"a.txt": b"1\n2\n3\n4\n5\n6\n7\n", "gone.txt": b"x"})
    ours = trees.write(base, {"a.txt": b"one\n2\n3\n4\n5\n6\n7\n", "ours.txt": b"o"})
    theirs = trees.write(base, {"a.txt": b"1\n2\n3\n4\n5\n6\nseven\n", "theirs.txt": b"t", "gone.txt": None})
    merge_result = trees.merge(base, ours, theirs)
    assert not isinstance(merge_result, tuple)
    assert trees.list_files(merge_result) == ["a.txt", "ours.txt", "theirs.txt"]
    assert trees.read(merge_result, "a.txt") == b"one\n2\n3\n4\n5\n6\nseven\n"
    second_result = trees.merge(base, ours, theirs)
    assert second_result == merge_result
    trees.close()


def test_conflicting_files_are_named_and_nothing_is_merged(tmp_path):
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    base = trees.write(trees.create_empty(), {"a.txt": b"1\n", "b.txt": b"b"})
    ours = trees.write(base, {"a.txt": b"2\n", "new.txt": b"ours", "same.txt": b"same"})
    theirs = trees.write(base, {"a.txt": b"3\n", "new.txt": b"theirs", "same.txt": b"same", "b.txt": b"c"})
    assert trees.merge(base, ours, theirs) == ("a.txt", "new.txt")
    removed_snapshot = trees.write(base, {"a.txt": None})
    assert trees.merge(base, ours, removed_snapshot) == ("a.txt",)
    trees.close()


def test_identical_changes_do_not_conflict(tmp_path):
    trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    base = trees.write(trees.create_empty(), {"a.txt": b"1\n"})
    changed_snapshot = trees.write(base, {"a.txt": b"2\n", "new.txt": b"n"})
    merge_result = trees.merge(base, changed_snapshot, changed_snapshot)
    assert not isinstance(merge_result, tuple)
    assert merge_result.tree == changed_snapshot.tree
    trees.close()


def test_missing_git_is_an_error_with_an_install_hint(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git was not found") as caught:
        run_git("--version")
    assert "install git" in caught.value.remedy


def test_snapshot_of_a_commit_near_another_one_is_stored_as_a_difference(repo, tmp_path):
    (repo / "large.py").write_bytes(os.urandom(100_000))
    (repo / "image.bin").write_bytes(bytes(range(256)))
    run_command(repo, "git", "add", "-A")
    run_command(repo, "git", "commit", "-qm", "two")
    blobs = MemoryBlobs()
    trees = GitTrees(tmp_path / "home", blobs)
    head = trees.take_commit(repo, "HEAD")
    (repo / "image.bin").write_bytes(bytes(reversed(range(256))))
    (repo / "run.sh").chmod(0o755)
    (repo / "kept.py").unlink()
    run_command(repo, "git", "commit", "-qam", "three")
    near, full = trees.take_commit(repo, "HEAD", head), trees.take_commit(repo, "HEAD")
    assert (near.tree, near.pack, near.diff != "") == (full.tree, head.pack, True)
    assert len(blobs.get(near.diff)) < 5_000 < len(blobs.get(full.pack))
    elsewhere = GitTrees(tmp_path / "elsewhere", blobs)
    assert elsewhere.read(near, "image.bin") == bytes(reversed(range(256)))
    assert elsewhere.list_files(near) == trees.list_files(full)
    unknown = trees.write(head, {"new.py": b"x"})
    assert trees.take_commit(repo, "HEAD", unknown).tree == full.tree
    trees.close()
    elsewhere.close()
