"""What goes into an execution and what comes out: files, variables, and the folder that holds them on the host."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path, PurePosixPath

from redstart.core.errors import ConfigError
from redstart.core.shell import IN, OUT, Completed, Execution
from redstart.ports.sandbox.cause import classify, exit_code
from redstart.ports.sandbox.launch import Ended
from redstart.ports.sandbox.leftovers import FOLDER, mark
from redstart.ports.sandbox.untrusted import read_untrusted

LARGEST_COLLECTED = 64 << 20
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Exchange:
    """The folders of one execution on the host: `inward` with its `files_in`, `outward` for what it leaves.

    Raises `ConfigError` where a name would lead out of its folder.
    """

    def __init__(self, folder: Path, execution: Execution) -> None:
        self.folder = folder
        self.inward = folder / "in"
        self.outward = folder / "out"
        self._limits = execution.limits
        self._collect = {name: _parts(name) for name in execution.collect}
        self.inward.mkdir()
        self.outward.mkdir()
        for name, text in execution.files_in.items():
            path = self.inward.joinpath(*_parts(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")

    def completed(self, ended: Ended, outward: int | None = None) -> Completed:
        """The end as the port gives it, with the collected files.

        `outward` is an open folder to collect from, where the command had another than ours.
        """
        return Completed(
            exit_code=exit_code(ended.returncode),
            cause=classify(ended, self._limits),
            output=ended.output.decode("utf-8", "replace"),
            truncated=ended.truncated,
            files=self._collected(outward),
            wall=ended.wall,
            cpu=ended.cpu,
            peak_memory=ended.peak_memory,
        )

    def _collected(self, outward: int | None) -> dict[str, str]:
        if not self._collect:
            return {}
        own = os.open(self.outward, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            folder = own if outward is None else outward
            read = {name: read_untrusted(folder, parts, LARGEST_COLLECTED) for name, parts in self._collect.items()}
        finally:
            os.close(own)
        return {name: content.decode("utf-8", "replace") for name, content in read.items() if content is not None}


@contextlib.contextmanager
def exchange(scratch: Path, execution: Execution) -> Generator[Exchange]:
    """A folder under `scratch` for one execution, removed at the end whatever was left in it."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{FOLDER}{mark()}-", dir=scratch, ignore_cleanup_errors=True) as folder:
        yield Exchange(Path(folder).resolve(), execution)


def variables(python: str, given: Mapping[str, str], *, home: str, temporary: str) -> dict[str, str]:
    """The whole environment of a command. Nothing of our own is in it, so no key and no token can be."""
    return {
        "PATH": f"{PurePosixPath(python).parent}:{SYSTEM_PATH}",
        "HOME": home,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": temporary,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **given,
    }


def placed(text: str, inward: str, outward: str) -> str:
    """`text` with the placeholders for the two folders filled in."""
    return text.replace(IN, inward).replace(OUT, outward)


def given(execution: Execution) -> dict[str, str]:
    """The variables that the request asks for, its own over those of its environment."""
    return {**execution.environment.variables, **execution.variables}


def _parts(name: str) -> tuple[str, ...]:
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ConfigError(f"not a name of a file within a folder: {name!r}")
    return path.parts
