"""A script started by a warm process behaves like any other process."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from support.user import User
from support.warm import COMMAND, warm_for

pytestmark = pytest.mark.slow

TELLS = """
import os, random, sys
from pathlib import Path
word = sys.stdin.read()
print(word, sys.argv[1:], Path.cwd(), sorted(os.environ), os.getpid(), random.random())
print("é", file=sys.stderr)
"""


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path, Path(sys.prefix))


@pytest.fixture
def script(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


def test_arguments_environment_folder_and_files_are_its_own(user: User, script, tmp_path: Path) -> None:
    first, second = (user.python(script(TELLS), "a", "b c", cwd=tmp_path, told="told") for _ in range(2))
    begin = f"told ['a', 'b c'] {tmp_path} {sorted(user.environ)} "
    assert (first.code, first.out.startswith(begin), first.err) == (0, True, "é\n"), first
    assert not set(first.out.removeprefix(begin).split()) & set(second.out.removeprefix(begin).split())


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('no such thing')", 1, "no such thing"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import warnings; warnings.warn('as an error')", 1, "as an error"),
    ],
)
def test_its_end_is_told_as_it_was(user: User, script, text: str, code: int, words: str) -> None:
    ran = user.python(script(text))
    assert (ran.code, words in ran.err) == (code, True), ran


def test_what_is_printed_late_is_not_lost(user: User, script) -> None:
    late = "import atexit, threading\nthreading.Timer(0.1, print, ['thread']).start()\natexit.register(print, 'exit')\n"
    assert user.python(script(late)).out.split() == ["thread", "exit"]


def test_what_takes_too_long_is_killed(user: User, script) -> None:
    with pytest.raises(TimeoutError) as raised:
        warm_for(user.environ).run([str(script("import time; time.sleep(600)"))], user.environ, None, "", 0.5)
    assert not Path("/proc", str(raised.value).split()[1]).exists()


def test_where_nobody_tells_its_end_it_has_none(user: User, script) -> None:
    with pytest.raises(ConnectionError):
        user.python(script("import os; os.kill(os.getppid(), 9)"))


def test_the_command_is_the_one_that_is_typed(user: User) -> None:
    typed = user.redstart("--version")
    cold = user.python(
        "-c", f"import runpy, sys; sys.argv[1:] = ['--version']; runpy.run_module('{COMMAND}', run_name='__main__')"
    )
    assert (typed.code, typed.out) == (cold.code, cold.out)
