from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.settings import (
    BACKENDS,
    SandboxSettings,
    Settings,
    find_api_key,
    list_public_values,
    load,
    require_model,
    resolve,
)
from redstart.cli.options import SANDBOXES, build_sandbox_flags
from redstart.core.errors import ConfigError
from redstart.core.shell import SandboxLimits


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "REDSTART_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_missing_key_or_model_gives_a_hint_with_commands_to_copy():
    with pytest.raises(ConfigError) as caught:
        require_model(load())
    assert len(caught.value.remedy.splitlines()) == 4


def test_key_selects_its_default_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert load().models.strong.startswith("openai:")
    assert load().models.fast == load().models.strong
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert load().models.strong.startswith("anthropic:")


def test_flag_overrides_the_environment_for_both_tiers(monkeypatch):
    monkeypatch.setenv("REDSTART_MODELS__STRONG", "openai:a")
    monkeypatch.setenv("REDSTART_MODELS__FAST", "openai:b")
    assert (load().models.strong, load().models.fast) == ("openai:a", "openai:b")
    assert (load("ollama:c").models.strong, load("ollama:c").models.fast) == ("ollama:c", "ollama:c")


@pytest.mark.parametrize("name", ["REDSTART_LIMITS__ITERATIONS", "REDSTART_MODELS__DEADLINE"])
def test_value_of_wrong_type_is_named(monkeypatch, name):
    monkeypatch.setenv(name, "lots")
    with pytest.raises(ConfigError, match=name):
        load()


def test_unknown_key_inside_a_group_is_an_error(monkeypatch):
    monkeypatch.setenv("REDSTART_LIMITS__DOLLARS", "3")
    with pytest.raises(ConfigError, match="REDSTART_LIMITS__DOLLARS"):
        load()


def test_data_directory_follows_xdg_and_the_variable(monkeypatch, tmp_path):
    assert load().home == Path.home() / ".local" / "share" / "redstart"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert load().home == tmp_path / "redstart"
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "own"))
    assert load().home == tmp_path / "own"


def test_key_is_looked_up_by_provider():
    assert find_api_key("openrouter:x/y", {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "other"}) == "k"
    assert find_api_key("ollama:x", {}) is None


def test_settings_constructed_directly_read_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("REDSTART_LIMITS__USD", "7")
    (tmp_path / ".env").write_text("REDSTART_LIMITS__USD=8\n")
    monkeypatch.chdir(tmp_path)
    assert Settings().limits.usd == 2
    assert load().limits.usd == 7


def test_dot_env_is_never_read(monkeypatch, tmp_path):
    (tmp_path / ".env").write_text("REDSTART_LIMITS__USD=8\nREDSTART_MODELS__BASE_URL=http://elsewhere\n")
    monkeypatch.chdir(tmp_path)
    settings = load(project=tmp_path)
    assert (settings.limits.usd, settings.models.base_url) == (2, None)


def test_home_may_be_written_with_a_tilde(monkeypatch):
    monkeypatch.setenv("REDSTART_HOME", "~/kept")
    assert load().home == Path.home() / "kept"


@pytest.mark.parametrize("service", ["127.0.0.1:5432", "localhost:6379", "[::1]:8080", "127.8.8.8:65535"])
def test_service_is_an_address_on_this_machine(monkeypatch, service):
    monkeypatch.setenv("REDSTART_SANDBOX__SERVICES", f'["{service}"]')
    assert load().sandbox.services == (service,)


@pytest.mark.parametrize(
    "service", ["10.0.0.1:80", "example.org:80", "0.0.0.0:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", ":80", ""]
)
def test_any_other_service_is_rejected(monkeypatch, service):
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
def test_invalid_value_is_named(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name}"):
        load()


def test_zero_limit_is_kept(monkeypatch):
    """Zero cost or tokens is a limit like any other; attempts start at one."""
    monkeypatch.setenv("REDSTART_LIMITS__USD", "0")
    assert load().limits.usd == 0


def test_printed_settings_contain_no_secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("REDSTART_MODELS__BASE_URL", "http://user:secret@127.0.0.1:9/v1?key=secret")
    settings, origins = resolve()
    values = list_public_values(settings)
    assert values["models.base_url"] == "http://127.0.0.1:9/v1?…"
    assert "secret" not in str(values) + str(origins)
    assert list(values) == sorted(origins)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1g", 1 << 30), ("512M", 512 << 20), ("1.5 GiB", 3 << 29), ("67108864", 64 << 20), ("2gb", 2 << 30)],
)
def test_human_readable_size_is_accepted(monkeypatch, text, size):
    monkeypatch.setenv("REDSTART_SANDBOX__MEMORY", text)
    assert load().sandbox.memory == size
    assert load(flags={"sandbox.memory": "3g"}).sandbox.limits.memory == 3 << 30


@pytest.mark.parametrize("text", ["much", "1x", "-1g", "", "1m"])
def test_invalid_or_too_small_size_is_rejected(text):
    with pytest.raises(ConfigError, match=r"flag: sandbox\.memory"):
        load(flags={"sandbox.memory": text})


def test_every_sandbox_limit_reaches_the_sandbox():
    values = {
        "wall": 1.5,
        "cpu": 2,
        "cpus": 1.0,
        "memory": 1 << 26,
        "processes": 3,
        "file_size": 4,
        "disk": 5,
        "output": 6,
    }
    limits = SandboxSettings(**values).limits
    assert {name: getattr(limits, name) for name in values} == values
    assert SandboxSettings().limits == SandboxLimits()


@pytest.mark.parametrize(
    ("name", "value"),
    [("network", "host"), ("backend", "chroot"), ("path_map", ["/here"]), ("cpus", -1), ("processes", 0)],
)
def test_invalid_sandbox_flag_is_rejected(name, value):
    with pytest.raises(ConfigError, match=f"flag: sandbox.{name}"):
        load(flags={f"sandbox.{name}": value})


def test_given_sandbox_flags_are_applied():
    flags = build_sandbox_flags("docker", "i:1", 1.0, "1g")
    settings = load(flags=flags).sandbox
    assert (settings.backend, settings.image, settings.cpus, settings.memory) == ("docker", "i:1", 1.0, 1 << 30)
    assert build_sandbox_flags(None, None, None, None) == {}
    assert SANDBOXES == BACKENDS
