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
from redstart.ports.sandbox.docker.container import started
from redstart.ports.sandbox.docker.daemon import DaemonApi, socket_of
from redstart.ports.sandbox.docker.image import has_image, recipe_here
from redstart.ports.sandbox.docker.inside import ContainerCommand
from redstart.ports.sandbox.docker.sandbox import ContainerOptions, Docker
from redstart.ports.sandbox.docker.spec import WAITS_FOR_ITS_END
from redstart.ports.sandbox.port import Sandbox, WarmSandbox
from redstart.testing.contracts.ground import DAEMON, MEGABYTE, ContractFixtures, PythonProgram, living
from redstart.testing.contracts.isolation import IsolationContract
from redstart.testing.contracts.sandbox import SandboxContract
from redstart.testing.contracts.sandbox_session import SessionContract
from redstart.testing.sandbox import FolderWorkspaces

SPIN = "import os\nfor _ in range(5): os.fork()\nwhile True: pass"


def unusable(why: str) -> None:
    asked = os.environ.get("DOCKER_HOST") or os.environ.get("CI")
    (pytest.fail if asked else pytest.skip)(f"Docker is not available for tests: {why}")


@pytest.fixture(scope="module")
def choices() -> ContainerOptions:
    name = recipe_here().name
    socket = socket_of(os.environ.get("DOCKER_HOST", ""))
    try:
        if not asyncio.run(has_image(DaemonApi(socket), name)):
            unusable(f"the daemon at {socket} has no image {name}; redstart sandbox build makes it")
    except RedstartError as error:
        unusable(f"{error} {error.remedy}")
    return ContainerOptions(socket, name)


@pytest.fixture(scope="module")
def gvisor(choices: ContainerOptions) -> ContainerOptions:
    known = asyncio.run(DaemonApi(choices.socket).call("GET", "/info"))["Runtimes"]
    if "runsc" not in known:
        unusable("the daemon has no runtime runsc")
    return choices._replace(runtime="runsc")


def limited(**fields: float) -> SandboxLimits:
    return SandboxLimits(**{"wall": 60, **fields})  # pyright: ignore[reportArgumentType]


class TestDocker(SandboxContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)


class TestDockerIsolation(IsolationContract):
    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    def test_a_file_of_the_host_cannot_be_read(self, python: PythonProgram, tmp_path: Path) -> None:
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

    def test_processes_of_the_host_are_not_seen(self, python: PythonProgram) -> None:
        """The process that fills the workspace beforehand also took process IDs."""
        code = "import glob, os; print(os.getpid() < 100, len(glob.glob('/proc/[0-9]*')) < 10)"
        assert python(code).output == "True True\n"


class TestDockerCalls(ContractFixtures):
    """Calls that the seccomp profile forbids; Docker's own profile allows some of them."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    def test_forbidden_calls(self, python: PythonProgram) -> None:
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
        told = "".join(f"{name} -1 EPERM\n" for name in names) + "".join(f"{n} EPERM\n" for n in (40, 17, 38))
        assert python(code).output == told


class TestMountsWithin(ContractFixtures):
    """A read-only folder deep in the workspace, such as a package's own modules: everything around it is writable."""

    @pytest.fixture(params=["", "runsc"])
    def sandbox(
        self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions, request: pytest.FixtureRequest
    ) -> Sandbox:
        wanted = request.getfixturevalue("gvisor") if request.param else choices
        return Docker(workspaces, scratch, wanted)

    def test_the_folders_above_it(self, python: PythonProgram, workspaces: FolderWorkspaces) -> None:
        modules = Path(python.environment.mount, "packages/one/modules")
        modules.mkdir(parents=True)
        (modules / "real").write_text("of the host")
        python.snapshot = workspaces.snapshot("within", {"packages/one/a": "", "packages/one/modules/covered": ""})
        more = {"read_only": (*python.environment.read_only, str(modules))}
        code = "import os; os.chdir('packages/one'); open('new', 'x'); open('../new', 'x')\n"
        code += "print(sorted(os.listdir('.')), os.listdir('modules'), os.access('modules', os.W_OK))"
        done = python(code, environment=python.environment.model_copy(update=more))
        assert done.output == "['a', 'modules', 'new'] ['real'] False\n"


