"""The sandbox of macOS: its own `sandbox-exec` with a profile for each execution. We have never run it.

It isolates files and network. It counts neither the memory nor the processes of a command as a whole. Loopback is the
machine's own there, so it is closed except for the named services, even for a server that a test starts itself: such
tests need sockets that are files, or Docker, which is the stronger sandbox where it is available.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution
from redstart.ports.sandbox.launch import launch
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.process import in_checkout

PROGRAM = "/usr/bin/sandbox-exec"
SYSTEM = (
    *("/System", "/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/usr/bin", "/usr/lib", "/usr/libexec"),
    *("/usr/sbin", "/usr/share", "/bin", "/sbin", "/opt/homebrew", "/usr/local"),
    *("/private/var/db/timezone", "/private/var/db/dyld", "/private/etc/ssl", "/private/etc/services"),
    *("/private/etc/protocols", "/private/etc/hosts"),
)
"""Programs and libraries, and nothing of the machine's users."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper", "/dev/tty")


class Seatbelt:
    """Runs each command in the checkout itself, which stands in for the environment's `mount` as `Process` maps it."""

    tier = "seatbelt (untested)"

    def __init__(self, workspaces: Workspaces, scratch: Path) -> None:
        self._workspaces = workspaces
        self._scratch = scratch

    async def run(self, execution: Execution) -> Completed:
        program, environment, limits = find_seatbelt(), execution.environment, execution.limits
        with in_checkout(self._workspaces, self._scratch, execution) as ready:
            rules = build_profile(
                environment,
                writable=(ready.root, str(ready.run_exchange.output_folder), ready.home, ready.temporary),
                readable=(str(ready.run_exchange.input_folder),),
            )
            command = [program, "-p", rules, *ready.command]
            try:
                end = await launch(command, variables=ready.variables, limits=limits, kill=ready.kill)
            except OSError as error:
                raise SandboxUnavailable(f"sandbox-exec cannot be started: {error}") from error
            return ready.run_exchange.build_completed(end)


def find_seatbelt(platform: str = sys.platform, program: str = PROGRAM) -> str:
    """Return the program. Raises `SandboxUnavailable` if this is not macOS, or if the program is missing."""
    if platform != "darwin":
        raise SandboxUnavailable("seatbelt exists only on macOS.", remedy="On Linux use bwrap or docker.")
    if not os.access(program, os.X_OK):
        raise SandboxUnavailable(f"{program} is missing.", remedy="Use docker: `--sandbox docker`.")
    return program


def build_profile(environment: Environment, *, writable: tuple[str, ...], readable: tuple[str, ...] = ()) -> str:
    """Build the rules in the sandbox's own language: everything is forbidden except for what they list.

    A named folder is open with all its content. The last matching rule decides, so read-only paths within a writable
    folder come after it.
    """
    history = (environment.git_objects,) if environment.git_objects else ()
    read_only = (*environment.read_only, *history)
    readable_paths = (*SYSTEM, *read_only, *readable, *writable)
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-exec process-fork)",
        "(allow signal (target same-sandbox))",
        "(allow process-info* (target same-sandbox))",
        "(allow sysctl-read)",
        '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
        "(allow ipc-posix-sem)",
        "(allow file-read-metadata)",
        '(allow file-read* (literal "/"))',
        *(f"(allow file-read* file-write-data (literal {_quote(device)}))" for device in DEVICES),
        *(f"(allow file-read* (subpath {_quote(path)}))" for path in dict.fromkeys(readable_paths)),
        *(f"(allow file-write* (subpath {_quote(path)}))" for path in writable),
        *(f"(deny file-write* (subpath {_quote(path)}))" for path in (*read_only, *readable)),
        # No test needs a device, or a file that runs with its owner's rights.
        "(deny file-write-setugid)",
        "(deny file-mknod)",
        *(
            f"(allow network-bind network-outbound ({side} unix-socket (subpath {_quote(path)})))"
            for path in writable
            for side in ("local", "remote")
        ),
        *(
            f'(allow network-outbound (remote ip "localhost:{_parse_port(service)}"))'
            for service in environment.services
        ),
    ]
    return "\n".join(lines) + "\n"


def _parse_port(service: str) -> int:
    """Return the port of a service given as `host:port`. Raises `ValueError` if it is not a number."""
    return int(service.rpartition(":")[2])


def _quote(path: str) -> str:
    """Quote a path as a string of the profile. Raises `ValueError` if no such string can hold it."""
    if any(ord(letter) < 32 for letter in path):
        raise ValueError(f"a path with a control character cannot be named in a profile: {path!r}")
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
