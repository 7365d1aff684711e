"""Read the packages that a project requests from its manifests, as data. No code of the project runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.manager import PackageManager, list_managers

MAX_FILE_BYTES = 2_000_000
"""Maximum bytes of a file that is read."""
_PASSED_OVER = frozenset({"node_modules", ".venv", "venv", ".git", ".tox", ".nox"})


class RequestedPackages(NamedTuple):
    requirements: tuple[Requirement, ...]
    refused: tuple[PackageRefusal, ...]
    """Requests that no index can serve: an address, a folder, another index, an unreadable line."""
    own_names: tuple[str, ...]
    """The project's own names, including its modules."""


def is_manifest(path: str) -> bool:
    """Return whether the file at this path declares a project's dependencies."""
    return _find_manager(path) is not None


def read(files: Mapping[str, bytes]) -> RequestedPackages:
    """Read the packages that the files request. Files that are not manifests only give the names of the project's
    modules.

    If a manifest cannot be read, its path is refused, because its requests are unknown.
    """
    requirements: list[Requirement] = []
    refused: list[PackageRefusal] = []
    own_names = {name for manager in list_managers() for name in manager.list_modules(files)}
    for path in sorted(path for path in files if is_manifest(path)):
        try:
            requests = list(_read_manifest(path, files[path], own_names))
        except (ValueError, RecursionError) as error:
            refused.append(PackageRefusal(name="", reason=f"{path} cannot be read: {str(error)[:200]}."))
            continue
        requirements += [item for item in requests if isinstance(item, Requirement)]
        refused += [item for item in requests if isinstance(item, PackageRefusal)]
    normalized_names = {manager.normalize(name) for name in own_names for manager in list_managers()}
    remaining = [
        requirement for requirement in dict.fromkeys(requirements) if not _is_itself(requirement, normalized_names)
    ]
    return RequestedPackages(tuple(remaining), tuple(dict.fromkeys(refused)), tuple(sorted(own_names)))


def _is_itself(requirement: Requirement, own_names: set[str]) -> bool:
    """Return whether the project requests itself: `name[extra]` in its own extras, or another package of the
    workspace."""
    return requirement.name in own_names and (
        requirement.text.startswith(f"{requirement.name}[") or requirement.text.startswith("workspace:")
    )


def _read_manifest(path: str, data: bytes, own_names: set[str]) -> Iterator[Requirement | PackageRefusal]:
    if len(data) > MAX_FILE_BYTES:
        raise ValueError("it is too large")
    manager = _find_manager(path)
    if manager is not None:
        yield from manager.read(path, data.decode("utf-8"), own_names)


def _find_manager(path: str) -> PackageManager | None:
    """Return the package manager whose manifest this is; None if it is none."""
    place = PurePosixPath(path)
    if not _PASSED_OVER.isdisjoint(place.parts):
        return None
    return next((manager for manager in list_managers() if manager.is_manifest(place)), None)
