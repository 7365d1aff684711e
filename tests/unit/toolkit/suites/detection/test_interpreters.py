"""Which interpreter is chosen; the choice runs no code of the repo and creates nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.toolkit.suites.detection import interpreters
from redstart.toolkit.suites.detection.environment import find_environment
from redstart.toolkit.suites.detection.interpreters import choose

BASE_PYTHON = str(Path(sys.executable).resolve())


def make_environment(folder: Path, *, home: str = str(Path(BASE_PYTHON).parent), version: str = "3.11.2") -> Path:
    """Make the parts of a virtual environment that the choice looks at."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(BASE_PYTHON)
    (folder / "pyvenv.cfg").write_text(f"home = {home}\nversion = {version}\n")
    return folder


def put_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Make the only folder on PATH; it holds a python3."""
    put_program(tmp_path / "programs" / "python3", f'exec {BASE_PYTHON} "$@"')
    return tmp_path / "programs"


def choose_interpreter(root: Path, programs: Path, top: Path | None = None, **environ: str) -> tuple[str, str]:
    return choose(root, top or root, python=None, environ={"PATH": f"{programs}:/usr/bin:/bin", **environ})


def get_python_path(environment: Path) -> str:
    return str(environment / "bin" / "python")


@pytest.mark.slow
def test_interpreters_are_chosen_by_priority(root: Path, programs: Path, tmp_path: Path) -> None:
    (root / "poetry.lock").touch()
    assert choose_interpreter(root, programs) == (str(programs / "python3"), "python3 on PATH")
    nox = make_environment(root / ".nox" / "tests")
    assert choose_interpreter(root, programs) == (get_python_path(nox), ".nox/tests")
    tox = make_environment(root / ".tox" / "py311")
    assert choose_interpreter(root, programs) == (get_python_path(tox), ".tox/py311")
    managed_env = make_environment(tmp_path / "managed")
    put_program(programs / "poetry", f"echo {managed_env}")
    assert choose_interpreter(root, programs) == (get_python_path(managed_env), "poetry")
    plain_env = make_environment(root / "venv")
    assert choose_interpreter(root, programs) == (get_python_path(plain_env), "venv in the project")
    hidden_env = make_environment(root / ".venv")
    assert choose_interpreter(root, programs) == (get_python_path(hidden_env), ".venv in the project")
    conda, active_env = make_environment(tmp_path / "conda"), make_environment(tmp_path / "active")
    assert choose_interpreter(root, programs, CONDA_PREFIX=str(conda)) == (get_python_path(conda), "CONDA_PREFIX")
    variables = {"CONDA_PREFIX": str(conda), "VIRTUAL_ENV": str(active_env)}
    assert choose_interpreter(root, programs, **variables) == (get_python_path(active_env), "VIRTUAL_ENV")
    environ = {"PATH": str(programs), **variables}
    assert choose(root, root, python="python3", environ=environ) == (str(programs / "python3"), "--python")


def test_active_conda_base_environment_is_ignored(root: Path, programs: Path, tmp_path: Path) -> None:
    base, project_env = make_environment(tmp_path / "base"), make_environment(root / ".venv")
    environ = {"CONDA_PREFIX": str(base), "CONDA_DEFAULT_ENV": "base"}
    assert choose_interpreter(root, programs, **environ) == (get_python_path(project_env), ".venv in the project")


def test_subdirectory_uses_the_environment_of_the_repo(root: Path, programs: Path) -> None:
    part = root / "packages" / "one"
    part.mkdir(parents=True)
    shared_env = make_environment(root / ".venv")
    assert choose_interpreter(part, programs, top=root) == (
        get_python_path(shared_env),
        ".venv in the repository's root",
    )
    project_env = make_environment(part / ".venv")
    assert choose_interpreter(part, programs, top=root) == (get_python_path(project_env), ".venv in the project")


@pytest.mark.slow
def test_git_finds_the_repo_root_and_the_choice_is_reported(root: Path) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "part").mkdir()
    subprocess.run([BASE_PYTHON, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    environment = find_environment(root, folder="part", environ={"PATH": "/usr/bin:/bin"})
    assert (environment.python, environment.chosen) == (
        get_python_path(root / ".venv"),
        ".venv in the repository's root",
    )
    assert str(root / ".venv") in environment.read_only


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "files", "answers"),
    [
        ("uv", {"uv.lock": ""}, "{program}"),
        ("uv", {"pyproject.toml": "[tool.uv]\n"}, "{program}"),
        ("poetry", {"pyproject.toml": "[tool.poetry]\nname = 'x'\n"}, "{folder}"),
        ("hatch", {"pyproject.toml": "[tool.hatch.envs.default]\n"}, "{folder}"),
        ("hatch", {"pyproject.toml": "[tool.hatch.envs.default]\n[tool.hatch.metadata]\nx = true\n"}, "{folder}"),
    ],
)
def test_tool_is_asked_only_if_the_project_uses_it(
    root: Path, programs: Path, tmp_path: Path, tool: str, files: dict[str, str], answers: str
) -> None:
    managed_env = make_environment(tmp_path / "managed")
    call_log = tmp_path / "asked"
    answer = answers.format(program=get_python_path(managed_env), folder=managed_env)
    put_program(
        programs / tool, f'echo "$PWD $UV_OFFLINE create:$POETRY_VIRTUALENVS_CREATE" >{call_log}; echo {answer}'
    )
    assert choose_interpreter(root, programs)[1] == "python3 on PATH"
    assert not call_log.exists()
    for name, text in files.items():
        (root / name).write_text(text)
    assert choose_interpreter(root, programs) == (get_python_path(managed_env), tool)
    # If real poetry may not create an environment, it does not name an existing one either.
    assert call_log.read_text() == f"{root} 1 create:\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", ["exit 1", "echo /no/such/environment", "echo relative/place", "true", "echo {plain}", "exec sleep 60"]
)
def test_failing_tool_is_skipped(
    root: Path, programs: Path, tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "ANSWER_WITHIN", 0.5)
    (root / "poetry.lock").touch()
    put_program(programs / "poetry", script.format(plain=tmp_path))
    assert choose_interpreter(root, programs)[1] == "python3 on PATH"


def test_interpreter_recorded_by_pdm_is_used(root: Path, programs: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    put_program(programs / "pdm", f"touch {mark}")
    managed_env = make_environment(tmp_path / "managed")
    (root / ".pdm-python").write_text(f"{get_python_path(managed_env)}\n")
    assert choose_interpreter(root, programs)[1] == "python3 on PATH"
    (root / "pdm.lock").touch()
    assert choose_interpreter(root, programs) == (get_python_path(managed_env), "pdm")
    assert not mark.exists()


def test_configured_uv_environment_is_used(root: Path, programs: Path, tmp_path: Path) -> None:
    managed_env = make_environment(tmp_path / "managed")
    (root / "uv.lock").touch()
    assert choose_interpreter(root, programs, UV_PROJECT_ENVIRONMENT=str(managed_env)) == (
        get_python_path(managed_env),
        "uv",
    )


@pytest.mark.slow
def test_real_uv_creates_nothing(root: Path, tmp_path: Path) -> None:
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\nversion = '1'\n[tool.uv]\n")
    # Only uv: it may be installed in an environment, beside an interpreter that it would find on PATH.
    uv_folder = tmp_path / "alone"
    uv_folder.mkdir()
    (uv_folder / "uv").symlink_to(shutil.which("uv") or "/no/uv")
    environ = {**os.environ, "VIRTUAL_ENV": "", "PATH": f"{uv_folder}:/usr/bin:/bin"}
    assert choose(root, root, python=None, environ=environ).reason == "python3 on PATH"
    assert [path.name for path in root.iterdir()] == ["pyproject.toml"]


@pytest.mark.parametrize(
    ("tool", "files"),
    [
        ("uv", {"uv.lock": "", ".venv/bin/python": "#!/bin/sh"}),
        ("hatch", {"pyproject.toml": "[tool.hatch.envs.default]\n[tool.hatch.env.collectors.custom]\npath = 'x.py'\n"}),
        ("hatch", {"pyproject.toml": "[tool.hatch.envs.default]\n[tool.hatch.metadata.hooks.custom]\n"}),
        ("hatch", {"pyproject.toml": "[tool.hatch.build]\n"}),
    ],
)
def test_tool_that_would_run_repo_code_is_not_asked(
    root: Path, programs: Path, tmp_path: Path, tool: str, files: dict[str, str]
) -> None:
    mark = tmp_path / "mark"
    put_program(programs / tool, f"touch {mark}")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert choose_interpreter(root, programs)[1] == "python3 on PATH"
    assert not mark.exists()


@pytest.mark.slow
def test_environment_shipped_with_the_repo_is_skipped(root: Path, programs: Path) -> None:
    (root / "poetry.lock").touch()
    for name in (".venv", ".tox/py311", "managed"):
        make_environment(root / name, home=str(root / "base"))
    put_program(programs / "poetry", f"echo {root / 'managed'}")
    assert choose_interpreter(root, programs)[1] == "python3 on PATH"


def test_newest_tox_environment_with_pytest_is_chosen(root: Path, programs: Path) -> None:
    for name, version in (
        ("py39", "3.9.1"),
        ("py311", "3.11.2"),
        ("lint", "3.13.0"),
        ("py37", "3.7.9"),
        (".pkg", "3.14"),
    ):
        environment = make_environment(root / ".tox" / name, version=version)
        if name not in ("lint", ".pkg"):
            pytest_folder = environment / "lib" / "python3" / "site-packages" / "pytest"
            pytest_folder.mkdir(parents=True)
            (pytest_folder / "__init__.py").touch()
    assert choose_interpreter(root, programs)[1] == ".tox/py311"


def test_missing_interpreter_is_an_error(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Python interpreter"):
        choose(root, root, python=None, environ={"PATH": str(tmp_path)})
