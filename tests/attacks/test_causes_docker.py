"""Containers, too, report the right cause for each crafted program, whatever kernel they have.

One program of each cause runs by default, some of them with gVisor; all run with --soak.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from backends import make
from run_causes import PROGRAMS, ended

from redstart.testing.sandbox import FolderWorkspaces


def read_expected_cause(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix("# cause: ")


EVERY = sorted(PROGRAMS.iterdir())
FIRST = {read_expected_cause(path): path for path in reversed(EVERY)}
SHORT = {
    "docker+runc": [FIRST[cause] for cause in ("ok", "cpu", "memory", "disk", "timeout")],
    "docker+runsc": [FIRST[cause] for cause in ("memory", "timeout")],
}
CHOSEN = [
    pytest.param(backend, path, id=f"{path.name}-{backend}", marks=() if path in selected else pytest.mark.soak)
    for path in EVERY
    for backend, selected in SHORT.items()
]


@pytest.mark.parametrize(("backend", "path"), CHOSEN)
def test_reported_cause_is_correct(backend: str, path: Path, tmp_path: Path, usable: Callable[[str], None]) -> None:
    usable(backend)
    workspaces = FolderWorkspaces(tmp_path / "snapshots")
    sandbox = make(backend, workspaces, tmp_path / "scratch")
    completed = asyncio.run(ended(sandbox, workspaces, path, asyncio.Semaphore(1)))
    assert completed.cause == read_expected_cause(path), completed
    assert list((tmp_path / "scratch").iterdir()) == []
