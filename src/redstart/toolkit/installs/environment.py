"""Turn a judgement into requests to the installer, and extend the PATH of an environment."""

from __future__ import annotations

from redstart.ports.install.port import InstallRequest
from redstart.toolkit.installs.approval import PackageJudgement
from redstart.toolkit.installs.manager import list_managers


def build_install_requests(judgement: PackageJudgement, interpreter: str = "") -> tuple[InstallRequest, ...]:
    """Build one install request per language; none for a language without requested packages.

    Requests contain only allowed packages: refusals and open questions are settled before.
    """
    requests: list[InstallRequest] = []
    for manager in list_managers():
        requirements = tuple(item for item in judgement.allowed if item.language == manager.key and item.installed)
        if requirements:
            requests.append(
                InstallRequest(
                    language=manager.key,
                    requirements=requirements,
                    trusted=tuple(dict.fromkeys(item.name for item in requirements)),
                    own=judgement.own,
                    python=interpreter if manager.needs_interpreter else "",
                )
            )
    return tuple(requests)


def with_path(variables: dict[str, str], folder: str, *, last: bool = False) -> dict[str, str]:
    """Add this folder to PATH in the variables."""
    parts = [part for part in variables.get("PATH", "").split(":") if part and part != folder]
    return {**variables, "PATH": ":".join([*parts, folder] if last else [folder, *parts])}
