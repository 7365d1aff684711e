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


def chosen(root: Path, programs: Path, top: Path | None = None, **environ: str) -> tuple[str, str]:
    return choose(root, top or root, python=None, environ={"PATH": f"{programs}:/usr/bin:/bin", **environ})


def of(environment: Path) -> str:
    return str(environment / "bin" / "python")


@pytest.mark.slow
def test_from_the_last_to_the_first(root: Path, programs: Path, tmp_path: Path) -> None:
    (root / "poetry.lock").touch()
    assert chosen(root, programs) == (str(programs / "python3"), "python3 on PATH")
    nox = make_environment(root / ".nox" / "tests")
    assert chosen(root, programs) == (of(nox), ".nox/tests")
    tox = make_environment(root / ".tox" / "py311")
    assert chosen(root, programs) == (of(tox), ".tox/py311")
    managed = make_environment(tmp_path / "managed")
    put_program(programs / "poetry", f"echo {managed}")
    assert chosen(root, programs) == (of(managed), "poetry")
    plain = make_environment(root / "venv")
    assert chosen(root, programs) == (of(plain), "venv in the project")
    hidden = make_environment(root / ".venv")
    assert chosen(root, programs) == (of(hidden), ".venv in the project")
    conda, active = make_environment(tmp_path / "conda"), make_environment(tmp_path / "active")
    assert chosen(root, programs, CONDA_PREFIX=str(conda)) == (of(conda), "CONDA_PREFIX")
    both = {"CONDA_PREFIX": str(conda), "VIRTUAL_ENV": str(active)}
    assert chosen(root, programs, **both) == (of(active), "VIRTUAL_ENV")
    environ = {"PATH": str(programs), **both}
    assert choose(root, root, python="python3", environ=environ) == (str(programs / "python3"), "--python")


def test_condas_base_is_active_everywhere_and_says_nothing(root: Path, programs: Path, tmp_path: Path) -> None:
    base, own = make_environment(tmp_path / "base"), make_environment(root / ".venv")
    environ = {"CONDA_PREFIX": str(base), "CONDA_DEFAULT_ENV": "base"}
    assert chosen(root, programs, **environ) == (of(own), ".venv in the project")


def test_a_part_of_a_repo_uses_the_repos_environment(root: Path, programs: Path) -> None:
    part = root / "packages" / "one"
    part.mkdir(parents=True)
    shared = make_environment(root / ".venv")
    assert chosen(part, programs, top=root) == (of(shared), ".venv in the repository's root")
    own = make_environment(part / ".venv")
    assert chosen(part, programs, top=root) == (of(own), ".venv in the project")


@pytest.mark.slow
def test_the_repo_is_found_by_git_and_the_choice_is_told(root: Path) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "part").mkdir()
    subprocess.run([BASE_PYTHON, "-m", "venv", "--without-pip", root / ".venv"], check=True)
    found = find_environment(root, folder="part", environ={"PATH": "/usr/bin:/bin"})
    assert (found.python, found.chosen) == (of(root / ".venv"), ".venv in the repository's root")
    assert str(root / ".venv") in found.read_only


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
def test_a_tool_is_asked_where_the_project_uses_it(
    root: Path, programs: Path, tmp_path: Path, tool: str, files: dict[str, str], answers: str
) -> None:
    managed = make_environment(tmp_path / "managed")
    asked = tmp_path / "asked"
    answer = answers.format(program=of(managed), folder=managed)
    put_program(programs / tool, f'echo "$PWD $UV_OFFLINE create:$POETRY_VIRTUALENVS_CREATE" >{asked}; echo {answer}')
    assert chosen(root, programs)[1] == "python3 on PATH"
    assert not asked.exists()
    for name, text in files.items():
        (root / name).write_text(text)
    assert chosen(root, programs) == (of(managed), tool)
    # If real poetry may not create an environment, it does not name an existing one either.
    assert asked.read_text() == f"{root} 1 create:\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", ["exit 1", "echo /no/such/environment", "echo relative/place", "true", "echo {plain}", "exec sleep 60"]
)
def test_a_tool_that_fails_is_passed_over(
    root: Path, programs: Path, tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "ANSWER_WITHIN", 0.5)
    (root / "poetry.lock").touch()
    put_program(programs / "poetry", script.format(plain=tmp_path))
    assert chosen(root, programs)[1] == "python3 on PATH"


def test_where_pdm_keeps_its_choice(root: Path, programs: Path, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    put_program(programs / "pdm", f"touch {mark}")
    managed = make_environment(tmp_path / "managed")
    (root / ".pdm-python").write_text(f"{of(managed)}\n")
    assert chosen(root, programs)[1] == "python3 on PATH"
    (root / "pdm.lock").touch()
    assert chosen(root, programs) == (of(managed), "pdm")
    assert not mark.exists()


def test_where_uv_was_told_to_keep_its_environment(root: Path, programs: Path, tmp_path: Path) -> None:
    managed = make_environment(tmp_path / "managed")
    (root / "uv.lock").touch()
    assert chosen(root, programs, UV_PROJECT_ENVIRONMENT=str(managed)) == (of(managed), "uv")


@pytest.mark.slow
def test_the_real_uv_makes_nothing(root: Path, tmp_path: Path) -> None:
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\nversion = '1'\n[tool.uv]\n")
    # Only uv: it may be installed in an environment, beside an interpreter that it would find on PATH.
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "uv").symlink_to(shutil.which("uv") or "/no/uv")
    environ = {**os.environ, "VIRTUAL_ENV": "", "PATH": f"{alone}:/usr/bin:/bin"}
    assert choose(root, root, python=None, environ=environ).why == "python3 on PATH"
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
def test_a_tool_that_would_run_code_of_the_repo_is_not_asked(
    root: Path, programs: Path, tmp_path: Path, tool: str, files: dict[str, str]
) -> None:
    mark = tmp_path / "mark"
    put_program(programs / tool, f"touch {mark}")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert chosen(root, programs)[1] == "python3 on PATH"
    assert not mark.exists()


@pytest.mark.slow
def test_an_environment_that_came_with_the_repo_is_passed_over(root: Path, programs: Path) -> None:
    (root / "poetry.lock").touch()
    for name in (".venv", ".tox/py311", "managed"):
        make_environment(root / name, home=str(root / "base"))
    put_program(programs / "poetry", f"echo {root / 'managed'}")
    assert chosen(root, programs)[1] == "python3 on PATH"


def test_of_many_sessions_the_newest_with_pytest(root: Path, programs: Path) -> None:
    for name, version in (
        ("py39", "3.9.1"),
        ("py311", "3.11.2"),
        ("lint", "3.13.0"),
        ("py37", "3.7.9"),
        (".pkg", "3.14"),
    ):
        made = make_environment(root / ".tox" / name, version=version)
        if name not in ("lint", ".pkg"):
            installed = made / "lib" / "python3" / "site-packages" / "pytest"
            installed.mkdir(parents=True)
            (installed / "__init__.py").touch()
    assert chosen(root, programs)[1] == ".tox/py311"


def test_there_is_none(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Python interpreter"):
        choose(root, root, python=None, environ={"PATH": str(tmp_path)})
