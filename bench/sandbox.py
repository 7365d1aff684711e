"""The cost of a sandbox: the time of a command in each backend, as a ratio to the same command started bare.

There are four commands: a Python start that does nothing, a file of ten tests with pytest, about a second of computing,
and 5,000 small files written, read and removed. Each backend of this machine is measured `fresh` (a sandbox for each
execution) and `warm` (many executions in one session). In each round every backend runs once, the bare command first,
so that all see the same load; a figure is the median of the rounds' ratios, with the 95th percentile beside it. On a
busy machine the kernel divides the processors among groups, and every sandbox has a group. So the bare command gets a
group too, if possible; otherwise it would share with everything else and seem slow.

Bubblewrap keeps only pytest warm, so it has no other warm figure. Docker needs a daemon at `DOCKER_HOST`. If that is
not set, root installs and starts a daemon for the duration of the bench; its image is made once and kept in the user's
cache. The bench reports unavailable backends, and a figure with an aim that is missing because of one does not hold.

`--quick` measures only the file of tests, in as many rounds as begin within two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from _environments import make_environment
from _figures import Figure, expect_at_most, print_figures, report_value
from redstart.app.images import build_image
from redstart.core.errors import RedstartError
from redstart.core.shell import Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.cgroups import Cgroup, find_own_tree, open_group
from redstart.ports.sandbox.docker.daemon import DaemonApi, parse_socket
from redstart.ports.sandbox.docker.image import detect_recipe
from redstart.ports.sandbox.docker.sandbox import ContainerOptions, Docker
from redstart.ports.sandbox.files import build_variables
from redstart.ports.sandbox.port import WarmSandbox, Workspaces, open_sandbox_session
from redstart.testing.sandbox import FolderWorkspaces

AIMS = {"bwrap_fresh_pytest": 1.15, "bwrap_warm_pytest": 0.5, "docker_warm_pytest": 1.25}
ROUNDS, QUICK_SECONDS = 30, 120.0
PROGRAMS = {"dockerd": "^docker[.]io$", "runsc": "runsc", "mmdebstrap": "mmdebstrap"}
"""The programs that Docker needs here, and their packages; a package may be named by a pattern."""
TESTS = "import pytest\n\n@pytest.mark.parametrize('number', range(10))\ndef test_it(number):\n    assert number < 10\n"
SECOND = "number = 0\nfor _ in range(15_000_000): number += 1"
FILES = (
    "import os\nos.mkdir('many')\nfor n in range(5000): open(f'many/{n}', 'w').write('some text')\n"
    "for n in range(5000): open(f'many/{n}').read(); os.remove(f'many/{n}')\nos.rmdir('many')"
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "start": ("-c", "pass"),
    "pytest": ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"),
    "second": ("-c", SECOND),
    "files": ("-c", FILES),
}
DAEMON_SECONDS = 30.0
GROUP = "redstart-bench"
"""Control group of the daemon's containers: the group of another daemon may have any share of the processors."""

Run = Callable[[Execution], Awaitable[object]]


class Contender(NamedTuple):
    """A way to run commands: its name in the figures, and the commands to measure."""

    name: str
    run: Run
    commands: tuple[str, ...]


class Ground(NamedTuple):
    """The workspace in which everything runs."""

    folder: Path
    workspaces: FolderWorkspaces
    environment: Environment
    executions: dict[str, Execution]


def prepare_workspace(folder: Path) -> Ground:
    workspaces = FolderWorkspaces(folder / "snapshots")
    snapshot = workspaces.create_snapshot("one", {"test_it.py": TESTS})
    mount = folder / "repo"
    shutil.copytree(folder / "snapshots" / "one", mount)
    python = with_pytest(folder / "venv")
    environment = Environment(mount=str(mount), python=python, read_only=(str(folder / "venv"), sys.base_prefix))
    executions = {
        name: Execution(
            argv=(python, *arguments), snapshot=snapshot, environment=environment, limits=SandboxLimits(wall=300)
        )
        for name, arguments in COMMANDS.items()
    }
    return Ground(folder, workspaces, environment, executions)


def with_pytest(folder: Path) -> str:
    """Make an environment with only pytest, like that of a user's small project, and return its interpreter."""
    return str(make_environment(folder, f"pytest=={version('pytest')}"))


