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


def everything(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder, by path, including those of git."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# -- a command ---------------------------------------------------------------------------------------------------------


def test_a_command_sees_what_the_tests_see_and_its_code_is_ours(user: User, repo: Path):
    before = everything(repo)
    user.environ["OF_THE_SHELL"] = "outside"
    script = "pwd; cat built.txt; cat .env; command -v python; echo x > made; rm test_shop.py; env; exit 7"
    ran = user.redstart("sandbox", "run", "--path", repo, "--", "sh", "-c", script)
    assert ran.code == 7
    assert ran.out.splitlines()[:2] == [str(repo), "built"]
    assert f"{user.environ['VIRTUAL_ENV']}/bin/python\n" in ran.out
    assert "of-the-user" not in ran.out, "a secret file is left out"
    assert "OF_THE_SHELL" not in ran.out
    assert "PYTHONHASHSEED=0" in ran.out, "variables are those of the tests"
    assert everything(repo) == before


def test_the_tests_run_there_as_in_a_run(user: User, repo: Path):
    (repo / "test_shop.py").write_text("import os\n\n\ndef test_where():\n    assert os.listdir('.') == []\n")
    ran = user.redstart("sandbox", "run", "pytest", "-q", "-p", "no:cacheprovider", cwd=repo)
    assert ran.code == 1
    assert "1 failed" in ran.out, "options of the command are the command's"


def test_there_is_no_network_but_the_users_services(user: User, repo: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer() -> None:
            with server.accept()[0] as caller:
                caller.sendall(b"hello")

        answering = threading.Thread(target=answer)
        asked = f"import socket; print(socket.create_connection(('127.0.0.1', {port}), 5).recv(9))"
        command = ("sandbox", "run", "--path", repo, "--", "python", "-c", asked)
        refused = user.redstart(*command)
        assert (refused.code, "ConnectionRefusedError" in refused.out) == (1, True)
        answering.start()
        user.environ["REDSTART_SANDBOX__SERVICES"] = f'["127.0.0.1:{port}"]'
        reached = user.redstart(*command)
        assert (reached.code, reached.out) == (0, "b'hello'\n")
        answering.join()


@pytest.mark.parametrize(
    ("limit", "value", "code", "command", "said"),
    [
        ("WALL", "1", 137, "sleep 60", "stopped after 1 seconds"),
        ("MEMORY", "200000000", 1, "exec python -c 'bytearray(10**9)'", "out of memory"),
        ("WALL", "60", 137, "kill -9 $$", "a signal ended it (exit code 137)"),
    ],
)
def test_what_the_sandbox_ended_is_said_in_one_line(user, repo, limit, value, code, command, said):
    user.environ[f"REDSTART_SANDBOX__{limit}"] = value
    ran = user.redstart("sandbox", "run", "--path", repo, "--", "sh", "-c", command)
    assert ran.code == code
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_command_that_does_not_exist_is_127(user: User, repo: Path):
    assert user.redstart("sandbox", "run", "--path", repo, "--", "no-such-program").code == 127


BROKEN = """
import sys
from redstart.cli.main import main
from redstart.ports.sandbox import bwrap
bwrap.PROGRAM = "/bin/false"
main()
"""


def test_where_no_sandbox_can_be_had_it_ends_with_3_and_the_remedy(user: User, repo: Path):
    command = ("sandbox", "run", "--path", repo)
    ran = user.python("-c", BROKEN, *command, "--", "echo", "ran")
    assert (ran.code, ran.out) == (3, "")
    assert "Install bubblewrap" in ran.err
    assert "--unsafe-no-sandbox" in ran.err
    unsafe = user.python("-c", BROKEN, *command, "--unsafe-no-sandbox", "--", "echo", "ran")
    assert (unsafe.code, unsafe.out) == (0, "ran\n")


def test_without_a_folder_or_a_terminal_it_is_a_wrong_use(user: User, repo: Path):
    missing = user.redstart("sandbox", "run", "--path", repo / "none", "--", "true")
    assert (missing.code, "no such directory" in missing.err) == (2, True)
    piped = user.redstart("sandbox", "shell", repo)
    assert (piped.code, "sandbox run -- CMD" in piped.err) == (2, True)


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

    def until(self, pattern: str) -> str:
        """Return the output up to `pattern` and consume it. Fail if the pattern does not appear in time."""
        over = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.seen)):
            left = over - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.seen!r}"
            if select.select([self._master], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self._master, 1 << 16).decode(errors="replace")
        came, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return came

    def ask(self, command: str, answer: str) -> str:
        """Type a command and wait for its answer. The echo of the command must not match the answer."""
        self.type(command + "\r")
        return self.until(answer)

    def ended(self) -> int:
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
def test_a_shell_says_where_one_is_and_touches_nothing(shell: Screen, user: User, repo: Path):
    before = everything(repo)
    first = shell.until(PROMPT)
    for said in ("sandbox bwrap", f"{user.environ['VIRTUAL_ENV']}/bin/python", "network none", ".env", "thrown away"):
        assert said in first.splitlines()[0]
    shell.ask("pwd; echo made > made; rm test_shop.py; echo $((6*7))", rf"{re.escape(str(repo))}\r\n42\r\n")
    shell.ask("cat .env", "No such file")
    shell.ask("exit 5", "exit")
    assert shell.ended() == 5
    assert everything(repo) == before


