"""Docker's sandbox behaves like every other: with its own runtime and, for what differs there, with gVisor.

The tests need the daemon that `DOCKER_HOST` names, with the image of `redstart sandbox build`. If it is named but not
usable, and in CI, they fail with the reason; if none is named, they are skipped.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import redstart
from redstart.core.errors import RedstartError
from redstart.core.shell import OUT, Completed, ExitCause, SandboxLimits
from redstart.ports.sandbox.docker import container
from redstart.ports.sandbox.docker.container import start_container
from redstart.ports.sandbox.docker.daemon import DaemonApi, parse_socket
from redstart.ports.sandbox.docker.image import detect_recipe, has_image
from redstart.ports.sandbox.docker.inside import ContainerCommand
from redstart.ports.sandbox.docker.sandbox import ContainerOptions, Docker
from redstart.ports.sandbox.docker.spec import WAITS_FOR_ITS_END
from redstart.ports.sandbox.port import Sandbox, WarmSandbox
from redstart.testing.contracts.fixtures import DAEMON, MEGABYTE, ContractFixtures, PythonProgram, find_processes
from redstart.testing.contracts.isolation import IsolationContract
from redstart.testing.contracts.sandbox import SandboxContract
from redstart.testing.contracts.sandbox_session import SessionContract
from redstart.testing.sandbox import FolderWorkspaces

SPIN = "import os\nfor _ in range(5): os.fork()\nwhile True: pass"


def fail_or_skip(reason: str) -> None:
    is_required = os.environ.get("DOCKER_HOST") or os.environ.get("CI")
    (pytest.fail if is_required else pytest.skip)(f"Docker is not available for tests: {reason}")


@pytest.fixture(scope="module")
def choices() -> ContainerOptions:
    name = detect_recipe().name
    socket = parse_socket(os.environ.get("DOCKER_HOST", ""))
    try:
        if not asyncio.run(has_image(DaemonApi(socket), name)):
            fail_or_skip(f"the daemon at {socket} has no image {name}; redstart sandbox build makes it")
    except RedstartError as error:
        fail_or_skip(f"{error} {error.remedy}")
    return ContainerOptions(socket, name)


@pytest.fixture(scope="module")
def gvisor(choices: ContainerOptions) -> ContainerOptions:
    runtimes = asyncio.run(DaemonApi(choices.socket).call("GET", "/info"))["Runtimes"]
    if "runsc" not in runtimes:
        fail_or_skip("the daemon has no runtime runsc")
    return choices._replace(runtime="runsc")


def make_limits(**fields: float) -> SandboxLimits:
    return SandboxLimits(**{"wall": 60, **fields})  # pyright: ignore[reportArgumentType]


class TestDocker(SandboxContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)


class TestDockerIsolation(IsolationContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    def test_host_files_cannot_be_read(self, python: PythonProgram, tmp_path: Path) -> None:
        """`/sys` and `/etc/resolv.conf`, which every container has, are empty here."""
        secret = tmp_path / "secret"
        secret.write_text("of the host")
        code = f"""
import os
os.symlink({str(secret)!r}, 'link')
for path in ({str(secret)!r}, 'link', '/etc/shadow', '/etc/machine-id', '/root/.ssh', '/boot', '/var/log',
             '/proc/1/root' + {str(secret)!r}, '/var/run/docker.sock', '/run/docker.sock'):
    print(path if os.path.exists(path) else 'absent')
print(os.listdir('/sys'), open('/etc/resolv.conf').read())
"""
        assert python(code).output == "absent\n" * 10 + "[] \n"

    def test_host_processes_are_not_visible(self, python: PythonProgram) -> None:
        """The process that fills the workspace beforehand also took process IDs."""
        code = "import glob, os; print(os.getpid() < 100, len(glob.glob('/proc/[0-9]*')) < 10)"
        assert python(code).output == "True True\n"


class TestDockerCalls(ContractFixtures):
    """Calls that the seccomp profile forbids; Docker's own profile allows some of them."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    def test_forbidden_calls_are_refused(self, python: PythonProgram) -> None:
        code = """
import ctypes, errno, socket
call = ctypes.CDLL(None, use_errno=True).syscall
for number, name in ((425, 'io_uring'), (321, 'bpf'), (101, 'ptrace'), (272, 'unshare'), (250, 'keyctl')):
    print(name, call(number, 0x10000000, 0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
for family in (40, 17, 38):
    try: socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error: print(family, errno.errorcode[error.errno])
"""
        names = ("io_uring", "bpf", "ptrace", "unshare", "keyctl")
        expected = "".join(f"{name} -1 EPERM\n" for name in names) + "".join(f"{n} EPERM\n" for n in (40, 17, 38))
        assert python(code).output == expected


