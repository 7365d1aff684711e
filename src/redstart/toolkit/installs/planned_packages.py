"""Packages that the plan of a new program requests: added to its manifest, judged, and installed before its tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.packages import Installed, PackageRequest
from redstart.core.run import RunState
from redstart.core.safe_text import to_one_line
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.installs.manager import PackageManager
from redstart.toolkit.installs.package_requests import PackageChange, SettledPackages, install
from redstart.toolkit.installs.requested_packages import is_manifest, read
from redstart.toolkit.languages.registry import get_runner_ability

MOST_PACKAGES = 10
"""Maximum packages that a plan may request."""


def normalize_requests(requests: Iterable[PackageRequest], manager: PackageManager) -> tuple[PackageRequest, ...]:
    """Normalize the requested names as the index does, without versions and without modules of the standard library."""
    by_name: dict[str, PackageRequest] = {}
    for request in requests:
        text = clip(request.name.strip(), 100)
        match = manager.versioned.fullmatch(text)
        name = manager.normalize(match[1]) if match else text
        if name and not manager.is_built_in(name):
            reason = clip(to_one_line(request.reason), 120).rstrip(".")
            by_name.setdefault(name, PackageRequest(name=name, reason=reason))
    return tuple(by_name.values())[:MOST_PACKAGES]


def get_package_manager(run: RunState) -> PackageManager:
    return get_runner_ability(run.spec.suite.runner, lambda language: language.packages)


def read_manifests(ports: Ports, snapshot: Snapshot) -> dict[str, bytes]:
    """Read the project's manifests by path. All other files are included with empty contents."""
    paths = ports.trees.list_files(snapshot)
    return {path: (ports.trees.read(snapshot, path) or b"") if is_manifest(path) else b"" for path in paths}


def with_planned_packages(run: RunState, ports: Ports) -> RunState:
    """Return the run with a base whose manifest names the packages that were installed for its plan."""
    names = run.packages
    added = add_dependencies(read_manifests(ports, run.spec.base), names, get_package_manager(run)) if names else {}
    if not added:
        return run
    base = ports.trees.write(run.spec.base, added)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"base": base})})


async def settle_packages(run: RunState, ports: Ports, names: Sequence[str]) -> PackageChange | None:
    """Judge the packages of a plan and install them; None if nothing needs to be installed.

    Raises what the installer raises.
    """
    packages = run.spec.packages
    manifests = read_manifests(ports, run.spec.base)
    added = add_dependencies(manifests, names, get_package_manager(run))
    if packages is None or not added:
        return None
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    settled = SettledPackages(packages, run.approved, run.installed, manifests)
    return await install(ports.installer, environment, {**manifests, **added}, settled)


def keep_installed(ports: Ports, package_change: PackageChange, packages: Sequence[str] = ()) -> Installed:
    """Store what was installed as a value that the run state carries."""
    return Installed(
        asked=package_change.request_digest,
        environment=ports.blobs.put(package_change.environment.model_dump_json().encode()),
        locks={name: ports.blobs.put(text.encode()) for name, text in package_change.locks.items()},
        packages=tuple(packages),
    )


def add_dependencies(files: Mapping[str, bytes], names: Sequence[str], manager: PackageManager) -> dict[str, bytes]:
    """Add these packages to the project's manifest; empty if it names them already, or has no list of
    dependencies."""
    present = {
        requirement.name
        for requirement in read(files).requirements
        if requirement.language == manager.key and requirement.installed
    }
    missing = [name for name in names if manager.normalize(name) not in present]
    if not missing:
        return {}
    return manager.add(files, missing)
