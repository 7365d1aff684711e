"""Sort the files of a change by what they are for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from redstart.core.change import Snapshot
from redstart.core.verification import ChangeType, FileRole, SortedFile
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.honesty.verdict.related_files import is_changelog_or_docs
from redstart.toolkit.languages.registry import is_test_path, is_test_support, list_languages
from redstart.toolkit.patching.policy import ABSENT_MODE, Protection, find_protection, is_about_packages

_LOCKS = re.compile(
    r"(?:^|/)(?:poetry\.lock|uv\.lock|pdm\.lock|pipfile(?:\.lock)?|pixi\.lock|[\w.-]*requirements[\w.-]*\.(?:txt|in)"
    r"|requirements/[^/]+\.(?:txt|in)|constraints[\w.-]*\.txt|package-lock\.json|yarn\.lock|pnpm-lock\.yaml"
    r"|environment\.ya?ml|cargo\.lock|go\.(?:mod|sum))$",
    re.IGNORECASE,
)
_GENERATED = re.compile(r"_pb2(?:_grpc)?\.pyi?$|\.min\.(?:js|css)$|(?:^|/)(?:dist|generated|__generated__)/|\.map$")
_TEXT = re.compile(
    r"(?:^|/)(?:docs?|examples?)/.*\.(?:png|svg|gif|jpe?g|css|ipynb)$|(?:^|/)(?:licen[cs]e|authors)[^/]*$", re.I
)


def sort_changed_files(
    trees: Trees, base: Snapshot, head: Snapshot, test_globs: Sequence[str] = ()
) -> tuple[SortedFile, ...]:
    """Return the files that differ between two snapshots, each with its role. The globs match further test files."""
    files: list[SortedFile] = []
    for change in trees.list_changes(base, head):
        is_new, is_gone = change.old_mode == ABSENT_MODE, change.new_mode == ABSENT_MODE
        kind = ChangeType.added if is_new else ChangeType.removed if is_gone else ChangeType.edited
        before, after = trees.read(base, change.path), trees.read(head, change.path)
        files.append(SortedFile(path=change.path, role=find_role(change.path, before, after, test_globs), change=kind))
    return tuple(sorted(files, key=lambda file: (list(FileRole).index(file.role), file.path)))


def find_role(path: str, before: bytes | None, after: bytes | None, test_globs: Sequence[str] = ()) -> FileRole:
    """Return what a changed file is for."""
    if _LOCKS.search(path) or is_about_packages(path, before, after):
        return FileRole.dependencies
    if is_test_support(path) and _configures_tests(path.rpartition("/")[2]):
        return FileRole.configuration
    if is_changelog_or_docs(path) or _TEXT.search(path):
        return FileRole.docs
    protection = find_protection(path, tests=test_globs)
    if protection in (Protection.test, Protection.starts_tests) or is_test_path(path):
        return FileRole.tests
    if _configures_tests(path):
        return FileRole.configuration
    if protection is not None:
        return FileRole.other
    return FileRole.generated if _GENERATED.search(path) else FileRole.source


def _configures_tests(path: str) -> bool:
    """Return whether a file of this name can change what the tests are or how they run."""
    return any(language.get_protection(path.casefold()) for language in list_languages())
