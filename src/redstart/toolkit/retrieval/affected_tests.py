"""Find the tests that can notice a change, by their imports: enough to try an idea, never enough to verify it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from posixpath import basename, dirname

from redstart.toolkit.base.code_files import Read
from redstart.toolkit.languages.registry import is_code
from redstart.toolkit.retrieval.sources import Sources

MOST_PARSED = 600
"""The maximum number of files to parse; beyond that the answer may miss some."""


def find_affected_tests(
    changed_paths: Iterable[str], files: Sequence[str], read: Read, is_test: Callable[[str], bool]
) -> tuple[str, ...]:
    """List the test files that import a touched file, directly or not; a conftest counts for its folder.

    Imports by a name computed at run time are not seen.
    """
    sources = Sources(files, read)
    code = [path for path in sorted(sources.files) if is_code(path)]
    reached = {path for path in changed_paths if path in sources.files}
    frontier, parsed = set(reached), 0
    while frontier and parsed < MOST_PARSED:
        words = {_get_import_word(path).encode() for path in frontier} - {b""}
        discovered: set[str] = set()
        for path in code:
            if path not in reached and any(word in sources.read_data(path) for word in words):
                parsed += 1
                if frontier & sources.get_reader(path).list_imported_files(path):
                    discovered.add(path)
        discovered |= {path for path in code if path not in reached and _is_below_conftest(path, frontier)}
        reached |= discovered
        frontier = discovered
    return tuple(sorted(path for path in reached if is_test(path) and basename(path) != "conftest.py"))


def _get_import_word(path: str) -> str:
    """Return the word that any import of this file must contain."""
    name = basename(path).rpartition(".")[0]
    return basename(dirname(path)) if name in ("__init__", "index") else name


def _is_below_conftest(path: str, frontier: set[str]) -> bool:
    parts = path.split("/")[:-1]
    return any("/".join((*parts[:depth], "conftest.py")) in frontier for depth in range(len(parts) + 1))