class TestMountsWithin(ContractFixtures):
    """A read-only folder deep in the workspace, such as a package's own modules: everything around it is writable."""

    @pytest.fixture(params=["", "runsc"])
    def sandbox(
        self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions, request: pytest.FixtureRequest
    ) -> Sandbox:
        options = request.getfixturevalue("gvisor") if request.param else choices
        return Docker(workspaces, scratch, options)

    def test_directories_above_a_read_only_mount_are_writable(
        self, python: PythonProgram, workspaces: FolderWorkspaces
    ) -> None:
        modules = Path(python.environment.mount, "packages/one/modules")
        modules.mkdir(parents=True)
        (modules / "real").write_text("of the host")
        python.snapshot = workspaces.create_snapshot(
            "within", {"packages/one/a": "", "packages/one/modules/covered": ""}
        )
        changes = {"read_only": (*python.environment.read_only, str(modules))}
        code = "import os; os.chdir('packages/one'); open('new', 'x'); open('../new', 'x')\n"
        code += "print(sorted(os.listdir('.')), os.listdir('modules'), os.access('modules', os.W_OK))"
        completed = python(code, environment=python.environment.model_copy(update=changes))
        assert completed.output == "['a', 'modules', 'new'] ['real'] False\n"


class TestGvisor(ContractFixtures):
    """Executions on gVisor's own kernel: it is in use, executions end correctly, and nothing remains."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, gvisor: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, gvisor)

    def test_gvisor_kernel_is_used(self, python: PythonProgram, sandbox: Sandbox) -> None:
        completed = python("import os; print(os.uname().release, open('hello.txt').read())")
        assert completed.output.endswith(" hello\n\n")
        assert os.uname().release not in completed.output
        assert sandbox.tier == "docker+runsc"

    @pytest.mark.parametrize(
        ("code", "limits", "ended"),
        [
            ("while True: pass", {"cpu": 2}, (152, ExitCause.cpu)),
            ("while True: print('y' * 9999)", {"flood": 4 * MEGABYTE}, (137, ExitCause.output)),
            ("open('/tmp/big', 'wb').write(bytes(64 << 20))", {"disk": 16 * MEGABYTE}, (1, ExitCause.disk)),
            ("open('big', 'wb').write(bytes(3 << 20))", {"file_size": MEGABYTE}, (1, ExitCause.file_size)),
        ],
    )
    def test_limit_causes_are_reported(
        self, python: PythonProgram, code: str, limits: dict[str, float], ended: tuple[int, ExitCause]
    ) -> None:
        completed = python(code, limits=make_limits(**limits))
        assert (completed.exit_code, completed.cause) == ended, completed.output

    def test_cpu_limit_covers_all_processes_together(self, python: PythonProgram) -> None:
        completed = python(SPIN, limits=make_limits(cpu=3))
        assert (completed.exit_code in (137, 152), completed.cause) == (True, ExitCause.cpu), (
            "this kernel counts roughly"
        )

    def test_memory_is_limited(self, python: PythonProgram) -> None:
        code = "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"
        completed = python(code, limits=make_limits(memory=200 * MEGABYTE))
        assert (completed.exit_code != 0, completed.cause) == (True, ExitCause.memory)

    def test_process_count_is_limited(self, python: PythonProgram) -> None:
        code = "import os, time\nfor _ in range(99):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\n  print('one')"
        completed = python(code, limits=make_limits(processes=20))
        assert completed.cause is ExitCause.processes
        assert 15 <= completed.output.count("one\n") <= 24

    def test_daemon_is_dead_after_the_program_ends(self, python: PythonProgram, token: str) -> None:
        assert python(f"{DAEMON}# {token}").output == "the daemon is up\n"
        assert find_processes(token) == []


@pytest.mark.soak
class TestDaemonsFigures(ContractFixtures):
    """Measurements come from the daemon if the container's cgroups are not visible, as on another machine or a Mac."""

    @pytest.fixture
    def sandbox(
        self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions, monkeypatch: pytest.MonkeyPatch
    ) -> Sandbox:
        monkeypatch.setattr(container, "PROC", scratch / "none")
        return Docker(workspaces, scratch, choices)

    @pytest.mark.parametrize(
        ("code", "limits", "cause"),
        [
            ("print('fine')", {}, ExitCause.ok),
            ("raise SystemExit(137)", {}, ExitCause.signal),
            (SPIN, {"cpu": 2}, ExitCause.cpu),
            ("import time; time.sleep(60)", {"wall": 2}, ExitCause.timeout),
            ("import os, time\nfor _ in range(99): os.fork() or time.sleep(9)", {"processes": 20}, ExitCause.processes),
        ],
    )
    def test_causes_are_reported(
        self, python: PythonProgram, code: str, limits: dict[str, float], cause: ExitCause
    ) -> None:
        assert python(code, limits=make_limits(**limits)).cause is cause

    def test_out_of_memory_kill_is_reported_as_memory(self, python: PythonProgram) -> None:
        code = "import mmap\nx = mmap.mmap(-1, 400 << 20)\nfor n in range(400): x.write(bytes(1 << 20))"
        completed = python(code, limits=make_limits(memory=100 * MEGABYTE))
        assert (completed.exit_code, completed.cause) == (137, ExitCause.memory)

    def test_used_cpu_time_is_reported(self, python: PythonProgram) -> None:
        completed = python(
            "x = b'x' * (50 << 20)\nimport time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        )
        assert completed.cpu >= 0.3


class TestSession(ContractFixtures):
    """A warm container, reused as long as it is clean."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Docker:
        return Docker(workspaces, scratch, choices)

    def in_turn(self, python: PythonProgram, *codes: str, **fields: object) -> tuple[list[Completed], int]:
        async def run_all() -> tuple[list[Completed], int]:
            assert isinstance(python.sandbox, Docker)
            requests = [python.request(code, **fields) for code in codes]
            async with python.sandbox.open_session(requests[0].environment, requests[0].limits) as session:
                return [await session.run(request) for request in requests], session.containers

        return asyncio.run(run_all())

    def test_one_container_serves_all_runs_with_fresh_files(self, python: PythonProgram, scratch: Path) -> None:
        code = "import os, tempfile, sys\nfor f in ('.', os.environ['HOME'], tempfile.gettempdir(), '/dev/shm'):"
        code += "\n  print(os.path.exists(f + '/left')); open(f + '/left', 'x')\nos.remove('hello.txt')"
        results, containers = self.in_turn(python, code, code, code)
        assert [result.output for result in results] == ["False\n" * 4] * 3
        assert containers == 1
        assert list(scratch.iterdir()) == []

    @pytest.mark.parametrize("left", [False, True])
    def test_session_works_with_gvisor(
        self, workspaces: FolderWorkspaces, scratch: Path, gvisor: ContainerOptions, python: PythonProgram, left: bool
    ) -> None:
        python.sandbox = Docker(workspaces, scratch, gvisor)
        code = DAEMON if left else "print('the daemon is up')"
        results, containers = self.in_turn(
            python, code, "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]))"
        )
        assert [result.output for result in results] == ["the daemon is up\n", "4\n"]
        assert left or containers == 1

    async def test_input_files_are_provided_and_output_files_collected(self, python: PythonProgram) -> None:
        async def run_twice() -> list[dict[str, str]]:
            assert isinstance(python.sandbox, Docker)
            async with python.sandbox.open_session(python.environment, python.request().limits) as session:
                collected: list[dict[str, str]] = []
                for text in ("one", "two"):
                    code = "import sys; open(sys.argv[2] + '/b', 'w').write(open(sys.argv[1] + '/a').read() * 2)"
                    argv = (sys.executable, "-c", code, "{redstart:in}", OUT)
                    request = python.request(argv=argv, files_in={"a": text}, collect=("b",))
                    collected.append((await session.run(request)).files)
                return collected

        assert await run_twice() == [{"b": "oneone"}, {"b": "twotwo"}]

    def test_container_with_leftover_processes_is_not_reused(self, python: PythonProgram, token: str) -> None:
        results, containers = self.in_turn(python, f"{DAEMON}# {token}", "print('next')")
        assert [result.output for result in results] == ["the daemon is up\n", "next\n"]
        assert containers <= 2
        assert find_processes(token) == []

    def test_timeout_replaces_the_container(self, python: PythonProgram, token: str) -> None:
        codes = (f"import time; time.sleep(60) # {token}", "print('next')")
        results, containers = self.in_turn(python, *codes, limits=make_limits(wall=8))
        assert [result.cause for result in results] == [ExitCause.timeout, ExitCause.ok]
        assert containers == 2
        assert find_processes(token) == []


@pytest.mark.soak
class TestDockerSession(SessionContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> WarmSandbox:
        return Docker(workspaces, scratch, choices)


@pytest.mark.soak
class TestGvisorSession(SessionContract):
    test_a_cancelled_run_leaves_nothing = None  # waits for processes that the host cannot see

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, gvisor: ContainerOptions) -> WarmSandbox:
        return Docker(workspaces, scratch, gvisor)


@pytest.mark.soak
class TestGvisorContract(SandboxContract):
    test_a_cancelled_execution_leaves_nothing = None  # waits for processes that the host cannot see

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, gvisor: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, gvisor)


class TestParentKilled(ContractFixtures):
    """When Redstart itself is killed, its container goes too, and the next Redstart finds nothing to remove."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    def test_command_and_container_end_with_the_parent(
        self, python: PythonProgram, tmp_path: Path, choices: ContainerOptions, token: str
    ) -> None:
        request = python.request(f"import time; time.sleep(300)  # {token}")
        (tmp_path / "request.json").write_text(request.model_dump_json())
        program = PARENT.format(snapshots=str(tmp_path / "snapshots"), scratch=str(tmp_path / "own"), choices=choices)
        parent = subprocess.Popen((sys.executable, "-c", program, str(tmp_path / "request.json")))
        try:
            appeared = wait_for(lambda: len(find_processes(token)) > 0)
        finally:
            parent.kill()
            parent.wait()
        assert appeared, "the command never ran"
        assert wait_for(lambda: find_processes(token) == [])
        assert wait_for(lambda: list_containers(choices, parent.pid) == [])


