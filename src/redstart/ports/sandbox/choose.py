"""Which sandbox this machine can give."""

from __future__ import annotations

from pathlib import Path

from redstart.core.errors import SandboxUnavailable
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.port import Sandbox, Workspaces
from redstart.ports.sandbox.process import Process

ANYWAY = "To run without any sandbox, with all your rights, pass `--unsafe-no-sandbox`."


def choose(workspaces: Workspaces, scratch: Path, *, unsafe: bool = False) -> Sandbox:
    """Bubblewrap where it really works, which is tried; else, only if `unsafe` allows it, a plain process.

    Raises `SandboxUnavailable`, with the remedy, where there is neither.
    """
    try:
        probe(scratch)
    except SandboxUnavailable as error:
        if unsafe:
            return Process(workspaces, scratch)
        raise SandboxUnavailable(str(error), remedy=f"{error.remedy} {ANYWAY}".strip()) from error
    return Bubblewrap(workspaces, scratch)
