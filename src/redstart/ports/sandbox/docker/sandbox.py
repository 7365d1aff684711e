"""The sandbox that Docker or Podman gives: a container for each execution, or one for many in the inner loop."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Completed, Environment, Execution, SandboxLimits
from redstart.ports.sandbox.docker.abandoned import Reaper
from redstart.ports.sandbox.docker.container import Box, started
from redstart.ports.sandbox.docker.daemon import Api, Refused
from redstart.ports.sandbox.docker.folders import furnish, give, room_of
from redstart.ports.sandbox.docker.inside import job, keep
from redstart.ports.sandbox.docker.session import WarmContainer
from redstart.ports.sandbox.docker.spec import (
    GVISOR,
    PathMap,
    Place,
    Room,
    described,
    user_inside,
    within,
)
from redstart.ports.sandbox.exchange import exchange
from redstart.ports.sandbox.leftovers import sweep_folders
from redstart.ports.sandbox.mounts import absolute
from redstart.ports.sandbox.port import Workspaces
from redstart.ports.sandbox.services import Slots, relayed

ROOT = "0"


class Choices(NamedTuple):
    """Which containers. `socket` is the daemon's; `image` is one that it has."""

    socket: str
    image: str
    runtime: str = ""
    """Empty for the daemon's default; `runsc` for gVisor."""
    path_map: PathMap = ()


class Docker:
    """Runs each command in a container of its own. It shares the host's kernel, but for the runtime `runsc`.

    The workspace is copied into memory, where it is bounded in size and in number of files whoever asks the daemon.
    """

    def __init__(self, workspaces: Workspaces, scratch: Path, choices: Choices) -> None:
        self._workspaces = workspaces
        self._scratch = scratch
        self._choices = choices
        self._api = Api(choices.socket)
        self._reaper = Reaper(self._api)
        self._slots = Slots()
        self._swept = False
        self._user = user_inside()
        self.tier = f"docker+{choices.runtime}" if choices.runtime else "docker"

    async def run(self, execution: Execution) -> Completed:
        self._sweep()
        environment, limits = execution.environment, execution.limits
        with (
            exchange(self._scratch, execution) as exchanged,
            self._workspaces.checkout(execution.snapshot) as workspace,
        ):
            furnish(environment, workspace)
            async with relayed(environment.services, exchanged.folder / "services", self._slots) as relays:
                place = Place(workspace.resolve(), exchanged.inward, exchanged.folder / "etc")
                if relays:
                    place = place._replace(services=relays.folder)
                if execution.hostname:
                    place = place._replace(hostname=execution.hostname)
                for folder in filter(None, (place.workspace, place.services)):
                    give(folder, self._user)
                before = relays.command(environment.python) if relays else ()
                async with self._box(environment, limits, place, room_of(workspace)) as box:
                    ran = await box.run(job(execution, self._user, before=before, own_kernel=box.own_kernel))
            if relays and not relays.ready and not ran.ended.stopped:
                raise SandboxUnavailable("The services could not be offered in the container.")
            keep(ran.files, execution.collect, exchanged.outward)
            return exchanged.completed(ran.ended)

    @contextlib.asynccontextmanager
    async def session(self, environment: Environment, limits: SandboxLimits) -> AsyncGenerator[WarmContainer]:
        """A session whose executions share a container as long as nothing is left in it."""
        self._sweep()
        warm = WarmContainer(self, self._workspaces, self._scratch, self._user, self._box, (environment, limits))
        try:
            yield warm
        finally:
            await warm.close()

    def _sweep(self) -> None:
        if not self._swept:
            self._swept = True
            sweep_folders(self._scratch)

    @contextlib.asynccontextmanager
    async def _box(
        self, environment: Environment, limits: SandboxLimits, place: Place, room: Room
    ) -> AsyncGenerator[Box]:
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
            room=room,
            path_map=choices.path_map,
            owner=self._reaper.owner,
        )
        async with started(self._api, description, own_kernel=choices.runtime == GVISOR) as box:
            await _open(box, environment)
            yield box


async def _open(box: Box, environment: Environment) -> None:
    """Lets the user write to folders of the workspace that something is mounted in: the daemon makes them as root's.

    Whoever is root in a container has no right but over what is root's.
    """
    mount = absolute(environment.mount)
    folders = sorted({f"{mount}/{folder}" for path in within(environment) for folder in list(path.parents)[:-1]})
    if not folders:
        return
    try:
        code = await box.quickly(("/bin/chmod", "0777", *folders), user=ROOT)
    except (Refused, TimeoutError) as error:
        raise SandboxUnavailable(f"The workspace could not be opened in the container: {error}") from error
    if code != 0:
        raise SandboxUnavailable(f"The workspace could not be opened in the container: chmod ended with {code}")
