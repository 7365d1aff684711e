"""Files that belong to a change although no test needs them: stubs, changelogs and docs."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from redstart.toolkit.languages.registry import find_file_language

_CHANGELOG = re.compile(
    r"(?:^|/)(?:change[-_]?log|changes|history|news|release[-_]?notes|releases)(?:\.[a-z]+)?$"
    r"|(?:^|/)(?:changelog\.d|changelog|changes|newsfragments|news)/[^/]+$",
    re.IGNORECASE,
)
_DOCS = re.compile(r"\.(?:md|markdown|rst|adoc)$|(?:^|/)docs?/(?:[^/]+/)*[^/]+\.txt$", re.IGNORECASE)


def find_related_files(changed: Collection[str]) -> frozenset[str]:
    """Return those of the changed paths that are changelogs, docs, or stubs beside a changed module."""
    return frozenset(path for path in changed if is_changelog_or_docs(path) or _is_stub(path, changed))


def is_changelog_or_docs(path: str) -> bool:
    """Return whether a file of this name is a changelog or documentation."""
    # A module may be called `history`: code is neither a changelog nor docs, wherever it is.
    is_text = find_file_language(path) is None
    return is_text and bool(_CHANGELOG.search(path) or _DOCS.search(path))


def _is_stub(path: str, changed: Collection[str]) -> bool:
    language = find_file_language(path)
    suffix = PurePosixPath(path).suffix
    module_suffix = language.stub_suffixes.get(suffix) if language else None
    return module_suffix is not None and path.removesuffix(suffix) + module_suffix in changed
