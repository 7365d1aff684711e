"""One container: its start, the commands that run in it, what it used, and its removal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox.cgroups import number_after, number_in
from redstart.ports.sandbox.docker.daemon import (
    CONFLICT,
    NOT_FOUND,
    DaemonApi,
    DaemonRefused,
    OutputChunk,
    OutputStream,
    as_list,
)
from redstart.ports.sandbox.docker.inside import READY, ContainerCommand, parse_files
from redstart.ports.sandbox.launch import ClippedStream, LaunchEnd

KILLED = 137
PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


class ContainerUsage(NamedTuple):
    """Usage of all processes of a container together since its start. Zero where it is unknown."""

    cpu: float = 0.0
    peak_memory: int = 0
    memory_kills: int = 0
    """How many processes the kernel killed because the memory was used up."""
    refused_processes: int = 0
    """How often the kernel refused a new process because there were too many."""
    processes: int = 0


class ContainerGroups:
    """The control groups of one container, where this machine is also the daemon's and shows them."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders

    @classmethod
    def find(cls, container: str, pid: int) -> ContainerGroups | None:
        """None if the process's groups do not carry the container's ID: the process is on another machine."""
        try:
            lines = (PROC / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            return None
        folders: dict[str, Path] = {}
        for line in lines:
            _, names, path = line.split(":", 2)
            if container not in path:
                continue
            for name in filter(None, names.split(",")):
                folders[name] = CGROUPS / name / path.lstrip("/")
            if not names:
                folders[""] = CGROUPS / path.lstrip("/")
        existing = {name: folder for name, folder in folders.items() if folder.is_dir()}
        return cls(existing) if {"memory", "cpuacct"} <= existing.keys() or "" in existing else None

    def read(self) -> ContainerUsage:
        unified = self._folders.get("")
        if unified is not None and (unified / "memory.events").exists():
            return ContainerUsage(
                cpu=number_after(unified / "cpu.stat", "usage_usec") / 1e6,
                peak_memory=number_in(unified / "memory.peak"),
                memory_kills=number_after(unified / "memory.events", "oom_kill"),
                refused_processes=number_after(unified / "pids.events", "max"),
                processes=number_in(unified / "pids.current"),
            )
        memory, pids = self._folders.get("memory", Path()), self._folders.get("pids", Path())
        return ContainerUsage(
            cpu=number_in(self._folders.get("cpuacct", Path()) / "cpuacct.usage") / 1e9,
            peak_memory=number_in(memory / "memory.max_usage_in_bytes"),
            memory_kills=number_after(memory / "memory.oom_control", "oom_kill"),
            refused_processes=number_after(pids / "pids.events", "max"),
            processes=number_in(pids / "pids.current"),
        )


async def fetch_usage(api: DaemonApi, container: str) -> ContainerUsage:
    """Ask the daemon for the usage. It does not know how many processes were killed or refused."""
    try:
        stats = await api.call("GET", f"/containers/{container}/stats", query={"stream": "false", "one-shot": "true"})
    except DaemonRefused:
        return ContainerUsage()
    return ContainerUsage(
        cpu=_get_nested_number(stats, "cpu_stats", "cpu_usage", "total_usage") / 1e9,
        peak_memory=_get_nested_number(stats, "memory_stats", "max_usage"),
        processes=_get_nested_number(stats, "pids_stats", "current"),
    )


async def count_memory_kills(api: DaemonApi, container: str, since: float, *, whole_container: bool) -> int:
    """Count how often the daemon saw the container run out of memory since then.

    A container with its own kernel dies as a whole (`whole_container`). The daemon may then know only that something
    other than the daemon killed it.
    """
    query = {
        "since": f"{since:.6f}",
        "until": f"{time.time():.6f}",
        "filters": json.dumps({"container": [container], "event": ["oom", "kill", "die"]}),
    }
    events = as_list(await api.call("GET", "/events", query=query))
    kinds = [str(event["Action"]) for event in events]
    killed = any(event["Actor"]["Attributes"].get("exitCode") == str(KILLED) for event in events)
    return kinds.count("oom") or int(whole_container and killed and "kill" not in kinds)


def _get_nested_number(value: Any, *names: str) -> int:
    for name in names:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int) else 0


