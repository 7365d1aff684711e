"""Runs the command like a user at a shell, with a separate home directory and one configured provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.server import ScriptedServer, Wire
from support.warm import COMMAND, warm_for

SECONDS = 300


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events that `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def ending(self) -> dict[str, Any]:
        """The data of the run's last event."""
        last = self.events[-1]
        assert (last["name"], last["phase"]) == ("run", "end"), last
        return last["data"]


class User:
    """A user. `folder` is their home directory, `project` the virtual environment of their project.

    The command does not inherit the environment of the test process.
    """

    def __init__(self, folder: Path, project: Path) -> None:
        self.home = folder / "redstart-home"
        self.environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "VIRTUAL_ENV": str(project),
            "REDSTART_HOME": str(self.home),
            "PYTHONWARNINGS": "error",
            # Most scenarios do not test the verdict; those that do remove this.
            "REDSTART_VERIFY": "quick",
            "LC_ALL": "C.UTF-8",
        }

    def uses(self, server: ScriptedServer, wire: Wire) -> None:
        """Configure this provider."""
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        self.environ |= {"REDSTART_MODELS__STRONG": f"{wire.value}:scripted", "REDSTART_MODELS__BASE_URL": url}

    def wants_proof(self) -> None:
        """Use the default level of verification from now on."""
        self.environ.pop("REDSTART_VERIFY", None)

    def redstart(self, *arguments: str | Path, cwd: Path | None = None, told: str = "") -> Ran:
        """Run `redstart` with these arguments; `told` is its standard input."""
        return self.python("-m", COMMAND, *arguments, cwd=cwd, told=told)

    def python(self, *arguments: str | Path, cwd: Path | None = None, told: str = "") -> Ran:
        """Run `python ARGUMENTS`; redstart commands and scripts start from a warm process (`warm`)."""
        command_arguments = [str(argument) for argument in arguments]
        if command_arguments[0].endswith(".py") or command_arguments[:2] == ["-m", COMMAND]:
            return Ran(*warm_for(self.environ).run(command_arguments, self.environ, cwd, told, SECONDS))
        command = [sys.executable, *command_arguments]
        completed = subprocess.run(
            command, env=self.environ, cwd=cwd, input=told, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        return Ran(completed.returncode, completed.stdout, completed.stderr)
