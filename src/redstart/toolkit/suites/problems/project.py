"""A view of a project's files that tells a misspelled name from a missing dependency."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.languages.registry import get_dotted_module, is_test_path, list_languages

_DECLARING = re.compile(
    r"(?:^|/)(?:package\.json|pyproject\.toml|setup\.(?:py|cfg)|Pipfile|tox\.ini|environment\.ya?ml|[\w.-]*requirements[\w./-]*\.txt)$"
)


class ProjectView(NamedTuple):
    """The parts of a project that tell a misspelled name from a missing dependency."""

    modules: frozenset[str]
    """Names that an import can find in the project."""
    paths: frozenset[str]
    read: Callable[[str], bytes | None]
    root: str = ""
    """Where the workspace is mounted."""
    python: str = ""
    """The interpreter that runs the tests."""

    def get_relative_path(self, path: str) -> str:
        """Return a traceback's path relative to the project. Empty if the file is not part of it."""
        inside = path.removeprefix(f"{self.root}/") if self.root else path
        return inside if inside in self.paths else ""

    def read_text(self, path: str) -> str:
        return (self.read(path) or b"").decode("utf-8", "replace") if path in self.paths else ""

    def read_tests(self, case: Case) -> str:
        """Read the test's own file and every conftest.py."""
        test_path = case.id.partition("::")[0]
        dotted = case.id.replace(".", "/")
        files = {path for path in self.paths if path == test_path or PurePosixPath(path).name == "conftest.py"}
        modules = ((path, get_dotted_module(path).replace(".", "/")) for path in self.paths if is_test_path(path))
        files |= {path for path, module in modules if module and dotted.startswith(module)}
        return "\n".join(self.read_text(path) for path in sorted(files))

    def is_declared(self, package: str) -> bool:
        """Whether a file that lists dependencies names the package."""
        pattern = re.compile(rf"(?<![\w.-]){re.escape(package).replace('_', '[-_]')}(?![\w])", re.IGNORECASE)
        return any(pattern.search(self.read_text(path)) for path in self.paths if _DECLARING.search(path))


def create_project_view(
    paths: Iterable[str], read: Callable[[str], bytes | None], root: str = "", python: str = ""
) -> ProjectView:
    """Build the view of the project whose files are `paths`."""
    all_paths = frozenset(paths)
    modules = (language.list_importable_names(all_paths) for language in list_languages())
    return ProjectView(frozenset[str]().union(*modules), all_paths, read, root, python)
