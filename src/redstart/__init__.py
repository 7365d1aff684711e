"""Redstart: a coding agent that starts red and ends green, or says honestly why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redstart.app.api import audit, create, fix, improve
    from redstart.core.run import RunSpec, RunState

__all__ = ["RunSpec", "RunState", "audit", "create", "fix", "improve"]


def __getattr__(name: str) -> object:
    """What is public is loaded when it is first used: importing the package alone costs next to nothing."""
    if name in ("audit", "create", "fix", "improve"):
        from redstart.app import api

        return getattr(api, name)
    if name in ("RunSpec", "RunState"):
        from redstart.core import run

        return getattr(run, name)
    raise AttributeError(f"module 'redstart' has no attribute {name!r}")
