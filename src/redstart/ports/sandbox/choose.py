"""Which sandbox this machine can give."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.docker import Choices, Docker
from redstart.ports.sandbox.port import Sandbox, Workspaces
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.prove import prove
from redstart.ports.sandbox.seatbelt import Seatbelt

ANYWAY = "To run without any sandbox, with all your rights, pass `--unsafe-no-sandbox`."
AUTO, BWRAP, DOCKER, SEATBELT, PROCESS = "auto", "bwrap", "docker", "seatbelt", "process"


class Wanted(NamedTuple):
    """What the user asked for. `docker` says which containers, where there may be such; it is called when needed."""

    backend: str = AUTO
    docker: Callable[[], Choices] | None = None


ANY = Wanted()


def choose(workspaces: Workspaces, scratch: Path, *, unsafe: bool = False, wanted: Wanted = ANY) -> Sandbox:
    """The backend that was asked for, or the strongest that really works, which is tried, not guessed.

    Only where none was named and `unsafe` allows it, a plain process is the last resort. Raises `SandboxUnavailable`,
    with the remedy, where there is nothing, and `ConfigError` where no sandbox was asked for without that leave.
    """
    if wanted.backend == PROCESS:
        if not unsafe:
            raise ConfigError("`process` is no sandbox", remedy=ANYWAY)
        return Process(workspaces, scratch)
    if wanted.backend != AUTO:
        return _made(wanted.backend, workspaces, scratch, wanted)
    refused: list[SandboxUnavailable] = []
    for backend in order(sys.platform, wanted):
        try:
            return _made(backend, workspaces, scratch, wanted)
        except SandboxUnavailable as error:
            refused.append(error)
    if unsafe:
        return Process(workspaces, scratch)
    remedies = dict.fromkeys(filter(None, (*(each.remedy for each in refused), ANYWAY)))
    raise SandboxUnavailable(" ".join(map(str, refused)), remedy=" ".join(remedies)) from refused[0]


def order(platform: str, wanted: Wanted = ANY) -> tuple[str, ...]:
    """The backends of a system, the one to be tried first at the front.

    On Linux bubblewrap: it starts fastest and needs no daemon with root's rights. On macOS Docker, whose machine has a
    kernel that can count memory and processes.
    """
    docker = (DOCKER,) if wanted.docker else ()
    return (*docker, SEATBELT) if platform == "darwin" else (BWRAP, *docker)


def _made(backend: str, workspaces: Workspaces, scratch: Path, wanted: Wanted) -> Sandbox:
    """That sandbox, tried once. Raises `SandboxUnavailable`."""
    if backend == BWRAP:
        probe(scratch)
        return Bubblewrap(workspaces, scratch)
    if backend == SEATBELT:
        prove(Seatbelt, scratch)
        return Seatbelt(workspaces, scratch)
    if wanted.docker is None:
        raise ConfigError("no container may be used here")
    choices = wanted.docker()
    prove(lambda nothing, place: Docker(nothing, place, choices), scratch)
    return Docker(workspaces, scratch, choices)
