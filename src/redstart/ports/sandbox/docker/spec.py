"""The description of a container for the daemon: what it may use, and what is visible in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from redstart.core.errors import ConfigError
from redstart.core.shell import HOST_NAME, Environment, SandboxLimits
from redstart.ports.sandbox.docker.seccomp import build_profile
from redstart.ports.sandbox.mounts import (
    ALSO_TEMPORARY,
    INPUT_FOLDER,
    OBJECTS,
    OUTPUT_FOLDER,
    SYSTEM,
    TEMPORARY,
    USER,
    generate_etc_files,
    normalize_path,
)
from redstart.ports.sandbox.stage import get_writable_size

SOURCE = "/run/redstart/workspace"
"""The folder from which the files of the workspace are copied."""
LABEL, OWNER_LABEL = "redstart.sandbox", "redstart.owner"
OWN_PROGRAMS = "/usr/local"
"""The only part of `/usr` that is taken from the host: the rest is the image's own."""
MASKED_PATHS = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug"),
    *("/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys"),
)
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
GVISOR, GVISOR_TIMES, GVISOR_PROCESSES = "runsc", 16, 400
"""That kernel is itself a program with threads, some for each process in it. They count here, and it dies if one is
refused, so it is only held to a multiple of the limit; it refuses excess processes by itself."""
OWN_PROCESSES = 3
"""Process 1 with its child, and the shell around the command."""
SMALL = 1 << 20
WAITS_FOR_ITS_END = ("/bin/sh", "-c", "until cat >/dev/null; do :; done")
"""Process 1. Its input is a connection of ours, so it ends, and the container with it, when the connection is gone,
even if this program is killed. A shell that waits for its child also reaps all orphans."""
KEEPER = "65534:65534"
"""The owner of process 1: nobody, so that no command can stop it, inspect it or write to it."""

AT_ONCE_FREE = {"net.ipv4.tcp_max_tw_buckets": "0"}
"""A port is free again as soon as it is closed, as in an unused container."""

PathMap = tuple[tuple[str, str], ...]
"""Folders as seen here, and as the daemon's machine has them: for redstart that runs in a container itself."""


class User(NamedTuple):
    uid: int
    gid: int


class WorkspaceSize(NamedTuple):
    """The size of a snapshot's files: the workspace is in memory, and gets this much beyond the writable size."""

    size: int = 0
    files: int = 0


NO_ROOM = WorkspaceSize()


class ContainerFolders(NamedTuple):
    """The folders of this machine that one container sees, all of them read-only."""

    workspace: Path
    input_folder: Path
    etc: Path
    """Where the generated files of `/etc` are written."""
    services: Path | None = None
    hostname: str = HOST_NAME


def get_container_user() -> User:
    """Return the user of the command: never root, but the owner of the workspace, so that it may write there."""
    return User(USER, USER) if os.geteuid() == 0 else User(os.geteuid(), os.getegid())


def describe_container(
    environment: Environment,
    limits: SandboxLimits,
    place: ContainerFolders,
    *,
    image: str,
    runtime: str = "",
    user: User,
    workspace_size: WorkspaceSize = NO_ROOM,
    path_map: PathMap = (),
    owner: str = "",
) -> dict[str, object]:
    """Build the whole description of a container. Raises `ConfigError` if a path cannot be mounted."""
    bounds = {
        normalize_path(environment.mount): _format_bounds(limits, user, workspace_size),
        OUTPUT_FOLDER: _format_bounds(limits, user, NO_ROOM),
    }
    kernel_counts = runtime != GVISOR
    host: dict[str, object] = {
        "NetworkMode": "none",
        "IpcMode": "private",
        "ReadonlyRootfs": True,
        "Privileged": False,
        "AutoRemove": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", f"seccomp={build_profile()}"],
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READ_ONLY),
        "Memory": limits.memory + workspace_size.size,
        "MemorySwap": limits.memory + workspace_size.size,
        "PidsLimit": limits.processes + OWN_PROCESSES
        if kernel_counts
        else limits.processes * GVISOR_TIMES + GVISOR_PROCESSES,
        "OomScoreAdj": 500,
        "ShmSize": get_writable_size(limits),
        "Tmpfs": _build_tmpfs(environment, limits, user) | (bounds if kernel_counts else {}),
        "Mounts": _build_mounts(environment, place, user, path_map) + ([] if kernel_counts else _build_volumes(bounds)),
        "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        "LogConfig": {"Type": "none"},
        "Sysctls": {} if runtime == GVISOR else dict(AT_ONCE_FREE),
    }
    if limits.cpus:
        host["NanoCpus"] = int(limits.cpus * 1e9)
    if runtime:
        host["Runtime"] = runtime
    return {
        "Image": image,
        "User": KEEPER,
        "Hostname": place.hostname,
        "Entrypoint": list(WAITS_FOR_ITS_END),
        "Cmd": [],
        "WorkingDir": "/",
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "Labels": {LABEL: "1", OWNER_LABEL: owner},
        "HostConfig": host,
    }


