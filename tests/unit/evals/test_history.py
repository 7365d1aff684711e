"""Past bugs of a repo that is installed as editable: its tests see the old files, and each commit is checked once."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redstart.app.wire import AppContext
from redstart.core.shell import Completed, Execution
from redstart.evals.history import HistorySearch, collect_bugs
from redstart.evals.mine import find_candidates
from redstart.evals.task import Task
from redstart.evals.verify import TaskCheck

pytestmark = pytest.mark.slow

BUGGY = "def double(number):\n    return number + 1\n"
FIXED = BUGGY.replace("+ 1", "* 2")
TEST = "from doubling import double\n\n\ndef test_three():\n    assert double(3) == 6\n"


def git(*arguments: str, cwd: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture
def installed_repo(tmp_path: Path, new_environment, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a repo with a fix that is installed as editable in its own environment."""
    repo = tmp_path / "doubling"
    (repo / "src").mkdir(parents=True)
    (repo / "tests").mkdir()
    git("init", "-q", cwd=repo)
    (repo / "src" / "doubling.py").write_text(BUGGY)
    (repo / "tests" / "test_any.py").write_text("def test_any():\n    assert True\n")
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "begin", cwd=repo)
    (repo / "src" / "doubling.py").write_text(FIXED)
    (repo / "tests" / "test_doubling.py").write_text(TEST)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", "double adds one", cwd=repo)
    environment = new_environment("pytest")
    (site_folder,) = environment.glob("lib/python*/site-packages")
    (site_folder / "doubling.pth").write_text(f"{repo / 'src'}\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    return repo


class NoSandbox:
    """A sandbox for a search that must not run anything."""

    async def run(self, execution: Execution) -> Completed:
        raise AssertionError(f"runs again: {execution.argv}")


async def test_bug_of_an_editable_install_is_found_and_checked_once(house: AppContext, installed_repo: Path) -> None:
    checks: list[TaskCheck] = []

    async def search(app: AppContext) -> list[Task]:
        candidates = find_candidates(installed_repo)
        return await collect_bugs(app, HistorySearch(installed_repo, 5, 600.0), candidates, checks.append)

    (bug,) = await search(house)
    assert checks[0].red == ("tests/test_doubling.py::test_three",)
    assert (bug.shows_red, bug.goal, list(bug.hidden.files)) == (False, "double adds one", ["tests/test_doubling.py"])
    without_sandbox: Any = NoSandbox()
    assert await search(replace(house, adapters=replace(house.adapters, sandbox=without_sandbox))) == [bug]
    assert checks[1] == checks[0]
