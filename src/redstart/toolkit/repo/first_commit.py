"""The first commit of a project that was just made."""

from __future__ import annotations

from pathlib import Path

from redstart.toolkit.base.git import ask_git, git

NEUTRAL = {"user.name": "redstart", "user.email": "redstart@localhost"}
"""Who commits where the user's git does not know them."""


def commit_first(folder: Path, message: str) -> bool:
    """Makes a git repo of the folder, with one commit of all that is in it. Whether it has made one.

    Nothing is done where the folder lies in a repo already, or was committed before. The commit is the user's, where
    their git knows who they are. Raises `GitFailed`.
    """
    top = _said(folder, "rev-parse", "--show-toplevel")
    if top and Path(top).resolve() != folder.resolve():
        return False
    if top and _said(folder, "rev-parse", "--verify", "--quiet", "HEAD"):
        return False
    if not top:
        git("init", "--quiet", "--initial-branch=main", cwd=folder, ours=False)
    git("add", "--all", cwd=folder, ours=False)
    unknown = {name: value for name, value in NEUTRAL.items() if not _said(folder, "config", "--get", name)}
    # A signature may have to be typed for, and nobody may be there.
    flags = [word for pair in {**unknown, "commit.gpgsign": "false"}.items() for word in ("-c", "=".join(pair))]
    git(*flags, "commit", "--quiet", "--no-verify", "--file=-", stdin=message.encode(), cwd=folder, ours=False)
    return True


def _said(folder: Path, *arguments: str) -> str:
    """What git answers; empty where it has no answer."""
    return (ask_git(folder, *arguments) or b"").decode(errors="replace").strip()
