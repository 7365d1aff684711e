"""Prove that a sandbox isolates what it must, by trying to escape from it.

The program inside does its best to escape, and its own report is not trusted. The proof is what is observed outside: on
a listening port, in a file, in the output that comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import NamedTuple, TypeVar

from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import TIGHT, Environment, Execution
from redstart.ports.sandbox.leftovers import open_temporary_folder
from redstart.ports.sandbox.port import Sandbox, Workspaces

Result = TypeVar("Result")
Make = Callable[[Workspaces, Path], Sandbox]

EMPTY_SNAPSHOT = Snapshot(tree="", base="", pack="")
DONE_MESSAGE = "the canary has tried everything"
ESCAPES = """
import contextlib, os, socket, sys
secret, outside, port, name, pid, marker = sys.argv[1:7]
with contextlib.suppress(Exception): print(open(secret).read())
with contextlib.suppress(Exception): print(open('/proc/1/root' + secret).read())
with contextlib.suppress(Exception): open(outside + '/written', 'x').close()
with contextlib.suppress(Exception): print(open(f'/proc/{pid}/environ').read())
for entry in os.listdir('/proc'):
    with contextlib.suppress(Exception): print(open(f'/proc/{entry}/cmdline').read())
with contextlib.suppress(Exception): socket.create_connection(('127.0.0.1', int(port)), timeout=2)
with contextlib.suppress(Exception): socket.socket(socket.AF_UNIX).connect(chr(0) + name)
with contextlib.suppress(Exception): socket.socket(40, socket.SOCK_STREAM) and print('vsock')
with contextlib.suppress(Exception): os.kill(int(pid), 0) or print('seen' + marker)
print(os.environ.get('REDSTART_CANARY', ''))
print('the canary has tried everything')
"""


class Leaks(SandboxUnavailable):
    """Something got out of the sandbox."""


class SandboxProof(NamedTuple):
    """What was observed of a sandbox."""

    tier: str
    start: float
    """Seconds from the request to the end of a program that does nothing, after a first run."""
    sandbox: Sandbox
    """The sandbox that was tried."""


def prove(make: Make, scratch: Path) -> SandboxProof:
    """Try to escape from the sandbox that `make` gives. May be called while an event loop runs.

    Raises `SandboxUnavailable` if it does not work, and `SandboxLeak` if something got out, naming it.
    """
    with open_temporary_folder("proof") as folder:
        place = folder.resolve()
        sandbox = make(_Nothing(), scratch)
        environment = Environment(
            mount=str(place / "repo"), python=sys.executable, read_only=list_interpreter_folders()
        )
        request = Execution(argv=("/bin/sh", "-c", ":"), snapshot=EMPTY_SNAPSHOT, environment=environment, limits=TIGHT)
        completed = in_thread(sandbox.run(request))
        if completed.exit_code != 0:
            raise SandboxUnavailable(
                f"The sandbox {sandbox.tier} cannot run a command: {completed.output.strip()[-500:]}"
            )
        escapes = _find_escapes(sandbox, environment, place)
        began = time.monotonic()
        in_thread(sandbox.run(request))
        start = time.monotonic() - began
    if escapes:
        raise Leaks(
            f"The sandbox {sandbox.tier} does not hold: {', '.join(escapes)}.",
            remedy="Do not use it on this machine, and report it to its maintainers.",
        )
    return SandboxProof(sandbox.tier, start, sandbox)


def list_interpreter_folders() -> tuple[str, ...]:
    """List the folders of this machine that our own interpreter needs."""
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix)))


def _find_escapes(sandbox: Sandbox, environment: Environment, place: Path) -> list[str]:
    """List what got out, in words."""
    token, name, marker = (secrets.token_hex(8) for _ in range(3))
    secret, outside = place / "secret", place / "outside"
    secret.write_text(token)
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    with _listen(socket.AF_INET, ("127.0.0.1", 0)) as tcp, _listen_abstract(name) as unix, _set_canary(token):
        arguments = (str(secret), str(outside), str(tcp.port), name, str(os.getpid()), marker)
        completed = in_thread(
            sandbox.run(
                Execution(
                    argv=(sys.executable, "-I", "-S", "-c", ESCAPES, *arguments),
                    snapshot=EMPTY_SNAPSHOT,
                    environment=environment,
                    limits=TIGHT,
                )
            )
        )
        observations = {
            "a file of this machine could be read": token in completed.output,
            "a file could be written outside": (outside / "written").exists(),
            "a port of this machine was reached": tcp.is_reached(),
            "a socket of this machine was reached": unix is not None and unix.is_reached(),
            "this process could be signalled": f"seen{marker}" in completed.output,
            "a socket to the virtual machine's host (vsock) could be made": "\nvsock\n" in f"\n{completed.output}",
        }
    if DONE_MESSAGE not in completed.output:
        raise SandboxUnavailable(f"The sandbox {sandbox.tier} cannot run Python: {completed.output.strip()[-500:]}")
    return [description for description, is_observed in observations.items() if is_observed]


class _Nothing:
    """Workspaces without any file."""

    @contextlib.contextmanager
    def checkout(self, snapshot: Snapshot) -> Generator[Path]:
        del snapshot
        with open_temporary_folder("empty") as folder:
            (folder / "files").mkdir()
            yield folder / "files"


class _Listener(NamedTuple):
    sock: socket.socket

    @property
    def port(self) -> int:
        return self.sock.getsockname()[1]

    def is_reached(self) -> bool:
        """Whether anybody has connected: the kernel keeps a connection until it is accepted."""
        self.sock.setblocking(False)
        with contextlib.suppress(OSError):
            self.sock.accept()[0].close()
            return True
        return False


@contextlib.contextmanager
def _listen(family: int, address: tuple[str, int] | str) -> Generator[_Listener]:
    with socket.socket(family) as sock:
        sock.bind(address)
        sock.listen()
        yield _Listener(sock)


@contextlib.contextmanager
def _listen_abstract(name: str) -> Generator[_Listener | None]:
    """Listen on a socket without a file, if the system has such sockets."""
    if sys.platform != "linux":
        yield None
        return
    with _listen(socket.AF_UNIX, f"\0{name}") as listener:
        yield listener


@contextlib.contextmanager
def _set_canary(token: str) -> Generator[None]:
    os.environ["REDSTART_CANARY"] = token
    try:
        yield
    finally:
        del os.environ["REDSTART_CANARY"]


def in_thread(work: Coroutine[None, None, Result]) -> Result:
    """Run the coroutine to its end in an event loop of its own, whether or not a loop runs here."""
    result: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return result[0]
