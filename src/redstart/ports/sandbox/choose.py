"""Which sandbox this machine can give."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.sandbox.bwrap import APPARMOR, Bubblewrap, probe
from redstart.ports.sandbox.docker.sandbox import ContainerOptions, Docker
from redstart.ports.sandbox.port import Sandbox, SandboxLack, Workspaces
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.prove import prove
from redstart.ports.sandbox.seatbelt import Seatbelt

ANYWAY = "To run without any sandbox, with all your rights, pass `--unsafe-no-sandbox`."
AUTO, BWRAP, DOCKER, SEATBELT, PROCESS = "auto", "bwrap", "docker", "seatbelt", "process"


RESTRICTED = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
"""By which Ubuntu lets AppArmor decide which programs may make user namespaces."""


class LackText(NamedTuple):
    """What a sandbox lacks, for people."""

    words: str
    short: str
    """For a line that says much else."""
    remedy: str


LACKS: dict[SandboxLack, LackText] = {
    SandboxLack.memory_limit: LackText(
        "a limit on memory and processes of all together",
        "no common memory limit",
        "Start redstart where a systemd of your own runs (`loginctl enable-linger` starts one): it lets redstart "
        "make such a limit. With version 1 of control groups, an administrator can make a folder `redstart` that "
        "is yours in memory, pids, cpu and cpuacct of /sys/fs/cgroup instead.",
    ),
    SandboxLack.bounded_disk: LackText(
        "a bounded workspace (it is watched instead)",
        "disk watched",
        "An overlay in memory needs Linux 6.6 or newer (5.11 for root), and `unshare`, `setpriv` and `mount` of "
        "util-linux.",
    ),
    SandboxLack.own_user: LackText(
        "a user of its own (it has root's files in reach)",
        "runs as root",
        "Install `setpriv` and `unshare` of util-linux, or start redstart as an ordinary user.",
    ),
    SandboxLack.call_filter: LackText(
        "a filter of system calls (this kind of processor is not known)",
        "no filter of system calls",
        "`--sandbox docker` has one for this processor.",
    ),
}


@runtime_checkable
class LimitedSandbox(Protocol):
    """A sandbox that knows what it could not get."""

    @property
    def lacks(self) -> tuple[SandboxLack, ...]: ...


class SandboxChoice(NamedTuple):
    """What the user asked for. `docker` says which containers, where there may be such; it is called when needed."""

    backend: str = AUTO
    docker: Callable[[], ContainerOptions] | None = None


ANY = SandboxChoice()


def choose(workspaces: Workspaces, scratch: Path, *, unsafe: bool = False, wanted: SandboxChoice = ANY) -> Sandbox:
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
    raise SandboxUnavailable(" ".join(map(str, refused)), remedy="\n".join(remedies), causes=refused) from refused[0]


def lacks_of(sandbox: object, *, restricted: Path = RESTRICTED) -> tuple[LackText, ...]:
    """What it lacks here, with what to do about each; nothing of one that lacks nothing, or does not know."""
    lacks = sandbox.lacks if isinstance(sandbox, LimitedSandbox) else ()
    return tuple(_text_of(lack, restricted) for lack in lacks)


def _text_of(lack: SandboxLack, restricted: Path) -> LackText:
    """With AppArmor's part in it told: it may let bubblewrap make namespaces, and nobody else."""
    try:
        forbids = lack is SandboxLack.bounded_disk and restricted.read_text().strip() == "1"
    except OSError:
        forbids = False
    return LACKS[lack]._replace(remedy=APPARMOR) if forbids else LACKS[lack]


def order(platform: str, wanted: SandboxChoice = ANY) -> tuple[str, ...]:
    """The backends of a system, the one to be tried first at the front.

    On Linux bubblewrap: it starts fastest and needs no daemon with root's rights. On macOS Docker, whose machine has a
    kernel that can count memory and processes.
    """
    docker = (DOCKER,) if wanted.docker else ()
    return (*docker, SEATBELT) if platform == "darwin" else (BWRAP, *docker)


def _made(backend: str, workspaces: Workspaces, scratch: Path, wanted: SandboxChoice) -> Sandbox:
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