@pytest.mark.soak
def test_the_terminal_is_one_of_the_sandboxs_own(shell: Screen):
    shell.until(PROMPT)
    outside = os.ttyname(shell.slave)
    told = shell.ask("tty; echo .$((1+1)).", r"\.2\.")
    assert "/dev/pts/0" in told
    # Input that is pushed into the terminal inside stays there.
    push = "import fcntl, termios; [fcntl.ioctl(0, termios.TIOCSTI, bytes([c])) for c in b'outside']"
    shell.ask(f'python -c "{push}" 2>&1 | tail -1; ls {outside} /dev/pts; echo .$((1+2)).', r"\.3\.")
    assert not select.select([shell.slave], [], [], 0)[0], "nothing waits to be read at the user's terminal"


def test_control_c_ends_the_command_and_control_d_the_shell(shell: Screen):
    shell.until(PROMPT)
    # The command itself prints the word: by then it has the terminal, and the shell no longer does.
    shell.ask("sh -c 'echo on$((1+1)); exec sleep 600'", r"on2\r\n")
    shell.type("\x03")
    shell.until(PROMPT)
    shell.ask("echo code=$?", "code=130")
    shell.until(PROMPT)
    shell.type("\x04")
    assert shell.ended() == 0
    assert termios.tcgetattr(shell.slave) == shell.before, "the terminal is as it was"


@pytest.mark.soak
def test_the_window_is_as_large_as_the_users(shell: Screen):
    shell.until(PROMPT)
    shell.ask("stty size", r"30 100\r\n")
    shell.until(PROMPT)
    waits = (
        "import os, signal as s; s.pthread_sigmask(s.SIG_BLOCK, {s.SIGWINCH}); "
        "print(6 * 7, flush=True); s.sigwait({s.SIGWINCH}); print(*os.get_terminal_size())"
    )
    shell.ask(f"python -c '{waits}'", r"42\r\n")
    shell.resize(41, 123)
    shell.until(r"123 41\r\n")


@pytest.mark.soak
def test_much_is_typed_and_printed_without_loss(shell: Screen):
    shell.until(PROMPT)
    shell.ask("stty -echo; PS1=", r"PS1=\r\n")
    shell.type("python -c 'import sys; print(sum(map(len, sys.stdin)))'\r")
    for _ in range(300):
        shell.type("x" * 99 + "\r")
    shell.type("\x04")
    shell.until(r"30000\r\n")
    printed = shell.ask("seq -f %.0f: 1 100000; exit", r"\r\n100000:\r\n")
    assert re.findall(r"(\d+):\r\n", printed) == [str(number) for number in range(1, 100_001)]
    assert shell.ended() == 0


@pytest.mark.soak
def test_what_still_runs_ends_with_the_shell(shell: Screen, user: User):
    shell.until(PROMPT)
    shell.ask("sleep 4321.5 & sleep 0; echo .$((1+1)).", r"\.2\.")
    shell.type("exit\r")
    assert shell.ended() == 0
    assert not running("4321.5")


def test_a_terminal_that_goes_away_ends_it_all(shell: Screen, user: User):
    shell.until(PROMPT)
    shell.ask("sleep 4321.75 & sleep 0; echo .$((1+1)).", r"\.2\.")
    shell.hang_up()
    assert shell.ended() == 128 + signal.SIGHUP
    assert not running("4321.75")
    assert not list((user.home / "scratch").iterdir())


def running(mark: str) -> list[str]:
    """Return the IDs of the processes on this machine that have this argument."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found
