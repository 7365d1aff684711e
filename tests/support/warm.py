"""Starts redstart commands from a process with its modules loaded: loading takes longer than most commands.

`Warm` is the test side. The other side, `python -m support.warm FD`, listens on the socket FD and runs every command in
a separate process, forked when only modules are loaded: with the command's arguments, environment, directory and
files. It reports the exit code or signal as the kernel does.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

COMMAND = "redstart.cli.main"
LOADED = (
    "alembic.command",
    "anthropic.resources.messages",
    "anyio._core._sockets",
    "genai_prices.data",
    "openai.resources.chat.completions.completions",
    "openai.types.responses",
    "pydantic_ai.direct",
    "pydantic_ai.models.anthropic",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.anthropic",
    "pydantic_ai.providers.openai",
    "pydantic_ai.providers.openai_compatible",
    "redstart.app.api",
    "redstart.app.wire",
    "redstart.engines.inline",
    "redstart.engines.langgraph",
    "redstart.ports.model.providers",
    "redstart.ports.sql.migrations",
)
LOADED_WHOLE = "redstart.toolkit.languages"
"""A package whose modules are loaded only when a run needs them."""
LONGEST = 1 << 20
"""The maximum size of an order, in bytes."""
NUMBER = 8
"""The size in bytes of each transmitted number."""


class Warm:
    """A process with loaded modules that ends with this one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """`environ` are the variables that the interpreter reads at startup, such as PYTHONWARNINGS."""
        folder = tempfile.TemporaryDirectory(prefix="redstart-warm-")
        atexit.register(folder.cleanup)
        self._path = str(Path(folder.name, "s"))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._path)
            listening.listen()
            command = [sys.executable, "-m", __spec__.name, str(listening.fileno())]
            python_path = os.pathsep.join((str(Path(__file__).parents[1]), environ.get("PYTHONPATH", "")))
            self._process = subprocess.Popen(
                command,
                env={**environ, "PYTHONPATH": python_path.rstrip(os.pathsep)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[listening.fileno()],
            )
        atexit.register(self._end)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()

    def run(
        self, arguments: Sequence[str], environ: Mapping[str, str], cwd: Path | None, stdin_text: str, seconds: float
    ) -> tuple[int, str, str]:
        """Run `python ARGUMENTS`; return its return code as in `subprocess`, its output and its errors.

        `arguments` begin with `-m redstart.cli.main` or with a script. Kills it and raises TimeoutError if it takes
        longer than `seconds`; raises ConnectionError if its end is unknown.
        """
        with (
            socket.socket(socket.AF_UNIX) as line,
            tempfile.TemporaryFile("w+") as stdin_file,
            tempfile.TemporaryFile("w+", newline="") as out,
            tempfile.TemporaryFile("w+", newline="") as err,
        ):
            stdin_file.write(stdin_text)
            stdin_file.seek(0)
            line.connect(self._path)
            order = {"arguments": list(arguments), "environ": dict(environ), "cwd": str(cwd or Path.cwd())}
            socket.send_fds(line, [json.dumps(order).encode()], [item.fileno() for item in (stdin_file, out, err)])
            pid = _receive_number(line)
            line.settimeout(seconds)
            try:
                status = _receive_number(line)
            except TimeoutError as error:
                os.kill(pid, signal.SIGKILL)
                line.settimeout(None)
                _receive_number(line)
                raise TimeoutError(f"process {pid} was killed after {seconds} s") from error
            return os.waitstatus_to_exitcode(status), _read(out), _read(err)


def warm_for(environ: Mapping[str, str]) -> Warm:
    """Return the warm process for commands with this environment; there is one per startup environment."""
    looked_at = {name: value for name, value in environ.items() if name.startswith(("PYTHON", "LC_", "LANG", "TZ"))}
    return _get_shared(frozenset(looked_at.items()))


@functools.cache
def _get_shared(environ: frozenset[tuple[str, str]]) -> Warm:
    return Warm(dict(environ))


def _receive_number(line: socket.socket) -> int:
    data = line.recv(NUMBER, socket.MSG_WAITALL)
    if len(data) != NUMBER:
        raise ConnectionError("the warm process ended, so the outcome of this command is unknown")
    return int.from_bytes(data)


def _send_number(line: socket.socket, number: int) -> None:
    line.sendall(number.to_bytes(NUMBER))


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def serve(listening: socket.socket) -> NoReturn:
    load()
    while True:
        line, _ = listening.accept()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        if os.fork() == 0:
            listening.close()
            _run_order(line)
        line.close()


def load() -> None:
    """Import the modules of the commands. Raises RuntimeError if that starts a thread: forking would be unsafe."""
    package = importlib.import_module(COMMAND.rpartition(".")[0])
    commands = {module.name for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")} - {COMMAND}
    languages = importlib.import_module(LOADED_WHOLE)
    parts = [module.name for module in pkgutil.walk_packages(languages.__path__, f"{LOADED_WHOLE}.")]
    for name in (*commands, *LOADED, *parts):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that garbage collection in a command does not touch, and thereby copy, shared memory
    if threading.active_count() != 1:
        raise RuntimeError(f"importing the modules started threads: {threading.enumerate()}")


def _run_order(line: socket.socket) -> NoReturn:
    """Start an ordered command and report how it ended."""
    order, files, _, _ = socket.recv_fds(line, LONGEST, 3)
    if (pid := os.fork()) == 0:
        line.close()
        _run_child(json.loads(order), files)
    for file in files:
        os.close(file)
    with suppress(BrokenPipeError):
        _send_number(line, pid)
        _, status = os.waitpid(pid, 0)
        _send_number(line, status)
    os._exit(0)


def _run_child(order: dict[str, Any], files: list[int]) -> NoReturn:
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(order["environ"])
    os.chdir(order["cwd"])
    random.seed()
    code: Any = 0
    try:
        _execute(order["arguments"])
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    # Do what the interpreter does at exit, except module teardown, which takes longer than most commands.
    threading._shutdown()  # pyright: ignore
    atexit._run_exitfuncs()  # pyright: ignore
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def _execute(arguments: list[str]) -> None:
    if arguments[:2] == ["-m", COMMAND]:
        sys.argv = arguments[1:]
        runpy.run_module(COMMAND, run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(arguments[0]).parent)
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
