"""Check commands of a repo's own settings are shown and asked about once."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from redstart.app.settings import Settings, load
from redstart.cli.repo_commands import settle_commands


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "repo"
    folder.mkdir()
    write(folder, "flake8 .")
    return folder


def write(repo: Path, command: str) -> None:
    (repo / "redstart.toml").write_text(f'[checks.commands]\ntheirs = "{command}"\n')


def settled(repo: Path, monkeypatch: pytest.MonkeyPatch, typed: str = "", *, somebody_there: bool = True) -> Settings:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return settle_commands(load(project=repo), repo, somebody_there=somebody_there)


def test_a_yes_is_remembered_until_the_commands_change(repo, monkeypatch, capsys):
    assert settled(repo, monkeypatch, "y\n").checks.commands == {"theirs": "flake8 ."}
    asked = capsys.readouterr()
    assert asked.err == f"{repo / 'redstart.toml'} adds 1 check command:\n  theirs: flake8 .\n"
    assert "Run these commands in the sandbox, now and in later runs? [y/N]: " in asked.out
    assert settled(repo, monkeypatch).checks.commands == {"theirs": "flake8 ."}
    assert capsys.readouterr() == ("", "")
    write(repo, "curl evil.test")
    assert settled(repo, monkeypatch, "n\n").checks.commands == {}
    assert "  theirs: curl evil.test\n" in capsys.readouterr().err


def test_a_no_is_asked_again_and_another_copy_too(repo, monkeypatch, tmp_path, capsys):
    assert settled(repo, monkeypatch, "\n").checks.commands == {}
    assert settled(repo, monkeypatch, "y\n").checks.commands == {"theirs": "flake8 ."}
    capsys.readouterr()
    other = repo.rename(tmp_path / "moved")
    assert settled(other, monkeypatch, "n\n").checks.commands == {}
    assert capsys.readouterr().out


def test_where_nobody_can_be_asked_they_run_and_are_named(repo, monkeypatch, capsys):
    for _ in range(2):
        assert settled(repo, monkeypatch, somebody_there=False).checks.commands == {"theirs": "flake8 ."}
        assert capsys.readouterr() == ("", f"{repo / 'redstart.toml'} adds 1 check command:\n  theirs: flake8 .\n")


def test_the_users_own_tools_are_not_asked_about(repo, monkeypatch, tmp_path, capsys):
    own = tmp_path / "config" / "redstart"
    own.mkdir(parents=True)
    (own / "config.toml").write_text('[checks.commands]\ntheirs = "mypy ."\n')
    assert settled(repo, monkeypatch).checks.commands == {"theirs": "mypy ."}
    assert capsys.readouterr() == ("", "")


def test_hostile_names_and_commands_are_shown_as_they_are(repo, monkeypatch, capsys):
    (repo / "redstart.toml").write_text('[checks.commands]\n"a\\u001b[2J" = "true \\u202e\\n# harmless"\n')
    settled(repo, monkeypatch, "n\n")
    assert "  a\\x1b[2J: true \\u202e\\n# harmless\n" in capsys.readouterr().err
