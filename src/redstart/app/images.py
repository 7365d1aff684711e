"""The use case of `redstart sandbox build`: build the image of the Docker containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from redstart.app.settings import SandboxSettings
from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.sandbox.docker.daemon import DaemonApi, DaemonRefused, parse_socket
from redstart.ports.sandbox.docker.image import build, detect_recipe
from redstart.ports.sandbox.docker.sandbox import ContainerOptions
from redstart.ports.sandbox.docker.spec import parse_path_map
from redstart.ports.sandbox.selection import SandboxChoice
from redstart.ports.sandbox.self_test import in_thread


class BuiltImage(NamedTuple):
    """The image, and whether it had to be built."""

    name: str
    new: bool


def build_container_options(settings: SandboxSettings, environ: Mapping[str, str]) -> ContainerOptions:
    """Return the container options of the settings and `DOCKER_HOST`. Raises `ConfigError` for an unsupported
    address."""
    return ContainerOptions(
        socket=parse_socket(environ.get("DOCKER_HOST", "")),
        image=settings.image or detect_recipe().name,
        runtime=settings.runtime,
        path_map=parse_path_map(settings.path_map),
    )


def build_sandbox_choice(settings: SandboxSettings, environ: Mapping[str, str]) -> SandboxChoice:
    """Return the choice of sandbox that the settings ask for."""
    return SandboxChoice(settings.backend, lambda: build_container_options(settings, environ))


def list_runtimes(environ: Mapping[str, str]) -> frozenset[str]:
    """List the container runtimes of the daemon; empty if there is no daemon."""
    try:
        info = in_thread(DaemonApi(parse_socket(environ.get("DOCKER_HOST", ""))).call("GET", "/info"))
    except (SandboxUnavailable, ConfigError, DaemonRefused):
        return frozenset()
    return frozenset(info.get("Runtimes") or ())


async def build_image(
    environ: Mapping[str, str], *, rebuild: bool = False, say: Callable[[str], None] = lambda _: None
) -> BuiltImage:
    """Build the image of this machine's recipe if it does not exist yet or a rebuild is requested.

    Raises `ConfigError` if a tool is missing, and `SandboxUnavailable` if the daemon or the tool fails.
    """
    api, recipe = DaemonApi(parse_socket(environ.get("DOCKER_HOST", ""))), detect_recipe()
    try:
        return BuiltImage(recipe.name, await build(api, recipe, rebuild=rebuild, say=say))
    except DaemonRefused as refused:
        raise SandboxUnavailable(f"Docker did not take the image: {refused}") from refused