class TestSibling(ContractFixtures):
    """Redstart itself runs in a container; its data folder has another path on the daemon's machine."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    @pytest.mark.parametrize("mapped", [True, False])
    async def test_sibling_container_needs_a_path_map(
        self, python: PythonProgram, tmp_path: Path, choices: ContainerOptions, mapped: bool
    ) -> None:
        request = python.request("print(open('hello.txt').read(), sorted(__import__('os').listdir('/run/redstart')))")
        (tmp_path / "request.json").write_text(request.model_dump_json())
        own_options = choices._replace(socket="/run/d.sock", path_map=(("/data", str(tmp_path)),) if mapped else ())
        program = PARENT.format(snapshots="/data/snapshots", scratch="/data/own", choices=own_options)
        source = str(Path(redstart.__file__).parents[1])
        binds = [f"{choices.socket}:/run/d.sock", f"{tmp_path}:/data"]
        binds += [f"{path}:{path}:ro" for path in dict.fromkeys((source, sys.prefix, sys.base_prefix))]
        description = {
            "Image": choices.image,
            "Entrypoint": list(WAITS_FOR_ITS_END),
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "HostConfig": {"NetworkMode": "none", "AutoRemove": True, "Binds": binds},
        }

        async def run() -> bytes:
            async with start_container(DaemonApi(choices.socket), description) as sibling:
                command = (sys.executable, "-c", program, "/data/request.json")
                completed = await sibling.run(
                    ContainerCommand(command, {"PYTHONPATH": source, "TMPDIR": "/data"}, make_limits())
                )
                return completed.launch_end.output

        output = (await run()).decode()
        if mapped:
            assert output == "hello\n ['in', 'out', 'workspace']\n"
        else:
            assert "SandboxUnavailable" in output
            assert "bind source path does not exist" in output


PARENT = """
import asyncio, sys
from pathlib import Path
from redstart.core.shell import Execution
from redstart.ports.sandbox.docker.sandbox import ContainerOptions, Docker
from redstart.testing.sandbox import FolderWorkspaces
docker = Docker(FolderWorkspaces(Path({snapshots!r})), Path({scratch!r}), {choices})
done = asyncio.run(docker.run(Execution.model_validate_json(Path(sys.argv[1]).read_text())))
print(done.output, end='')
"""


def list_containers(choices: ContainerOptions, pid: int) -> list[str]:
    filters = json.dumps({"label": ["redstart.sandbox=1"]})
    containers = asyncio.run(
        DaemonApi(choices.socket).call("GET", "/containers/json", query={"all": "1", "filters": filters})
    )
    return [entry["Id"] for entry in containers if entry["Labels"]["redstart.owner"].split("/")[2] == str(pid)]


def wait_for(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Poll until the condition holds, since other processes send no event; return whether it held in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
