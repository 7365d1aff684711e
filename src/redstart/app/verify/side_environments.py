"""An environment for the code of each side, if a change of manifests or lock files needs that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from redstart.app.verify.matrix import VerifiedChange
from redstart.app.wire import AppContext
from redstart.core.errors import ConfigError, PortError
from redstart.core.shell import Environment
from redstart.core.verification import FileRole
from redstart.engines.progress import StepWatch
from redstart.toolkit.installs.requested_packages import read
from redstart.toolkit.installs.sides import ChangedPackages, ManifestChange, PackageVersions, SideNeeds, compare_sides
from redstart.toolkit.languages.registry import find_runner_language
from redstart.toolkit.suites.execute import load_environment

MOST_NAMED = 5
_OLD_REMEDY = "pin the packages in a lock file that Redstart reads, and let pip reach its index"
_NEW_REMEDY = "install the packages that the change names, then verify again"


class SideEnvironment(NamedTuple):
    """The environment of the code of one side."""

    environment: Environment | None = None
    """None for what is installed, which fits, or if it cannot be made."""
    problem: str = ""
    """Why the code of this side cannot run: a part of a sentence; empty if it can."""
    remedy: str = ""


class SideEnvironments(NamedTuple):
    old: SideEnvironment = SideEnvironment()
    new: SideEnvironment = SideEnvironment()
    notes: tuple[str, ...] = ()


async def create_side_environments(app: AppContext, change: VerifiedChange, watch: StepWatch) -> SideEnvironments:
    """Find which sides need other packages than those that are installed, and install these apart.

    None of their code runs. Environments stay for later verifications with the same packages.
    """
    language = find_runner_language(change.new_spec.suite.runner)
    manager = language.packages if language else None
    versions = manager.versions if manager else None
    if versions is None:
        paths = change.list_paths(FileRole.dependencies)
        note = f"both sides ran with the packages that are installed: the versions in {_join(paths)} are not compared"
        return SideEnvironments(notes=(note,) if paths else ())
    environment = load_environment(app.adapters.blobs, change.new_spec)
    packages = compare_sides(versions, _list_changed_files(app, change), environment)
    own = read(dict.fromkeys(app.trees.list_files(change.head), b"")).own_names
    return await _Installation(app, environment, versions, own, watch).prepare(packages)


def with_new_environment(app: AppContext, change: VerifiedChange, new: SideEnvironment) -> VerifiedChange:
    """Return the change with tests of both sides that run in the environment of the new code."""
    if new.environment is None:
        return change
    blob = app.adapters.blobs.put(new.environment.model_dump_json().encode())
    specs = (
        spec.model_copy(update={"suite": spec.suite.model_copy(update={"environment": blob})})
        for spec in (change.old_spec, change.new_spec)
    )
    return change._replace(**dict(zip(("old_spec", "new_spec"), specs, strict=True)))


def _list_changed_files(app: AppContext, change: VerifiedChange) -> Iterable[ManifestChange]:
    for file in change.files:
        before, after = (app.trees.read(tree, file.path) for tree in (change.base, change.head))
        yield ManifestChange(file.path, before, after)


class _Installation:
    def __init__(
        self,
        app: AppContext,
        environment: Environment,
        versions: PackageVersions,
        own: tuple[str, ...],
        watch: StepWatch,
    ) -> None:
        self._installer, self._environment, self._versions = app.adapters.installer, environment, versions
        self._own, self._watch = own, watch
        self._notes: list[str] = []

    async def prepare(self, packages: ChangedPackages) -> SideEnvironments:
        old = await self._prepare_side("old", packages.old, _OLD_REMEDY)
        new = await self._prepare_side("new", packages.new, _NEW_REMEDY)
        if packages.lingering:
            names = _join(packages.lingering)
            self._notes.append(f"still installed here although the change removes it: {names}")
        return SideEnvironments(old, new, tuple(self._notes))

    async def _prepare_side(self, side: str, needs: SideNeeds, remedy: str) -> SideEnvironment:
        if needs.problem:
            return SideEnvironment(problem=needs.problem, remedy=remedy)
        if not needs.packages:
            return SideEnvironment()
        names = _join(needs.packages.values())
        installed = self._versions.list_installed(self._environment)
        request = self._versions.build_request(needs, installed, self._environment)
        request, installer = request.model_copy(update={"own": self._own}), self._installer
        if installer is None:
            return SideEnvironment(problem=f"it needs {names}, and no package can be installed", remedy=remedy)
        self._watch.announce(f"packages of the {side} code")
        try:
            with self._watch.report_execution():
                prepared = await asyncio.to_thread(installer.prepare, request)
        except (PortError, ConfigError) as error:
            return SideEnvironment(problem=f"it needs {names}: {error}", remedy=error.remedy or remedy)
        if prepared.refused:
            reason = prepared.refused[0].reason.rstrip(".")
            return SideEnvironment(problem=f"it needs {names}: {reason}", remedy=remedy)
        self._notes.append(f"the {side} code ran with {names}, installed apart for it")
        return SideEnvironment(self._versions.with_versions(self._environment, prepared))


def _join(names: Iterable[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed[:MOST_NAMED]) + (", ..." if len(listed) > MOST_NAMED else "")
