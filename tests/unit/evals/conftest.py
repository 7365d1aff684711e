"""An application context with a sandbox, and small tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.evals.task import Base, Task, TaskChange

CODE = "def double(number):\n    total = number + number + 1\n    return total\n"
FIXED = CODE.replace(" + 1", "")
SHOWN = "from calc import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
HIDDEN = SHOWN + "\n\ndef test_three():\n    assert double(3) == 6\n"


@pytest.fixture(autouse=True)
def in_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the project the active environment, in which tasks run."""
    monkeypatch.setenv("VIRTUAL_ENV", str(project))


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    with open_app(Settings(home=tmp_path / "home")) as app:
        yield app.with_sandbox()


@pytest.fixture
def task() -> Task:
    return make_task()


def make_task(name: str = "calc/double", **changes: Any) -> Task:
    defaults = {
        "id": name,
        "base": Base(change=TaskChange(files={"calc.py": CODE, "test_calc.py": SHOWN})),
        "hidden": TaskChange(files={"test_calc.py": HIDDEN}),
        "fix": TaskChange(files={"calc.py": FIXED}),
        "seconds": 60.0,
    }
    return Task.model_validate({**defaults, **changes})
