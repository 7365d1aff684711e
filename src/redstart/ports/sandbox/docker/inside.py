"""The script around a command in a container: it fills the workspace first, and hands out collected files at the end.

Everything that a command can write to has a limited size, so none of it is a folder of the host. The workspace is
copied into the container, and collected files come back over the connection, as the daemon's second stream. The
command's own two streams are merged, as everywhere, and use the first.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from posixpath import join
from typing import NamedTuple

from redstart.core.shell import Environment, Execution, SandboxLimits
from redstart.ports.sandbox.docker.spec import SOURCE, User
from redstart.ports.sandbox.files import LARGEST_COLLECTED, build_variables, fill_placeholders, get_requested_variables
from redstart.ports.sandbox.launch import build_limited_command
from redstart.ports.sandbox.mounts import ALSO_TEMPORARY, INPUT_FOLDER, OUTPUT_FOLDER, SHARED_MEMORY, TEMPORARY

READY = b"R"
"""The first byte of the second stream, once everything is in place. No untrusted code has run before it."""
NOT_READY = 125
OWN_PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
QUEUES = "/dev/mqueue"
RESERVED = 64 << 30
"""Address space beyond the allowed memory: heaps of Node and the like reserve much and use little of it."""
UNKEPT = "^cp: preserving \\|^cp: can.t preserve "
"""What two kinds of `cp` print about a file's mode, time or owner that cannot be set."""
MAX_MESSAGE_BYTES = 1000
BLOCK = 512
TIMES = re.compile(rb"\S+ \S+\n(\d+)m(\d+\.\d+)s (\d+)m(\d+\.\d+)s\n")
SPACE = re.compile(rb"D(\d+) (\d+) (\d+)\n")
FILE = re.compile(rb"F\./([^\0]+)\0 *(\d+)\0")


class ContainerCommand(NamedTuple):
    """A command for a container."""

    argv: tuple[str, ...]
    variables: dict[str, str]
    limits: SandboxLimits
    user: str = ""
    """The user and group IDs it runs as; empty for the container's own user."""
    framed: bool = False
    """Whether `build_command` made it: it then reports when it is ready, and uses the second stream itself."""
    fetch: tuple[str, ...] = ()
    """A command that hands out the collected files if the main command had to be stopped."""
    max_stderr: int = 0
    """The maximum size of the second stream."""


class ContainerFiles(NamedTuple):
    """The content of the second stream."""

    files: dict[str, bytes]
    """By name."""
    full: bool
    """Whether a file system of the container was full at the end."""
    cpu: float
    """Seconds of processor time of all processes that were waited for, as counted by the kernel inside."""


def build_command(
    execution: Execution,
    user: User,
    *,
    setup_command: Sequence[str] = (),
    is_reused: bool = False,
    own_kernel: bool = False,
) -> ContainerCommand:
    """Build the command to run for an execution.

    `setup_command` has to succeed first, and `is_reused` is for a container used before. A container with its own
    kernel must limit some things itself, because the host's kernel sees none of its processes.
    """
    environment, limits = execution.environment, execution.limits
    requested = {
        name: fill_placeholders(value, INPUT_FOLDER, OUTPUT_FOLDER)
        for name, value in get_requested_variables(execution).items()
    }
    inside = build_variables(environment.python, requested, home=environment.home, temporary=TEMPORARY)
    command = build_limited_command(
        limits,
        join(environment.mount, execution.cwd),
        [fill_placeholders(argument, INPUT_FOLDER, OUTPUT_FOLDER) for argument in execution.argv],
        setup_command=setup_command,
    )
    setup_steps = (OWN_PATH, *(_build_empty_steps(environment) if is_reused else ()), *_build_fill_steps(environment))
    finish = build_handout_script(environment, execution.collect)
    script = [
        "exec 3>&1 4>&2 >/dev/null 2>&1",
        *(() if "HOSTNAME" in inside else ("unset HOSTNAME",)),
        f"({'; '.join(setup_steps)}) || exit {NOT_READY}",
        # Processes that the command leaves running are ended with it, or its output would not end. If the kernel then
        # refuses a process for the next steps, the shell gives up; its exit code is still the command's.
        f'({_format_limits(limits) if own_kernel else ""}exec "$@" >&3 2>&3 3>&- 4>&-); code=$?',
        'trap "exit $code" EXIT; kill -9 -1; times >&4',
        f"{finish}; exit $code",
    ]
    return ContainerCommand(
        argv=("/bin/sh", "-c", "\n".join(script), "sh", *command),
        variables=inside,
        limits=limits,
        user=f"{user.uid}:{user.gid}",
        framed=True,
        fetch=("/bin/sh", "-c", f"exec 4>&2 >/dev/null 2>&1; kill -9 -1; {finish}") if execution.collect else (),
        max_stderr=(1 << 20) + len(execution.collect) * (LARGEST_COLLECTED + 4096),
    )


