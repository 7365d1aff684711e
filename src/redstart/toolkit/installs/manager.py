"""Package managers: how the packages of a language are named, requested, and installed from its index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult, PackageRefusal, Requirement
from redstart.toolkit.installs.sides import PackageVersions
from redstart.toolkit.languages.registry import list_abilities

RequestedItems = Iterator[Requirement | PackageRefusal]


class PackageManager(Protocol):
    @property
    def key(self) -> str:
        """The name of the language in settings, approvals and stored runs."""
        ...

    @property
    def owner(self) -> str:
        """The product that built-in modules belong to."""
        ...

    @property
    def lock_name(self) -> str:
        """The file name of the lock in the project."""
        ...

    @property
    def versioned(self) -> re.Pattern[str]:
        """Matches a name with an optional version. Any other text stays as it is, and is refused by the judgement."""
        ...

    @property
    def needs_interpreter(self) -> bool:
        """Whether an environment belongs to one Python interpreter."""
        ...

    @property
    def versions(self) -> PackageVersions | None:
        """How the packages of each side of a change are found; None if that is not supported."""
        ...

    def normalize(self, name: str) -> str:
        """Normalize the name as the index does."""
        ...

    def list_popular(self) -> Iterable[str]:
        """List names of packages that many projects use."""
        ...

    def is_built_in(self, name: str) -> bool:
        """Return whether the language itself has a module of this name."""
        ...

    def is_manifest(self, place: PurePosixPath) -> bool:
        """Return whether the file at this path declares a project's dependencies."""
        ...

    def read(self, path: str, text: str, own: set[str]) -> RequestedItems:
        """Read the requests of a manifest, and add the project's own names to `own`. Raises `ValueError` if the
        manifest is unreadable."""
        ...

    def list_modules(self, paths: Iterable[str]) -> Iterator[str]:
        """List the importable names of a project with these files."""
        ...

    def add(self, files: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
        """Add these packages to the project's manifest; returns an empty dict if it has no list of dependencies."""
        ...

    def prepare(self, request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
        """Do the work of `Installer.prepare`; `home` holds the environments."""
        ...

    def with_packages(self, environment: Environment, prepared: InstallResult) -> Environment:
        """Add the installed packages to the environment, read-only."""
        ...


def list_managers() -> tuple[PackageManager, ...]:
    return tuple(list_abilities(lambda language: language.packages))


def get_manager(key: str) -> PackageManager:
    """Return the package manager of a language. Raises `LookupError` if the language has none."""
    for manager in list_managers():
        if manager.key == key:
            return manager
    raise LookupError(f"unknown package manager: {key}")
