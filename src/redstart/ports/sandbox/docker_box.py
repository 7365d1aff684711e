"""One container, from its start to its removal, and the commands that run in it."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, NamedTuple

from redstart.core.errors import SandboxDied, SandboxUnavailable
from redstart.core.shell import ExitCause, SandboxLimits
from redstart.ports.sandbox.docker_api import CONFLICT, NOT_FOUND, Api, Refused, Stream
from redstart.ports.sandbox.docker_usage import Groups, Usage, killed_for_memory, told
from redstart.ports.sandbox.launch import Ended, Kept

KILLED = 137
LOOK_EVERY = 0.1
ASK_EVERY = 1.0
"""Seconds between two looks at what is used: at files of this machine, or at the daemon's figures."""
FULL_EVERY = 1.0
"""Seconds between two looks at what the command has written."""
CPU_SLACK = 1.0
"""Seconds above the limit of all processes together: a single one is stopped by its own limit, which says more."""
LAST_WORDS = 1.0
"""Seconds that output may still be on its way after the end."""
CODE_SECONDS, REMOVAL_SECONDS = 10.0, 60.0
NO_IMAGE = "Make the image with `redstart sandbox build`, or name one that is there: `--sandbox-image NAME`."
NO_FOLDER = "Where redstart runs in a container itself, name its folders as the machine has them: `sandbox.path_map`."
NO_RUNTIME = "Give the daemon that runtime (`runtimes` in its daemon.json), or set `sandbox.runtime` to another."

COUNTED = ("/bin/sh", "-c", "set -- /proc/[0-9]*; exit $#")
ALONE = 2
"""Process 1 and the one that counts."""

Full = Callable[[], bool]
"""Whether the command has written more than it may."""


class Ran(NamedTuple):
    """How a command in a container ended, and whether the container may be used again."""

    ended: Ended
    clean: bool
    """The container lives, and nothing of the command runs in it any more."""


