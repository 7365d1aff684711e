"""A sandbox that runs nothing, and workspaces without a store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from redstart.core.change import Snapshot
from redstart.core.shell import Completed, Execution


class FakeSandbox:
    """Returns the result of `answer` for each execution, and records all executions in `executions`, in order."""

    tier = "fake"

    def __init__(self, answer: Callable[[Execution], Completed]) -> None:
        self._answer = answer
        self.executions: list[Execution] = []

    async def run(self, execution: Execution) -> Completed:
        self.executions.append(execution)
        return self._answer(execution)


class FolderWorkspaces:
    """Workspaces whose snapshots are directories: `folder / snapshot.tree` contains the files of a snapshot."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create_snapshot(self, tree: str, files: dict[str, str]) -> Snapshot:
        """Create a snapshot with these files, named `tree`."""
        for name, text in files.items():
            path = self._folder / tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return Snapshot(tree=tree, base=tree, pack="")

    @contextmanager
    def checkout(self, snapshot: Snapshot) -> Generator[Path]:
        with tempfile.TemporaryDirectory(prefix="redstart-checkout-") as folder:
            yield Path(shutil.copytree(self._folder / snapshot.tree, Path(folder) / "files", symlinks=True))
