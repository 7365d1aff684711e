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
from redstart.testing.contracts.ground import living
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

    def execution(self, files: dict[str, str]) -> Execution:
        snapshot: Snapshot = self.workspaces.snapshot(str(hash(tuple(files.items()))), files)
        argv = (sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "test_it.py")
        return Execution(argv=argv, snapshot=snapshot, environment=self.environment, limits=LIMITS)

    def add_plugin(self, module: str) -> None:
        about = self.extra / "extra_plugin-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-plugin\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[pytest11]\nextra = {module}\n")

    def look(self, *files: dict[str, str]) -> list[Completed]:
        async def all_of_them() -> list[Completed]:
            async with self.sandbox.session(self.environment, LIMITS) as session:
                done = [await session.run(self.execution(each)) for each in files]
                self.warm_runs, self.starts = session.warm_runs, session.starts
                return done

        return asyncio.run(all_of_them())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.slow
def test_a_fork_is_as_shut_in_as_a_fresh_run(place: Place) -> None:
    (done,) = place.look({"test_it.py": INSIDE})
    fresh = asyncio.run(place.sandbox.run(place.execution({"test_it.py": INSIDE})))
    assert place.warm_runs == 1
    told, told_fresh = ([line for line in each.output.splitlines()[:-1] if FIRST not in line] for each in (done, fresh))
    assert told == told_fresh
    assert done.output.startswith(f"{['0' * 16] * 5 + ['1']}"[:-1])
    assert f"{FIRST} [13, 13, 13]" in done.output  # in a fresh run process 1 is only a shell


@pytest.mark.soak
def test_what_is_kept_is_ended_from_outside(place: Place) -> None:
    async def look() -> tuple[list[int], WarmSession]:
        async with place.sandbox.session(place.environment, LIMITS) as session:
            codes = [(await session.run(place.execution({"test_it.py": PASSES}))).exit_code]
            for pid in living(f'"mount": "{place.environment.mount}"'):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for text in ("def test_it(): assert 0", PASSES):
                codes.append((await session.run(place.execution({"test_it.py": text}))).exit_code)
            return codes, session

    codes, session = asyncio.run(look())
    assert codes == [0, 1, 0]
    assert (session.starts, session.warm_runs) == (2, 2)
    assert living(place.environment.mount) == []


@pytest.mark.slow
def test_no_blow_from_a_run_reaches_what_it_was_forked_from(place: Place) -> None:
    blows = "import contextlib, os, signal\ndef test_it():\n  for who in (os.getppid(), 0, -1):\n"
    blows += "    with contextlib.suppress(OSError): os.kill(who, signal.SIGKILL if who > 0 else signal.SIGUSR1)"
    done = place.look({"test_it.py": blows}, {"test_it.py": PASSES})
    assert [each.exit_code for each in done] == [128 + signal.SIGUSR1, 0]
    assert (place.starts, place.warm_runs) == (1, 2)


@pytest.mark.slow
def test_neither_network_nor_shared_memory_is_handed_on(place: Place) -> None:
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
    done = place.look({"test_it.py": text}, {"test_it.py": text})
    assert [each.output.splitlines()[0] for each in done] == ["found 0 -1"] * 2
    assert place.warm_runs == 2


@pytest.mark.slow
def test_a_plugin_of_the_environment_takes_part(place: Place) -> None:
    place.add_plugin("extra_plugin")
    code = "import os\nLOADED_BY = os.getpid()\ndef pytest_report_header(): assert 1, 'rewritten'; return 'extra'\n"
    (place.extra / "extra_plugin.py").write_text(code)
    text = "import os, sys\ndef test_it(): print('loaded before', sys.modules['extra_plugin'].LOADED_BY != os.getpid())"
    (done,) = place.look({"test_it.py": text})
    assert (done.exit_code, place.warm_runs) == (0, 1)
    assert "loaded before True" in done.output
    assert "warning" not in done.output


@pytest.mark.slow
def test_nothing_of_the_project_is_loaded_before_the_run(place: Place) -> None:
    place.add_plugin("project_plugin")
    files = {"project_plugin.py": "def pytest_configure(): print('it took part')", "test_it.py": PASSES}
    (done,) = place.look(files)
    assert (done.exit_code, place.warm_runs) == (0, 0)
    assert "it took part" in done.output


@pytest.mark.soak
def test_a_plugin_that_starts_a_thread_is_not_forked(place: Place) -> None:
    place.add_plugin("extra_plugin")
    code = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (place.extra / "extra_plugin.py").write_text(code)
    (done,) = place.look({"test_it.py": PASSES})
    assert (done.exit_code, place.warm_runs) == (0, 0)


@pytest.mark.slow
def test_an_editable_install_is_found_where_it_will_be(place: Place) -> None:
    """At its start Python checks whether a folder exists, and ignores a missing one."""
    folder = Path(place.environment.mount, "src")
    site = f"import site; site.addsitedir({str(place.extra)!r})"
    (place.extra / "sitecustomize.py").write_text(site)
    (place.extra / "project.pth").write_text(f"{folder}\n")
    files = {"src/thing.py": "WORD = 'mine'", "test_it.py": "import thing\ndef test_it(): print(thing.WORD)"}
    (done,) = place.look(files)
    assert (done.exit_code, place.warm_runs) == (0, 1), done.output
    assert "mine" in done.output


@pytest.mark.slow
def test_without_mounts_every_run_is_fresh(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "own_rights", ProcessRights)
    assert [each.exit_code for each in place.look({"test_it.py": PASSES})] == [0]
    assert place.warm_runs == 0


@pytest.mark.soak
def test_without_groups_limits_hold_by_watching(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "own_tree", lambda: None)
    forks = "import os, time\ndef test_it():\n  for _ in range(3): os.fork()\n  while True: pass"
    # Enough to import pytest and its plugins on a slow machine, which counts too.
    limits = SandboxLimits(wall=120, cpu=8)
    execution = place.execution({"test_it.py": forks}).model_copy(update={"limits": limits})

    async def look() -> tuple[Completed, int]:
        async with place.sandbox.session(place.environment, limits) as session:
            return await session.run(execution), session.warm_runs

    done, warm_runs = asyncio.run(look())
    assert (done.cause, warm_runs) == ("cpu", 1)


def test_what_is_kept_may_call_no_more_than_it_needs() -> None:
    machine = seccomp.MACHINES["x86_64"]
    assert set(zygote.NEEDED_CALLS) == {"mount", "unshare", "setns"} <= set(machine.refused)
    own, usual = zygote.call_filter(), seccomp.program()
    assert own is not None
    assert usual is not None
    assert len(usual) - len(own) == 3 * 8  # one instruction of eight bytes for each refused call
