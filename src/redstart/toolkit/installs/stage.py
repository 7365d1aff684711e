"""The stage that downloads and installs packages: its processes, and the folders of the environments."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import PortError

STEP_TIMEOUT_SECONDS = 900.0
"""Timeout in seconds of one step of an installation."""
READY = ".redstart-complete"
LAYOUT = "1"
"""Version of the environments' layout. It changes when the same lock gives a different environment, so that old ones
are not reused."""
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LANG|LC_ALL|TMPDIR|NETRC|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|"
    r"NODE_EXTRA_CA_CERTS|(?:https?|all|no)_proxy|XDG_(?:CONFIG|CACHE)_HOME|PIP_\w+|NPM_CONFIG_\w+",
    re.IGNORECASE,
)
"""Variables that a program needs to download packages: how to reach and trust the index, and where the cache is."""


class StageResult(NamedTuple):
    code: int
    output: str


def run(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], extra: Mapping[str, str] | None = None
) -> StageResult:
    """Run one program in `folder`, with only the variables that it needs to reach the index.

    Raises `PortError` if the program cannot be started or does not end in time.
    """
    variables = {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}
    name = Path(command[0]).name
    try:
        completed = subprocess.run(
            command,
            cwd=folder,
            env={**variables, **(extra or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=STEP_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PortError(
            f"{name} did not finish within {STEP_TIMEOUT_SECONDS:.0f} seconds while installing packages"
        ) from error
    except OSError as error:
        raise PortError(f"{name} cannot be started: {error.strerror or error}") from error
    return StageResult(completed.returncode, completed.stdout.decode("utf-8", "replace"))


def compute_key(lock: str, *runtimes: str) -> str:
    """Compute the name of the environment for this lock and this interpreter or version of Node.js."""
    return hashlib.sha256("\0".join((LAYOUT, *runtimes, lock)).encode()).hexdigest()[:32]


@contextlib.contextmanager
def lock_environment(home: Path, key: str) -> Generator[tuple[Path, bool]]:
    """Lock the environment's folder; yields it, and whether it is complete. Only one process at a time holds a folder.

    An incomplete folder is empty, and becomes complete through `mark_complete`. An unfinished one is emptied on the
    next use.
    """
    home.mkdir(parents=True, exist_ok=True)
    folder = home / key
    with (home / f"{key}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        is_complete = (folder / READY).is_file()
        if not is_complete:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder, is_complete


def finish(folder: Path) -> None:
    """Mark the environment as complete. The mark is the last file written."""
    with (folder / READY).open("w") as mark:
        os.fsync(mark.fileno())
