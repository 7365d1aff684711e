"""The contract of every sandbox that can be kept warm. A test module subclasses it like `SandboxContract`."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from redstart.core.shell import IN, OUT, Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.port import SandboxSession, WarmSandbox
from redstart.testing.contracts.fixtures import DAEMON, MEGABYTE, ContractFixtures, find_processes, with_history
from redstart.testing.sandbox import FolderWorkspaces

PASSES, FAILS = "def test_it(): pass", "def test_it(): assert 1 == 2"
REPORTING_SUITE = """
import os, signal, socket, sys, tempfile, time
def test_it():
    main = sys.modules["__main__"]
    print(sys.argv, sys.orig_argv, sys.path, os.getcwd(), sorted(os.environ.items()), sorted(os.listdir(".")))
    print(main.__spec__.name, main.__name__, sorted(vars(main)), time.tzname, hash("a"), sys.flags, sys.executable)
    print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGCHLD), repr(sys.stdin.read()), os.isatty(1))
    print(os.getuid(), os.umask(0o77), socket.gethostname(), os.path.expanduser("~"), tempfile.gettempdir())
    print(sys.stdout.encoding, sys.stdout.line_buffering, os.getpriority(os.PRIO_PROCESS, 0), sys.dont_write_bytecode)
"""
LEAVES = """
import os, tempfile
PLACES = [".", tempfile.gettempdir(), os.path.expanduser("~"), "/dev/shm"]
def test_it():
    for place in PLACES:
        print([name for name in ("left", "sub") if os.path.lexists(f"{place}/{name}")])
        open(f"{place}/left", "w").close()
        os.makedirs(f"{place}/sub/deep")
        os.symlink("/etc", f"{place}/sub/link")
    print(open("data.txt").read())
    os.remove("data.txt")
    open("test_it.py", "w").write("def test_it(): assert 0")
"""
PATCHES = """
import builtins, _pytest.python, _pytest.runner, _pytest.reports, _pytest.config, sys, os
_pytest.python.Function.runtest = lambda self: None
_pytest.reports.TestReport.failed = property(lambda self: False)
_pytest.config.ExitCode.TESTS_FAILED = 0
sys.exit = os._exit = lambda code=0: None
builtins.__debug_poison__ = True
def test_it(): pass
"""
STRIKES = """
import contextlib, os, signal
def test_it():
    for who in (os.getppid(), 1, 0, -1):
        with contextlib.suppress(OSError):
            if who not in (0, -1):
                os.kill(who, signal.SIGKILL)
            os.kill(who, signal.SIGSTOP if who == 1 else signal.SIGHUP)
    for path in ("/proc/1/mem", f"/proc/{os.getppid()}/mem"):
        with contextlib.suppress(OSError), open(path, "r+b", buffering=0) as memory:
            print("it can be written")
