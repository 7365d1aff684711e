"""The sandboxes that attacks run in, one line each."""

from __future__ import annotations

import asyncio
import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from redstart.core.errors import RedstartError
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.ports.sandbox.docker.daemon import DaemonApi, parse_socket
from redstart.ports.sandbox.docker.image import detect_recipe, has_image
from redstart.ports.sandbox.docker.sandbox import ContainerOptions, Docker
from redstart.ports.sandbox.port import Sandbox, Workspaces

BARE = "bare"
BACKENDS: dict[str, Callable[[Workspaces, Path], Sandbox]] = {
    "bwrap": Bubblewrap,
    "docker+runc": lambda workspaces, scratch: Docker(workspaces, scratch, _build_options("")),
    "docker+runsc": lambda workspaces, scratch: Docker(workspaces, scratch, _build_options("runsc")),
}
OWN_KERNEL = frozenset({"docker+runsc"})
"""Backends with their own kernel: a program's claim there proves nothing about the host."""


def make(name: str, workspaces: Workspaces, scratch: Path) -> Sandbox:
    return BACKENDS[name](workspaces, scratch)


@functools.cache
def why_not(name: str) -> str:
    """Explain why a backend is unavailable here; empty if it is available."""
    try:
        if name == "bwrap":
            with tempfile.TemporaryDirectory(prefix="redstart-attacks-") as folder:
                probe(Path(folder))
            return ""
        return asyncio.run(_find_docker_problem(name))
    except RedstartError as error:
        return f"{error} {error.remedy}".strip()


async def _find_docker_problem(name: str) -> str:
    choices = _build_options("")
    api = DaemonApi(choices.socket)
    if not await has_image(api, choices.image):
        return f"the daemon has no image {choices.image}; run `redstart sandbox build`"
    runtime = name.removeprefix("docker+")
    return "" if runtime in (await api.call("GET", "/info"))["Runtimes"] else f"the daemon has no runtime {runtime}"


def _build_options(runtime: str) -> ContainerOptions:
    return ContainerOptions(parse_socket(os.environ.get("DOCKER_HOST", "")), detect_recipe().name, runtime)
