"""The two sides of a change as snapshots. The repo is only read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.verification import CodeVersion
from redstart.ports.store.port.trees import DiffRefused
from redstart.toolkit.base.git import GitFailed, ask_git, run_git
from redstart.toolkit.repo.trees import GitTrees

WORKING_TREE, STAGED = "working tree", "staged changes"
_DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
LARGEST_PATCH = 50_000_000


class RevisionRequest(NamedTuple):
    """What the user names as the two sides. At most one of the last three is given."""

    base: str = ""
    head: str = ""
    patch: Path | None = None
    staged: bool = False


class Revision(NamedTuple):
    version: CodeVersion
    snapshot: Snapshot


class Revisions(NamedTuple):
    base: Revision
    head: Revision


def resolve_revisions(trees: GitTrees, root: Path, request: RevisionRequest) -> Revisions:
    """Take snapshots of both sides. The base is the merge base of the named ref and the head.

    A patch and the staged changes apply to `HEAD`, which is then also the base unless the user names one.
    Raises `ConfigError` if there is no repo, ref or patch, or if the patch does not apply.
    """
    if sum((bool(request.head), request.patch is not None, request.staged)) > 1:
        raise ConfigError("--head, --patch and --staged cannot be combined", remedy="use only one of them")
    if not ask_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
        raise ConfigError(
            f"{root.name} is not a git repo with a commit",
            remedy="run the command in the repo that contains the change",
        )
    start = find_commit(root, request.head or "HEAD")
    applies_to_head = request.patch is not None or request.staged
    base_name = request.base or ("HEAD" if applies_to_head else find_default_branch(root)) or "HEAD"
    base_commit = _find_merge_base(root, find_commit(root, base_name), start)
    base = take_revision(trees, root, base_name, base_commit)
    if request.head:
        if base_name == "HEAD" and not request.base:
            raise ConfigError(
                "no main branch is known in this clone", remedy="name the start of the change with --base"
            )
        return Revisions(base, take_revision(trees, root, request.head, start))
    if applies_to_head:
        return Revisions(base, _apply_patch(trees, root, start, request))
    snapshot = trees.take(root)
    if base_name == "HEAD" and not request.base and snapshot.tree == base.snapshot.tree:
        problem = "no main branch is known in this clone, and there are no uncommitted changes"
        raise ConfigError(
            problem, remedy="name the start of the change with --base, and fetch it if the clone is shallow"
        )
    return Revisions(base, Revision(CodeVersion(name=WORKING_TREE, tree=snapshot.tree), snapshot))


def find_branch_start(trees: GitTrees, root: Path) -> Revision | None:
    """Take a snapshot of where the branch that is checked out left the default branch.

    None if it has no commit of its own, or if its start or the files there are not known in this clone.
    """
    name = find_default_branch(root)
    head, start = (
        (ask_git(root, *arguments) or b"").decode().strip()
        for arguments in (("rev-parse", "--verify", "--quiet", "HEAD^{commit}"), ("merge-base", name or "HEAD", "HEAD"))
    )
    if not start or start == head:
        return None
    try:
        return take_revision(trees, root, name, start)
    except ConfigError:
        return None


def _apply_patch(trees: GitTrees, root: Path, commit: str, request: RevisionRequest) -> Revision:
    start = take_revision(trees, root, "HEAD", commit)
    if request.patch is not None:
        diff, name = _read_patch(request.patch), request.patch.name
    else:
        diff, name = _diff_index(root, commit), STAGED
    snapshot = trees.apply(start.snapshot, diff) if diff.strip() else start.snapshot
    if isinstance(snapshot, DiffRefused):
        raise ConfigError(f"{name} does not apply to HEAD: {snapshot.message}", remedy="make the patch anew")
    return Revision(CodeVersion(name=name, tree=snapshot.tree), snapshot)


def _read_patch(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_PATCH:
            raise ConfigError(
                f"{path} is larger than {LARGEST_PATCH / 1e6:.0f} MB", remedy="give the patch of one change"
            )
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}", remedy="give a unified diff") from error


def _diff_index(root: Path, commit: str) -> bytes:
    options = ("--cached", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    return run_git("diff", *options, commit, "--", cwd=root)


def take_revision(trees: GitTrees, root: Path, name: str, commit: str, near: Snapshot | None = None) -> Revision:
    """Take a snapshot of a commit, as `take_commit` does. Raises `ConfigError` if its files are not in this clone."""
    try:
        snapshot = trees.take_commit(root, commit, near)
    except GitFailed as error:
        problem = f"the files of {name} ({commit[:10]}) are not in this clone"
        raise ConfigError(problem, remedy=f"fetch them first: git fetch origin {commit[:10]}") from error
    return Revision(CodeVersion(name=name, commit=commit, tree=snapshot.tree), snapshot)


def find_commit(root: Path, ref: str) -> str:
    """Find the commit that a ref names. Raises `ConfigError` if there is none."""
    commit = ask_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    if not commit:
        raise ConfigError(f"{ref} is not a commit of this repo", remedy="name a branch, a tag or a commit")
    return commit.decode().strip()


def find_default_branch(root: Path) -> str:
    """Find the default branch: that of the remote, else one of the usual names; empty if there is none."""
    names = (
        name for name in _DEFAULT_BRANCHES if ask_git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    )
    name = next(names, "")
    symbolic = ask_git(root, "rev-parse", "--abbrev-ref", name) if name == "origin/HEAD" else None
    return symbolic.decode().strip() if symbolic else name


def _find_merge_base(root: Path, base: str, head: str) -> str:
    """Find where the head left the base. Without common history, that is the base itself."""
    output = ask_git(root, "merge-base", base, head)
    return output.decode().strip() if output and output.strip() else base
