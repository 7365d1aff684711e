"""`redstart sandbox`: a person sees what the tests see, also in a shell on a real pseudo terminal."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.user import User

PATIENCE = 300.0
CONTROLLED = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Makes standard input the controlling terminal, which sends window changes and hang-ups."""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Create a small project of the user with ignored files. One of them holds a secret."""
    folder = tmp_path / "projects" / "shop"
    folder.mkdir(parents=True)
    files = {
        ".gitignore": ".env\nbuilt.txt\n",
        ".env": "KEY=of-the-user\n",
        "built.txt": "built\n",
        "test_shop.py": "def test_it():\n    assert True\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    for command in (("init", "-q"), ("add", "-A"), ("-c", "user.name=u", "-c", "user.email=u@e", "commit", "-qm", "x")):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


def hash_files(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, by path, including those of git."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# -- a command ---------------------------------------------------------------------------------------------------------


def test_command_sees_the_test_environment_and_keeps_its_exit_code(user: User, repo: Path):
    before = hash_files(repo)
    user.environ["OF_THE_SHELL"] = "outside"
    script = "pwd; cat built.txt; cat .env; command -v python; echo x > made; rm test_shop.py; env; exit 7"
    result = user.redstart("sandbox", "run", "--path", repo, "--", "sh", "-c", script)
    assert result.code == 7
    assert result.out.splitlines()[:2] == [str(repo), "built"]
    assert f"{user.environ['VIRTUAL_ENV']}/bin/python\n" in result.out
    assert "of-the-user" not in result.out, "a secret file is left out"
    assert "OF_THE_SHELL" not in result.out
    assert "PYTHONHASHSEED=0" in result.out, "variables are those of the tests"
    assert hash_files(repo) == before


def test_tests_run_in_the_sandbox_as_in_a_run(user: User, repo: Path):
    (repo / "test_shop.py").write_text("import os\n\n\ndef test_where():\n    assert os.listdir('.') == []\n")
    result = user.redstart("sandbox", "run", "pytest", "-q", "-p", "no:cacheprovider", cwd=repo)
    assert result.code == 1
    assert "1 failed" in result.out, "options of the command are the command's"


def test_network_reaches_only_configured_services(user: User, repo: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as caller:
                caller.sendall(b"hello")

        answering = threading.Thread(target=answer)
        connect_code = f"import socket; print(socket.create_connection(('127.0.0.1', {port}), 5).recv(9))"
        command = ("sandbox", "run", "--path", repo, "--", "python", "-c", connect_code)
        refused = user.redstart(*command)
        assert (refused.code, "ConnectionRefusedError" in refused.out) == (1, True)
        answering.start()
        user.environ["REDSTART_SANDBOX__SERVICES"] = f'["127.0.0.1:{port}"]'
        connect_result = user.redstart(*command)
        assert (connect_result.code, connect_result.out) == (0, "b'hello'\n")
        answering.join()


@pytest.mark.parametrize(
    ("limit", "value", "code", "command", "said"),
    [
        ("WALL", "1", 137, "sleep 60", "stopped after 1 seconds"),
        ("MEMORY", "200000000", 1, "exec python -c 'bytearray(10**9)'", "out of memory"),
        ("WALL", "60", 137, "kill -9 $$", "a signal ended it (exit code 137)"),
    ],
)
def test_command_ended_by_the_sandbox_is_explained_in_one_line(user, repo, limit, value, code, command, said):
    user.environ[f"REDSTART_SANDBOX__{limit}"] = value
    result = user.redstart("sandbox", "run", "--path", repo, "--", "sh", "-c", command)
    assert result.code == code
    assert said in result.err
    assert len(result.err.splitlines()) == 1


def test_missing_command_exits_with_127(user: User, repo: Path):
    assert user.redstart("sandbox", "run", "--path", repo, "--", "no-such-program").code == 127


BROKEN = """
import sys
from redstart.cli.main import main
from redstart.ports.sandbox import bwrap
bwrap.PROGRAM = "/bin/false"
main()
"""


def test_missing_sandbox_exits_with_3_and_a_hint(user: User, repo: Path):
    command = ("sandbox", "run", "--path", repo)
    result = user.python("-c", BROKEN, *command, "--", "echo", "ran")
    assert (result.code, result.out) == (3, "")
    assert "Install bubblewrap" in result.err
    assert "--unsafe-no-sandbox" in result.err
    unsafe = user.python("-c", BROKEN, *command, "--unsafe-no-sandbox", "--", "echo", "ran")
    assert (unsafe.code, unsafe.out) == (0, "ran\n")


def test_missing_directory_or_terminal_is_a_usage_error(user: User, repo: Path):
    missing = user.redstart("sandbox", "run", "--path", repo / "none", "--", "true")
    assert (missing.code, "no such directory" in missing.err) == (2, True)
    result = user.redstart("sandbox", "shell", repo)
    assert (result.code, "sandbox run -- CMD" in result.err) == (2, True)


# -- a shell -----------------------------------------------------------------------------------------------------------


class Screen:
    """A command at a terminal. `seen` is the output that is not yet matched."""

    def __init__(self, user: User, *arguments: str | Path, lines: int = 30, columns: int = 100) -> None:
        self._master, slave = os.openpty()
        self.resize(lines, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = ""
        command = [sys.executable, "-c", CONTROLLED, "-m", "redstart.cli.main", *map(str, arguments)]
        environ = {**user.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environ, start_new_session=True
        )

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read_until(self, pattern: str) -> str:
        """Return the output up to `pattern` and consume it. Fail if the pattern does not appear in time."""
        deadline = time.monotonic() + PATIENCE
        while not (match := re.search(pattern, self.seen)):
            remaining = deadline - time.monotonic()
            assert remaining > 0, f"no {pattern!r} in {self.seen!r}"
            if select.select([self._master], [], [], remaining)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._master, 1 << 16).decode(errors="replace")
        consumed, self.seen = self.seen[: match.end()], self.seen[match.end() :]
        return consumed

    def ask(self, command: str, answer: str) -> str:
        """Type a command and wait for its answer. The echo of the command must not match the answer."""
        self.type(command + "\r")
        return self.read_until(answer)

    def wait_for_exit(self) -> int:
        return self.process.wait(PATIENCE)

    def hang_up(self) -> None:
        os.close(self.slave)
        os.close(self._master)
        self._master = self.slave = -1

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in {self._master, self.slave} - {-1}:
            os.close(fd)


@pytest.fixture
def shell(user: User, repo: Path) -> Iterator[Screen]:
    screen = Screen(user, "sandbox", "shell", repo)
    try:
        yield screen
    finally:
        screen.close()


PROMPT = r"\(sandbox\) \S+ \$ "


@pytest.mark.soak
def test_shell_shows_its_environment_and_leaves_files_unchanged(shell: Screen, user: User, repo: Path):
    before = hash_files(repo)
    banner = shell.read_until(PROMPT)
    for text in ("sandbox bwrap", f"{user.environ['VIRTUAL_ENV']}/bin/python", "network none", ".env", "discarded"):
        assert text in banner.splitlines()[0]
    shell.ask("pwd; echo made > made; rm test_shop.py; echo $((6*7))", rf"{re.escape(str(repo))}\r\n42\r\n")
    shell.ask("cat .env", "No such file")
    shell.ask("exit 5", "exit")
    assert shell.wait_for_exit() == 5
    assert hash_files(repo) == before


@pytest.mark.soak
def test_shell_has_its_own_terminal(shell: Screen):
    shell.read_until(PROMPT)
    outside = os.ttyname(shell.slave)
    output = shell.ask("tty; echo .$((1+1)).", r"\.2\.")
    assert "/dev/pts/0" in output
    # Input that is pushed into the terminal inside stays there.
    push = "import fcntl, termios; [fcntl.ioctl(0, termios.TIOCSTI, bytes([c])) for c in b'outside']"
    shell.ask(f'python -c "{push}" 2>&1 | tail -1; ls {outside} /dev/pts; echo .$((1+2)).', r"\.3\.")
    assert not select.select([shell.slave], [], [], 0)[0], "nothing waits to be read at the user's terminal"


def test_control_c_ends_the_command_and_control_d_the_shell(shell: Screen):
    shell.read_until(PROMPT)
    # The command itself prints the word: by then it has the terminal, and the shell no longer does.
    shell.ask("sh -c 'echo on$((1+1)); exec sleep 600'", r"on2\r\n")
    shell.type("\x03")
    shell.read_until(PROMPT)
    shell.ask("echo code=$?", "code=130")
    shell.read_until(PROMPT)
    shell.type("\x04")
    assert shell.wait_for_exit() == 0
    assert termios.tcgetattr(shell.slave) == shell.before, "the terminal is as it was"


@pytest.mark.soak
def test_shell_has_the_window_size_of_the_user(shell: Screen):
    shell.read_until(PROMPT)
    shell.ask("stty size", r"30 100\r\n")
    shell.read_until(PROMPT)
    waits = (
        "import os, signal as s; s.pthread_sigmask(s.SIG_BLOCK, {s.SIGWINCH}); "
        "print(6 * 7, flush=True); s.sigwait({s.SIGWINCH}); print(*os.get_terminal_size())"
    )
    shell.ask(f"python -c '{waits}'", r"42\r\n")
    shell.resize(41, 123)
    shell.read_until(r"123 41\r\n")


@pytest.mark.soak
def test_large_input_and_output_arrive_complete(shell: Screen):
    shell.read_until(PROMPT)
    shell.ask("stty -echo; PS1=", r"PS1=\r\n")
    shell.type("python -c 'import sys; print(sum(map(len, sys.stdin)))'\r")
    for _ in range(300):
        shell.type("x" * 99 + "\r")
    shell.type("\x04")
    shell.read_until(r"30000\r\n")
    printed = shell.ask("seq -f %.0f: 1 100000; exit", r"\r\n100000:\r\n")
    assert re.findall(r"(\d+):\r\n", printed) == [str(number) for number in range(1, 100_001)]
    assert shell.wait_for_exit() == 0


@pytest.mark.soak
def test_background_processes_end_with_the_shell(shell: Screen, user: User):
    shell.read_until(PROMPT)
    shell.ask("sleep 4321.5 & sleep 0; echo .$((1+1)).", r"\.2\.")
    shell.type("exit\r")
    assert shell.wait_for_exit() == 0
    assert not list_running("4321.5")


def test_closed_terminal_ends_shell_and_background_processes(shell: Screen, user: User):
    shell.read_until(PROMPT)
    shell.ask("sleep 4321.75 & sleep 0; echo .$((1+1)).", r"\.2\.")
    shell.hang_up()
    assert shell.wait_for_exit() == 128 + signal.SIGHUP
    assert not list_running("4321.75")
    assert not list((user.home / "scratch").iterdir())


def list_running(mark: str) -> list[str]:
    """Return the IDs of the processes on this machine that have this argument."""
    pids: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                pids.append(path.parent.name)
    return pids