def parse_files(stream: bytes) -> ContainerFiles:
    """Parse the second stream. A malformed part was written by the command: it and the rest are ignored."""
    files: dict[str, bytes] = {}
    full, cpu, position = False, 0.0, 0
    if times := TIMES.match(stream):
        minutes_and_seconds = [float(number) for number in times.groups()]
        cpu = sum(minutes_and_seconds[::2]) * 60 + sum(minutes_and_seconds[1::2])
        position = times.end()
    while True:
        if space := SPACE.match(stream, position):
            blocks, total, free = map(int, space.groups())
            full = full or blocks == 0 or (total > 0 and free == 0)
            position = space.end()
        elif file := FILE.match(stream, position):
            position = file.end() + int(file[2])
            if position > len(stream):
                break
            files[file[1].decode("utf-8", "surrogateescape")] = stream[file.end() : position]
        else:
            break
    return ContainerFiles(files, full, cpu)


def keep(files: dict[str, bytes], names: Sequence[str], folder: Path) -> None:
    """Write the requested files into a folder of ours."""
    for name in {str(PurePosixPath(name)) for name in names} & files.keys():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])


def _format_limits(limits: SandboxLimits) -> str:
    """Set limits for gVisor: it counts processes by user, including the shell, and of memory only what is reserved."""
    max_processes, kilobytes = limits.processes + 1, (limits.memory + RESERVED) // 1024
    return f"ulimit -p {max_processes} || ulimit -u {max_processes}; ulimit -v {kilobytes}; "


def _build_fill_steps(environment: Environment) -> tuple[str, ...]:
    """Fill the workspace.

    The folder above a mount within the workspace is root's, so its mode and time cannot be set.
    """
    target = shlex.quote(environment.mount)
    return (
        f'lost=$(cp -a {SOURCE}/. {target}/ 2>&1 | grep -v "{UNKEPT}" | head -c {MAX_MESSAGE_BYTES})',
        f'[ -z "$lost" ] || {{ printf "%s" "$lost" >&4; exit {NOT_READY}; }}',
        f"printf {READY.decode()} >&4",
    )


def _build_empty_steps(environment: Environment) -> tuple[str, ...]:
    """Empty every writable folder except for what is mounted there, and the folders above that."""
    places = (
        environment.mount,
        OUTPUT_FOLDER,
        TEMPORARY,
        ALSO_TEMPORARY,
        SHARED_MEMORY,
        environment.home,
        QUEUES,
        "/run",
    )
    selection = f"{shlex.join(places)} -xdev -mindepth 1"
    leftovers = (
        f"find {shlex.quote(environment.mount)} {OUTPUT_FOLDER} -xdev -mindepth 1 ! -type d | head -c "
        f"{MAX_MESSAGE_BYTES}"
    )
    return (
        f"chmod 0755 {shlex.join((environment.mount, OUTPUT_FOLDER))}; chmod 0700 {shlex.quote(environment.home)}",
        f"find {selection} -type d ! -perm -700 -exec chmod u+rwx {{}} \\;",
        f"find {selection} -delete",
        "ipcrm --all",
        f'lost=$({leftovers}); [ -z "$lost" ] || {{ printf "left behind: %s" "$lost" >&4; exit {NOT_READY}; }}',
    )


def build_handout_script(environment: Environment, names: Sequence[str]) -> str:
    """Build the script that hands out only regular files with one name, reached through no link."""
    places = shlex.join((environment.mount, OUTPUT_FOLDER, TEMPORARY, SHARED_MEMORY, environment.home))
    steps = [OWN_PATH, f"stat -f -c 'D%a %c %d' -- {places} >&4"]
    if names:
        patterns = " -o ".join(f"-path {shlex.quote(_make_pattern(name))}" for name in names)
        kind = f"-type f -links 1 -perm -400 -size -{LARGEST_COLLECTED // BLOCK + 1}"
        command = r'printf "F%s\0%s\0" "$1" "$(wc -c <"$1")" && cat "$1"'
        steps.append(
            f"cd {OUTPUT_FOLDER} && find . -xdev \\( {patterns} \\) {kind} -exec "
            f"sh -c {shlex.quote(command)} sh {{}} \\; >&4"
        )
    return "; ".join(steps)


def _make_pattern(name: str) -> str:
    path = str(PurePosixPath(name))
    return "./" + re.sub(r"([*?\[\]\\])", r"\\\1", path)
