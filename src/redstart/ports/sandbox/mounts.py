"""What is visible in a bubblewrap sandbox, as its arguments: chosen parts of the host, never its root."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from redstart.core.errors import ConfigError
from redstart.core.shell import HOST_NAME, Environment, SandboxLimits
from redstart.ports.sandbox.stage import get_writable_size

USER = 1000
INPUT_FOLDER, OUTPUT_FOLDER, OBJECTS = "/run/redstart/in", "/run/redstart/out", "/run/redstart/objects"
"""Where a sandbox finds its input files, leaves files for collection, and reads git's objects."""
TEMPORARY, ALSO_TEMPORARY, SHARED_MEMORY = "/tmp", "/var/tmp", "/dev/shm"  # noqa: S108 (each sandbox has its own)
SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "mime.types",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
)
"""What programs need of `/etc` and what says nothing about the host's users. The rest is generated."""
UTC = "/usr/share/zoneinfo/Etc/UTC"
"""The time zone inside, the same on every machine. The zone folders of some systems link to `/etc/localtime`."""
LARGEST_TMPFS = 1 << 30

Mount = tuple[str, tuple[str, ...]]
"""A path inside, and the arguments that put something there."""


def generate_etc_files(home: str, hostname: str = "") -> dict[str, str]:
    """Generate the files of `/etc` that would otherwise reveal the host's users and its network."""
    return {
        "passwd": f"app:x:{USER}:{USER}::{home}:/bin/sh\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
        "group": f"app:x:{USER}:\nnogroup:x:65534:\n",
        "hosts": f"127.0.0.1 localhost {hostname or HOST_NAME}\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
    }


def mount_arguments(
    environment: Environment,
    limits: SandboxLimits,
    *,
    workspace: Path,
    folders: dict[str, tuple[Path, bool]],
    etc: dict[str, int],
    bounded_tmpfs: bool,
    temporary: Mapping[str, str] | None = None,
    source: Callable[[str], str] = str,
) -> list[str]:
    """Build the arguments for all mounts. `folders` maps a path inside to a folder and whether it is writable.

    `etc` maps names in `/etc` to descriptors from which their text can be read. `bounded_tmpfs` is false if this
    bubblewrap cannot bound a tmpfs. `temporary` maps temporary folders, including home, to folders that are already
    bounded; the others become a tmpfs each. `source` returns where a path is found on the host.
    """
    mount, home = normalize_path(environment.mount), normalize_path(environment.home)
    size, bounded_folders = min(get_writable_size(limits), LARGEST_TMPFS), temporary or {}

    def mount_scratch(path: str, mode: str) -> Mount:
        bound = ("--bind", bounded_folders[path], path, "--chmod", mode, path) if path in bounded_folders else None
        return (path, bound) if bound else _mount_tmpfs(path, size, bounded_tmpfs, mode)

    mounts: list[Mount] = [
        *_mount_system(),
        *(
            (f"/etc/{name}", ("--ro-bind", f"/etc/{name}", f"/etc/{name}"))
            for name in ETC
            if Path("/etc", name).exists()
        ),
        *((f"/etc/{name}", ("--perms", "0444", "--file", str(fd), f"/etc/{name}")) for name, fd in etc.items()),
        *((("/etc/localtime", ("--symlink", UTC, "/etc/localtime")),) if Path(UTC).exists() else ()),
        ("/proc", ("--proc", "/proc")),
        ("/dev", ("--dev", "/dev")),
        mount_scratch(SHARED_MEMORY, "1777"),
        _mount_tmpfs("/run", 1 << 20, bounded_tmpfs, "0755"),
        mount_scratch(TEMPORARY, "1777"),
        (ALSO_TEMPORARY, ("--symlink", TEMPORARY, ALSO_TEMPORARY)),
        mount_scratch(home, "0700"),
        *_read_only(environment, mount, source),
        (mount, ("--bind", str(workspace), mount)),
    ]
    for path, (folder, writable) in folders.items():
        mounts.append((path, ("--bind" if writable else "--ro-bind", source(str(folder)), path)))
    # A folder comes before its content, or it would hide it.
    mounts.sort(key=lambda item: item[0].count("/"))
    # The rest of the root is a tmpfs without a bound, so it becomes read-only at the end.
    return [argument for _, arguments in mounts for argument in arguments] + [
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
    ]


def _mount_system() -> list[Mount]:
    """Mount the system's programs and libraries as on the host, since programs find their libraries by path."""
    mounts: list[Mount] = [("/usr", ("--ro-bind", "/usr", "/usr"))]
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            mounts.append((name, ("--symlink", str(path.readlink()), name)))
        elif path.is_dir():
            mounts.append((name, ("--ro-bind", name, name)))
    return mounts


def _read_only(environment: Environment, mount: str, source: Callable[[str], str]) -> list[Mount]:
    mounts: list[Mount] = []
    for path in map(normalize_path, environment.read_only):
        there_already = _is_within(path, "/usr", *SYSTEM) and not _is_within(path, mount)
        if path != mount and not there_already and Path(path).exists():
            mounts.append((path, ("--ro-bind", source(path), path)))
    return mounts


def _mount_tmpfs(path: str, size: int, bounded_tmpfs: bool, mode: str) -> Mount:
    return path, ("--perms", mode, *(("--size", str(size)) if bounded_tmpfs else ()), "--tmpfs", path)


def normalize_path(path: str) -> str:
    """Return the path without `.` and `..`. Raises `ConfigError` if it is relative or the root itself."""
    normalized = os.path.normpath(path)
    if not normalized.startswith("/") or normalized.strip("/") == "":
        raise ConfigError(f"a path in a sandbox must be absolute and not the root itself: {path!r}")
    return normalized


def _is_within(path: str, *folders: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
