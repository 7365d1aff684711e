"""Setting one value in the user's settings file changes nothing else in it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redstart.app.settings.user_file import find_editor_command
from redstart.cli.config import app
from redstart.core.errors import ConfigError

COMMENTED = """# mine
verify = "quick"   # fast

[models]  # who is asked
strong = "openai:a"   # the # strong one
fallback = [
  "openai:b",  # second
  "openai:c",
]

[models.options."openai:a"]
at_once = 2

[limits]
# usd = 9
usd = 1.0
"""


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("VISUAL", "EDITOR", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "redstart" / "config.toml"


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def expect_config_error(*arguments: str) -> ConfigError:
    error = run(*arguments).exception
    assert isinstance(error, ConfigError)
    return error


def write_file(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_first_setting_creates_the_file(path):
    assert run("set", "models.strong", "openai:gpt-5").output == f"set models.strong in {path}\n"
    assert path.read_text() == '[models]\nstrong = "openai:gpt-5"\n'
    assert run("get", "models.strong").output == "openai:gpt-5\n"
    assert run("path").output == f"{path}\n"


@pytest.mark.parametrize(
    ("name", "value", "before", "after"),
    [
        (
            "models.strong",
            "ollama:x",
            'strong = "openai:a"   # the # strong one',
            'strong = "ollama:x"   # the # strong one',
        ),
        ("limits.usd", "3", "usd = 1.0\n", "usd = 3\n"),
        ("limits.minutes", "5", "usd = 1.0\n", "usd = 1.0\nminutes = 5\n"),
        ("verify", "strict", 'verify = "quick"   # fast', 'verify = "strict"   # fast'),
        ("tenant", "123", 'verify = "quick"   # fast\n', 'verify = "quick"   # fast\ntenant = "123"\n'),
        ("sandbox.memory", "1g", "usd = 1.0\n", 'usd = 1.0\n\n[sandbox]\nmemory = "1g"\n'),
        ("memory.explore", "false", "usd = 1.0\n", "usd = 1.0\n\n[memory]\nexplore = false\n"),
        (
            "models.fallback",
            '["groq:x"]',
            'fallback = [\n  "openai:b",  # second\n  "openai:c",\n]',
            'fallback = ["groq:x"]',
        ),
    ],
)
def test_set_changes_a_single_line(path, name, value, before, after):
    write_file(path, COMMENTED)
    assert before in COMMENTED
    assert run("set", name, value).exit_code == 0
    assert path.read_text() == COMMENTED.replace(before, after)


def test_unknown_setting_gets_a_suggestion_and_file_stays_unchanged(path):
    write_file(path, COMMENTED)
    error = expect_config_error("set", "models.stron", "x")
    assert (str(error), error.remedy) == ("unknown setting models.stron", "did you mean models.strong?")
    assert "group of settings" in str(expect_config_error("get", "limits"))
    assert "config edit" in expect_config_error("set", "models.options.openai:a.at_once", "3").remedy
    assert path.read_text() == COMMENTED


@pytest.mark.parametrize(
    ("name", "value"), [("limits.usd", "much"), ("verify", "harder"), ("models.fallback", "a,b"), ("limits.stall", "0")]
)
def test_invalid_value_is_rejected_before_writing(path, name, value):
    write_file(path, COMMENTED)
    assert name in str(expect_config_error("set", name, value))
    assert path.read_text() == COMMENTED


@pytest.mark.parametrize("text", ["models.strong = 'x:y'\n", "models = { strong = 'openai:a' }\n"])
def test_file_in_unsupported_style_is_left_to_the_editor(path, text):
    write_file(path, text)
    error = expect_config_error("set", "models.strong", "ollama:x")
    assert "redstart config edit" in error.remedy
    assert path.read_text() == text


def test_links_and_permissions_are_preserved(path, tmp_path):
    target_path = write_file(tmp_path / "dotfiles" / "redstart.toml", COMMENTED)
    target_path.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(target_path)
    run("set", "limits.usd", "3")
    assert path.is_symlink()
    assert (stat.S_IMODE(target_path.stat().st_mode), "usd = 3" in target_path.read_text()) == (0o600, True)
    assert [item.name for item in target_path.parent.iterdir()] == ["redstart.toml"]


def test_overriding_variable_is_reported(path, monkeypatch):
    monkeypatch.setenv("REDSTART_LIMITS__USD", "7")
    result = run("set", "limits.usd", "3")
    assert "note: REDSTART_LIMITS__USD overrides it: limits.usd = 7.0 is in effect" in result.output


@pytest.mark.slow
def test_edit_starts_the_editor_and_validates_the_result(path, monkeypatch, tmp_path):
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\n[ "$1" = --wait ] && printf "[limits]\\nusd = 4\\n" > "$2"\n')
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("VISUAL", f"{script} --wait")
    assert run("edit").output == f"{path} is valid\n"
    assert run("get", "limits.usd").output == "4.0\n"
    script.write_text('#!/bin/sh\nprintf "[limits]\\ndollars = 4\\n" > "$2"\n')
    assert "unknown setting limits.dollars" in str(expect_config_error("edit"))


def test_editor_command_follows_visual_then_editor():
    assert find_editor_command({"VISUAL": "code --wait", "EDITOR": "vi"}) == ["code", "--wait"]
    assert find_editor_command({"EDITOR": "vi"}) == ["vi"]
    with pytest.raises(ConfigError, match="no editor"):
        find_editor_command({"PATH": "/nowhere"})
