"""The Python API beside the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

import redstart
from redstart.core.errors import ConfigError
from redstart.core.finding import Risk


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_an_audit_needs_neither_a_model_nor_a_sandbox_and_returns_what_it_found(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text("def value(text):\n    return eval(text)\n")
    (repo / "plain.py").write_text("def value(text):\n    return int(text)\n")
    found = redstart.audit(repo)
    assert [(one.path, one.line, one.risk) for one in found] == [("calc.py", 2, Risk.high)]
    assert redstart.audit(repo / "plain.py") == ()
    assert sorted(one.name for one in repo.iterdir()) == ["calc.py", "plain.py"]


def test_there_is_nothing_to_improve_in_an_empty_folder_without_a_goal(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="is empty"):
        redstart.improve(tmp_path / "empty", cycles=1, model="openai:none")
