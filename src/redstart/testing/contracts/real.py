"""A real repo at an environment's mount, for the contracts of sandboxes: with ignored files, or with a history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from redstart.core.shell import Environment


def with_copies(environment: Environment, *copies: str) -> Environment:
    """Puts some ignored files there, each of which says its name, and asks for these copies."""
    real = Path(environment.mount)
    for name in ("pkg/inner.txt", "pkg/built.so", "data/deep/a", "data/run"):
        path = real / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (real / "data/run").chmod(0o755)
    return environment.model_copy(update={"copies": copies})


def with_history(environment: Environment) -> Environment:
    """Makes a git repo with one commit and a tag at the mount."""
    top = Path(environment.mount)
    (top / "pkg").mkdir(parents=True)
    for path, text in ((top / "hello.txt", "as committed\n"), (top / "pkg" / "inner.txt", "inner\n")):
        path.write_text(text)
    _git(top, "init", "-q")
    _git(top, "config", "user.name", "of the user")
    _git(top, "remote", "add", "origin", "https://user:password@example.invalid/repo")
    _git(top, "add", "-A")
    _git(top, "-c", "user.email=a@example.invalid", "commit", "-qm", "first")
    _git(top, "tag", "v1.0")
    head = _git(top, "rev-parse", "HEAD")
    return environment.model_copy(
        update={
            "git_objects": str(top / ".git" / "objects"),
            "git_head": head,
            "git_refs": f"# pack-refs with: peeled fully-peeled sorted \n{head} refs/tags/v1.0\n",
        }
    )


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(("git", "-C", folder, *arguments), capture_output=True, text=True, check=True)
    return done.stdout.strip()
