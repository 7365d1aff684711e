"""Read the source of a failing test, with what it uses from its own file and from the support files above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from posixpath import dirname

from redstart.core.context import Context
from redstart.core.report import Case
from redstart.toolkit.base.code_files import Read
from redstart.toolkit.languages.registry import find_file_language, is_test_path, is_test_support
from redstart.toolkit.retrieval.code_reader import CodePlace
from redstart.toolkit.retrieval.query import locate
from redstart.toolkit.retrieval.sources import Sources

MAX_HELPERS = 8
WHOLE_FILE_LINES = 80
"""The most lines of a file that is shown whole because the test inside it is not found."""


class TestSourceReader:
    """Reads tests of one tree, by the paths that the runner shows. `context` holds what the question shows anyway."""

    __test__ = False

    def __init__(
        self,
        paths: Mapping[str, str],
        read: Read,
        find_file: Callable[[str], str],
        context: Context | None = None,
    ) -> None:
        """`paths` maps each path that the runner shows to the path in the snapshot."""
        self._paths, self._find_file = paths, find_file
        self._sources = Sources(paths, read)
        self._shown = context.chunks if context else ()

    def read(self, case: Case) -> str:
        """Return the test, then its fixtures and helpers, without what the case's traceback or the context shows."""
        file = self._find_file(case.id)
        path, names = locate(case.id, [file] if file else [])
        test = self._sources.get_reader(path).read_test(path, names) if names else None
        if test is None:
            return ""
        helpers = [*test.helpers, *self._find_fixtures(path, test.names)]
        detail_lines = {_strip(line) for line in case.detail.splitlines()}
        blocks = [
            f"{place.path} lines {place.start}-{place.end}:\n{text}"
            for place in dict.fromkeys((test.place, *helpers[:MAX_HELPERS]))
            if (text := self._read_place(place)) and not self._is_shown(place, text, detail_lines)
        ]
        return "\n\n".join(blocks)

    def _find_fixtures(self, path: str, names: Iterable[str]) -> list[CodePlace]:
        """Find what support files in the test's folder and above define under one of these names."""
        wanted, places = set(names), list[CodePlace]()
        for support_path in self._support_files:
            folder = dirname(support_path)
            language = find_file_language(support_path) if not folder or path.startswith(f"{folder}/") else None
            if language is not None:
                symbols = language.outline(self._sources.read_lines(support_path)) or []
                places += [CodePlace(support_path, item.start, item.end) for item in symbols if item.name in wanted]
        return places

    @cached_property
    def _support_files(self) -> list[str]:
        """Support files of tests, the innermost first."""
        files = (file for file in self._sources.files if is_test_support(file) and is_test_path(file))
        return sorted(files, key=lambda file: (-file.count("/"), file))

    def _read_place(self, place: CodePlace) -> str:
        lines = self._sources.read_lines(place.path)
        is_whole = place.start <= 1 and place.end >= len(lines)
        return "" if is_whole and len(lines) > WHOLE_FILE_LINES else "\n".join(lines[place.start - 1 : place.end])

    def _is_shown(self, place: CodePlace, text: str, detail_lines: set[str]) -> bool:
        snapshot_path = self._paths.get(place.path, place.path)
        if any(
            chunk.path == snapshot_path and chunk.start <= place.start and chunk.end >= place.end
            for chunk in self._shown
        ):
            return True
        return all(_strip(line) in detail_lines for line in text.splitlines() if line.strip())


def _strip(line: str) -> str:
    """Remove the margin in which pytest marks the failing line."""
    return line.removeprefix(">").strip()
