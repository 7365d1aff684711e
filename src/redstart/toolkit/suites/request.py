"""What a suite needs run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from redstart.core.shell import IN, OUT, Environment

JUNIT = "junit.xml"
"""The name under which a request's report is collected."""

PLUGINS = "plugins.txt"
"""Where it says who else took part."""
RUNNING = "running.txt"
"""Where that says which test runs, until the run ends by itself."""


class SuiteRequest(NamedTuple):
    """The part of an `Execution` that the suite decides; a step adds snapshot, environment and limits.

    `variables` holds only what the suite adds or changes: it goes over the environment's own.
    """

    argv: tuple[str, ...]
    variables: dict[str, str]
    files_in: dict[str, str]
    collect: tuple[str, ...]
    hostname: str = ""
    """What the machine is to call itself; empty for its usual name."""


def inside(name: str) -> str:
    """The text of a file of ours that is given along into the sandbox."""
    return (Path(__file__).parent / "inside" / name).read_text(encoding="utf-8")


def importing(request: SuiteRequest, files: Iterable[str], environment: Environment) -> SuiteRequest:
    """The same request, whose Python processes can import these files of ours.

    They are last on the path, so that nothing is imported from another place than without them.
    """
    before = request.variables.get("PYTHONPATH") or environment.variables.get("PYTHONPATH", "")
    own = before.removesuffix(IN).removesuffix(":")
    return request._replace(
        variables={**request.variables, "PYTHONPATH": ":".join(filter(None, (own, IN)))},
        files_in={**request.files_in, **{name: inside(name) for name in files}},
    )


def loading(hook: str, answer: str, request: SuiteRequest, environment: Environment) -> SuiteRequest:
    """The same request, each of whose Python processes loads a file of ours when it starts, and adds to that answer."""
    asked = importing(request, (), environment)
    return asked._replace(
        variables={**asked.variables, "REDSTART_HOOK": f"{OUT}/{answer}"},
        files_in={**asked.files_in, "sitecustomize.py": inside(hook)},
        collect=(*asked.collect, answer),
    )
