"""The packages of one language: how they are named, asked for, and installed from its index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult, PackageRefusal, Requirement
from redstart.toolkit.languages.registry import abilities

Asks = Iterator[Requirement | PackageRefusal]


class PackageManager(Protocol):
    @property
    def key(self) -> str:
        """Its name in settings, approvals and stored runs."""
        ...

    @property
    def owner(self) -> str:
        """What a module that needs no package is a part of."""
        ...

    @property
    def lock_name(self) -> str:
        """What the lock is called in the project."""
        ...

    @property
    def versioned(self) -> re.Pattern[str]:
        """A name, perhaps with a version after it. What is neither stays as it is, and is refused when judged."""
        ...

    @property
    def needs_interpreter(self) -> bool:
        """Whether an environment is made for one interpreter of Python."""
        ...

    def normal(self, name: str) -> str:
        """The name as its index spells it."""
        ...

    def popular(self) -> Iterable[str]:
        """Names that many projects use."""
        ...

    def is_built_in(self, name: str) -> bool:
        """Whether the language itself has a module of this name."""
        ...

    def is_manifest(self, place: PurePosixPath) -> bool:
        """Whether a file of this path says what a project depends on."""
        ...

    def read(self, path: str, text: str, own: set[str]) -> Asks:
        """What a manifest asks for. Adds the project's own names to `own`. Raises `ValueError` if it is unreadable."""
        ...

    def modules(self, paths: Iterable[str]) -> Iterator[str]:
        """The importable names of a project of these files."""
        ...

    def add(self, files: Mapping[str, bytes], names: Sequence[str]) -> dict[str, bytes]:
        """The project's manifest with these packages; empty where it has no list to add them to."""
        ...

    def prepare(self, request: InstallRequest, home: Path, environ: Mapping[str, str]) -> InstallResult:
        """As `Installer.prepare`; `home` holds the environments."""
        ...

    def with_packages(self, environment: Environment, prepared: InstallResult) -> Environment:
        """The same environment with what was installed, read-only."""
        ...


def managers() -> tuple[PackageManager, ...]:
    return tuple(abilities(lambda language: language.packages))


def manager_of(key: str) -> PackageManager:
    """Raises `LookupError` for a language whose packages Redstart does not know."""
    for manager in managers():
        if manager.key == key:
            return manager
    raise LookupError(f"nothing is known of packages of {key}")