def create_bare_run(group: Cgroup | None) -> Run:
    """Return a function that starts commands without a sandbox."""

    async def run(execution: Execution) -> None:
        environ = build_variables(
            execution.environment.python, {}, home=tempfile.gettempdir(), temporary=tempfile.gettempdir()
        )
        child = await asyncio.create_subprocess_exec(
            *execution.argv,
            cwd=execution.environment.mount,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for procs_file in group.procs_files if group else ():
            with contextlib.suppress(ProcessLookupError):
                Path(procs_file).write_text(str(child.pid))
        output, _ = await child.communicate()
        assert child.returncode == 0, output.decode()

    return run


def check_success(run: Callable[[Execution], Awaitable[object]]) -> Run:
    """Wrap `run` so that it raises if the command fails: the time of an error is not a figure."""

    async def run_and_check(execution: Execution) -> None:
        completed = await run(execution)
        assert getattr(completed, "cause", None) is ExitCause.ok, completed

    return run_and_check


@contextlib.asynccontextmanager
async def open_contenders(
    place: Ground, backends: dict[str, WarmSandbox], names: tuple[str, ...]
) -> AsyncGenerator[list[Contender]]:
    """Provide every backend, fresh and in a session that stays open."""
    async with contextlib.AsyncExitStack() as stack:
        entries: list[Contender] = []
        limits = place.executions["pytest"].limits
        for name, sandbox in backends.items():
            entries.append(Contender(f"{name}_fresh", check_success(sandbox.run), names))
            session = await stack.enter_async_context(open_sandbox_session(sandbox, place.environment, limits))
            warm = tuple(item for item in names if item == "pytest" or not isinstance(sandbox, Bubblewrap))
            await session.run(place.executions["pytest"])
            entries.append(Contender(f"{name}_warm", check_success(session.run), warm))
        yield entries


async def measure_backends(
    place: Ground, backends: dict[str, WarmSandbox], names: tuple[str, ...], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """Return the ratios of every round, by figure."""
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    began = time.monotonic()
    limits = place.executions["pytest"].limits
    async with open_contenders(place, backends, names) as entries:
        with open_group(find_own_tree(), limits) as group:
            for turn in range(rounds):
                if turn and time.monotonic() - began > seconds:
                    break
                for name in names:
                    bare_seconds = await measure_run(create_bare_run(group), place.executions[name])
                    for contender in entries:
                        if name in contender.commands:
                            ratios[f"{contender.name}_{name}"].append(
                                await measure_run(contender.run, place.executions[name]) / bare_seconds
                            )
    return ratios


async def measure_run(run: Run, execution: Execution) -> float:
    began = time.monotonic()
    await run(execution)
    return time.monotonic() - began


def build_figure(name: str, ratios: list[float]) -> Figure:
    value = statistics.median(ratios)
    worst = statistics.quantiles(ratios, n=20, method="inclusive")[-1] if len(ratios) > 1 else value
    print(f"{name:24} {value:8.3f} (p95 {worst:.3f}, {len(ratios)} rounds)")
    return expect_at_most(name, value, AIMS[name]) if name in AIMS else report_value(name, value)


async def find_backends(place: Ground) -> dict[str, WarmSandbox]:
    """Return the backends available here; print why the others are unavailable."""
    scratch, backends = place.folder / "scratch", dict[str, WarmSandbox]()
    try:
        await asyncio.to_thread(probe, scratch)
        backends["bwrap"] = Bubblewrap(place.workspaces, scratch)
    except RedstartError as error:
        print(f"bwrap: {error} {error.remedy}")
    try:
        backends.update(await create_dockers(place.workspaces, scratch))
    except (RedstartError, OSError) as error:
        print(f"docker: {error}")
    return backends


async def create_dockers(workspaces: Workspaces, scratch: Path) -> dict[str, WarmSandbox]:
    socket = parse_socket(os.environ.get("DOCKER_HOST", ""))
    api, image = DaemonApi(socket), detect_recipe().name
    await build_image(os.environ, say=print)
    runtimes = (await api.call("GET", "/info"))["Runtimes"]
    choices = {"docker": ContainerOptions(socket, image), "runsc": ContainerOptions(socket, image, "runsc")}
    if "runsc" not in runtimes:
        print("runsc: the daemon has no such runtime")
        del choices["runsc"]
    return {name: Docker(workspaces, scratch, choice) for name, choice in choices.items()}


@contextlib.contextmanager
def run_daemon(folder: Path) -> Generator[None]:
    """Run a Docker daemon for the duration of the bench, if none is configured and one can be started."""
    if os.environ.get("DOCKER_HOST") or os.geteuid() != 0:
        yield
        return
    install()
    program = shutil.which("dockerd")
    if program is None:
        yield
        return
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redstart-bench" / "docker"
    cache.mkdir(parents=True, exist_ok=True)
    gvisor = shutil.which("runsc")
    runtime = {"path": gvisor, "runtimeArgs": ["--platform=ptrace", "--network=none"]}
    (folder / "daemon.json").write_text(json.dumps({"runtimes": {"runsc": runtime} if gvisor else {}}))
    socket = folder / "docker.sock"
    options = {"config-file": folder / "daemon.json", "data-root": cache, "exec-root": folder / "exec"}
    options |= {"pidfile": folder / "pid", "host": f"unix://{socket}", "storage-driver": "overlay2"}
    options |= {"iptables": "false", "bridge": "none", "cgroup-parent": GROUP}
    with (folder / "log").open("wb") as log:
        argv = [program, *(f"--{name}={value}" for name, value in options.items())]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + DAEMON_SECONDS
        while not socket.exists() and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        os.environ["DOCKER_HOST"] = f"unix://{socket}"
        yield
    finally:
        child.terminate()
        child.wait()
        for leftover in Path("/sys/fs/cgroup").glob(f"*/{GROUP}"):
            with contextlib.suppress(OSError):
                leftover.rmdir()


def install() -> None:
    """Install the packages that Docker needs, if they are missing and this system can install them."""
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if missing and shutil.which("apt-get"):
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for arguments in (("update", "-qq"), ("install", "-y", "-qq", "--no-install-recommends", *missing)):
            subprocess.run(("apt-get", *arguments), env=environ, stdout=subprocess.DEVNULL, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the file of tests")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    names = ("pytest",) if args.quick else tuple(COMMANDS)

    async def measure_all(folder: Path) -> dict[str, list[float]]:
        place = prepare_workspace(folder)
        backends = await find_backends(place)
        return await measure_backends(
            place, backends, names, args.rounds, QUICK_SECONDS if args.quick else float("inf")
        )

    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder, run_daemon(Path(folder)):
        ratios = asyncio.run(measure_all(Path(folder)))
    figures = [build_figure(name, values) for name, values in ratios.items()]
    figures += [Figure(name, None, f"<= {aim:g}", holds=False) for name, aim in AIMS.items() if name not in ratios]
    print_figures("sandbox", figures)


if __name__ == "__main__":
    main()
