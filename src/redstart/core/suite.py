"""How tests are run."""

from __future__ import annotations

from posixpath import relpath

from redstart.core.noun import FrozenValue


class Suite(FrozenValue):
    """How the target's tests are run. `environment` is the blob of an `Environment`."""

    runner: str
    command: tuple[str, ...] = ()
    """Given by the user; empty for the runner's own."""
    environment: str = ""
    junit: str = ""
    """Where the user's command leaves JUnit XML, from the suite's folder; globs may be given. Empty for our runners."""
    folder: str = ""
    """Where in the snapshot it runs: a folder of a monorepo, or the root. Test ids and tracebacks begin there."""

    def as_shown(self, path: str) -> str:
        """How the runner would show this path of the snapshot."""
        return relpath(path, self.folder) if self.folder else path
