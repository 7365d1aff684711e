"""Read the packages that a project requests from its manifests, as data. No code of the project runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.manager import PackageManager, managers

LARGEST = 2_000_000
"""Maximum bytes of a file that is read."""
_PASSED_OVER = frozenset({"node_modules", ".venv", "venv", ".git", ".tox", ".nox"})


class RequestedPackages(NamedTuple):
    requirements: tuple[Requirement, ...]
    refused: tuple[PackageRefusal, ...]
    """Requests that no index can serve: an address, a folder, another index, an unreadable line."""
    own: tuple[str, ...]
    """The project's own names, including its modules."""


def is_manifest(path: str) -> bool:
    """Return whether the file at this path declares a project's dependencies."""
    return _manager(path) is not None


def read(files: Mapping[str, bytes]) -> RequestedPackages:
    """Read the packages that the files request. Files that are not manifests only give the names of the project's
    modules.

    An unreadable manifest becomes a refusal with its path, because its requests are unknown.
    """
    requirements: list[Requirement] = []
    refused: list[PackageRefusal] = []
    own = {name for manager in managers() for name in manager.modules(files)}
    for path in sorted(path for path in files if is_manifest(path)):
        try:
            found = list(_of_file(path, files[path], own))
        except (ValueError, RecursionError) as error:
            refused.append(PackageRefusal(name="", reason=f"{path} cannot be read: {str(error)[:200]}."))
            continue
        requirements += [item for item in found if isinstance(item, Requirement)]
        refused += [item for item in found if isinstance(item, PackageRefusal)]
    ours = {manager.normal(name) for name in own for manager in managers()}
    kept = [requirement for requirement in dict.fromkeys(requirements) if not _is_itself(requirement, ours)]
    return RequestedPackages(tuple(kept), tuple(dict.fromkeys(refused)), tuple(sorted(own)))


def _is_itself(one: Requirement, own: set[str]) -> bool:
    """Return whether the project requests itself: `name[extra]` in its own extras, or another package of the
    workspace."""
    return one.name in own and (one.text.startswith(f"{one.name}[") or one.text.startswith("workspace:"))


def _of_file(path: str, data: bytes, own: set[str]) -> Iterator[Requirement | PackageRefusal]:
    if len(data) > LARGEST:
        raise ValueError("it is too large")
    manager = _manager(path)
    if manager is not None:
        yield from manager.read(path, data.decode("utf-8"), own)


def _manager(path: str) -> PackageManager | None:
    """Return the package manager whose manifest this is; None if it is none."""
    place = PurePosixPath(path)
    if not _PASSED_OVER.isdisjoint(place.parts):
        return None
    return next((manager for manager in managers() if manager.is_manifest(place)), None)
