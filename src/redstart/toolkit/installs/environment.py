"""Turn a judgement into requests to the installer, and extend the PATH of an environment."""

from __future__ import annotations

from redstart.ports.install.port import InstallRequest
from redstart.toolkit.installs.judge import PackageJudgement
from redstart.toolkit.installs.manager import managers


def requests_of(judgement: PackageJudgement, interpreter: str = "") -> tuple[InstallRequest, ...]:
    """Build one install request per language; none for a language without requested packages.

    Requests contain only allowed packages: refusals and open questions are settled before.
    """
    made: list[InstallRequest] = []
    for manager in managers():
        wanted = tuple(item for item in judgement.allowed if item.language == manager.key and item.installed)
        if wanted:
            made.append(
                InstallRequest(
                    language=manager.key,
                    requirements=wanted,
                    trusted=tuple(dict.fromkeys(item.name for item in wanted)),
                    own=judgement.own,
                    python=interpreter if manager.needs_interpreter else "",
                )
            )
    return tuple(made)


def with_path(variables: dict[str, str], folder: str, *, last: bool = False) -> dict[str, str]:
    """Add this folder to PATH in the variables."""
    before = [part for part in variables.get("PATH", "").split(":") if part and part != folder]
    return {**variables, "PATH": ":".join([*before, folder] if last else [folder, *before])}
