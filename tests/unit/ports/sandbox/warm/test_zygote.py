"""A run as a fork: it is as isolated as a fresh one, and the zygote loads nothing of the project."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from redstart.core.change import Snapshot
from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox import bwrap, seccomp
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.stage import ProcessRights
from redstart.ports.sandbox.warm import zygote
from redstart.ports.sandbox.warm.zygote import WarmSession
from redstart.testing.contracts.fixtures import find_processes
from redstart.testing.sandbox import FolderWorkspaces

LIMITS = SandboxLimits(wall=120)
INSIDE = """
import ctypes, os, resource, socket
def attempt(work):
    try:
        return work()
    except OSError as error:
        return error.errno
def test_it():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print([status[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh", "NoNewPrivs", "Uid")])
    print(status["Seccomp"].strip(), [each for each in os.listdir("/proc") if each.isdigit()], os.getpid())
    print(sorted(os.listdir("/run/redstart")), os.listdir("/run/redstart/out"))
    print(sorted(os.listdir("/")), os.listdir("/run"))
    print(sorted(fd for fd in os.listdir("/proc/self/fd") if int(fd) < 3), os.getppid(), os.getsid(0), os.getpgrp())
    print([resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in ("CPU", "FSIZE", "DATA", "CORE")])
    libc = ctypes.CDLL(None, use_errno=True)
    print([libc.unshare(0x10000000), libc.unshare(0x20000), libc.mount(b"x", b"/tmp", b"tmpfs", 0, None)])
    hidden = [f"/proc/1/{name}" for name in ("mem", "maps", "environ")]
    print("process 1:", [attempt(lambda: open(path, "rb").read(1)) for path in hidden])
    print([attempt(lambda: open(f"{place}/new", "w").close()) for place in ("/", "/usr", "/etc", "/run/redstart/in")])
    print(attempt(lambda: socket.create_connection(("127.0.0.1", 1))), attempt(lambda: os.kill(1, 9)))
    print(oct(os.stat("/tmp").st_mode), oct(os.stat(os.environ["HOME"]).st_mode), os.stat(".").st_uid)
"""
FIRST = "process 1:"
PASSES = "def test_it(): pass"


@pytest.fixture(autouse=True, scope="module")
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        probe(tmp_path_factory.mktemp("probe"))
    except SandboxUnavailable as error:
        pytest.skip(f"{error} {error.remedy}")


class Place:
    """A repo with a sandbox; `extra` is a folder of its environment on Python's path."""

    def __init__(self, folder: Path) -> None:
        self.workspaces = FolderWorkspaces(folder / "snapshots")
        self.sandbox = Bubblewrap(self.workspaces, folder / "scratch")
        self.extra = folder / "extra"
        self.extra.mkdir()
        self.environment = Environment(
            mount=str(folder / "repo"),
            python=sys.executable,
            read_only=(sys.prefix, sys.base_prefix, str(self.extra)),
            variables={"PYTHONPATH": f"{self.extra}:{folder / 'repo'}"},
        )
        self.warm_runs = self.starts = 0

    def create_execution(self, files: dict[str, str]) -> Execution:
        snapshot: Snapshot = self.workspaces.create_snapshot(str(hash(tuple(files.items()))), files)
        argv = (sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_it.py")
        return Execution(argv=argv, snapshot=snapshot, environment=self.environment, limits=LIMITS)

    def add_plugin(self, module: str) -> None:
        metadata_folder = self.extra / "extra_plugin-1.dist-info"
        metadata_folder.mkdir()
        (metadata_folder / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-plugin\nVersion: 1\n")
        (metadata_folder / "entry_points.txt").write_text(f"[pytest11]\nextra = {module}\n")

    def run_files(self, *files: dict[str, str]) -> list[Completed]:
        async def run_all() -> list[Completed]:
            async with self.sandbox.open_session(self.environment, LIMITS) as session:
                results = [await session.run(self.create_execution(file_set)) for file_set in files]
                self.warm_runs, self.starts = session.warm_runs, session.starts
                return results

        return asyncio.run(run_all())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.slow
def test_fork_is_as_isolated_as_a_fresh_run(place: Place) -> None:
    (completed,) = place.run_files({"test_it.py": INSIDE})
    fresh_completed = asyncio.run(place.sandbox.run(place.create_execution({"test_it.py": INSIDE})))
    assert place.warm_runs == 1
    lines, fresh_lines = (
        [line for line in result.output.splitlines()[:-1] if FIRST not in line]
        for result in (completed, fresh_completed)
    )
    assert lines == fresh_lines
    assert completed.output.startswith(f"{['0' * 16] * 5 + ['1']}"[:-1])
    assert f"{FIRST} [13, 13, 13]" in completed.output  # in a fresh run process 1 is only a shell


@pytest.mark.soak
async def test_warm_process_can_be_killed_from_outside(place: Place) -> None:
    async def run_and_kill() -> tuple[list[int], WarmSession]:
        async with place.sandbox.open_session(place.environment, LIMITS) as session:
            codes = [(await session.run(place.create_execution({"test_it.py": PASSES}))).exit_code]
            for pid in find_processes(f'"mount": "{place.environment.mount}"'):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for text in ("def test_it(): assert 0", PASSES):
                codes.append((await session.run(place.create_execution({"test_it.py": text}))).exit_code)
            return codes, session

    codes, session = await run_and_kill()
    assert codes == [0, 1, 0]
    assert (session.starts, session.warm_runs) == (2, 2)
    assert find_processes(place.environment.mount) == []


@pytest.mark.slow
def test_run_cannot_kill_its_parent_process(place: Place) -> None:
    blows = "import contextlib, os, signal\ndef test_it():\n  for who in (os.getppid(), 0, -1):\n"
    blows += "    with contextlib.suppress(OSError): os.kill(who, signal.SIGKILL if who > 0 else signal.SIGUSR1)"
    results = place.run_files({"test_it.py": blows}, {"test_it.py": PASSES})
    assert [result.exit_code for result in results] == [128 + signal.SIGUSR1, 0]
    assert (place.starts, place.warm_runs) == (1, 2)


@pytest.mark.slow
def test_network_and_shared_memory_do_not_carry_over(place: Place) -> None:
    text = """
import ctypes, socket
def test_it():
    counts = [line.split() for line in open("/proc/net/snmp") if line.startswith("Tcp:")]
    libc = ctypes.CDLL(None, use_errno=True)
    print("found", dict(zip(*counts))["ActiveOpens"], libc.shmget(1234, 4096, 0))
    libc.shmget(1234, 4096, 0o1600)
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    socket.create_connection(server.getsockname())
"""
    results = place.run_files({"test_it.py": text}, {"test_it.py": text})
    assert [result.output.splitlines()[0] for result in results] == ["found 0 -1"] * 2
    assert place.warm_runs == 2


@pytest.mark.slow
def test_environment_plugin_is_loaded(place: Place) -> None:
    place.add_plugin("extra_plugin")
    code = "import os\nLOADED_BY = os.getpid()\ndef pytest_report_header(): assert 1, 'rewritten'; return 'extra'\n"
    (place.extra / "extra_plugin.py").write_text(code)
    text = "import os, sys\ndef test_it(): print('loaded before', sys.modules['extra_plugin'].LOADED_BY != os.getpid())"
    (completed,) = place.run_files({"test_it.py": text})
    assert (completed.exit_code, place.warm_runs) == (0, 1)
    assert "loaded before True" in completed.output
    assert "warning" not in completed.output


@pytest.mark.slow
def test_no_project_code_is_loaded_before_the_run(place: Place) -> None:
    place.add_plugin("project_plugin")
    files = {"project_plugin.py": "def pytest_configure(): print('it took part')", "test_it.py": PASSES}
    (completed,) = place.run_files(files)
    assert (completed.exit_code, place.warm_runs) == (0, 0)
    assert "it took part" in completed.output


@pytest.mark.soak
def test_plugin_that_starts_a_thread_prevents_forking(place: Place) -> None:
    place.add_plugin("extra_plugin")
    code = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (place.extra / "extra_plugin.py").write_text(code)
    (completed,) = place.run_files({"test_it.py": PASSES})
    assert (completed.exit_code, place.warm_runs) == (0, 0)


@pytest.mark.slow
def test_editable_install_is_found(place: Place) -> None:
    """At its start Python checks whether a folder exists, and ignores a missing one."""
    folder = Path(place.environment.mount, "src")
    site = f"import site; site.addsitedir({str(place.extra)!r})"
    (place.extra / "sitecustomize.py").write_text(site)
    (place.extra / "project.pth").write_text(f"{folder}\n")
    files = {"src/thing.py": "WORD = 'mine'", "test_it.py": "import thing\ndef test_it(): print(thing.WORD)"}
    (completed,) = place.run_files(files)
    assert (completed.exit_code, place.warm_runs) == (0, 1), completed.output
    assert "mine" in completed.output


@pytest.mark.slow
def test_every_run_is_fresh_without_mounts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "get_own_rights", ProcessRights)
    assert [result.exit_code for result in place.run_files({"test_it.py": PASSES})] == [0]
    assert place.warm_runs == 0


@pytest.mark.soak
async def test_limits_are_enforced_by_polling_without_cgroups(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "find_own_tree", lambda: None)
    forks = "import os, time\ndef test_it():\n  for _ in range(3): os.fork()\n  while True: pass"
    # Enough to import pytest and its plugins on a slow machine, which counts too.
    limits = SandboxLimits(wall=120, cpu=8)
    execution = place.create_execution({"test_it.py": forks}).model_copy(update={"limits": limits})

    async def run_limited() -> tuple[Completed, int]:
        async with place.sandbox.open_session(place.environment, limits) as session:
            return await session.run(execution), session.warm_runs

    completed, warm_runs = await run_limited()
    assert (completed.cause, warm_runs) == ("cpu", 1)


def test_zygote_filter_allows_only_the_calls_it_needs() -> None:
    machine = seccomp.MACHINES["x86_64"]
    assert set(zygote.NEEDED_CALLS) == {"mount", "unshare", "setns"} <= set(machine.refused)
    own_filter, default_filter = zygote.call_filter(), seccomp.build_filter()
    assert own_filter is not None
    assert default_filter is not None
    assert len(default_filter) - len(own_filter) == 3 * 8  # one instruction of eight bytes for each refused call
