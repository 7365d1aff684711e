"""The request that a suite makes for one execution."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from redstart.core.shell import IN, OUT, Environment

JUNIT = "junit.xml"
"""The name of a request's collected report."""

PLUGINS = "plugins.txt"
"""Where the run lists the plugins that took part."""
RUNNING = "running.txt"
"""Where the run names the test that is running, until the run ends normally."""


class SuiteRequest(NamedTuple):
    """The part of an `Execution` that the suite decides. A step adds snapshot, environment and limits.

    `variables` holds only what the suite adds or changes. It overrides the environment's own variables.
    """

    argv: tuple[str, ...]
    variables: dict[str, str]
    files_in: dict[str, str]
    collect: tuple[str, ...]
    hostname: str = ""
    """The machine's host name inside the sandbox. Empty for the usual one."""


def read_sandbox_file(name: str) -> str:
    """Read one of our files that is copied into the sandbox."""
    return (Path(__file__).parent / "inside" / name).read_text(encoding="utf-8")


def add_importable_files(request: SuiteRequest, files: Iterable[str], environment: Environment) -> SuiteRequest:
    """Return the request with our files added, so that its Python processes can import them.

    They are last on the path, so that every other import still comes from the same place.
    """
    previous_path = request.variables.get("PYTHONPATH") or environment.variables.get("PYTHONPATH", "")
    own_path = previous_path.removesuffix(IN).removesuffix(":")
    return request._replace(
        variables={**request.variables, "PYTHONPATH": ":".join(filter(None, (own_path, IN)))},
        files_in={**request.files_in, **{name: read_sandbox_file(name) for name in files}},
    )


def add_startup_hook(hook: str, answer: str, request: SuiteRequest, environment: Environment) -> SuiteRequest:
    """Return the request with a hook of ours that each Python process loads at start and that adds to `answer`."""
    extended = add_importable_files(request, (), environment)
    return extended._replace(
        variables={**extended.variables, "REDSTART_HOOK": f"{OUT}/{answer}"},
        files_in={**extended.files_in, "sitecustomize.py": read_sandbox_file(hook)},
        collect=(*extended.collect, answer),
    )