class Box:
    """A running container. `run` may be called again as long as the last one left it clean."""

    def __init__(self, api: Api, name: str, groups: Groups | None, *, own_kernel: bool = False) -> None:
        self._api = api
        self.name = name
        self._groups = groups
        self._own_kernel = own_kernel
        self._began = time.time()
        self._last = Usage()

    async def run(self, command: Sequence[str], variables: dict[str, str], limits: SandboxLimits, full: Full) -> Ran:
        """Runs a command until it ends or meets a limit. Raises `SandboxDied` where the container ended before it."""
        before = self._last = await self._look()
        request = {
            "AttachStdout": True,
            "AttachStderr": True,
            "Cmd": list(command),
            "Env": [f"{name}={value}" for name, value in variables.items()],
        }
        kept = Kept(limits.output)
        try:
            made = await self._api.call("POST", f"/containers/{self.name}/exec", request)
            began = time.monotonic()
            async with self._api.upgraded(f"/exec/{made['Id']}/start", {"Detach": False, "Tty": False}) as stream:
                stopped = await self._watched(stream, kept, limits, full)
                wall = time.monotonic() - began
            if not stopped:
                self._last = await self._look()
            gone = not stopped and not self._last.processes
            code = KILLED if stopped or gone else await self._code(made["Id"])
        except Refused as refused:
            raise SandboxDied(f"The command could not be run in the container: {refused}") from refused
        if code == KILLED and not stopped and (gone or self._groups is None):
            self._last = self._last._replace(out_of_memory=await killed_for_memory(self._api, self.name, self._began))
        after = self._last
        if gone and not after.out_of_memory and not after.refused_processes:
            raise SandboxDied("The container ended while a command ran in it.")
        ended = Ended(
            returncode=code,
            output=kept.joined(),
            truncated=kept.left_out > 0,
            timed_out=stopped is ExitCause.timeout,
            wall=wall,
            cpu=max(after.cpu - before.cpu, 0.0),
            stopped=stopped,
            peak_memory=after.peak_memory,
            killed_for_memory=max(after.out_of_memory - before.out_of_memory, 0),
            refused_processes=max(after.refused_processes - before.refused_processes, 0),
        )
        return Ran(ended, clean=not stopped and not gone and await self._is_clean(before, after))

    async def _is_clean(self, before: Usage, after: Usage) -> bool:
        """Whether nothing runs in it but what was there before. From outside a kernel of its own cannot be counted."""
        if not self._own_kernel:
            return after.processes <= before.processes
        try:
            made = await self._api.call("POST", f"/containers/{self.name}/exec", {"Cmd": list(COUNTED)})
            await self._api.call("POST", f"/exec/{made['Id']}/start", {"Detach": True})
            return await self._code(made["Id"]) == ALONE
        except (Refused, TimeoutError):
            return False

    async def _watched(self, stream: Stream, kept: Kept, limits: SandboxLimits, full: Full) -> ExitCause | None:
        """Why it was stopped; nothing where it ended by itself.

        Output is taken all the while, also while the container is being killed: the daemon would wait for it.
        """
        flooded = asyncio.Event()
        drain = asyncio.create_task(_drained(stream, kept, limits.flood, flooded))
        watches: set[asyncio.Task[ExitCause]] = {
            asyncio.create_task(_flooded(flooded)),
            asyncio.create_task(self._over_a_limit(limits)),
            asyncio.create_task(_filled(full)),
        }
        over = asyncio.create_task(self._over())
        tasks: set[asyncio.Task[Any]] = {drain, over, *watches}
        try:
            done, _ = await asyncio.wait(tasks, timeout=limits.wall, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            by_itself = drain in done or over in done
            if not by_itself:
                self._last = await self._look()
                await self.kill()
                await over
            # The stream may stay open for ever where the container is gone: gVisor's does.
            await asyncio.wait({drain}, timeout=LAST_WORDS)
            if kept.total > limits.flood:
                return ExitCause.output
            why = next((task.result() for task in watches & done), ExitCause.timeout)
            return None if by_itself else why
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _over_a_limit(self, limits: SandboxLimits) -> ExitCause:
        """Ends when all processes together have used more than they may, and says of what.

        Where the kernel had to kill one for memory, the others are ended too: what they would do is of no use.
        """
        before = self._last
        while True:
            await asyncio.sleep(LOOK_EVERY if self._groups else ASK_EVERY)
            self._last = await self._look()
            if self._last.out_of_memory > before.out_of_memory:
                return ExitCause.memory
            if self._last.cpu - before.cpu > limits.cpu + CPU_SLACK:
                return ExitCause.cpu

    async def _over(self) -> None:
        """Ends with the container."""
        with contextlib.suppress(Refused):
            await self._api.call("POST", f"/containers/{self.name}/wait", within=None)

    async def _look(self) -> Usage:
        """What is used now; where the container is gone, what it was last, with no process in it."""
        now = self._groups.read() if self._groups else await told(self._api, self.name)
        return now if now.processes else self._last._replace(processes=0)

    async def _code(self, command: str) -> int:
        """The exit code of a command whose output has ended; it may still be on its way out."""
        async with asyncio.timeout(CODE_SECONDS):
            while True:
                answer = await self._api.call("GET", f"/exec/{command}/json")
                if not answer["Running"]:
                    return KILLED if answer["ExitCode"] is None else int(answer["ExitCode"])
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """Ends every process of the container, if there is still one."""
        with contextlib.suppress(Refused):
            await self._api.call("POST", f"/containers/{self.name}/kill", query={"signal": "KILL"})


@contextlib.asynccontextmanager
async def started(api: Api, description: dict[str, object], *, own_kernel: bool = False) -> AsyncGenerator[Box]:
    """A container of that description, removed at the end. Raises `SandboxUnavailable` with the remedy."""
    name = f"redstart-{uuid.uuid4().hex}"
    creating = asyncio.create_task(api.call("POST", "/containers/create", description, query={"name": name}))
    try:
        await asyncio.shield(creating)
        held = {"stream": "1", "stdin": "1"}
        async with api.upgraded(f"/containers/{name}/attach", query=held):
            await api.call("POST", f"/containers/{name}/start")
            about = await api.call("GET", f"/containers/{name}/json")
            yield Box(api, name, Groups.of(about["Id"], int(about["State"]["Pid"])), own_kernel=own_kernel)
    except Refused as refused:
        raise _unavailable(refused) from refused
    finally:
        await asyncio.shield(_removed(api, name, creating))


async def _removed(api: Api, container: str, creating: asyncio.Task[Any]) -> None:
    """Until it is gone: it may be on its way out by itself, or, where that was cut short, still on its way in."""
    await asyncio.gather(creating, return_exceptions=True)
    async with asyncio.timeout(REMOVAL_SECONDS):
        while True:
            try:
                await api.call("DELETE", f"/containers/{container}", query={"force": "1", "v": "1"})
            except Refused as refused:
                if refused.status == NOT_FOUND:
                    return
                if refused.status != CONFLICT:
                    raise SandboxUnavailable(f"A container could not be removed: {refused}") from refused
                await asyncio.sleep(0.02)
            else:
                return


async def _drained(stream: Stream, kept: Kept, flood: int, flooded: asyncio.Event) -> None:
    async for chunk in stream.chunks():
        kept.add(chunk)
        if kept.total > flood:
            flooded.set()


async def _flooded(event: asyncio.Event) -> ExitCause:
    await event.wait()
    return ExitCause.output


async def _filled(full: Full) -> ExitCause:
    while not await asyncio.to_thread(full):  # noqa: ASYNC110 (nothing would set an event)
        await asyncio.sleep(FULL_EVERY)
    return ExitCause.disk


def _unavailable(refused: Refused) -> SandboxUnavailable:
    words = str(refused)
    remedy = ""
    if "no such image" in words.lower() or "image not known" in words.lower():
        remedy = NO_IMAGE
    elif "bind source path does not exist" in words or "no such file or directory" in words:
        remedy = NO_FOLDER
    elif "runtime" in words.lower():
        remedy = NO_RUNTIME
    return SandboxUnavailable(f"The container could not be started: {words}", remedy=remedy)
