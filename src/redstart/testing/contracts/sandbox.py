"""The contract of every sandbox. The additional contract of sandboxes that isolate is in `isolation.py`.

A test module subclasses the contract and overrides the `sandbox` fixture:

    class TestMine(SandboxContract):
        @pytest.fixture
        def sandbox(self, workspaces, scratch):
            return Mine(workspaces, scratch)
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from redstart.core.shell import IN, OUT, Completed, ExitCause, SandboxLimits
from redstart.ports.sandbox.port import Sandbox
from redstart.testing.contracts.fixtures import (
    DAEMON,
    ContractFixtures,
    PythonProgram,
    find_processes,
    with_copies,
    with_history,
)
from redstart.testing.contracts.limits import LimitsContract
from redstart.testing.sandbox import FolderWorkspaces

__all__ = ["DAEMON", "ContractFixtures", "PythonProgram", "SandboxContract", "find_processes"]


class SandboxContract(LimitsContract):
    """How an execution behaves in any sandbox. Its limits are in `limits.py`."""

    def test_sandbox_has_a_tier(self, sandbox: Sandbox) -> None:
        assert sandbox.tier

    def test_successful_program_is_reported_ok(self, python: PythonProgram) -> None:
        completed = python("print('fine')")
        assert (completed.exit_code, completed.cause, completed.output, completed.truncated) == (
            0,
            ExitCause.ok,
            "fine\n",
            False,
        )

    @pytest.mark.parametrize("code", [1, 2, 42, 255])
    def test_exit_code_of_the_program_is_kept(self, python: PythonProgram, code: int) -> None:
        completed = python(f"raise SystemExit({code})")
        assert (completed.exit_code, completed.cause) == (code, ExitCause.failed)

    @pytest.mark.parametrize("program", ["redstart-no-such-program", "/redstart/no/such/program"])
    def test_missing_program_exits_with_127(self, python: PythonProgram, program: str) -> None:
        completed = python(argv=(program, "argument"))
        assert (completed.exit_code, completed.cause) == (127, ExitCause.failed)
        assert program in completed.output

    def test_program_output_that_mimics_a_sandbox_error_is_not_trusted(self, python: PythonProgram) -> None:
        completed = python("print('bwrap: execvp true: No such file or directory'); raise SystemExit(1)")
        assert (completed.exit_code, completed.cause) == (1, ExitCause.failed)

    def test_missing_working_directory_exits_with_127(self, python: PythonProgram) -> None:
        completed = python("print('started')", cwd="no/such/folder")
        assert (completed.exit_code, completed.cause) == (127, ExitCause.failed)
        assert "started" not in completed.output

    @pytest.mark.parametrize(("name", "number"), [("SIGKILL", 9), ("SIGSEGV", 11), ("SIGTERM", 15), ("SIGABRT", 6)])
    def test_signal_is_reported_as_the_cause(self, python: PythonProgram, name: str, number: int) -> None:
        completed = python(f"import os, signal; print('here', flush=True); os.kill(os.getpid(), signal.{name})")
        assert (completed.exit_code, completed.cause, completed.output) == (128 + number, ExitCause.signal, "here\n")

    def test_both_streams_are_merged_in_order(self, python: PythonProgram) -> None:
        code = "import sys\nfor n in range(3):\n print(n, flush=True); print('e', n, file=sys.stderr, flush=True)"
        assert python(code).output == "0\ne 0\n1\ne 1\n2\ne 2\n"

    def test_long_output_keeps_head_and_tail(self, python: PythonProgram) -> None:
        code = "print('first'); print('middle' * 100_000); print('last')"
        completed = python(code, limits=SandboxLimits(wall=60, output=1000))
        assert completed.truncated
        assert completed.output.startswith("first\nmiddle")
        assert completed.output.endswith("middle\nlast\n")
        assert f"[... {600_000 + 6 + 1 + 5 - 1000} bytes left out ...]" in completed.output
        assert len(completed.output) < 1100

    def test_output_exactly_at_the_limit_is_kept_whole(self, python: PythonProgram) -> None:
        completed = python("print('x' * 999)", limits=SandboxLimits(wall=60, output=1000))
        assert (completed.output, completed.truncated) == ("x" * 999 + "\n", False)

    def test_very_long_output_is_truncated(self, python: PythonProgram) -> None:
        code = "import sys\nfor _ in range(50): sys.stdout.write('y' * (1 << 20))"
        completed = python(code, limits=SandboxLimits(wall=60, output=10_000))
        assert (completed.cause, completed.truncated) == (ExitCause.ok, True)

    def test_undecodable_output_bytes_are_replaced(self, python: PythonProgram) -> None:
        completed = python(r"import sys; sys.stdout.buffer.write(b'a\xff\xfe\x00z')")
        assert completed.output == "a\ufffd\ufffd\x00z"

    def test_standard_input_is_empty(self, python: PythonProgram) -> None:
        assert python("import sys; print(repr(sys.stdin.read()))").output == "''\n"

    def test_snapshot_files_can_be_read(self, python: PythonProgram) -> None:
        assert python("print(open('hello.txt').read() + open('pkg/inner.txt').read())").output == "hello\ninner\n\n"

    def test_working_directory_can_be_chosen(self, python: PythonProgram) -> None:
        assert python("print(open('inner.txt').read())", cwd="pkg").output == "inner\n\n"

    def test_argument_may_be_a_path_under_the_mount(self, python: PythonProgram) -> None:
        path = f"{python.environment.mount}/hello.txt"
        completed = python(argv=(sys.executable, "-c", "import sys; print(open(sys.argv[1]).read())", path))
        assert completed.output == "hello\n\n"

    def test_every_execution_gets_a_fresh_copy(self, python: PythonProgram) -> None:
        first = python(
            "open('hello.txt', 'w').write('changed'); open('new', 'w'); import os; os.remove('pkg/inner.txt')"
        )
        assert first.cause is ExitCause.ok
        second = python("import os; print(open('hello.txt').read(), os.path.exists('new'), os.listdir('pkg'))")
        assert second.output == "hello\n False ['inner.txt']\n"

    def test_copied_paths_join_the_snapshot_and_are_discarded(self, python: PythonProgram) -> None:
        environment = with_copies(python.environment, "pkg/inner.txt", "pkg/built.so", "data", "gone", "hello.txt/a")
        repo = Path(environment.mount)
        code = "import os; print(open('pkg/inner.txt').read(), open('pkg/built.so').read(), sorted(os.listdir('data')))"
        code += "; print(open('data/deep/a').read(), os.path.getmtime('data/deep/a'), os.access('data/run', os.X_OK))"
        code += "; open('pkg/built.so', 'w').write('changed'); os.remove('data/deep/a'); open('data/new', 'x')"
        expected = "inner\n pkg/built.so ['deep', 'run']\ndata/deep/a 1000000000.0 True\n"
        assert [python(code, environment=environment).output for _ in range(2)] == [expected, expected]
        assert (repo / "pkg/built.so").read_text() == "pkg/built.so"
        assert sorted(path.name for path in (repo / "data").iterdir()) == ["deep", "run"]

    def test_copying_does_not_follow_links(
        self, python: PythonProgram, workspaces: FolderWorkspaces, tmp_path: Path
    ) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "secret").write_text("of the host")
        environment = with_copies(python.environment, "out/secret", "link", "data/deep", "into/x", "../outside/secret")
        repo = Path(environment.mount)
        (repo / "out").symlink_to(outside)
        (repo / "link").symlink_to("hello.txt")
        (repo / "into").mkdir()
        (repo / "into" / "x").write_text("x")
        python.snapshot = workspaces.create_snapshot("linked", {"hello.txt": "hello\n"})
        (tmp_path / "snapshots" / "linked" / "into").symlink_to(outside)
        code = "import os; print(os.path.lexists('out'), os.readlink('link'), os.listdir('data/deep'))"
        assert python(code, environment=environment).output == "False hello.txt ['a']\n"
        assert [path.name for path in outside.iterdir()] == ["secret"]

    def test_git_describes_the_workspace(self, python: PythonProgram) -> None:
        environment = with_history(python.environment)
        assert python(argv=("git", "describe", "--tags"), environment=environment).output == "v1.0\n"
        assert python(argv=("git", "rev-parse", "HEAD"), environment=environment).output == f"{environment.git_head}\n"
        status = python(argv=("git", "status", "--porcelain"), environment=environment)
        assert status.output == " M hello.txt\n?? src/\n"
        assert python(argv=("git", "remote", "-v"), environment=environment).output == ""
        assert python(argv=("git", "config", "--local", "user.name"), environment=environment).exit_code == 1

    def test_git_writes_do_not_reach_the_host(self, python: PythonProgram) -> None:
        environment = with_history(python.environment)
        git_folder = Path(environment.git_objects).parent
        before = {path: path.read_bytes() for path in git_folder.rglob("*") if path.is_file()}
        script = "git add -A && git -c user.name=a -c user.email=a commit -qm more && git tag v2 && git describe --tags"
        assert python(argv=("sh", "-c", script), environment=environment).output == "v2\n"
        assert {path: path.read_bytes() for path in git_folder.rglob("*") if path.is_file()} == before
        assert python(argv=("git", "describe", "--tags"), environment=environment).output == "v1.0\n"

    def test_home_and_temporary_files_are_discarded(self, python: PythonProgram) -> None:
        code = "import os, tempfile\nfor f in (os.environ['HOME'], tempfile.gettempdir()):"
        assert python(code + "\n  open(f + '/redstart-left', 'x')").cause is ExitCause.ok
        assert python(code + "\n  print(os.path.exists(f + '/redstart-left'))").output == "False\nFalse\n"

    def test_nothing_is_left_on_the_host(self, python: PythonProgram, scratch: Path) -> None:
        code = "import os, sys; os.makedirs(sys.argv[1] + '/a/b'); os.chmod(sys.argv[1] + '/a', 0)"
        assert python(argv=(sys.executable, "-c", code, OUT), collect=("x",)).cause is ExitCause.ok
        assert list(scratch.iterdir()) == []

    def test_input_files_are_provided_and_output_files_collected(self, python: PythonProgram) -> None:
        code = "import os, sys; t = open(sys.argv[1]).read(); open(os.environ['TARGET'] + '/b.txt', 'w').write(t * 2)"
        completed = python(
            argv=(sys.executable, "-c", code, f"{IN}/sub/a.txt"),
            variables={"TARGET": OUT},
            files_in={"sub/a.txt": "grün\r\n"},
            collect=("b.txt", "not-written"),
        )
        assert completed.files == {"b.txt": "grün\n" * 2}

    def test_only_regular_files_are_collected(self, python: PythonProgram, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_text("of the host")
        code = f"""
