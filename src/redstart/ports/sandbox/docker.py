"""The sandbox that Docker or Podman gives: a container for each execution, or one for many in the inner loop."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from posixpath import join
from typing import NamedTuple

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.docker_api import Api
from redstart.ports.sandbox.docker_box import Box, started
from redstart.ports.sandbox.docker_place import fullness, furnish, give, move_into
from redstart.ports.sandbox.docker_reap import Reaper
from redstart.ports.sandbox.docker_spec import GVISOR, INWARD, OUTWARD, PathMap, Place, User, described, user_inside
from redstart.ports.sandbox.exchange import exchange, given, placed, variables
from redstart.ports.sandbox.launch import limited
from redstart.ports.sandbox.mounts import ALSO_TEMPORARY, SHARED, TEMPORARY
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.services import Relays, Slots, relayed

# Both streams are one, as everywhere; what the command leaves running is ended with it, or its output would not end.
# The shell that stays must not add words of its own ("Killed").
AROUND = 'exec 3>&1 >/dev/null 2>&1; (exec "$@" >&3 2>&3 3>&-); code=$?; kill -9 -1; exit $code'
UNNAMED = "unset HOSTNAME; "
CLEANED = 'find "$1" "$2" "$3" "$4" -xdev -mindepth 1 -delete 2>/dev/null; shift 4; '


class Choices(NamedTuple):
    """Which containers. `socket` is the daemon's; `image` is one that it has."""

    socket: str
    image: str
    runtime: str = ""
    """Empty for the daemon's default; `runsc` for gVisor."""
    path_map: PathMap = ()


class Docker:
    """Runs each command in a container of its own. It shares the host's kernel, but for the runtime `runsc`."""

    def __init__(self, workspaces: Workspaces, scratch: Path, choices: Choices) -> None:
        self.workspaces = workspaces
        self._scratch = scratch
        self._choices = choices
        self._api = Api(choices.socket)
        self._reaper = Reaper(self._api)
        self._slots = Slots()
        self._user = user_inside()
        self.tier = f"docker+{choices.runtime}" if choices.runtime else "docker"

    async def run(self, execution: Execution) -> Completed:
        environment, limits = execution.environment, execution.limits
        with (
            exchange(self._scratch, execution) as exchanged,
            self.workspaces.checkout(execution.snapshot) as workspace,
        ):
            furnish(environment, workspace)
            async with relayed(environment.services, exchanged.folder / "services", self._slots) as relays:
                place = Place(workspace.resolve(), exchanged.inward, exchanged.outward, exchanged.folder / "etc")
                if relays:
                    place = place._replace(services=relays.folder)
                for folder in filter(None, (place.workspace, place.outward, place.services)):
                    give(folder, self._user)
                async with self.box(environment, limits, place) as box:
                    full = fullness((place.workspace, place.outward), limits)
                    ran = await box.run(*_command(execution, relays), limits, full)
            if relays and not relays.ready and not ran.ended.stopped:
                raise SandboxUnavailable("The services could not be offered in the container.")
            return exchanged.completed(ran.ended)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncGenerator[Session]:
        """A sandbox like this one, whose executions share a container as long as nothing is left in it.

        For the inner loop alone: a verdict is made by `run`, in a container of its own.
        """
        self._scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="session-", dir=self._scratch, ignore_cleanup_errors=True) as folder:
            session = Session(self, Path(folder).resolve(), self._user)
            try:
                yield session
            finally:
                await session.close()

    @contextlib.asynccontextmanager
    async def box(self, environment: Environment, limits: SandboxLimits, place: Place) -> AsyncGenerator[Box]:
        """A container that sees these folders. Raises `SandboxUnavailable`."""
        await self._reaper.once()
        choices = self._choices
        description = described(
            environment,
            limits,
            place,
            image=choices.image,
            runtime=choices.runtime,
            user=self._user,
            path_map=choices.path_map,
            owner=self._reaper.owner,
        )
        async with started(self._api, description, own_kernel=choices.runtime == GVISOR) as box:
            yield box


class Session:
    """One container for many executions: each finds fresh files, and empty temporary folders, but not a fresh kernel's
    view. Where one leaves a process behind, meets a limit or asks for another environment, the next gets a new one.

    Executions are done one after another.
    """

    def __init__(self, docker: Docker, folder: Path, user: User) -> None:
        self._docker = docker
        self.tier = docker.tier
        self._folder = folder
        self._user = user
        self._turn = asyncio.Lock()
        self._open = contextlib.AsyncExitStack()
        self._box: Box | None = None
        self._key: object = None
        self.containers = 0
        """How many were needed so far."""

    async def run(self, execution: Execution) -> Completed:
        if execution.environment.services:
            return await self._docker.run(execution)
        async with self._turn:
            return await self._run(execution)

    async def close(self) -> None:
        self._box = None
        await self._open.aclose()

    async def _run(self, execution: Execution) -> Completed:
        environment, limits = execution.environment, execution.limits
        place = Place(*(self._folder / name for name in ("workspace", "in", "out", "etc")))
        with (
            exchange(self._folder, execution) as exchanged,
            self._docker.workspaces.checkout(execution.snapshot) as workspace,
        ):
            furnish(environment, workspace)
            box = await self._ready(environment, limits, place)
            move_into(workspace, place.workspace)
            move_into(exchanged.inward, place.inward)
            move_into(exchanged.outward, place.outward)
            give(place.workspace, self._user)
            full = fullness((place.workspace, place.outward), limits)
            try:
                ran = await box.run(*_command(execution, again=True), limits, full)
            except BaseException:
                await self.close()
                raise
            if not ran.clean:
                await self.close()
            move_into(place.outward, exchanged.outward)
            return exchanged.completed(ran.ended)

    async def _ready(self, environment: Environment, limits: SandboxLimits, place: Place) -> Box:
        mounted = environment.model_copy(update={"variables": {}, "copies": (), "git_refs": "", "git_head": ""})
        key = (mounted, limits)
        if self._box is None or self._key != key:
            await self.close()
            for folder in place[:3]:
                folder.mkdir(exist_ok=True)
                give(folder, self._user)
            self._open = contextlib.AsyncExitStack()
            self._box = await self._open.enter_async_context(self._docker.box(environment, limits, place))
            self._key = key
            self.containers += 1
        return self._box


def _command(
    execution: Execution, relays: Relays | None = None, *, again: bool = False
) -> tuple[list[str], dict[str, str]]:
    """What to run, and with which variables; `again` where something may have run there before."""
    environment = execution.environment
    asked = {name: placed(value, INWARD, OUTWARD) for name, value in given(execution).items()}
    inside = variables(environment.python, asked, home=environment.home, temporary=TEMPORARY)
    script = AROUND if "HOSTNAME" in inside else UNNAMED + AROUND
    cleaned = (TEMPORARY, ALSO_TEMPORARY, SHARED, environment.home) if again else ()
    command = limited(
        execution.limits,
        join(environment.mount, execution.cwd),
        [placed(argument, INWARD, OUTWARD) for argument in execution.argv],
        before=relays.command(environment.python) if relays else (),
    )
    return ["/bin/sh", "-c", CLEANED + script if again else script, "sh", *cleaned, *command], inside
