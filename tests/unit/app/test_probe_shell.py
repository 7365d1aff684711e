"""The probe shell: who gets the connection, what a person is told, and a shell without a sandbox."""

from __future__ import annotations

import asyncio
import os
import re
import select
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.app.inside_terminal import HEAD
from redstart.app.probe_shell import (
    SHELL_SECONDS,
    describe_exit_cause,
    describe_sandbox_session,
    run_command,
    run_shell,
)
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.app.workspace import RunGround, prepare_run_setup
from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.process import Process

pytestmark = pytest.mark.slow

PATIENCE = 120.0


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    with open_app(Settings(home=tmp_path / "home")) as app:
        yield app


@pytest.fixture
def ground(house: AppContext, tmp_path: Path) -> RunGround:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "test_it.py").write_text("def test_it():\n    assert True\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return prepare_run_setup(house, folder, own_python=True)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Open a pseudo terminal and yield the person's end and the program's end."""
    person, program = os.openpty()
    try:
        yield person, program
    finally:
        os.close(person)
        os.close(program)


class Inside:
    """A sandbox that runs a coroutine of the test."""

    tier = "scripted"

    def __init__(self, play: Callable[[int, bytes], Awaitable[None]], output: str = "") -> None:
        self._play, self._output = play, output
        self.asked: list[Execution] = []

    async def run(self, execution: Execution) -> Completed:
        self.asked.append(execution)
        port = int(execution.environment.services[-1].rpartition(":")[2])
        await self._play(port, execution.files_in["token"].encode())
        return Completed(exit_code=4, cause=ExitCause.failed, output=self._output)


def replace_sandbox(house: AppContext, sandbox: Inside | Process) -> AppContext:
    return replace(house, adapters=replace(house.adapters, sandbox=sandbox))


def read_until(fd: int, expected: str) -> str:
    output = ""
    while not re.search(expected, output):
        assert select.select([fd], [], [], PATIENCE)[0], f"no {expected!r} in {output!r}"
        output += os.read(fd, 1 << 16).decode()
    return output


def test_only_the_first_caller_with_the_token_gets_the_terminal(
    house: AppContext, ground: RunGround, terminal: tuple[int, int]
):
    person, program = terminal

    async def call(port: int, payload: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(payload)
        return reader, writer

    async def play(port: int, token: bytes) -> None:
        other_reader, other_writer = await call(port, b"0" * len(token) + b"from a stranger")
        assert await other_reader.read() == b""
        reader, writer = await call(port, token + b"from the shell")
        kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
        assert (kind, length) == (b"w", 4)
        await reader.readexactly(length)
        second_reader, second_writer = await call(port, token + b"from a second")
        assert await second_reader.read() == b""
        os.write(person, b"\x03typed")
        kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
        assert (kind, await reader.readexactly(length)) == (b"d", b"\x03typed")
        writer.write_eof()
        assert await reader.read() == b"", "the host confirms that all has arrived"
        for stream in (other_writer, writer, second_writer):
            stream.close()

    sandbox = Inside(play)
    shell = run_shell(replace_sandbox(house, sandbox), ground, program, program)
    completed = asyncio.run(asyncio.wait_for(shell, PATIENCE))
    assert completed.exit_code == 4
    assert read_until(person, "shell") == "from the shell"
    assert sandbox.asked[0].limits == ground.limits.model_copy(update={"wall": SHELL_SECONDS})


async def test_shell_that_never_starts_is_an_error_with_its_last_output(house, ground, terminal):
    async def play(port: int, token: bytes) -> None:
        del port, token

    sandbox = Inside(play, output="python: not found\n")
    with pytest.raises(SandboxUnavailable, match="no shell could be started in the sandbox: python: not found"):
        await run_shell(replace_sandbox(house, sandbox), ground, terminal[1], terminal[1])


def test_shell_without_a_sandbox_works_with_a_warning(house, ground, terminal, tmp_path):
    person, program = terminal
    process_app = replace_sandbox(house, Process(house.trees, tmp_path / "scratch"))
    messages: list[str] = []

    def type_and_read() -> None:
        try:
            messages.append(read_until(person, r"\(no sandbox\)"))
        finally:
            os.write(person, b"echo $((6*7)); rm test_it.py; exit 3\r")
        messages.append(read_until(person, r"42\r\n"))

    typing = threading.Thread(target=type_and_read)
    typing.start()
    completed = asyncio.run(asyncio.wait_for(run_shell(process_app, ground, program, program), 2 * PATIENCE))
    typing.join()
    assert (completed.exit_code, len(messages)) == (3, 2)
    assert (ground.root / "test_it.py").exists()
    assert "sandbox process (no sandbox)" in describe_sandbox_session(process_app, ground)
    assert "network not restricted" in describe_sandbox_session(process_app, ground)


def test_services_and_large_omitted_files_are_reported(house: AppContext, ground: RunGround, tmp_path: Path):
    changes = {"services": ("127.0.0.1:5432",), "left_out": ("data", "cache")}
    large = ground._replace(environment=ground.environment.model_copy(update=changes))

    async def play(port: int, token: bytes) -> None:
        del port, token

    description = describe_sandbox_session(replace_sandbox(house, Inside(play)), large)
    assert "network none but 127.0.0.1:5432" in description
    assert "(.env, keys) and 2 that are too large" in description
    assert "\n" not in description


async def test_missing_sandbox_runs_nothing(house: AppContext, ground: RunGround):
    with pytest.raises(SandboxUnavailable):
        await run_command(house, ground, ("true",))


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ExitCause.ok, ""),
        (ExitCause.failed, ""),
        (ExitCause.timeout, "after 90 seconds"),
        (ExitCause.cpu, "600 seconds of processor time"),
        (ExitCause.memory, "4.3 GB"),
        (ExitCause.file_size, "268 MB"),
        (ExitCause.signal, "exit code 139"),
    ],
)
def test_end_reason_is_explained(cause: ExitCause, said: str):
    message = describe_exit_cause(Completed(exit_code=139, cause=cause, output=""), SandboxLimits(wall=90.0))
    assert said in message
    assert bool(message) == bool(said)
