"""Handle the packages that a changed program requests: nothing new, installed, asked about, or refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.packages import Installed, Packages
from redstart.core.shell import Environment
from redstart.ports.install.port import Installs
from redstart.toolkit.installs.asked import is_manifest, read
from redstart.toolkit.installs.environment import requests_of
from redstart.toolkit.installs.judge import PackageJudgement, judge
from redstart.toolkit.installs.manager import manager_of, managers

Files = Mapping[str, bytes]


class SettledPackages(NamedTuple):
    """What was settled before the current change."""

    packages: Packages
    approved: Sequence[str]
    """Packages that a person approved, each as `language:name`."""
    installed: Installed | None
    before: Files
    """The original files of the project: their requests are the user's own choice."""


class PackageChange(NamedTuple):
    asked: str
    environment: Environment
    locks: dict[str, str] = {}
    asks: str = ""
    """The question to a person; if it is set, nothing was installed."""
    names: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Why packages cannot be installed, one sentence each; if it is set, nothing was installed."""


async def install(
    installer: Installs, environment: Environment, after: Files, known: SettledPackages
) -> PackageChange | None:
    """Judge the packages that the files request, and install them; None if the current environment already has them.

    Raises what the installer raises.
    """
    asked = _digest(after)
    if asked == (known.installed.asked if known.installed else _digest(known.before)):
        return None
    judgement = _judged(after, known)
    refused = tuple(item.reason for item in judgement.refused)
    if refused or judgement.to_approve:
        names = tuple(f"{item.requirement.language}:{item.requirement.name}" for item in judgement.to_approve)
        return PackageChange(asked, environment, asks=judgement.question, names=names, refused=refused)
    requests = requests_of(judgement, environment.python)
    locks: dict[str, str] = {}
    for request in requests:
        prepared = await installer.prepare(request)
        if prepared.refused:
            return PackageChange(asked, environment, refused=tuple(item.reason for item in prepared.refused))
        manager = manager_of(request.language)
        environment = manager.with_packages(environment, prepared)
        locks[manager.lock_name] = prepared.lock
    return PackageChange(asked, environment, locks) if requests else None


def _judged(after: Files, known: SettledPackages) -> PackageJudgement:
    theirs = [f"{item.language}:{item.name}" for item in read(known.before).requirements]
    approved = _by_language((*known.approved, *theirs))
    judgement = judge(after, known.packages.allow, approved)
    if not known.packages.approve or not judgement.to_approve:
        return judgement
    more = [f"{item.requirement.language}:{item.requirement.name}" for item in judgement.to_approve]
    return judge(after, known.packages.allow, _by_language((*known.approved, *theirs, *more)))


def _by_language(names: Sequence[str]) -> dict[str, list[str]]:
    return {
        manager.key: [name for kind, _, name in (item.partition(":") for item in names) if kind == manager.key]
        for manager in managers()
    }


def _digest(files: Files) -> str:
    """Hash the manifests: equal manifests give the same digest, whatever else the project contains."""
    told = hashlib.sha256()
    for path in sorted(filter(is_manifest, files)):
        told.update(f"{path}\x1f{len(files[path])}\x1f".encode())
        told.update(files[path])
    return told.hexdigest()
