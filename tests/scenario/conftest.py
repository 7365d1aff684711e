"""Fixtures for a user and a repo of the scenarios."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.user import User

HERE = Path(__file__).parent


@pytest.fixture
def user(tmp_path: Path, project: Path) -> User:
    return User(tmp_path, project)


@pytest.fixture
def repo_of(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that copies a scenario's repo to where a user would have it."""

    def copy(name: str) -> Path:
        to = tmp_path / "projects" / name
        shutil.copytree(HERE / "repos" / name / "repo", to)
        return to

    return copy
