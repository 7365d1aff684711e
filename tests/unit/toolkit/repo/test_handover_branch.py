"""The patch as a commit on a branch: nothing else is touched."""

from __future__ import annotations

import pytest
from handover_states import CRLF, NEW, OLD, STATES, TEXT, Repo

from redstart.core.errors import ConfigError
from redstart.toolkit.repo.handover import (
    HandoverEvent,
    HandoverOutcome,
    commit_on_branch,
    list_changes,
)

pytestmark = pytest.mark.slow


def on_branch(repo: Repo, name: str = "fix/red") -> HandoverOutcome:
    for setting in ("user.name", "user.email"):
        repo.git("config", setting, "a@b")
    return commit_on_branch(repo.folder, repo.changes, name, "the fix")


def list_untouched(repo: Repo) -> dict[str, tuple[int, bytes]]:
    """Return everything except git's objects, its configuration and the branch that is made."""
    skipped_prefixes = (".git/objects", ".git/config", ".git/refs/heads/fix", ".git/logs/refs/heads/fix")
    return {path: item for path, item in repo.list_entries().items() if not path.startswith(skipped_prefixes)}


def read_tree(repo: Repo, commit: str) -> dict[str, bytes]:
    names = repo.git("ls-tree", "-rz", "--name-only", commit).split("\0")[:-1]
    return {name: repo.git("cat-file", "blob", f"{commit}:{name}").encode() for name in names}


@pytest.mark.parametrize(
    "name",
    [
        *("clean", "dirty_elsewhere", "dirty_at_the_hunk", "staged_and_changed_again", "moved_on_by_commits"),
        *("detached_head", "stash_present", "merge_in_progress", "file_deleted", "replaced_by_a_symlink"),
        "index_locked",
    ],
)
def test_branch_holds_only_the_patch_and_nothing_else_changes(made, name):
    repo = made(name)
    STATES[name].arrange(repo)
    before, head = list_untouched(repo), read_tree(repo, "HEAD")
    outcome = on_branch(repo)
    assert outcome.happened is HandoverEvent.done
    assert list_untouched(repo) == before
    assert repo.git("rev-parse", "fix/red", "fix/red^") == f"{outcome.commit}\n{repo.git('rev-parse', 'HEAD')}"
    patched = {path: data.replace(OLD, NEW) for path, data in head.items() if path in ("calc.py", "pkg/util.py")}
    assert read_tree(repo, "fix/red") == {**head, **patched}
    with pytest.raises(ConfigError, match="already exists"):
        on_branch(repo)


def test_branch_from_a_subdirectory_handles_every_kind_of_change(made):
    repo = made("clean")
    (repo.folder / "pkg" / "run.py").write_bytes(TEXT)
    (repo.folder / "pkg" / "run.py").chmod(0o755)
    repo.commit()
    base = repo.trees.take(repo.folder / "pkg")
    files = {"util.py": None, "run.py": TEXT.replace(OLD, NEW), "deep/new.py": b"new\n"}
    repo.changes = list_changes(repo.trees, base, repo.trees.write(base, files))
    for setting in ("user.name", "user.email"):
        repo.git("config", setting, "a@b")
    assert commit_on_branch(repo.folder / "pkg", repo.changes, "fix", "the fix").happened is HandoverEvent.done
    diff = repo.git("diff", "--raw", "--abbrev=4", "--no-renames", "HEAD", "fix")
    assert [line.split()[0:2] + line.split()[4:] for line in diff.splitlines()] == [
        [":000000", "100644", "A", "pkg/deep/new.py"],
        [":100755", "100755", "M", "pkg/run.py"],
        [":100644", "000000", "D", "pkg/util.py"],
    ]


@pytest.mark.parametrize("name", ["committed_at_the_hunk", "folder_deleted", "replaced_by_a_symlink"])
def test_branch_that_would_conflict_is_not_created(made, name):
    repo = made(name)
    STATES[name].arrange(repo)
    repo.git("add", "-A")
    repo.git("commit", "-qm", "more", "--allow-empty")
    before = list_untouched(repo)
    assert on_branch(repo).happened is HandoverEvent.refused
    assert (list_untouched(repo), repo.git("branch", "--list", "fix/red")) == (before, "")


def test_branch_keeps_the_plain_line_endings_of_the_repo(made):
    repo = made("clean")
    repo.write("calc.py", CRLF)
    base = repo.trees.take(repo.folder)
    repo.changes = list_changes(repo.trees, base, repo.trees.write(base, {"calc.py": CRLF.replace(OLD, NEW)}))
    assert on_branch(repo).happened is HandoverEvent.done
    assert read_tree(repo, "fix/red")["calc.py"] == TEXT.replace(OLD, NEW)


def test_commit_that_already_holds_the_patch_gets_no_branch(made):
    repo = made("clean")
    STATES["patched_by_hand"].arrange(repo)
    repo.commit()
    assert (on_branch(repo).happened, repo.git("branch", "--list", "fix/red")) == (HandoverEvent.already, "")


def test_branch_without_a_git_identity_is_not_created(made):
    repo = made("clean")
    repo.git("config", "user.name", "")
    with pytest.raises(ConfigError, match="who commits"):
        commit_on_branch(repo.folder, repo.changes, "fix", "the fix")
    assert repo.git("branch", "--list", "fix") == ""


@pytest.mark.parametrize(
    ("name", "branch", "pattern"),
    [
        ("no_git", "fix", "not a git repo"),
        ("unborn_head", "fix", "no commit yet"),
        ("clean", "main", "already exists"),
        ("clean", "main/deeper", "cannot be created"),
        ("clean", "two words", "not a valid branch name"),
        ("clean", "-d", "not a valid branch name"),
        ("clean", "HEAD", "not a valid branch name"),
        ("clean", "", "not a valid branch name"),
    ],
)
def test_branch_that_cannot_be_created_is_a_usage_error(made, name, branch, pattern):
    repo = made(name)
    STATES[name].arrange(repo)
    before = repo.list_entries()
    if name == "clean":
        repo.git("config", "user.name", "a")
        repo.git("config", "user.email", "a@b")
        before = list_untouched(repo)
    with pytest.raises(ConfigError, match=pattern):
        commit_on_branch(repo.folder, repo.changes, branch, "the fix")
    assert (list_untouched(repo) if name == "clean" else repo.list_entries()) == before
