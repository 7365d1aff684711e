"""Packages that the plan of a new program requests: added to its manifest, judged, and installed before its tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from redstart.core.change import Snapshot
from redstart.core.noun import clip
from redstart.core.packages import Installed, PackageRequest
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.core.visible import one_line
from redstart.ports.bundle import Ports
from redstart.toolkit.installs.asked import is_manifest, read
from redstart.toolkit.installs.manager import PackageManager
from redstart.toolkit.installs.wanted import PackageChange, SettledPackages, install
from redstart.toolkit.languages.registry import ability_of

MOST_PACKAGES = 10
"""Maximum packages that a plan may request."""


def readable_requests(requests: Iterable[PackageRequest], manager: PackageManager) -> tuple[PackageRequest, ...]:
    """Normalize the requested names as the index does, without versions and without modules of the standard library."""
    by_name: dict[str, PackageRequest] = {}
    for request in requests:
        text = clip(request.name.strip(), 100)
        found = manager.versioned.fullmatch(text)
        name = manager.normal(found[1]) if found else text
        if name and not manager.is_built_in(name):
            reason = clip(one_line(request.reason), 120).rstrip(".")
            by_name.setdefault(name, PackageRequest(name=name, reason=reason))
    return tuple(by_name.values())[:MOST_PACKAGES]


def packages_of(run: RunState) -> PackageManager:
    return ability_of(run.spec.suite.runner, lambda language: language.packages)


def manifests_of(ports: Ports, snapshot: Snapshot) -> dict[str, bytes]:
    """Read the project's manifests by path. All other files are included with empty contents."""
    paths = ports.trees.files(snapshot)
    return {path: (ports.trees.read(snapshot, path) or b"") if is_manifest(path) else b"" for path in paths}


def with_planned_packages(run: RunState, ports: Ports) -> RunState:
    """Return the run with a base whose manifest names the packages that were installed for its plan."""
    names = run.packages
    added = add_dependencies(manifests_of(ports, run.spec.base), names, packages_of(run)) if names else {}
    if not added:
        return run
    base = ports.trees.write(run.spec.base, added)
    return run.model_copy(update={"spec": run.spec.model_copy(update={"base": base})})


async def settle_packages(run: RunState, ports: Ports, names: Sequence[str]) -> PackageChange | None:
    """Judge the packages of a plan and install them; None if nothing needs to be installed.

    Raises what the installer raises.
    """
    packages = run.spec.packages
    before = manifests_of(ports, run.spec.base)
    added = add_dependencies(before, names, packages_of(run))
    if packages is None or not added:
        return None
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    known = SettledPackages(packages, run.approved, run.installed, before)
    return await install(ports.installer, environment, {**before, **added}, known)


def keep_installed(ports: Ports, wanted: PackageChange, packages: Sequence[str] = ()) -> Installed:
    """Store what was installed as a value that the run state carries."""
    return Installed(
        asked=wanted.asked,
        environment=ports.blobs.put(wanted.environment.model_dump_json().encode()),
        locks={name: ports.blobs.put(text.encode()) for name, text in wanted.locks.items()},
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
    missing = [name for name in names if manager.normal(name) not in present]
    if not missing:
        return {}
    return manager.add(files, missing)
