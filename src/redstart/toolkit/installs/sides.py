"""The packages that a change of manifests and lock files concerns: what each side needs, and what is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult


class DeclaredGroup(NamedTuple):
    """Packages that a file declares together, such as one extra of a project."""

    name: str
    packages: Mapping[str, Sequence[str]]
    """The requirements by the package's name. One of them must be satisfied."""
    is_lock: bool = False
    """Whether the file also lists packages that are not for this machine."""
    foreign: frozenset[str] = frozenset()
    """Packages that do not come from an index: their names, each with something that differs as its version does."""


class PackageVersions(Protocol):
    """Reads the versions that a language's manifests and locks declare, and installs those of one side of a change."""

    def is_declaration(self, path: str) -> bool:
        """Return whether the file at this path declares or locks packages of this language."""
        ...

    def read_groups(self, path: str, text: str, environment: Environment) -> Sequence[DeclaredGroup]:
        """Read what the file declares for this environment. Raises `ValueError` if it is of a form that is not read."""
        ...

    def list_installed(self, environment: Environment) -> Mapping[str, str]:
        """List the versions of the installed packages by name, without running any code."""
        ...

    def is_satisfied(self, requirement: str, version: str) -> bool: ...

    def build_request(self, needs: SideNeeds, installed: Mapping[str, str], environment: Environment) -> InstallRequest:
        """Build the request for the packages of one side. All other packages keep the versions that are installed."""
        ...

    def with_versions(self, environment: Environment, prepared: InstallResult) -> Environment:
        """Put the packages of one side in front of those that are installed."""
        ...


class SideNeeds(NamedTuple):
    """What one side needs that is not installed."""

    packages: Mapping[str, str]
    """The requirements by the package's name."""
    pins: Mapping[str, str]
    """The versions of a lock, for packages that come with these."""
    trusted: frozenset[str] = frozenset()
    """Packages that are installed or that the base declares."""
    problem: str = ""
    """Why it is not known what this side needs; empty if it is."""


class ChangedPackages(NamedTuple):
    old: SideNeeds
    new: SideNeeds
    lingering: tuple[str, ...] = ()
    """Installed packages that only the old side declares."""


class ManifestChange(NamedTuple):
    """The two versions of a file; None if a side does not have it."""

    path: str
    before: bytes | None
    after: bytes | None


def compare_sides(
    versions: PackageVersions, files: Iterable[ManifestChange], environment: Environment
) -> ChangedPackages:
    """Compare what each side declares with what is installed. Only declarations that differ between them count."""
    comparison = _Comparison(versions, environment)
    for file in sorted(files):
        if versions.is_declaration(file.path):
            comparison.add_file(file)
    return comparison.finish()


class _Side:
    def __init__(self) -> None:
        self.packages: dict[str, str] = {}
        self.pins: dict[str, str] = {}
        self.locked: dict[str, str] = {}
        self.problem = ""

    def add(self, name: str, requirements: Sequence[str], *, is_lock: bool) -> None:
        if len(requirements) > 1:
            self.problem = self.problem or f"several versions of {name} are locked"
        (self.locked if is_lock else self.packages)[name] = requirements[0]

    def finish(self, trusted: frozenset[str]) -> SideNeeds:
        return SideNeeds({**self.packages, **self.locked}, self.pins, trusted, self.problem)


class _Comparison:
    def __init__(self, versions: PackageVersions, environment: Environment) -> None:
        self._versions, self._environment = versions, environment
        self._installed = versions.list_installed(environment)
        self._old, self._new = _Side(), _Side()
        self._removed: set[str] = set()
        self._declared = {"old": set[str](), "new": set[str]()}

    def add_file(self, file: ManifestChange) -> None:
        try:
            old = self._read(file.path, file.before)
            new = self._read(file.path, file.after)
        except ValueError as error:
            # The head is what a user installs, so it is the old side that may not fit.
            self._old.problem = self._old.problem or f"{file.path} is not read: {error}"
            return
        for name in dict.fromkeys((*old, *new)):
            empty = DeclaredGroup(name, {}, is_lock=name in new and new[name].is_lock)
            self._compare(old.get(name, empty), new.get(name, empty))

    def finish(self) -> ChangedPackages:
        trusted = frozenset((*self._installed, *self._declared["old"]))
        lingering = sorted(name for name in self._removed - self._declared["new"] if name in self._installed)
        return ChangedPackages(self._old.finish(trusted), self._new.finish(trusted), tuple(lingering))

    def _read(self, path: str, data: bytes | None) -> dict[str, DeclaredGroup]:
        if data is None:
            return {}
        groups = self._versions.read_groups(path, data.decode("utf-8", "replace"), self._environment)
        return {group.name: group for group in groups}

    def _compare(self, old: DeclaredGroup, new: DeclaredGroup) -> None:
        self._declared["old"] |= old.packages.keys()
        self._declared["new"] |= new.packages.keys()
        is_lock = old.is_lock or new.is_lock
        if foreign := sorted(old.foreign - new.foreign):
            self._old.problem = self._old.problem or f"{foreign[0].rpartition(' ')[0]} does not come from an index"
        is_used = is_lock or self._is_installed(old, new)
        for side, mine, other in ((self._old, old, new), (self._new, new, old)):
            if is_lock:
                side.pins |= {name: texts[0] for name, texts in mine.packages.items() if len(texts) == 1}
            for name, texts in mine.packages.items():
                is_bump = name in other.packages
                if is_bump and set(texts) == set(other.packages[name]):
                    continue
                if name not in self._installed:
                    if not is_lock and is_used and not is_bump:
                        side.add(name, texts, is_lock=False)
                elif not any(self._versions.is_satisfied(text, self._installed[name]) for text in texts):
                    side.add(name, texts, is_lock=is_lock)
        if not is_lock:
            self._removed |= old.packages.keys() - new.packages.keys()

    def _is_installed(self, old: DeclaredGroup, new: DeclaredGroup) -> bool:
        """Return whether the tests use the group: at least half of what both sides declare in it is installed."""
        shared = old.packages.keys() & new.packages.keys()
        return bool(shared) and 2 * sum(name in self._installed for name in shared) >= len(shared)