import os, sys
os.chdir(sys.argv[1])
os.symlink({str(secret)!r}, 'link')
os.symlink({str(tmp_path)!r}, 'folder-link')
os.mkfifo('fifo')
os.mkdir('folder')
open('plain', 'wb').write(b'plain \\xff')
open('twice', 'w').write('twice')
os.link('twice', 'hard')
"""
        names = ("link", "folder-link/secret", "fifo", "folder", "plain", "hard")
        completed = python(argv=(sys.executable, "-c", code, OUT), collect=names)
        assert (completed.output, completed.files) == ("", {"plain": "plain \ufffd"})

    def test_files_of_a_failed_command_are_collected(self, python: PythonProgram) -> None:
        code = (
            "import sys; open(sys.argv[1] + '/a', 'w').write('kept'); sys.stdout.flush(); import time; time.sleep(60)"
        )
        completed = python.cut_short(argv=(sys.executable, "-c", code, OUT), collect=("a",), wall=2)
        assert (completed.cause, completed.files) == (ExitCause.timeout, {"a": "kept"})

    def test_environment_has_only_a_few_variables(self, python: PythonProgram, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REDSTART_CANARY", "a secret")
        monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
        code = "import os; print(sorted(set(os.environ) - {'PWD', 'OLDPWD', 'PYTHONPATH'}))"
        names = ["HOME", "LANG", "LC_ALL", "PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "TMPDIR", "TZ"]
        assert python(code).output == f"{names}\n"

    def test_request_variables_override_the_environment(self, python: PythonProgram) -> None:
        environment = python.environment.model_copy(update={"variables": {"A": "environment", "B": "environment"}})
        code = "import os; print(os.environ['A'], os.environ['B'], os.environ['TZ'])"
        completed = python(code, environment=environment, variables={"B": "request", "TZ": "CET"})
        assert completed.output == "environment request CET\n"

    def test_the_interpreter_is_first_on_the_path(self, python: PythonProgram) -> None:
        code = (
            "import os, shutil, sys; print(os.path.dirname(shutil.which('python')) == os.path.dirname(sys.executable))"
        )
        assert python(code).output == "True\n"

    def test_daemon_is_dead_after_the_program_ends(self, python: PythonProgram, token: str) -> None:
        completed = python(f"{DAEMON}# {token}")
        assert (completed.cause, completed.output) == (ExitCause.ok, "the daemon is up\n")
        assert find_processes(token) == []

    def test_daemon_is_dead_after_a_timeout(self, python: PythonProgram, token: str) -> None:
        completed = python.cut_short(f"{DAEMON}time.sleep(300)  # {token}", wall=3)
        assert (completed.cause, completed.output) == (ExitCause.timeout, "the daemon is up\n")
        assert find_processes(token) == []

    def test_background_process_does_not_delay_the_end(self, python: PythonProgram, token: str) -> None:
        code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])"
        completed = python(f"{code}  # {token}")
        assert completed.cause is ExitCause.ok
        assert completed.wall < 50

    def test_a_cancelled_execution_leaves_nothing(self, python: PythonProgram, scratch: Path, token: str) -> None:
        async def cancel_when_it_runs() -> None:
            task = asyncio.create_task(python.sandbox.run(python.request(f"{DAEMON}time.sleep(300)  # {token}")))
            async with asyncio.timeout(60):
                while len(find_processes(token)) < 2:  # noqa: ASYNC110 (what is waited for happens in another process)
                    await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel_when_it_runs())
        assert find_processes(token) == []
        assert list(scratch.iterdir()) == []

    def test_four_executions_run_concurrently(self, python: PythonProgram) -> None:
        code = "import os, time; open('mine', 'x'); a = time.monotonic(); time.sleep(3); print(a, time.monotonic())"

        async def run_all() -> list[Completed]:
            return await asyncio.gather(*(python.sandbox.run(python.request(code)) for _ in range(4)))

        results = asyncio.run(run_all())
        assert [result.cause for result in results] == [ExitCause.ok] * 4
        spans = [tuple(map(float, result.output.split())) for result in results]
        assert max(start for start, _ in spans) < min(end for _, end in spans)
