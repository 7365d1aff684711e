"""A tree as seen from the directory that its suite runs in, which IDs, tracebacks and imports are relative to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol, Self

from redstart.core.change import Snapshot
from redstart.core.run import Suite
from redstart.toolkit.languages.registry import list_module_suffixes


class TreeReader(Protocol):
    """Reads the files of a tree."""

    def list_files(self, tree: Snapshot, /) -> Iterable[str]: ...

    def read(self, tree: Snapshot, path: str, /) -> bytes | None: ...


class TreeView:
    """`snapshot_paths` maps each path that the runner shows to the path in the snapshot. File contents are cached."""

    def __init__(self, suite: Suite, paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self.snapshot_paths = {suite.to_runner_path(path): path for path in paths}
        self._read = read
        self._texts: dict[str, bytes | None] = {}

    @classmethod
    def open(cls, suite: Suite, reader: TreeReader, tree: Snapshot) -> Self:
        return cls(suite, reader.list_files(tree), partial(reader.read, tree))

    def read(self, shown_path: str) -> bytes | None:
        """Read a file. None if it does not exist."""
        if shown_path not in self._texts:
            self._texts[shown_path] = (
                self._read(self.snapshot_paths[shown_path]) if shown_path in self.snapshot_paths else None
            )
        return self._texts[shown_path]

    def build_source_filter(self, is_protected: Callable[[str], object]) -> Callable[[str], bool]:
        """Build a predicate that accepts only the project's own code, by the paths that the runner shows."""
        return lambda shown_path: shown_path in self.snapshot_paths and not is_protected(shown_path)

    def find_file(self, id_: str) -> str:
        """Find the file of a test ID: `a/b.py::Class::test`, `a/b.py` or `a.b.Class.test`. Empty if there is none."""
        path = id_.split("::", maxsplit=1)[0]
        if path in self.snapshot_paths:
            return path
        parts = id_.split(".")
        modules = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        candidates = (f"{module}{suffix}" for suffix in list_module_suffixes() for module in modules)
        return next((path for path in candidates if path in self.snapshot_paths), "")

    def select_existing(self, ids: Iterable[str]) -> list[str]:
        """Select what to run here for tests of another tree: their files, as the runner names them, that exist here.

        A runner may refuse the whole run because of one unknown test.
        """
        files = ((self.find_file(id_), id_) for id_ in ids)
        return list(dict.fromkeys(file if "::" in id_ else id_ for file, id_ in files if file))