"""


class SessionContract(ContractFixtures):
    """How the executions of one session behave."""

    @pytest.fixture
    def suite(self, workspaces: FolderWorkspaces, environment: Environment) -> Callable[..., Execution]:
        """Return a function that makes an execution of pytest on one file."""

        def make(text: str, *, arguments: tuple[str, ...] = (), **fields: Any) -> Execution:
            snapshot = workspaces.create_snapshot(
                uuid.uuid4().hex, {"test_it.py": text, "data.txt": "data", "sub2/x": ""}
            )
            argv = (environment.python, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *arguments, "test_it.py")
            fields = {"environment": environment, "limits": SandboxLimits(wall=60), **fields}
            return Execution(argv=argv, snapshot=snapshot, **fields)

        return make

    def run_in_session(self, sandbox: WarmSandbox, *executions: Execution) -> list[Completed]:
        """Run these executions one after another in one session, which is opened for the first of them."""

        async def run_all() -> list[Completed]:
            async with self.open_session(sandbox, executions[0]) as session:
                return [await session.run(execution) for execution in executions]

        return asyncio.run(run_all())

    def open_session(self, sandbox: WarmSandbox, execution: Execution) -> AbstractAsyncContextManager[SandboxSession]:
        return sandbox.open_session(execution.environment, execution.limits)

    def test_passing_and_failing_runs_can_alternate(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        results = self.run_in_session(sandbox, suite(PASSES), suite(FAILS), suite(PASSES), suite("x = "))
        assert [(result.exit_code, result.cause) for result in results] == [
            (0, ExitCause.ok),
            (1, ExitCause.failed),
            (0, ExitCause.ok),
            (2, ExitCause.failed),
        ]
        assert "1 passed" in results[0].output
        assert "assert 1 == 2" in results[1].output

    def test_warm_run_sees_the_same_environment_as_a_fresh_run(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        execution = suite(
            REPORTING_SUITE, variables={"TZ": "CET", "PYTEST_ADDOPTS": f"-o cache_dir={OUT}", "PYTHONPATH": IN}
        )
        fresh = asyncio.run(sandbox.run(execution))
        first, second = self.run_in_session(sandbox, suite(PASSES, variables=execution.variables), execution)
        assert first.exit_code == 0
        assert second.output.splitlines()[:-1] == fresh.output.splitlines()[:-1]  # the last line has the time in it
        assert "CET" in second.output

    def test_every_run_starts_with_its_own_files(self, sandbox: WarmSandbox, suite: Callable[..., Execution]) -> None:
        execution = suite(LEAVES)
        results = self.run_in_session(sandbox, execution, execution, execution)
        assert [result.output.splitlines()[:5] for result in results] == [["[]", "[]", "[]", "[]", "data"]] * 3
        assert [result.exit_code for result in results] == [0, 0, 0]

    def test_each_run_has_its_own_files_variables_and_working_directory(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        text = "import os, sys\ndef test_it():\n  t = open(os.environ['REDSTART_A'] + '/a').read()\n"
        text += "  open(os.environ['REDSTART_B'] + '/b', 'w').write(t * 2 + os.path.basename(os.getcwd()))"
        variables = {"REDSTART_A": IN, "REDSTART_B": OUT}
        executions = [suite(text, variables=variables, files_in={"a": word}, collect=("b",)) for word in ("one", "two")]
        inner = executions[1].model_copy(update={"argv": (*executions[1].argv[:-1], "../test_it.py"), "cwd": "sub2"})
        results = self.run_in_session(sandbox, *executions, inner)
        assert [result.files for result in results] == [{"b": "oneonerepo"}, {"b": "twotworepo"}, {"b": "twotwosub2"}]

    def test_missing_working_directory_exits_with_127(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        results = self.run_in_session(sandbox, suite(PASSES), suite(PASSES, cwd="no/such"), suite(PASSES))
        assert [result.exit_code for result in results] == [0, 127, 0]

    def test_limits_apply_to_each_run_separately(self, sandbox: WarmSandbox, suite: Callable[..., Execution]) -> None:
        limits = SandboxLimits(
            wall=300, cpu=4, memory=300 * MEGABYTE, file_size=MEGABYTE, disk=16 * MEGABYTE, flood=4 * MEGABYTE
        )
        body = "import os, sys, time\ndef test_it():\n  "
        texts = {
            "pass": ExitCause.ok,
            "while True: pass": ExitCause.cpu,
            "os.fork(); y = bytearray(os.urandom(1 << 20)) * 200; time.sleep(9)": ExitCause.memory,
            "while True: sys.stdout.write('y' * 65536)": ExitCause.output,
            "os.kill(os.getpid(), 9)": ExitCause.signal,
            "open('big', 'wb').write(bytes(1 << 19)); print('fits')": ExitCause.ok,
        }
        results = self.run_in_session(sandbox, *(suite(body + text, limits=limits) for text in texts))
        assert [result.cause for result in results] == list(texts.values())
        assert results[0].cpu < 4

    @pytest.mark.soak
    def test_wall_time_limit_applies_to_each_run_separately(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        asleep = suite("import time\ndef test_it(): time.sleep(600)", limits=SandboxLimits(wall=5))
        results = self.run_in_session(sandbox, asleep, asleep)
        assert [(result.exit_code, result.cause) for result in results] == [(137, ExitCause.timeout)] * 2
        assert all(5 <= result.wall < 120 for result in results)

    def test_processes_left_by_a_run_are_killed(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution], token: str
    ) -> None:
        daemon = DAEMON.replace("import os, time", "import os, time, sys")
        text = f"import subprocess, sys\nCODE = {daemon!r} + '# {token}'\n"
        text += "def test_it(): subprocess.run([sys.executable, '-c', CODE], check=True)"

        async def execute() -> tuple[Completed, list[int]]:
            execution = suite(text)
            async with self.open_session(sandbox, execution) as session:
                return await session.run(execution), find_processes(token)

        completed, processes = asyncio.run(execute())
        assert (completed.exit_code, processes) == (0, [])
        assert "the daemon is up" in completed.output

    def test_monkeypatching_run_cannot_affect_the_next_run(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        honest = "import builtins\ndef test_it(): assert hasattr(builtins, '__debug_poison__')"
        results = self.run_in_session(sandbox, suite(PASSES), suite(PATCHES), suite(FAILS), suite(honest))
        assert [result.exit_code for result in (results[0], results[2], results[3])] == [0, 1, 1]

    def test_run_that_attacks_the_warm_process_cannot_affect_the_next_run(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution]
    ) -> None:
        results = self.run_in_session(sandbox, suite(STRIKES), suite(FAILS), suite(STRIKES), suite(PASSES))
        assert [result.exit_code for result in (results[1], results[3])] == [1, 0]
        assert "it can be written" not in results[0].output + results[2].output

    @pytest.mark.soak
    def test_git_describes_the_workspace(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution], environment: Environment
    ) -> None:
        text = "import subprocess\ndef test_it(): subprocess.run(['git', 'describe', '--tags'], check=True)"
        execution = suite(text, environment=with_history(environment))
        results = self.run_in_session(sandbox, execution, execution)
        assert [result.output.splitlines()[0] for result in results] == ["v1.0", "v1.0"]

    @pytest.mark.soak
    def test_ports_are_free_again_after_a_run(self, sandbox: WarmSandbox, suite: Callable[..., Execution]) -> None:
        text = "import socket\ndef test_it():\n  s = socket.socket(); s.bind(('127.0.0.1', 54321)); s.listen()\n"
        text += "  c = socket.create_connection(('127.0.0.1', 54321)); a, _ = s.accept(); a.close(); c.close()"
        assert [result.exit_code for result in self.run_in_session(sandbox, suite(text), suite(text))] == [0, 0]

    @pytest.mark.soak
    def test_run_that_cannot_be_warm_is_executed_cold(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution], environment: Environment
    ) -> None:
        other = environment.model_copy(update={"variables": {"WORD": "other"}})
        test_text = "import os\ndef test_it(): assert os.environ.get('WORD') == 'other'"
        script = suite(PASSES).model_copy(update={"argv": (sys.executable, "-c", "print(6 * 7)")})
        seeded = suite("def test_it(): print(hash('a'))", variables={"PYTHONHASHSEED": "7"})
        unseeded = seeded.model_copy(update={"variables": {}})
        tight = SandboxLimits(wall=2)
        slow = suite("import time\ndef test_it(): time.sleep(30)", limits=tight)
        results = self.run_in_session(
            sandbox, suite(test_text), suite(test_text, environment=other), script, slow, seeded, unseeded, seeded
        )
        assert [result.exit_code for result in results] == [1, 0, 0, 137, 0, 0, 0]
        assert results[2].output == "42\n"
        assert results[4].output.split()[0] == results[6].output.split()[0] != results[5].output.split()[0]

    @pytest.mark.soak
    def test_two_runs_work_concurrently(self, sandbox: WarmSandbox, suite: Callable[..., Execution]) -> None:
        async def run_both() -> list[Completed]:
            executions = (suite(FAILS), suite(PASSES))
            async with self.open_session(sandbox, executions[0]) as session:
                return await asyncio.gather(*(session.run(execution) for execution in executions))

        assert [result.exit_code for result in asyncio.run(run_both())] == [1, 0]

    def test_a_cancelled_run_leaves_nothing(
        self, sandbox: WarmSandbox, suite: Callable[..., Execution], token: str, scratch: Path
    ) -> None:
        text = f"import subprocess\ndef test_it(): subprocess.run(['sh', '-c', 'sleep 300; : {token}'])"

        async def wait_for(count: int) -> None:
            async with asyncio.timeout(120):
                while len(find_processes(token)) != count:  # noqa: ASYNC110 (what is waited for happens in another process)
                    await asyncio.sleep(0.01)

        async def execute(session: SandboxSession) -> Completed:
            task = asyncio.create_task(session.run(suite(text, limits=SandboxLimits(wall=300))))
            await wait_for(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await wait_for(0)
            return await session.run(suite(PASSES, limits=SandboxLimits(wall=300)))

        async def all_of_it() -> Completed:
            async with self.open_session(sandbox, suite(PASSES, limits=SandboxLimits(wall=300))) as session:
                return await execute(session)

        assert asyncio.run(all_of_it()).exit_code == 0
        assert list(scratch.iterdir()) == []
