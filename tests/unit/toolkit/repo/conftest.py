"""Make the modules beside the tests importable, and provide folders in the states that they name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)


@pytest.fixture
def made(tmp_path):
    """Provide a function that makes the folder of a state, not yet arranged."""
    from handover_states import STATES, Repo

    repos: list[Repo] = []

    def make(name: str) -> Repo:
        repos.append(Repo(tmp_path / "projects" / "repo", tmp_path / "home", STATES[name]))
        return repos[-1]

    yield make
    for repo in repos:
        repo.trees.close()