class TestGvisor(ContractFixtures):
    """Executions on gVisor's own kernel: it is in use, executions end correctly, and nothing remains."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, gvisor: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, gvisor)

    def test_the_kernel_is_another(self, python: PythonProgram, sandbox: Sandbox) -> None:
        done = python("import os; print(os.uname().release, open('hello.txt').read())")
        assert done.output.endswith(" hello\n\n")
        assert os.uname().release not in done.output
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
    def test_causes(
        self, python: PythonProgram, code: str, limits: dict[str, float], ended: tuple[int, ExitCause]
    ) -> None:
        done = python(code, limits=limited(**limits))
        assert (done.exit_code, done.cause) == ended, done.output

    def test_time_of_all_together(self, python: PythonProgram) -> None:
        done = python(SPIN, limits=limited(cpu=3))
        assert (done.exit_code in (137, 152), done.cause) == (True, ExitCause.cpu), "this kernel counts roughly"

    def test_memory(self, python: PythonProgram) -> None:
        code = "x = []\nwhile True: x.append(bytearray(b'x' * (1 << 20)))"
        done = python(code, limits=limited(memory=200 * MEGABYTE))
        assert (done.exit_code != 0, done.cause) == (True, ExitCause.memory)

    def test_processes(self, python: PythonProgram) -> None:
        code = "import os, time\nfor _ in range(99):\n  if os.fork() == 0: time.sleep(30); os._exit(0)\n  print('one')"
        done = python(code, limits=limited(processes=20))
        assert done.cause is ExitCause.processes
        assert 15 <= done.output.count("one\n") <= 24

    def test_a_daemon_is_dead_at_the_end(self, python: PythonProgram, token: str) -> None:
        assert python(f"{DAEMON}# {token}").output == "the daemon is up\n"
        assert living(token) == []


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
    def test_causes(self, python: PythonProgram, code: str, limits: dict[str, float], cause: ExitCause) -> None:
        assert python(code, limits=limited(**limits)).cause is cause

    def test_a_container_that_the_kernel_killed_for_memory(self, python: PythonProgram) -> None:
        code = "import mmap\nx = mmap.mmap(-1, 400 << 20)\nfor n in range(400): x.write(bytes(1 << 20))"
        done = python(code, limits=limited(memory=100 * MEGABYTE))
        assert (done.exit_code, done.cause) == (137, ExitCause.memory)

    def test_what_was_used(self, python: PythonProgram) -> None:
        done = python(
            "x = b'x' * (50 << 20)\nimport time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        )
        assert done.cpu >= 0.3


class TestSession(ContractFixtures):
    """A warm container, reused as long as it is clean."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Docker:
        return Docker(workspaces, scratch, choices)

    def in_turn(self, python: PythonProgram, *codes: str, **fields: object) -> tuple[list[Completed], int]:
        async def all_of_them() -> tuple[list[Completed], int]:
            assert isinstance(python.sandbox, Docker)
            requests = [python.request(code, **fields) for code in codes]
            async with python.sandbox.session(requests[0].environment, requests[0].limits) as session:
                return [await session.run(request) for request in requests], session.containers

        return asyncio.run(all_of_them())

    def test_one_container_and_fresh_files_each_time(self, python: PythonProgram, scratch: Path) -> None:
        code = "import os, tempfile, sys\nfor f in ('.', os.environ['HOME'], tempfile.gettempdir(), '/dev/shm'):"
        code += "\n  print(os.path.exists(f + '/left')); open(f + '/left', 'x')\nos.remove('hello.txt')"
        done, containers = self.in_turn(python, code, code, code)
        assert [each.output for each in done] == ["False\n" * 4] * 3
        assert containers == 1
        assert list(scratch.iterdir()) == []

    @pytest.mark.parametrize("left", [False, True])
    def test_with_gvisor(
        self, workspaces: FolderWorkspaces, scratch: Path, gvisor: ContainerOptions, python: PythonProgram, left: bool
    ) -> None:
        python.sandbox = Docker(workspaces, scratch, gvisor)
        code = DAEMON if left else "print('the daemon is up')"
        done, containers = self.in_turn(
            python, code, "import os; print(len([p for p in os.listdir('/proc') if p.isdigit()]))"
        )
        assert [each.output for each in done] == ["the daemon is up\n", "4\n"]
        assert left or containers == 1

    def test_files_go_in_and_come_out(self, python: PythonProgram) -> None:
        async def twice() -> list[dict[str, str]]:
            assert isinstance(python.sandbox, Docker)
            async with python.sandbox.session(python.environment, python.request().limits) as session:
                found: list[dict[str, str]] = []
                for text in ("one", "two"):
                    code = "import sys; open(sys.argv[2] + '/b', 'w').write(open(sys.argv[1] + '/a').read() * 2)"
                    argv = (sys.executable, "-c", code, "{redstart:in}", OUT)
                    request = python.request(argv=argv, files_in={"a": text}, collect=("b",))
                    found.append((await session.run(request)).files)
                return found

        assert asyncio.run(twice()) == [{"b": "oneone"}, {"b": "twotwo"}]

    def test_a_container_with_something_left_in_it_is_not_used_again(self, python: PythonProgram, token: str) -> None:
        done, containers = self.in_turn(python, f"{DAEMON}# {token}", "print('next')")
        assert [each.output for each in done] == ["the daemon is up\n", "next\n"]
        assert containers <= 2
        assert living(token) == []

    def test_after_a_time_out_there_is_a_new_one(self, python: PythonProgram, token: str) -> None:
        codes = (f"import time; time.sleep(60) # {token}", "print('next')")
        done, containers = self.in_turn(python, *codes, limits=limited(wall=8))
        assert [each.cause for each in done] == [ExitCause.timeout, ExitCause.ok]
        assert containers == 2
        assert living(token) == []


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

    def test_nothing_survives(
        self, python: PythonProgram, tmp_path: Path, choices: ContainerOptions, token: str
    ) -> None:
        request = python.request(f"import time; time.sleep(300)  # {token}")
        (tmp_path / "request.json").write_text(request.model_dump_json())
        program = PARENT.format(snapshots=str(tmp_path / "snapshots"), scratch=str(tmp_path / "own"), choices=choices)
        parent = subprocess.Popen((sys.executable, "-c", program, str(tmp_path / "request.json")))
        try:
            seen = waited_for(lambda: len(living(token)) > 0)
        finally:
            parent.kill()
            parent.wait()
        assert seen, "the command never ran"
        assert waited_for(lambda: living(token) == [])
        assert waited_for(lambda: containers_of(choices, parent.pid) == [])


