"""Find the node that runs the target's tests, and the host paths that it must see."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from redstart.core.errors import ConfigError
from redstart.core.shell import Environment
from redstart.toolkit.suites.detection.environment import SYSTEM

ANSWER_WITHIN = 20.0
OLDEST = (18,)

_INSTALL_HINT = "install Node.js 18 or later, or activate the version that the project uses"


class NodeProgram(NamedTuple):
    program: str
    version: str


def with_node(environment: Environment, folder: str, environ: Mapping[str, str]) -> Environment:
    """Add the user's node, and the programs of the project's packages on PATH, to an environment.

    `folder` is where the tests run. Raises `ConfigError` with a remedy if there is no node, if it is too old, or if
    making it visible would expose the user's home directory.
    """
    root = Path(environment.mount)
    node = ask_node(root, environ)
    program = Path(node.program)
    read_only = environment.read_only
    if not any(program.is_relative_to(item) for item in SYSTEM):
        prefix = program.parent.parent
        if Path.home().is_relative_to(prefix) or prefix == Path("/"):
            raise ConfigError(
                f"node is installed in {prefix}: making it visible in the sandbox would expose your home directory",
                remedy="install Node.js in its own directory",
            )
        read_only = tuple(dict.fromkeys((*read_only, str(prefix))))
    ancestors = [root / item for item in (folder, *map(str, PurePosixPath(folder).parents))] if folder else [root]
    module_dirs = [item / "node_modules" for item in ancestors]
    programs = [str(item / ".bin") for item in module_dirs]
    path = [*programs, str(program.parent), *environment.variables.get("PATH", "").split(":")]
    modules = [str(item) for item in module_dirs if item.is_dir() and not item.is_symlink()]
    variables = {**environment.variables, "PATH": ":".join(dict.fromkeys(filter(None, path)))}
    return environment.model_copy(
        update={
            "variables": variables,
            "read_only": tuple(dict.fromkeys((*read_only, *modules))),
            "chosen": f"node {node.version}",
        }
    )


def ask_node(root: Path, environ: Mapping[str, str]) -> NodeProgram:
    """Find the node on the user's PATH: its real program and its version. A node inside the repo is never started."""
    executable = shutil.which("node", path=environ.get("PATH", ""))
    if executable is None or Path(executable).resolve().is_relative_to(root):
        raise ConfigError("no Node.js found on PATH", remedy=_INSTALL_HINT)
    try:
        completed = subprocess.run(
            (executable, "-p", "JSON.stringify([process.execPath, process.versions.node])"),
            cwd=root,
            env={name: value for name, value in environ.items() if name != "NODE_OPTIONS"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_WITHIN,
            check=False,
        )
        program, version = (str(part) for part in cast("list[object]", json.loads(completed.stdout)))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"{executable} did not answer as Node.js", remedy=_INSTALL_HINT) from error
    numbers = tuple(int(part) for part in version.split(".")[:1] if part.isdigit())
    if numbers < OLDEST:
        raise ConfigError(f"{executable} is Node.js {version}; Node.js 18 or later is needed", remedy=_INSTALL_HINT)
    return NodeProgram(program, version)
