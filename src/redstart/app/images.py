"""The use case of `redstart sandbox build`: the image that docker's containers are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from redstart.app.settings import SandboxSettings
from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.sandbox.choose import Wanted
from redstart.ports.sandbox.docker.daemon import Api, Refused, socket_of
from redstart.ports.sandbox.docker.image import build, recipe_here
from redstart.ports.sandbox.docker.sandbox import Choices
from redstart.ports.sandbox.docker.spec import parse_path_map
from redstart.ports.sandbox.prove import in_thread


class Built(NamedTuple):
    """The image, and whether it had to be made."""

    name: str
    new: bool


def containers(settings: SandboxSettings, environ: Mapping[str, str]) -> Choices:
    """Which containers the settings and `DOCKER_HOST` mean. Raises `ConfigError` for an address of another kind."""
    return Choices(
        socket=socket_of(environ.get("DOCKER_HOST", "")),
        image=settings.image or recipe_here().name,
        runtime=settings.runtime,
        path_map=parse_path_map(settings.path_map),
    )


def wanted(settings: SandboxSettings, environ: Mapping[str, str]) -> Wanted:
    """The sandbox that the settings ask for."""
    return Wanted(settings.backend, lambda: containers(settings, environ))


def runtimes(environ: Mapping[str, str]) -> frozenset[str]:
    """What the daemon can run containers with; nothing where there is no daemon."""
    try:
        about = in_thread(Api(socket_of(environ.get("DOCKER_HOST", ""))).call("GET", "/info"))
    except (SandboxUnavailable, ConfigError, Refused):
        return frozenset()
    return frozenset(about.get("Runtimes") or ())


async def build_image(
    environ: Mapping[str, str], *, anew: bool = False, say: Callable[[str], None] = lambda _: None
) -> Built:
    """Makes the image of this machine's recipe, where it is not there yet or `anew` asks for it.

    Raises `ConfigError` where a tool is missing, and `SandboxUnavailable` where the daemon or the tool fails.
    """
    api, recipe = Api(socket_of(environ.get("DOCKER_HOST", ""))), recipe_here()
    try:
        return Built(recipe.name, await build(api, recipe, anew=anew, say=say))
    except Refused as refused:
        raise SandboxUnavailable(f"Docker did not take the image: {refused}") from refused
