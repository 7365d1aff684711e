"""A user with a repo of the scenarios."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from redstart.testing.user import User

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The virtual environment of the scenarios' repos: pytest and nothing else."""
    folder = tmp_path_factory.mktemp("project") / "venv"
    uv = shutil.which("uv")
    assert uv, "uv is needed to make the projects' environment"
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    wanted = ["-q", "--compile-bytecode", "--python", str(folder / "bin" / "python"), f"pytest=={version('pytest')}"]
    subprocess.run([uv, "pip", "install", *wanted], check=True)
    return folder


@pytest.fixture
def user(tmp_path: Path, project: Path) -> User:
    return User(tmp_path, project)


@pytest.fixture
def repo_of(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a scenario's repo to where a user would have it."""

    def copy(name: str) -> Path:
        to = tmp_path / "projects" / name
        shutil.copytree(HERE / "repos" / name / "repo", to)
        return to

    return copy
