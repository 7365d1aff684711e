"""How a request is adapted to a checkout that cannot be mounted."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.ports.sandbox.process import Process, mapped
from redstart.testing.sandbox import FakeSandbox, FolderWorkspaces

ENVIRONMENT = Environment(mount="/repo", python="/repo/.venv/bin/python", read_only=("/repo/.venv", "/opt/python"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/repo", "/copy"),
        ("/repo/tests/test_a.py::test_b", "/copy/tests/test_a.py::test_b"),
        ("/repository/a", "/repository/a"),
        ("/repo/.venv/bin/python", "/repo/.venv/bin/python"),
        ("/opt/python/bin/python", "/opt/python/bin/python"),
        ("tests/test_a.py", "tests/test_a.py"),
        ("-q", "-q"),
        ("", ""),
    ],
)
def test_paths_under_the_mount(text: str, expected: str) -> None:
    assert mapped(text, ENVIRONMENT, "/copy") == expected


@pytest.fixture
def workspaces(tmp_path: Path) -> FolderWorkspaces:
    return FolderWorkspaces(tmp_path / "snapshots")


def execution(workspaces: FolderWorkspaces, mount: Path, code: str, **fields: object) -> Execution:
    snapshot = workspaces.snapshot("one", {"src/thing.py": "WHERE = 'checkout'", "other.py": "WHERE = 'checkout'"})
    environment = {"mount": str(mount), "python": sys.executable, "read_only": (sys.prefix, sys.base_prefix)}
    request = {"argv": (sys.executable, "-c", code), "snapshot": snapshot, "environment": environment, **fields}
    return Execution.model_validate(request)


@pytest.mark.slow
def test_the_checkout_is_imported_and_not_the_real_repo(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    real = tmp_path / "repo"
    (real / "src").mkdir(parents=True)
    for name in ("src/thing.py", "other.py"):
        (real / name).write_text("WHERE = 'real'")
    installed = tmp_path / "installed"
    installed.mkdir()
    (installed / "thing.py").write_text("WHERE = 'installed'")
    (installed / "tool.py").write_text("WHERE = 'installed'")
    variables = {"PYTHONPATH": f"{real}:{installed}"}
    code = "import os, thing, other, tool; os.chdir('/'); print(thing.WHERE, other.WHERE, tool.WHERE)"
    done = asyncio.run(Process(workspaces, tmp_path / "s").run(execution(workspaces, real, code, variables=variables)))
    assert done.output == "checkout checkout installed\n"


@pytest.mark.slow
def test_the_scratch_folder_may_lie_in_the_repo(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    code = "import os, pathlib; print(pathlib.Path(os.environ['HOME']).is_dir(), open(os.environ['A']).read())"
    request = execution(workspaces, tmp_path, code, variables={"A": "{redstart:in}/a"}, files_in={"a": "came in"})
    done = asyncio.run(Process(workspaces, tmp_path / "scratch").run(request))
    assert done.output == "True came in\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "../a", "a/../../b", ""])
@pytest.mark.parametrize("field", ["files_in", "collect"])
def test_names_that_lead_out_of_the_folder(workspaces: FolderWorkspaces, tmp_path: Path, name: str, field: str) -> None:
    request = execution(workspaces, tmp_path, "", **{field: {name: "x"} if field == "files_in" else (name,)})
    with pytest.raises(ConfigError):
        asyncio.run(Process(workspaces, tmp_path / "scratch").run(request))


def test_the_fake_answers_and_remembers(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    fake = FakeSandbox(lambda asked: Completed(exit_code=0, cause=ExitCause.ok, output=asked.argv[-1]))
    request = execution(workspaces, tmp_path, "print(1)")
    assert asyncio.run(fake.run(request)).output == "print(1)"
    assert (fake.executions, fake.tier) == ([request], "fake")
