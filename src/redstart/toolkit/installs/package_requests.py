"""Handle the packages that a changed program requests: nothing new, installed, asked about, or refused."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.packages import Installed, Packages
from redstart.core.shell import Environment
from redstart.ports.install.port import Installs
from redstart.toolkit.installs.approval import PackageJudgement, judge
from redstart.toolkit.installs.environment import build_install_requests
from redstart.toolkit.installs.manager import get_manager, list_managers
from redstart.toolkit.installs.requested_packages import is_manifest, read

Files = Mapping[str, bytes]


class SettledPackages(NamedTuple):
    """What was settled before the current change."""

    packages: Packages
    approved_packages: Sequence[str]
    """Packages that a person approved, each as `language:name`."""
    installation: Installed | None
    before: Files
    """The original files of the project: their requests are the user's own choice."""


class PackageChange(NamedTuple):
    request_digest: str
    environment: Environment
    locks: dict[str, str] = {}
    question: str = ""
    """The question to a person; if it is set, nothing was installed."""
    names: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Why packages cannot be installed, one sentence each; if it is set, nothing was installed."""


async def install(
    installer: Installs, environment: Environment, after: Files, settled: SettledPackages
) -> PackageChange | None:
    """Judge the packages that the files request, and install them; None if the current environment already has them.

    Raises what the installer raises.
    """
    digest = _hash_manifests(after)
    if digest == (settled.installation.asked if settled.installation else _hash_manifests(settled.before)):
        return None
    judgement = _judge_packages(after, settled)
    refused = tuple(item.reason for item in judgement.refused)
    if refused or judgement.to_approve:
        names = tuple(f"{item.requirement.language}:{item.requirement.name}" for item in judgement.to_approve)
        return PackageChange(digest, environment, question=judgement.question, names=names, refused=refused)
    requests = build_install_requests(judgement, environment.python)
    locks: dict[str, str] = {}
    for request in requests:
        result = await installer.prepare(request)
        if result.refused:
            return PackageChange(digest, environment, refused=tuple(item.reason for item in result.refused))
        manager = get_manager(request.language)
        environment = manager.with_packages(environment, result)
        locks[manager.lock_name] = result.lock
    return PackageChange(digest, environment, locks) if requests else None


def _judge_packages(after: Files, settled: SettledPackages) -> PackageJudgement:
    existing = [f"{item.language}:{item.name}" for item in read(settled.before).requirements]
    approved = _group_by_language((*settled.approved_packages, *existing))
    judgement = judge(after, settled.packages.allow, approved)
    if not settled.packages.approve or not judgement.to_approve:
        return judgement
    to_approve = [f"{item.requirement.language}:{item.requirement.name}" for item in judgement.to_approve]
    return judge(
        after, settled.packages.allow, _group_by_language((*settled.approved_packages, *existing, *to_approve))
    )


def _group_by_language(names: Sequence[str]) -> dict[str, list[str]]:
    return {
        manager.key: [name for kind, _, name in (item.partition(":") for item in names) if kind == manager.key]
        for manager in list_managers()
    }


def _hash_manifests(files: Files) -> str:
    """Hash the manifests: equal manifests give the same digest, whatever else the project contains."""
    hasher = hashlib.sha256()
    for path in sorted(filter(is_manifest, files)):
        hasher.update(f"{path}\x1f{len(files[path])}\x1f".encode())
        hasher.update(files[path])
    return hasher.hexdigest()
