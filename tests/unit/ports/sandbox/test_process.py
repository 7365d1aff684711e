"""How a request is adapted to a checkout that cannot be mounted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.ports.sandbox.process import Process, map_path
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
def test_paths_under_the_mount_are_mapped(text: str, expected: str) -> None:
    assert map_path(text, ENVIRONMENT, "/copy") == expected


@pytest.fixture
def workspaces(tmp_path: Path) -> FolderWorkspaces:
    return FolderWorkspaces(tmp_path / "snapshots")


def create_execution(workspaces: FolderWorkspaces, mount: Path, code: str, **fields: object) -> Execution:
    snapshot = workspaces.create_snapshot(
        "one", {"src/thing.py": "WHERE = 'checkout'", "other.py": "WHERE = 'checkout'"}
    )
    environment = {"mount": str(mount), "python": sys.executable, "read_only": (sys.prefix, sys.base_prefix)}
    request = {"argv": (sys.executable, "-c", code), "snapshot": snapshot, "environment": environment, **fields}
    return Execution.model_validate(request)


@pytest.mark.slow
async def test_checkout_is_imported_instead_of_the_real_repo(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    real_repo = tmp_path / "repo"
    (real_repo / "src").mkdir(parents=True)
    for name in ("src/thing.py", "other.py"):
        (real_repo / name).write_text("WHERE = 'real'")
    site_dir = tmp_path / "installed"
    site_dir.mkdir()
    (site_dir / "thing.py").write_text("WHERE = 'installed'")
    (site_dir / "tool.py").write_text("WHERE = 'installed'")
    variables = {"PYTHONPATH": f"{real_repo}:{site_dir}"}
    code = "import os, thing, other, tool; os.chdir('/'); print(thing.WHERE, other.WHERE, tool.WHERE)"
    completed = await Process(workspaces, tmp_path / "s").run(
        create_execution(workspaces, real_repo, code, variables=variables)
    )
    assert completed.output == "checkout checkout installed\n"


@pytest.mark.slow
async def test_scratch_directory_may_be_inside_the_repo(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    code = "import os, pathlib; print(pathlib.Path(os.environ['HOME']).is_dir(), open(os.environ['A']).read())"
    request = create_execution(
        workspaces, tmp_path, code, variables={"A": "{redstart:in}/a"}, files_in={"a": "came in"}
    )
    completed = await Process(workspaces, tmp_path / "scratch").run(request)
    assert completed.output == "True came in\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "../a", "a/../../b", ""])
@pytest.mark.parametrize("field", ["files_in", "collect"])
async def test_path_outside_the_directory_is_rejected(
    workspaces: FolderWorkspaces, tmp_path: Path, name: str, field: str
) -> None:
    request = create_execution(workspaces, tmp_path, "", **{field: {name: "x"} if field == "files_in" else (name,)})
    with pytest.raises(ConfigError):
        await Process(workspaces, tmp_path / "scratch").run(request)


async def test_fake_sandbox_answers_and_records_executions(workspaces: FolderWorkspaces, tmp_path: Path) -> None:
    fake = FakeSandbox(lambda call: Completed(exit_code=0, cause=ExitCause.ok, output=call.argv[-1]))
    request = create_execution(workspaces, tmp_path, "print(1)")
    assert (await fake.run(request)).output == "print(1)"
    assert (fake.executions, fake.tier) == ([request], "fake")
