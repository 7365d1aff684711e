"""A tree as seen from the directory that its suite runs in, which IDs, tracebacks and imports are relative to."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from redstart.core.run import Suite
from redstart.toolkit.languages.registry import module_suffixes


class TreeView:
    """`snapshot_paths` maps each path that the runner shows to the path in the snapshot. File contents are cached."""

    def __init__(self, suite: Suite, paths: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self.kept = {suite.as_shown(path): path for path in paths}
        self._read = read
        self._texts: dict[str, bytes | None] = {}

    def read(self, shown: str) -> bytes | None:
        """Read a file. None if it does not exist."""
        if shown not in self._texts:
            self._texts[shown] = self._read(self.kept[shown]) if shown in self.kept else None
        return self._texts[shown]

    def source(self, protected: Callable[[str], object]) -> Callable[[str], bool]:
        """Build a predicate that accepts only the project's own code, by the paths that the runner shows."""
        return lambda shown: shown in self.kept and not protected(shown)

    def file_of(self, id_: str) -> str:
        """Find the file of a test ID: `a/b.py::Class::test`, `a/b.py` or `a.b.Class.test`. Empty if there is none."""
        path = id_.split("::", maxsplit=1)[0]
        if path in self.kept:
            return path
        words = id_.split(".")
        modules = ["/".join(words[:count]) for count in range(len(words), 0, -1)]
        dotted = (f"{module}{suffix}" for suffix in module_suffixes() for module in modules)
        return next((path for path in dotted if path in self.kept), "")
