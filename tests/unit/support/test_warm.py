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


def test_script_has_its_own_arguments_environment_directory_and_files(user: User, script, tmp_path: Path) -> None:
    first_result, second_result = (user.python(script(TELLS), "a", "b c", cwd=tmp_path, told="told") for _ in range(2))
    prefix = f"told ['a', 'b c'] {tmp_path} {sorted(user.environ)} "
    assert (first_result.code, first_result.out.startswith(prefix), first_result.err) == (0, True, "é\n"), first_result
    assert not set(first_result.out.removeprefix(prefix).split()) & set(second_result.out.removeprefix(prefix).split())


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit('no such thing')", 1, "no such thing"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import warnings; warnings.warn('as an error')", 1, "as an error"),
    ],
)
def test_exit_code_and_error_output_are_passed_on(user: User, script, text: str, code: int, expected: str) -> None:
    result = user.python(script(text))
    assert (result.code, expected in result.err) == (code, True), result


def test_late_output_is_not_lost(user: User, script) -> None:
    code = "import atexit, threading\nthreading.Timer(0.1, print, ['thread']).start()\natexit.register(print, 'exit')\n"
    assert user.python(script(code)).out.split() == ["thread", "exit"]


def test_script_is_killed_at_the_timeout(user: User, script) -> None:
    with pytest.raises(TimeoutError) as caught:
        warm_for(user.environ).run([str(script("import time; time.sleep(600)"))], user.environ, None, "", 0.5)
    assert not Path("/proc", str(caught.value).split()[1]).exists()


def test_lost_warm_process_raises_a_connection_error(user: User, script) -> None:
    with pytest.raises(ConnectionError):
        user.python(script("import os; os.kill(os.getppid(), 9)"))


def test_warm_command_matches_the_typed_command(user: User) -> None:
    typed = user.redstart("--version")
    cold = user.python(
        "-c", f"import runpy, sys; sys.argv[1:] = ['--version']; runpy.run_module('{COMMAND}', run_name='__main__')"
    )
    assert (typed.code, typed.out) == (cold.code, cold.out)
