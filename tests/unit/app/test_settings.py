from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.settings import (
    BACKENDS,
    SandboxSettings,
    Settings,
    api_key,
    load,
    public_values,
    require_model,
    resolve,
)
from redstart.cli.options import SANDBOXES, sandbox_flags
from redstart.core.errors import ConfigError
from redstart.core.shell import SandboxLimits


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "REDSTART_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


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


def test_made_by_hand_the_settings_read_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("REDSTART_LIMITS__USD", "7")
    (tmp_path / ".env").write_text("REDSTART_LIMITS__USD=8\n")
    monkeypatch.chdir(tmp_path)
    assert Settings().limits.usd == 2
    assert load().limits.usd == 7


def test_a_dot_env_is_never_read(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("REDSTART_LIMITS__USD=8\nREDSTART_MODELS__BASE_URL=http://elsewhere\n")
    monkeypatch.chdir(tmp_path)
    settings = load(project=tmp_path)
    assert (settings.limits.usd, settings.models.base_url) == (2, None)


def test_a_home_may_be_written_with_a_tilde(monkeypatch):
    monkeypatch.setenv("REDSTART_HOME", "~/kept")
    assert load().home == Path.home() / "kept"


@pytest.mark.parametrize("service", ["127.0.0.1:5432", "localhost:6379", "[::1]:8080", "127.8.8.8:65535"])
def test_a_service_is_an_address_on_this_machine(monkeypatch, service):
    monkeypatch.setenv("REDSTART_SANDBOX__SERVICES", f'["{service}"]')
    assert load().sandbox.services == (service,)


@pytest.mark.parametrize(
    "service", ["10.0.0.1:80", "example.org:80", "0.0.0.0:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", ":80", ""]
)
def test_any_other_service_is_refused(monkeypatch, service):
    monkeypatch.setenv("REDSTART_SANDBOX__SERVICES", f'["{service}"]')
    with pytest.raises(ConfigError, match="REDSTART_SANDBOX__SERVICES"):
        load()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDSTART_LIMITS__ITERATIONS", "0"),
        ("REDSTART_LIMITS__USD", "nan"),
        ("REDSTART_LIMITS__USD", "-1"),
        ("REDSTART_LIMITS__MINUTES", "inf"),
        ("REDSTART_MODELS__DEADLINE", "inf"),
        ("REDSTART_TESTS__COMMAND", "pytest 'tests"),
        ("REDSTART_PROTECT", "docs/**"),
        ("REDSTART_PROTECT", '[""]'),
        ("REDSTART_LIMITS", "5"),
    ],
)
def test_a_value_without_sense_is_named(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name}"):
        load()


def test_no_limit_is_none_that_binds(monkeypatch):
    """Zero cost or tokens is a limit like any other; attempts start at one."""
    monkeypatch.setenv("REDSTART_LIMITS__USD", "0")
    assert load().limits.usd == 0


def test_what_is_printed_opens_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("REDSTART_MODELS__BASE_URL", "http://user:secret@127.0.0.1:9/v1?key=secret")
    settings, origins = resolve()
    values = public_values(settings)
    assert values["models.base_url"] == "http://127.0.0.1:9/v1?…"
    assert "secret" not in str(values) + str(origins)
    assert list(values) == sorted(origins)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1g", 1 << 30), ("512M", 512 << 20), ("1.5 GiB", 3 << 29), ("67108864", 64 << 20), ("2gb", 2 << 30)],
)
def test_a_size_as_people_write_it(monkeypatch, text, size):
    monkeypatch.setenv("REDSTART_SANDBOX__MEMORY", text)
    assert load().sandbox.memory == size
    assert load(flags={"sandbox.memory": "3g"}).sandbox.limits.memory == 3 << 30


@pytest.mark.parametrize("text", ["much", "1x", "-1g", "", "1m"])
def test_a_size_that_is_none_or_too_small(text):
    with pytest.raises(ConfigError, match=r"flag: sandbox\.memory"):
        load(flags={"sandbox.memory": text})


def test_every_limit_of_the_sandbox_reaches_it():
    asked = {
        "wall": 1.5,
        "cpu": 2,
        "cpus": 1.0,
        "memory": 1 << 26,
        "processes": 3,
        "file_size": 4,
        "disk": 5,
        "output": 6,
    }
    limits = SandboxSettings(**asked).limits
    assert {name: getattr(limits, name) for name in asked} == asked
    assert SandboxSettings().limits == SandboxLimits()


@pytest.mark.parametrize(
    ("name", "value"),
    [("network", "host"), ("backend", "chroot"), ("path_map", ["/here"]), ("cpus", -1), ("processes", 0)],
)
def test_a_flag_of_the_sandbox_that_cannot_be_used(name, value):
    with pytest.raises(ConfigError, match=f"flag: sandbox.{name}"):
        load(flags={f"sandbox.{name}": value})


def test_the_flags_of_the_sandbox_that_were_given():
    given = sandbox_flags("docker", "i:1", 1.0, "1g")
    settings = load(flags=given).sandbox
    assert (settings.backend, settings.image, settings.cpus, settings.memory) == ("docker", "i:1", 1.0, 1 << 30)
    assert sandbox_flags(None, None, None, None) == {}
    assert SANDBOXES == BACKENDS
