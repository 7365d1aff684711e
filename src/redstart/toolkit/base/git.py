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
TIMEOUT_SECONDS = 30.0
"""Timeout in seconds for an optional answer."""
_FLAGS = tuple(word for setting in HARMLESS for word in ("-c", setting))


class GitFailed(StoreError):
    """A git command failed."""


def run_git(
    *arguments: str,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    index: Path | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    only_repo_config: bool = True,
    timeout: float | None = None,
) -> bytes:
    """Run git and return its output. Raises `GitFailed` with git's message if it fails.

    Raises `ConfigError` if git is not installed.

    With `only_repo_config`, only the repo's configuration is read; without it, also the user's global one, for its
    ignore rules.
    """
    try:
        completed = subprocess.run(
            ("git", *_FLAGS, *arguments),
            input=stdin,
            capture_output=True,
            check=False,
            cwd=cwd,
            env=_build_environment(git_dir, work_tree, index, only_repo_config),
            timeout=timeout,
        )
    except FileNotFoundError as error:
        if error.filename != "git":
            raise
        raise _build_git_error() from error
    if completed.returncode != 0:
        message = completed.stderr.decode(errors="replace").strip() or f"exit code {completed.returncode}"
        raise GitFailed(f"git {arguments[0]}: {message}")
    return completed.stdout


def ask_git(root: Path, *arguments: str) -> bytes | None:
    """Run git in the folder and return its output; None if there is no git, no repo, or no answer in time.

    Hooks, and programs that the repo's configuration names, do not run.
    """
    try:
        return run_git(*arguments, cwd=root, only_repo_config=False, timeout=TIMEOUT_SECONDS)
    except (GitFailed, ConfigError, OSError, subprocess.TimeoutExpired):
        return None


def require_git() -> None:
    """Raise `ConfigError` if git is not installed."""
    try:
        subprocess.run(("git", "--version"), capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise _build_git_error() from error


def _build_git_error() -> ConfigError:
    return ConfigError("git was not found", remedy="install git and put it on PATH")


def start_batch_reader(git_dir: Path) -> subprocess.Popen[bytes]:
    """Start a `git cat-file --batch` that answers until it is closed."""
    return subprocess.Popen(
        ("git", *_FLAGS, "cat-file", "--batch"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_build_environment(git_dir, None, None, True),
    )


def _build_environment(
    git_dir: Path | None, work_tree: Path | None, index: Path | None, only_repo_config: bool
) -> Mapping[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    variables |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    if only_repo_config:
        variables |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    places = {"GIT_DIR": git_dir, "GIT_WORK_TREE": work_tree, "GIT_INDEX_FILE": index}
    return variables | {name: str(place) for name, place in places.items() if place is not None}


def split_z(output: bytes) -> Sequence[str]:
    """Split git's NUL-separated output into names. Bytes that are not UTF-8 survive the round trip."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]