LOOK_EVERY = 0.1
ASK_EVERY = 1.0
"""Seconds between two readings of the usage: from files of this machine, or from the daemon."""
PREPARE_SECONDS, FETCH_SECONDS, LEAVE_SECONDS = 300.0, 3.0, 0.5
"""Time limits for filling the workspace, for handing out collected files after a stop, and for the last process to
leave after the end."""
CPU_SLACK = 1.0
"""Seconds above the limit of all processes together. A single process is stopped by its own limit, which says more."""
OUTPUT_DRAIN_SECONDS = 1.0
"""Seconds that output may still be on its way after the end."""
CODE_SECONDS, REMOVAL_SECONDS, NEWS_SECONDS = 30.0, 60.0, 1.0
NO_IMAGE = "Build the image with `redstart sandbox build`, or choose an existing one: `--sandbox-image NAME`."
NO_FOLDER = "If redstart itself runs in a container, map its folders to those of the machine: `sandbox.path_map`."
NO_RUNTIME = "Add that runtime to the daemon (`runtimes` in its daemon.json), or set `sandbox.runtime` to another one."

PROCESS_COUNT_COMMAND = (
    "/bin/sh",
    "-c",
    "set -- /proc/[0-9]*; alive=$#; while read -r name values; do [ $name != Tcp: ] || set -- $values; done "
    '</proc/net/snmp; [ "$6" = 0 ] || exit 99; exit $alive',
)
"""Exits with the number of processes; with more than there can be if a port was used, which stays taken for a while."""
RESTING, IDLE_PROCESS_COUNT = 2, 3
"""Process 1 with its child; the same with the process that counts."""


class ContainerRun(NamedTuple):
    """How a command in a container ended, and whether the container may be used again."""

    launch_end: LaunchEnd
    files: dict[str, bytes]
    """The files that it left for collection."""
    is_clean: bool
    """Whether the container lives and no process of the command runs in it."""


class NotReady(SandboxUnavailable):
    """The workspace could not be filled: no command has run."""


class CommandOutput:
    """What a command prints: its own output, and that of the program around it, each of limited size."""

    def __init__(self, job: ContainerCommand) -> None:
        self._job = job
        self.stdout = ClippedStream(job.limits.output)
        self.stderr = bytearray()
        self.ready, self.flooded = asyncio.Event(), asyncio.Event()
        if not job.framed:
            self.ready.set()

    async def take(self, stream: OutputStream) -> None:
        async for chunk in stream.read_chunks():
            self.add(chunk)

    def add(self, chunk: OutputChunk) -> None:
        if not (chunk.is_stderr and self._job.framed):
            self.stdout.add(chunk.content)
        elif len(self.stderr) <= self._job.max_stderr:
            self.stderr += chunk.content
            if self.stderr.startswith(READY):
                self.ready.set()
        if self.over:
            self.flooded.set()

    @property
    def over(self) -> bool:
        return self.stdout.total > self._job.limits.flood or len(self.stderr) > self._job.max_stderr


class ContainerWatch(NamedTuple):
    """The usage before a command, its start time, and why it was stopped; None if it ended by itself."""

    before: ContainerUsage
    began: float
    stop_cause: ExitCause | None


