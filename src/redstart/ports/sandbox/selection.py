"""Choose the sandbox that this machine can provide."""

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
from redstart.ports.sandbox.seatbelt import Seatbelt
from redstart.ports.sandbox.self_test import prove

ANYWAY = "To run without any sandbox, with all your rights, pass `--unsafe-no-sandbox`."
AUTO, BWRAP, DOCKER, SEATBELT, PROCESS = "auto", "bwrap", "docker", "seatbelt", "process"


USERNS_RESTRICTION = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
"""The setting by which Ubuntu lets AppArmor decide which programs may make user namespaces."""


class LackText(NamedTuple):
    """Describes for people what a sandbox lacks."""

    description: str
    short_description: str
    """For a line that already says much else."""
    remedy: str


LACK_TEXTS: dict[SandboxLack, LackText] = {
    SandboxLack.memory_limit: LackText(
        "a common limit on memory and number of processes",
        "no common memory limit",
        "Start redstart in a session that has your own systemd (`loginctl enable-linger` starts one), so that it can "
        "set such a limit. With version 1 of control groups, an administrator can instead create a folder `redstart` "
        "that you own in each of memory, pids, cpu and cpuacct below /sys/fs/cgroup.",
    ),
    SandboxLack.bounded_disk: LackText(
        "a bounded workspace (it is watched instead)",
        "disk watched",
        "An overlay in memory needs Linux 6.6 or newer (5.11 for root), and `unshare`, `setpriv` and `mount` of "
        "util-linux.",
    ),
    SandboxLack.own_user: LackText(
        "a separate user (code in the sandbox can reach root's files)",
        "runs as root",
        "Install `setpriv` and `unshare` of util-linux, or start redstart as an ordinary user.",
    ),
    SandboxLack.call_filter: LackText(
        "a system call filter (unknown processor type)",
        "no system call filter",
        "Use `--sandbox docker`: Docker has a filter for this processor.",
    ),
}


@runtime_checkable
class LimitedSandbox(Protocol):
    """A sandbox that reports what it lacks on this machine."""

    @property
    def lacks(self) -> tuple[SandboxLack, ...]: ...


class SandboxChoice(NamedTuple):
    """What the user asked for. `docker` returns the containers to use, if allowed; it is called when needed."""

    backend: str = AUTO
    docker: Callable[[], ContainerOptions] | None = None


ANY = SandboxChoice()


def choose(workspaces: Workspaces, scratch: Path, *, unsafe: bool = False, choice: SandboxChoice = ANY) -> Sandbox:
    """Return the requested backend, or the strongest one that really works; it is tried, not guessed.

    If none was requested and `unsafe` allows it, a plain process is the last resort. Raises `SandboxUnavailable`, with
    the remedy, if nothing works, and `ConfigError` if no sandbox was requested without that permission.
    """
    if choice.backend == PROCESS:
        if not unsafe:
            raise ConfigError("`process` is not a sandbox", remedy=ANYWAY)
        return Process(workspaces, scratch)
    if choice.backend != AUTO:
        return _create_sandbox(choice.backend, workspaces, scratch, choice)
    refused: list[SandboxUnavailable] = []
    for backend in order(sys.platform, choice):
        try:
            return _create_sandbox(backend, workspaces, scratch, choice)
        except SandboxUnavailable as error:
            refused.append(error)
    if unsafe:
        return Process(workspaces, scratch)
    remedies = dict.fromkeys(filter(None, (*(refusal.remedy for refusal in refused), ANYWAY)))
    raise SandboxUnavailable(" ".join(map(str, refused)), remedy="\n".join(remedies), causes=refused) from refused[0]


def list_lack_texts(sandbox: object, *, restriction_file: Path = USERNS_RESTRICTION) -> tuple[LackText, ...]:
    """List what the sandbox lacks here, with the remedies; empty if it lacks nothing or does not know."""
    missing = sandbox.lacks if isinstance(sandbox, LimitedSandbox) else ()
    return tuple(_get_lack_text(lack, restriction_file) for lack in missing)


def _get_lack_text(lack: SandboxLack, restriction_file: Path) -> LackText:
    """Return the text for people. It mentions AppArmor if that allows namespaces only to bubblewrap."""
    try:
        forbids = lack is SandboxLack.bounded_disk and restriction_file.read_text().strip() == "1"
    except OSError:
        forbids = False
    return LACK_TEXTS[lack]._replace(remedy=APPARMOR) if forbids else LACK_TEXTS[lack]


def order(platform: str, choice: SandboxChoice = ANY) -> tuple[str, ...]:
    """Return the backends of a system in the order in which to try them.

    On Linux bubblewrap comes first: it starts fastest and needs no daemon with root's rights. On macOS it is Docker,
    whose virtual machine has a kernel that can count memory and processes.
    """
    docker = (DOCKER,) if choice.docker else ()
    return (*docker, SEATBELT) if platform == "darwin" else (BWRAP, *docker)


def _create_sandbox(backend: str, workspaces: Workspaces, scratch: Path, choice: SandboxChoice) -> Sandbox:
    """Make that sandbox and try it once. Raises `SandboxUnavailable`."""
    if backend == BWRAP:
        probe(scratch)
        return Bubblewrap(workspaces, scratch)
    if backend == SEATBELT:
        prove(Seatbelt, scratch)
        return Seatbelt(workspaces, scratch)
    if choice.docker is None:
        raise ConfigError("containers cannot be used here")
    choices = choice.docker()
    prove(lambda empty_workspaces, place: Docker(empty_workspaces, place, choices), scratch)
    return Docker(workspaces, scratch, choices)
