"""Containers whose redstart is gone. They end by themselves when it dies; this removes what a crash still left."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from redstart.ports.sandbox.docker.daemon import Api, Refused, listed
from redstart.ports.sandbox.docker.spec import LABEL, OWNER_LABEL

PROC = Path("/proc")


class Reaper:
    """Removes leftovers, once in its life, before the first container is made."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._done = False
        self.owner = owner_of(os.getpid())

    async def once(self) -> None:
        if not self._done:
            self._done = True
            await reap(self._api)


async def reap(api: Api) -> int:
    """Removes each container whose owner was a process of this machine and is dead. How many that were."""
    filters = json.dumps({"label": [f"{LABEL}=1"]})
    try:
        found = await api.call("GET", "/containers/json", query={"all": "1", "filters": filters})
    except Refused:
        return 0
    count = 0
    for container in listed(found):
        labels: dict[str, str] = container["Labels"] or {}
        if is_dead(labels.get(OWNER_LABEL, "")):
            with contextlib.suppress(Refused):
                await api.call("DELETE", f"/containers/{container['Id']}", query={"force": "1", "v": "1"})
                count += 1
    return count


def owner_of(pid: int) -> str:
    """A process in a word that no other process ever has: the machine's boot, its namespace, its number and start."""
    return "/".join((_boot(), _namespace(), str(pid), _start(pid)))


def is_dead(owner: str) -> bool:
    """Whether that process is gone for sure. One of another container cannot be seen, so it counts as alive."""
    parts = owner.split("/")
    if len(parts) != 4 or not parts[2].isdigit() or not _boot():
        return False
    if parts[0] != _boot():
        return True
    return parts[1] == _namespace() and _start(int(parts[2])) != parts[3]


def _boot() -> str:
    with contextlib.suppress(OSError):
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    return ""


def _namespace() -> str:
    with contextlib.suppress(OSError):
        return (PROC / "self/ns/pid").readlink().name
    return ""


def _start(pid: int) -> str:
    """When a process was started, in ticks since the boot; empty where there is none."""
    with contextlib.suppress(OSError, IndexError):
        about = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        return about.rpartition(")")[2].split()[19]
    return ""