class RunningContainer:
    """A running container. `run` may be called again as long as the last run left it clean."""

    def __init__(self, api: DaemonApi, name: str, groups: ContainerGroups | None, *, own_kernel: bool = False) -> None:
        self._api = api
        self.name = name
        self._groups = groups
        self.own_kernel = own_kernel
        self._began = time.time()
        self._last = ContainerUsage()

    async def run(self, job: ContainerCommand) -> ContainerRun:
        """Run a command until it ends or reaches a limit.

        Raises `SandboxDied` if the container ended first, and `NotReady` if the command never started.
        """
        request = {
            "AttachStdout": True,
            "AttachStderr": True,
            "User": job.user,
            "Cmd": list(job.argv),
            "Env": [f"{name}={value}" for name, value in job.variables.items()],
        }
        output = CommandOutput(job)
        self._last = await self._read_usage()
        try:
            created = await self._api.call("POST", f"/containers/{self.name}/exec", request)
            async with self._api.open_stream(f"/exec/{created['Id']}/start", {"Detach": False, "Tty": False}) as stream:
                before, began, stop_cause = await self._watch(stream, output, job)
                wall = time.monotonic() - began
            if not stop_cause:
                self._last = await self._read_usage()
            is_gone = not stop_cause and not self._last.processes
            code = KILLED if stop_cause or is_gone else await self._get_exit_code(created["Id"])
        except (DaemonRefused, TimeoutError) as error:
            raise SandboxDied(f"The command could not be run in the container: {error}") from error
        if code == KILLED and not stop_cause and (is_gone or self._groups is None):
            self._last = self._last._replace(memory_kills=await self._count_memory_kills(is_gone=is_gone))
        after = self._last
        if is_gone and not after.memory_kills and not after.refused_processes:
            raise SandboxDied("The container ended while a command ran in it.")
        container_files = parse_files(bytes(output.stderr.removeprefix(READY)))
        end = LaunchEnd(
            returncode=code,
            output=output.stdout.join(),
            truncated=output.stdout.left_out > 0,
            timed_out=stop_cause is ExitCause.timeout,
            wall=wall,
            cpu=max(after.cpu - before.cpu, container_files.cpu),
            stop_cause=stop_cause,
            peak_memory=after.peak_memory,
            killed_for_memory=max(after.memory_kills - before.memory_kills, 0),
            refused_processes=max(after.refused_processes - before.refused_processes, 0),
            disk_full=container_files.full,
        )
        is_clean = not stop_cause and not is_gone and not end.refused_processes and await self._is_clean()
        return ContainerRun(end, container_files.files, is_clean)

    async def _count_memory_kills(self, *, is_gone: bool) -> int:
        """Ask the daemon how often the kernel killed a process for memory. It may know this only after the container
        has ended.
        """
        deadline = time.monotonic() + (NEWS_SECONDS if is_gone else 0.0)
        whole_container = is_gone and self.own_kernel
        while True:
            count = await count_memory_kills(self._api, self.name, self._began, whole_container=whole_container)
            if count or time.monotonic() >= deadline:
                return count
            await asyncio.sleep(0.1)

    async def _is_clean(self) -> bool:
        """Whether only the processes from before the command run in it. If the container has its own kernel, they
        cannot be counted from outside.
        """
        deadline = time.monotonic() + LEAVE_SECONDS
        if not self.own_kernel:
            while time.monotonic() < deadline:
                if (await self._read_usage()).processes <= RESTING:
                    return True
                await asyncio.sleep(0.005)
            return False
        try:
            return await self.run_short_command(PROCESS_COUNT_COMMAND) == IDLE_PROCESS_COUNT
        except (DaemonRefused, TimeoutError):
            return False

    async def run_short_command(self, command: Sequence[str], *, user: str = "") -> int:
        """Return the exit code of a short command of our own.

        Raises `DaemonRefused`, or `TimeoutError` if it does not end.
        """
        created = await self._api.call("POST", f"/containers/{self.name}/exec", {"Cmd": list(command), "User": user})
        await self._api.call("POST", f"/exec/{created['Id']}/start", {"Detach": True})
        return await self._get_exit_code(created["Id"])

    async def _watch(self, stream: OutputStream, output: CommandOutput, job: ContainerCommand) -> ContainerWatch:
        """Watch a command until it ends or, if it had to be stopped, until the container ends.

        Output is read throughout, even while the container is being killed, because the daemon waits until it is read.
        """
        drain = asyncio.create_task(output.take(stream))
        end_task = asyncio.create_task(self._wait_for_end())
        tasks: set[asyncio.Task[Any]] = {drain, end_task}
        try:
            await self._wait_until_ready(output, drain, end_task)
            began = time.monotonic()
            self._last = before = await self._read_usage()
            watches: set[asyncio.Task[ExitCause]] = {
                asyncio.create_task(_wait_for_flood(output.flooded)),
                asyncio.create_task(self._wait_for_limit(job.limits)),
            }
            tasks |= watches
            finished, _ = await asyncio.wait(tasks, timeout=job.limits.wall, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                task.result()
            by_itself = drain in finished or end_task in finished
            if not by_itself:
                self._last = await self._read_usage()
                await self._fetch_files(job, output)
                await self.kill()
                await end_task
            # The stream may stay open forever after the container is gone: gVisor's does.
            await asyncio.wait({drain}, timeout=OUTPUT_DRAIN_SECONDS)
            if output.over:
                return ContainerWatch(before, began, ExitCause.output)
            cause = next((task.result() for task in watches & finished), ExitCause.timeout)
            return ContainerWatch(before, began, None if by_itself else cause)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_until_ready(
        self, output: CommandOutput, drain: asyncio.Task[Any], end_task: asyncio.Task[Any]
    ) -> None:
        """Return when the command begins. Raises `NotReady`, with the reason, if it does not."""
        ready = asyncio.create_task(output.ready.wait())
        try:
            await asyncio.wait({ready, drain, end_task}, timeout=PREPARE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if end_task.done():
            raise SandboxDied("The container ended before the command began.")
        if not output.ready.is_set():
            message = (bytes(output.stderr) or output.stdout.join()).decode("utf-8", "replace").strip()
            raise NotReady(f"The workspace could not be filled in the container: {message or 'it gave no reason'}")

    async def _fetch_files(self, job: ContainerCommand, output: CommandOutput) -> None:
        """Fetch the collected files of a command that did not end, unless the command prevents it."""
        if not job.fetch or output.flooded.is_set():
            return
        request = {"AttachStderr": True, "User": job.user, "Cmd": list(job.fetch)}
        with contextlib.suppress(DaemonRefused, TimeoutError):
            async with asyncio.timeout(FETCH_SECONDS):
                created = await self._api.call("POST", f"/containers/{self.name}/exec", request)
                async with self._api.open_stream(
                    f"/exec/{created['Id']}/start", {"Detach": False, "Tty": False}
                ) as stream:
                    async for chunk in stream.read_chunks():
                        output.add(chunk)

    async def _wait_for_limit(self, limits: SandboxLimits) -> ExitCause:
        """Return when all processes together exceed a limit, and name the limit.

        If the kernel had to kill a process for memory, the others are ended too: their results are useless.
        """
        before = self._last
        while True:
            await asyncio.sleep(LOOK_EVERY if self._groups else ASK_EVERY)
            self._last = await self._read_usage()
            if self._last.memory_kills > before.memory_kills:
                return ExitCause.memory
            if self._last.cpu - before.cpu > limits.cpu + CPU_SLACK:
                return ExitCause.cpu

    async def _wait_for_end(self) -> None:
        """Return when the container has ended."""
        with contextlib.suppress(DaemonRefused):
            await self._api.call("POST", f"/containers/{self.name}/wait", timeout_seconds=None)

    async def _read_usage(self) -> ContainerUsage:
        """Return the current usage; if the container is gone, the last usage with no process in it."""
        usage = self._groups.read() if self._groups else await fetch_usage(self._api, self.name)
        return usage if usage.processes else self._last._replace(processes=0)

    async def _get_exit_code(self, command: str) -> int:
        """Return the exit code of a command whose output has ended; the code may arrive later."""
        async with asyncio.timeout(CODE_SECONDS):
            while True:
                answer = await self._api.call("GET", f"/exec/{command}/json")
                if not answer["Running"]:
                    return KILLED if answer["ExitCode"] is None else int(answer["ExitCode"])
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """Kill every remaining process of the container."""
        with contextlib.suppress(DaemonRefused):
            await self._api.call("POST", f"/containers/{self.name}/kill", query={"signal": "KILL"})


@contextlib.asynccontextmanager
async def start_container(
    api: DaemonApi, description: dict[str, object], *, own_kernel: bool = False
) -> AsyncGenerator[RunningContainer]:
    """Start a container of that description and remove it at the end.

    Raises `SandboxUnavailable`, with the remedy.
    """
    name = f"redstart-{uuid.uuid4().hex}"
    creating = asyncio.create_task(api.call("POST", "/containers/create", description, query={"name": name}))
    try:
        await asyncio.shield(creating)
        attach_query = {"stream": "1", "stdin": "1"}
        async with api.open_stream(f"/containers/{name}/attach", query=attach_query):
            await api.call("POST", f"/containers/{name}/start")
            details = await api.call("GET", f"/containers/{name}/json")
            yield RunningContainer(
                api, name, ContainerGroups.find(details["Id"], int(details["State"]["Pid"])), own_kernel=own_kernel
            )
    except DaemonRefused as refused:
        raise _make_unavailable_error(refused) from refused
    finally:
        await asyncio.shield(_remove_container(api, name, creating))


async def _remove_container(api: DaemonApi, container: str, creating: asyncio.Task[Any]) -> None:
    """Remove the container, and repeat until it is gone.

    It may be ending by itself or, if its start was interrupted, still be starting.
    """
    await asyncio.gather(creating, return_exceptions=True)
    async with asyncio.timeout(REMOVAL_SECONDS):
        while True:
            try:
                await api.call("DELETE", f"/containers/{container}", query={"force": "1", "v": "1"})
            except DaemonRefused as refused:
                if refused.status == NOT_FOUND:
                    return
                if refused.status != CONFLICT:
                    raise SandboxUnavailable(f"A container could not be removed: {refused}") from refused
                await asyncio.sleep(0.02)
            else:
                return


async def _wait_for_flood(event: asyncio.Event) -> ExitCause:
    await event.wait()
    return ExitCause.output


def _make_unavailable_error(refused: DaemonRefused) -> SandboxUnavailable:
    message = str(refused)
    remedy = ""
    if "no such image" in message.lower() or "image not known" in message.lower():
        remedy = NO_IMAGE
    elif "bind source path does not exist" in message or "no such file or directory" in message:
        remedy = NO_FOLDER
    elif "runtime" in message.lower():
        remedy = NO_RUNTIME
    return SandboxUnavailable(f"The container could not be started: {message}", remedy=remedy)
