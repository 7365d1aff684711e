"""The stage in which packages are fetched and put in place: its processes, and where environments are kept."""

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

WITHIN = 900.0
"""Seconds that one step of an install may take."""
READY = ".redstart-complete"
LAYOUT = "1"
"""Changes when an environment is made otherwise from the same lock, so that old ones are not taken for new."""
_PASSED_ON = re.compile(
    r"PATH|HOME|USER|LANG|LC_ALL|TMPDIR|NETRC|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|"
    r"NODE_EXTRA_CA_CERTS|(?:https?|all|no)_proxy|XDG_(?:CONFIG|CACHE)_HOME|PIP_\w+|NPM_CONFIG_\w+",
    re.IGNORECASE,
)
"""What a program that fetches packages needs: how to reach and trust the index, and where its cache lies."""


class StageResult(NamedTuple):
    code: int
    output: str


def run(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], added: Mapping[str, str] | None = None
) -> StageResult:
    """Runs one program in `folder`, with only those variables that it needs to reach the index.

    Raises `PortError` where it cannot be started or does not end in time.
    """
    kept = {name: value for name, value in environ.items() if _PASSED_ON.fullmatch(name)}
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**kept, **(added or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise PortError(f"{name} did not finish within {WITHIN:.0f} seconds while installing packages") from error
    except OSError as error:
        raise PortError(f"{name} cannot be started: {error.strerror or error}") from error
    return StageResult(done.returncode, done.stdout.decode("utf-8", "replace"))


def key_of(lock: str, *made_for: str) -> str:
    """The name of the environment that this lock gives on that interpreter or version of Node.js."""
    return hashlib.sha256("\0".join((LAYOUT, *made_for, lock)).encode()).hexdigest()[:32]


@contextlib.contextmanager
def place_of(home: Path, key: str) -> Generator[tuple[Path, bool]]:
    """The environment's folder, and whether it is complete. Only one process at a time is inside for each folder.

    Where it is not complete it is empty, and becomes complete by `finish`. What is left unfinished is removed when
    somebody comes for it again.
    """
    home.mkdir(parents=True, exist_ok=True)
    folder = home / key
    with (home / f"{key}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        complete = (folder / READY).is_file()
        if not complete:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder, complete


def finish(folder: Path) -> None:
    """Says that the environment is whole. The mark is the last thing written."""
    with (folder / READY).open("w") as mark:
        os.fsync(mark.fileno())
