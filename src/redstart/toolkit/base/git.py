"""Run git so that no configuration, hook or filter of a repo has an effect."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from redstart.core.errors import ConfigError, StoreError

HARMLESS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.symlinks=true",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.quotePath=false",
    "core.looseCompression=1",
    "core.pager=cat",
    "gc.auto=0",
    "protocol.allow=never",
    "safe.directory=*",
    "submodule.recurse=false",
)
WITHIN = 30.0
"""Timeout in seconds for an optional answer."""
_FLAGS = tuple(word for setting in HARMLESS for word in ("-c", setting))


class GitFailed(StoreError):
    """A git command failed."""


def git(
    *arguments: str,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    index: Path | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    ours: bool = True,
    timeout: float | None = None,
) -> bytes:
    """Run git and return its output. Raises `GitFailed` with git's message if it fails.

    Raises `ConfigError` if git is not installed.

    With `only_repo_config`, only the repo's configuration is read; without it, also the user's global one, for its
    ignore rules.
    """
    try:
        done = subprocess.run(
            ("git", *_FLAGS, *arguments),
            input=stdin,
            capture_output=True,
            check=False,
            cwd=cwd,
            env=_environment(git_dir, work_tree, index, ours),
            timeout=timeout,
        )
    except FileNotFoundError as error:
        if error.filename != "git":
            raise
        raise _no_git() from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise GitFailed(f"git {arguments[0]}: {words}")
    return done.stdout


def ask_git(root: Path, *arguments: str) -> bytes | None:
    """Run git in the folder and return its output; None if there is no git, no repo, or no answer in time.

    Hooks, and programs that the repo's configuration names, do not run.
    """
    try:
        return git(*arguments, cwd=root, ours=False, timeout=WITHIN)
    except (GitFailed, ConfigError, OSError, subprocess.TimeoutExpired):
        return None


def require_git() -> None:
    """Raise `ConfigError` if git is not installed."""
    try:
        subprocess.run(("git", "--version"), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise _no_git() from error


def _no_git() -> ConfigError:
    return ConfigError("git was not found", remedy="install git and put it on PATH")


def batch_reader(git_dir: Path) -> subprocess.Popen[bytes]:
    """Start a `git cat-file --batch` that answers until it is closed."""
    return subprocess.Popen(
        ("git", *_FLAGS, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(git_dir, None, None, True),
    )


def _environment(git_dir: Path | None, work_tree: Path | None, index: Path | None, ours: bool) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    if ours:
        kept |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    places = {"GIT_DIR": git_dir, "GIT_WORK_TREE": work_tree, "GIT_INDEX_FILE": index}
    return kept | {name: str(place) for name, place in places.items() if place is not None}


def split_z(output: bytes) -> Sequence[str]:
    """Split git's NUL-separated output into names. Bytes that are not UTF-8 survive the round trip."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]