class TestSibling(ContractFixtures):
    """Redstart itself runs in a container; its data folder has another path on the daemon's machine."""

    @pytest.fixture
    def sandbox(self, workspaces: FolderWorkspaces, scratch: Path, choices: ContainerOptions) -> Sandbox:
        return Docker(workspaces, scratch, choices)

    @pytest.mark.parametrize("mapped", [True, False])
    def test_its_folders_are_mapped(
        self, python: PythonProgram, tmp_path: Path, choices: ContainerOptions, mapped: bool
    ) -> None:
        request = python.request("print(open('hello.txt').read(), sorted(__import__('os').listdir('/run/redstart')))")
        (tmp_path / "request.json").write_text(request.model_dump_json())
        own = choices._replace(socket="/run/d.sock", path_map=(("/data", str(tmp_path)),) if mapped else ())
        program = PARENT.format(snapshots="/data/snapshots", scratch="/data/own", choices=own)
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
            async with started(DaemonApi(choices.socket), description) as box:
                command = (sys.executable, "-c", program, "/data/request.json")
                ran = await box.run(ContainerCommand(command, {"PYTHONPATH": source, "TMPDIR": "/data"}, limited()))
                return ran.ended.output

        told = asyncio.run(run()).decode()
        if mapped:
            assert told == "hello\n ['in', 'out', 'workspace']\n"
        else:
            assert "SandboxUnavailable" in told
            assert "bind source path does not exist" in told


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


def containers_of(choices: ContainerOptions, pid: int) -> list[str]:
    filters = json.dumps({"label": ["redstart.sandbox=1"]})
    found = asyncio.run(
        DaemonApi(choices.socket).call("GET", "/containers/json", query={"all": "1", "filters": filters})
    )
    return [each["Id"] for each in found if each["Labels"]["redstart.owner"].split("/")[2] == str(pid)]


def waited_for(what: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Poll until the condition holds, since other processes send no event; return whether it held in time."""
    over = time.monotonic() + seconds
    while not what():
        if time.monotonic() > over:
            return False
        time.sleep(0.05)
    return True