def map_to_daemon(path: str, path_map: PathMap) -> str:
    """Map a path of this machine to the daemon's machine: the longest folder of the map that holds it decides."""
    for local, remote in sorted(path_map, key=lambda pair: -len(pair[0])):
        if PurePosixPath(path).is_relative_to(local):
            return str(PurePosixPath(remote, PurePosixPath(path).relative_to(local)))
    return path


def parse_path_map(texts: Sequence[str]) -> PathMap:
    """Parse `here=there` for each folder. Raises `ConfigError` for any other text."""
    pairs: list[tuple[str, str]] = []
    for text in texts:
        local, separator, remote = text.partition("=")
        if not (separator and local.startswith("/") and remote.startswith("/")):
            raise ConfigError(
                f"not a pair of folders: {text!r}",
                remedy="write it as /folder/in/this/container=/same/folder/on/the/machine",
            )
        pairs.append((os.path.normpath(local), os.path.normpath(remote)))
    return tuple(pairs)


def _build_tmpfs(environment: Environment, limits: SandboxLimits, user: User) -> dict[str, str]:
    size = get_writable_size(limits)
    common_options = "rw,exec,nosuid,nodev"
    shared_options = f"{common_options},size={size},nr_inodes={limits.inodes},mode=1777"
    own_options = f"{common_options},size={size},nr_inodes={limits.inodes},mode=0700,uid={user.uid},gid={user.gid}"
    return {
        TEMPORARY: shared_options,
        ALSO_TEMPORARY: shared_options,
        "/run": f"{common_options},size={SMALL},mode=0755,uid={user.uid},gid={user.gid}",
        normalize_path(environment.home): own_options,
    }


def _format_bounds(limits: SandboxLimits, user: User, extra: WorkspaceSize) -> str:
    size, files = get_writable_size(limits) + extra.size, limits.inodes + extra.files
    return f"rw,exec,nosuid,nodev,size={size},nr_inodes={files},mode=0755,uid={user.uid},gid={user.gid}"


def _build_volumes(bounds: dict[str, str]) -> list[dict[str, object]]:
    """Return the same as volumes of the host: gVisor's own file systems in memory do not limit the number of files.

    They have no name, so they are removed with their container.
    """
    return [
        {
            "Type": "volume",
            "Target": path,
            "VolumeOptions": {
                "NoCopy": True,
                "DriverConfig": {"Name": "local", "Options": {"type": "tmpfs", "device": "tmpfs", "o": options}},
            },
        }
        for path, options in bounds.items()
    ]


def _build_mounts(
    environment: Environment, place: ContainerFolders, user: User, path_map: PathMap
) -> list[dict[str, object]]:
    place.etc.mkdir(exist_ok=True)
    texts = {
        **generate_etc_files(environment.home, place.hostname),
        "resolv.conf": "",
        "hostname": f"{place.hostname}\n",
    }
    sources: dict[str, str] = {}
    for name, text in texts.items():
        (place.etc / name).write_text(text.replace(f":{USER}:", f":{user.uid}:"), encoding="utf-8")
        (place.etc / name).chmod(0o644)
        sources[f"/etc/{name}"] = str(place.etc / name)
    mount = normalize_path(environment.mount)
    for path in map(normalize_path, environment.read_only):
        if path != mount and not _is_in_image(path, mount) and Path(path).exists():
            sources[path] = path
    if environment.git_objects and Path(environment.git_objects).is_dir():
        sources[OBJECTS] = environment.git_objects
    sources[SOURCE] = str(place.workspace)
    sources[INPUT_FOLDER] = str(place.input_folder)
    if place.services:
        sources["/run/redstart/services"] = str(place.services)
    return [
        {
            "Type": "bind",
            "Source": map_to_daemon(source, path_map),
            "Target": target,
            "ReadOnly": True,
            "BindOptions": {"Propagation": "rprivate"},
        }
        for target, source in sorted(sources.items(), key=lambda item: item[0].count("/"))
    ]


def list_inner_mounts(environment: Environment) -> list[PurePosixPath]:
    """List what the environment mounts inside the workspace, relative to it."""
    mount = PurePosixPath(normalize_path(environment.mount))
    paths = (PurePosixPath(normalize_path(path)) for path in environment.read_only if Path(path).exists())
    return [path.relative_to(mount) for path in paths if path != mount and path.is_relative_to(mount)]


def _is_in_image(path: str, mount: str) -> bool:
    pure = PurePosixPath(path)
    if pure.is_relative_to(mount) or pure.is_relative_to(OWN_PROGRAMS):
        return False
    return any(pure.is_relative_to(folder) for folder in ("/usr", *SYSTEM))
