"""Redstart: a coding agent that starts red and ends green, or says honestly why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redstart.app.api import aaudit, acreate, afix, aimprove, audit, create, fix, improve
    from redstart.app.results import AuditResult, RunResult
    from redstart.core.errors import ConfigError, RedstartError
    from redstart.core.run import Limits, RunSpec, RunState

    __version__: str

__all__ = [
    "AuditResult",
    "ConfigError",
    "Limits",
    "RedstartError",
    "RunResult",
    "RunSpec",
    "RunState",
    "__version__",
    "aaudit",
    "acreate",
    "afix",
    "aimprove",
    "audit",
    "create",
    "fix",
    "improve",
]

_HOMES = {
    **dict.fromkeys(("AuditResult", "RunResult"), "redstart.app.results"),
    **dict.fromkeys(("ConfigError", "RedstartError"), "redstart.core.errors"),
    **dict.fromkeys(("Limits", "RunSpec", "RunState"), "redstart.core.run"),
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: importing the package alone costs next to nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'redstart' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("redstart")
    else:
        from importlib import import_module

        value = getattr(import_module(_HOMES.get(name, "redstart.app.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
