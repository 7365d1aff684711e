"""How tests are run."""

from __future__ import annotations

from posixpath import relpath

from pydantic import Field

from redstart.core.frozen import FrozenValue


class Suite(FrozenValue):
    """How the project's tests are run. `environment` is the blob of an `Environment`."""

    runner: str
    command: tuple[str, ...] = ()
    """The user's command; empty for the runner's default."""
    environment: str = ""
    junit: str = ""
    """Where the user's command writes JUnit XML, relative to the suite's folder; may be a glob. Empty for our
    runners."""
    folder: str = ""
    """The folder of the snapshot that the suite runs in: a folder of a monorepo, or the root. Test IDs and tracebacks
    are relative to it."""
    detailed: bool = Field(default=False, exclude_if=lambda detailed: not detailed)
    """Whether the cases keep what failing tests print, and pytest shortens comparisons less. False for the runs of
    versions that did neither, so that they replay."""

    def to_runner_path(self, path: str) -> str:
        """Convert a path of the snapshot to the form that the runner shows."""
        return relpath(path, self.folder) if self.folder else path
