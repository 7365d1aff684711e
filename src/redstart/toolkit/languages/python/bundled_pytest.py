"""Lend Redstart's own pytest to a project's interpreter that has none.

pytest and its dependencies are copied into a directory in Redstart's data directory, which comes last on the path of
the process that runs the tests: the project's own packages come first, and nothing else of Redstart is importable.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from importlib.metadata import distribution, version
from pathlib import Path

from redstart.core.shell import IN, Environment
from redstart.toolkit.suites.detection.command import count_start_words
from redstart.toolkit.suites.detection.environment import Interpreter
from redstart.toolkit.suites.request import read_sandbox_file

STARTER = "redstart_start_pytest.py"
VARIABLE = "REDSTART_PYTEST"
"""The environment variable that holds the directory of the lent pytest."""
PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
OLDEST = (3, 11)
"""The oldest supported Python; an older one needs more packages than these."""


class BundledPytest:
    name = "pytest"

    def is_missing(self, runner: str, command: Sequence[str], interpreter: Interpreter) -> bool:
        starts_it = runner == self.name and (not command or bool(count_start_words(command, "pytest", "py.test")))
        return starts_it and not interpreter.has_pytest

    def is_compatible(self, interpreter: Interpreter) -> bool:
        return tuple(int(part) for part in interpreter.version.split(".")[:2]) >= OLDEST

    def lend(self, environment: Environment, data: Path) -> Environment:
        directory = str(copy_pytest(data))
        return environment.model_copy(
            update={
                "read_only": (*environment.read_only, directory),
                "variables": {**environment.variables, VARIABLE: directory},
                "chosen": f"{environment.chosen}, with Redstart's pytest {version(self.name)}",
            }
        )


def copy_pytest(data: Path) -> Path:
    """Return the directory below `data` with pytest and its dependencies; create it if it does not exist."""
    target = data / "lent" / "-".join(f"{name}-{version(name)}" for name in PACKAGES)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        staging = Path(scratch) / "made"
        for name in PACKAGES:
            for file in distribution(name).files or ():
                if ".." not in file.parts and file.suffix != ".pyc":
                    (staging / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(str(file.locate()), staging / file)
        try:
            staging.rename(target)
        except OSError:
            if not target.is_dir():  # another process was faster
                raise
    return target


def start(environment: Environment) -> tuple[tuple[str, ...], dict[str, str]]:
    """Build the command that starts the lent pytest, and its files; both are empty if no pytest is lent."""
    directory = environment.variables.get(VARIABLE)
    if not directory:
        return (), {}
    return (environment.python, f"{IN}/{STARTER}", directory), {STARTER: read_sandbox_file(STARTER)}
