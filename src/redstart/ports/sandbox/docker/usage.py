"""What a container used, read while it is still there: of its control group on this machine, else of the daemon."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, NamedTuple, cast

from redstart.ports.sandbox.cgroups import number_after, number_in
from redstart.ports.sandbox.docker.daemon import Api, Refused, listed

KILLED = 137
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


class Usage(NamedTuple):
    """Of all processes of a container together, since it began. Zero where it cannot be known."""

    cpu: float = 0.0
    peak_memory: int = 0
    out_of_memory: int = 0
    """How many processes the kernel ended because the memory was used up."""
    refused_processes: int = 0
    """How often a new process was refused because there were too many."""
    processes: int = 0


class Groups:
    """The control groups of one container, where this machine is also the daemon's and shows them."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders

    @classmethod
    def of(cls, container: str, pid: int) -> Groups | None:
        """None where the process's groups do not carry the container's id: it is then another machine's process."""
        try:
            lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            return None
        folders: dict[str, Path] = {}
        for line in lines:
            _, names, path = line.split(":", 2)
            if container not in path:
                continue
            for name in filter(None, names.split(",")):
                folders[name] = CGROUPS / name / path.lstrip("/")
            if not names:
                folders[""] = CGROUPS / path.lstrip("/")
        kept = {name: folder for name, folder in folders.items() if folder.is_dir()}
        return cls(kept) if {"memory", "cpuacct"} <= kept.keys() or "" in kept else None

    def read(self) -> Usage:
        whole = self._folders.get("")
        if whole is not None and (whole / "memory.events").exists():
            return Usage(
                cpu=number_after(whole / "cpu.stat", "usage_usec") / 1e6,
                peak_memory=number_in(whole / "memory.peak"),
                out_of_memory=number_after(whole / "memory.events", "oom_kill"),
                refused_processes=number_after(whole / "pids.events", "max"),
                processes=number_in(whole / "pids.current"),
            )
        memory, pids = self._folders.get("memory", Path()), self._folders.get("pids", Path())
        return Usage(
            cpu=number_in(self._folders.get("cpuacct", Path()) / "cpuacct.usage") / 1e9,
            peak_memory=number_in(memory / "memory.max_usage_in_bytes"),
            out_of_memory=number_after(memory / "memory.oom_control", "oom_kill"),
            refused_processes=number_after(pids / "pids.events", "max"),
            processes=number_in(pids / "pids.current"),
        )


async def told(api: Api, container: str) -> Usage:
    """What the daemon says: it does not know how many processes were killed or refused."""
    try:
        stats = await api.call("GET", f"/containers/{container}/stats", query={"stream": "false", "one-shot": "true"})
    except Refused:
        return Usage()
    return Usage(
        cpu=_within(stats, "cpu_stats", "cpu_usage", "total_usage") / 1e9,
        peak_memory=_within(stats, "memory_stats", "max_usage"),
        processes=_within(stats, "pids_stats", "current"),
    )


async def killed_for_memory(api: Api, container: str, since: float, *, as_a_whole: bool) -> int:
    """How often the daemon saw the container run out of memory since then.

    A kernel of its own dies `as_a_whole`, and the daemon may hear no more than that: it was killed, by none of the
    daemon's own signals.
    """
    query = {
        "since": f"{since:.6f}",
        "until": f"{time.time():.6f}",
        "filters": json.dumps({"container": [container], "event": ["oom", "kill", "die"]}),
    }
    events = listed(await api.call("GET", "/events", query=query))
    kinds = [str(event["Action"]) for event in events]
    killed = any(event["Actor"]["Attributes"].get("exitCode") == str(KILLED) for event in events)
    return kinds.count("oom") or int(as_a_whole and killed and "kill" not in kinds)


def _within(value: Any, *names: str) -> int:
    for name in names:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int) else 0
