from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.settings import api_key, load, require_model
from redstart.core.errors import ConfigError


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "REDSTART_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_key_or_a_model_the_remedy_is_three_lines_to_copy():
    with pytest.raises(ConfigError) as caught:
        require_model(load())
    assert len(caught.value.remedy.splitlines()) == 4


def test_a_key_brings_its_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert load().models.strong.startswith("openai:")
    assert load().models.fast == load().models.strong
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert load().models.strong.startswith("anthropic:")


def test_a_flag_outranks_the_environment_for_both_tiers(monkeypatch):
    monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:a")
    monkeypatch.setenv("REDSTART_MODELS__FAST", "openai:b")
    assert (load().models.strong, load().models.fast) == ("openai:a", "openai:b")
    assert (load("ollama:c").models.strong, load("ollama:c").models.fast) == ("ollama:c", "ollama:c")


@pytest.mark.parametrize("name", ["REDSTART_LIMITS__ITERATIONS", "REDSTART_MODELS__DEADLINE"])
def test_a_value_that_is_none_is_named(monkeypatch, name):
    monkeypatch.setenv(name, "lots")
    with pytest.raises(ConfigError, match=name):
        load()


def test_an_unknown_key_inside_a_group_is_an_error(monkeypatch):
    monkeypatch.setenv("REDSTART_LIMITS__DOLLARS", "3")
    with pytest.raises(ConfigError, match="REDSTART_LIMITS__DOLLARS"):
        load()


def test_where_data_lies(monkeypatch, tmp_path):
    assert load().home == Path.home() / ".local" / "share" / "redstart"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert load().home == tmp_path / "redstart"
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "own"))
    assert load().home == tmp_path / "own"


def test_a_key_is_looked_up_by_provider():
    assert api_key("openrouter:x/y", {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "other"}) == "k"
    assert api_key("ollama:x", {}) is None
