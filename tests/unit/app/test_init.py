"""A first redstart.toml is proposed, written on a yes, and never overwrites another."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from redstart.app.init import propose, write
from redstart.app.settings import load
from redstart.cli.config import init
from redstart.core.errors import ConfigError


@pytest.fixture(autouse=True)
def no_file_of_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_a.py").write_text("def test_a():\n    assert True\n")
    return folder


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(init)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(project: Path, typed: bytes) -> str:
    """Type this at the prompt of a real terminal and return the output."""
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, typed)
        command = [sys.executable, "-c", "import typer; from redstart.cli.config import init; typer.run(init)", project]
        completed = subprocess.run(command, stdin=terminal, capture_output=True, text=True, timeout=300, check=True)
    finally:
        os.close(keyboard)
        os.close(terminal)
    return completed.stdout


def test_yes_writes_the_shown_file_and_it_can_be_loaded(project):
    result = run(project, "--yes")
    text = (project / "redstart.toml").read_text()
    assert result.exit_code == 0
    assert text in result.output
    settings = load(project=project)
    assert (settings.tests.command, settings.protect) == ("python -m pytest", ())


@pytest.mark.parametrize("more", [[], ["--no-input"]])
def test_init_without_terminal_or_input_shows_the_file_and_writes_nothing(project, more):
    result = run(project, *more)
    assert result.exit_code == 0
    assert 'command = "python -m pytest"' in result.output
    assert "nothing was written" in result.output
    assert [path.name for path in project.iterdir()] == ["tests"]


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "written"), [(b"y\n", True), (b"\n", True), (b"n\n", False)])
def test_init_asks_at_a_terminal(project, typed, written):
    out = answer(project, typed)
    assert "Write this file?" in out
    assert (project / "redstart.toml").exists() is written


@pytest.mark.parametrize("kind", ["file", "dangling link", "folder"])
def test_existing_path_is_never_overwritten(project, kind, tmp_path):
    path = project / "redstart.toml"
    if kind == "file":
        path.write_text("protect = ['a']\n")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    result = run(project, "--yes")
    assert isinstance(result.exception, ConfigError)
    assert result.exception.exit_code == 2
    assert not (tmp_path / "elsewhere").exists()
    assert kind != "file" or path.read_text() == "protect = ['a']\n"


def test_path_created_meanwhile_is_not_overwritten(project):
    proposal = propose(project)
    proposal.path.write_text("mine")
    with pytest.raises(ConfigError):
        write(proposal)
    assert proposal.path.read_text() == "mine"


def test_project_configured_in_pyproject_is_left_unchanged(project):
    (project / "pyproject.toml").write_text("[tool.redstart]\nprotect = []\n")
    with pytest.raises(ConfigError, match=r"tool\.redstart"):
        propose(project)


def test_missing_directory_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="not a directory"):
        propose(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("files", "runner"),
    [
        ({"test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self): ...\n"}, "unittest"),
        ({"test_a.py": "def test_a(): ...\n"}, "pytest"),
        ({"main.py": "print(1)\n"}, None),
        ({"node_modules/x/test_a.py": "def test_a(): ...\n", ".venv/test_b.py": "def test_b(): ...\n"}, None),
    ],
)
def test_project_layout_is_detected(tmp_path, files, runner):
    for name, text in files.items():
        path = tmp_path / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    proposal = propose(tmp_path / "p")
    assert proposal.runner == runner
    config_data = tomllib.loads(proposal.text)
    assert config_data["tests"] == ({"command": f"python -m {runner}"} if runner else {})
