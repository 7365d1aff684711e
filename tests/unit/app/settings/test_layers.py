"""Which layer wins, what a project may set, and how errors are reported."""

from __future__ import annotations

import json
import os
import re
from itertools import combinations
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redstart.app.settings import FleetSettings, Models, SandboxSettings, Settings, collect_setting_names, load, resolve
from redstart.app.settings.layers import ADD_UP
from redstart.app.settings.models import StepModels
from redstart.app.settings.store import MemorySettings, StoreSettings
from redstart.cli.config import app
from redstart.core.errors import ConfigError
from redstart.core.run import Limits

KEYS = collect_setting_names(Settings)
ALLOWED = {"tests.command", "tests.files", "protect", *(f"limits.{name}" for name in Limits.model_fields)}
LAYERS = ("default", "user", "project", "variable", "flag")


class Places:
    """A user's file, a project and an environment, all empty."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.user = folder / "config" / "redstart" / "config.toml"
        self.project = folder / "project"
        self.user.parent.mkdir(parents=True)
        self.project.mkdir()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        for name in list(os.environ):
            if name.startswith("REDSTART_") or name.endswith("_API_KEY") or name == "XDG_DATA_HOME":
                monkeypatch.delenv(name)

    def set_variable(self, name: str, value: str) -> None:
        self._patch.setenv(name, value)

    def put(self, layer: str, name: str, value: object) -> str:
        """Set the value in that layer and return the origin that must be reported."""
        if layer == "variable":
            variable = "REDSTART_" + name.replace(".", "__").upper()
            self.set_variable(variable, value if isinstance(value, str) else json.dumps(value))
            return variable
        file = self.user if layer == "user" else self.project / "redstart.toml"
        file.write_text(f"{name} = {json.dumps(value)}\n")
        return str(file)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def get_value(settings: Settings, name: str) -> object:
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize(("lower", "higher"), list(combinations(LAYERS[:4], 2)))
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("tests.command", {"user": "a", "project": "b", "variable": "c"}),
        ("limits.usd", {"user": 1.5, "project": 0.5, "variable": 9.0}),
        ("limits.attempts", {"user": 4, "project": 2, "variable": 50}),
    ],
)
def test_each_layer_outranks_each_below(places: Places, name, values, lower, higher):
    if lower in values:
        places.put(lower, name, values[lower])
    origin = places.put(higher, name, values[higher])
    settings, origins = resolve(project=places.project)
    assert (get_value(settings, name), origins[name]) == (values[higher], origin)


@pytest.mark.parametrize(("lower", "higher"), list(combinations(("default", "user", "variable", "flag"), 2)))
def test_each_layer_overrides_every_lower_layer_for_the_model(places: Places, lower, higher):
    places.set_variable("OPENAI_API_KEY", "k")
    if lower != "default":
        places.put(lower, "models.strong", f"ollama:{lower}")
    origin = "flag" if higher == "flag" else places.put(higher, "models.strong", f"ollama:{higher}")
    settings, origins = resolve("ollama:flag" if higher == "flag" else None, places.project)
    assert (settings.models.strong, origins["models.strong"]) == (f"ollama:{higher}", origin)


def test_all_layers_combine(places: Places):
    places.put("user", "limits.usd", 1.5)
    places.put("project", "tests.command", "make test")
    places.set_variable("REDSTART_LIMITS__TOKENS", "9")
    places.set_variable("ANTHROPIC_API_KEY", "k")
    settings, origins = resolve(project=places.project)
    assert (settings.limits.usd, settings.tests.command, settings.limits.tokens) == (1.5, "make test", 9)
    assert origins["limits.usd"] == str(places.user)
    assert origins["limits.attempts"] == "default"
    assert origins["models.strong"] == "default, because ANTHROPIC_API_KEY is set"
    assert origins["models.fast"] == "same as models.strong"
    assert set(origins) == KEYS.settings


@pytest.mark.parametrize("name", sorted(ADD_UP))
def test_protected_globs_only_accumulate(places: Places, name: str):
    def load_globs() -> tuple[str, ...]:
        settings = load(project=places.project)
        return settings.tests.files if name == "tests.files" else settings.protect

    places.put("user", name, ["a"])
    places.put("project", name, ["b"])
    places.put("variable", name, ["c"])
    assert load_globs() == ("a", "b", "c")
    origins = resolve(project=places.project).origins
    variable = f"REDSTART_{name.replace('.', '__').upper()}"
    assert origins[name] == f"{places.user}, {places.project / 'redstart.toml'}, {variable}"
    places.put("project", name, [])
    assert load_globs() == ("a", "c")
    places.put("project", name, "b")
    with pytest.raises(ConfigError, match=rf"redstart\.toml: {re.escape(name)}"):
        load(project=places.project)


@pytest.mark.parametrize("name", sorted(KEYS.settings))
@pytest.mark.parametrize("file", ["redstart.toml", "pyproject.toml"])
def test_project_may_set_only_allowed_settings(places: Places, name, file):
    table = "tool.redstart." if file == "pyproject.toml" else ""
    value = ["x"] if name in ("protect", "tests.files", "sandbox.services") else "x" if name == "tests.command" else 1
    (places.project / file).write_text(f"{table}{name} = {json.dumps(value)}\n")
    if name in ALLOWED:
        assert file in resolve(project=places.project).origins[name]
        return
    with pytest.raises(ConfigError) as caught:
        load(project=places.project)
    assert file in str(caught.value)
    assert name in str(caught.value)
    assert "REDSTART_" + name.replace(".", "__").upper() in caught.value.remedy
    assert str(places.user) in caught.value.remedy
    assert get_value(load(), name) == get_value(Settings(), name)


def test_allowed_project_settings_are_real_settings():
    assert KEYS.settings >= ALLOWED
    assert KEYS.settings - ALLOWED == {
        *(
            "data",
            "home",
            "keep_related",
            "reflect",
            "tenant",
            "verify",
            "checks.block",
            "checks.commands",
            "dependencies.allow.node",
            "dependencies.allow.python",
            *(f"sandbox.{name}" for name in SandboxSettings.model_fields),
            *(f"store.{name}" for name in StoreSettings.model_fields),
            *(f"memory.{name}" for name in MemorySettings.model_fields),
            *(f"fleet.{name}" for name in FleetSettings.model_fields),
            *(f"models.{name}" for name in Models.model_fields if name != "steps"),
            *(f"models.steps.{name}" for name in StepModels.model_fields),
        )
    }


def test_project_adds_check_commands_but_replaces_none(places: Places):
    project = places.project / "redstart.toml"
    places.user.write_text('[checks.commands]\nmine = "mypy ."\n')
    project.write_text('[checks.commands]\nmine = "true"\ntheirs = "flake8"\n')
    settings, origins = resolve(project=places.project)
    assert settings.checks.commands == {"mine": "mypy .", "theirs": "flake8"}
    assert origins["checks.commands"] == f"{places.user}, {project}"
    assert settings.checks.checks.commands == {"mine": ("mypy", "."), "theirs": ("flake8",)}
    project.write_text('[checks.commands]\nruff = "true"\n')
    with pytest.raises(ConfigError, match=r"a project cannot replace checks\.commands\.ruff"):
        load(project=places.project)


@pytest.mark.parametrize("value", ["2.01", "true", '"1"', "nan", "inf", "-1", "[1]"])
def test_project_may_only_lower_a_limit(places: Places, value):
    (places.project / "redstart.toml").write_text(f"limits.usd = {value}\n")
    with pytest.raises(ConfigError, match=r"redstart\.toml: limits\.usd"):
        load(project=places.project)


def test_project_limit_is_compared_with_the_user_limit_not_the_default(places: Places):
    places.put("user", "limits.usd", 10)
    places.put("project", "limits.usd", 9)
    assert load(project=places.project).limits.usd == 9
    places.put("user", "limits.usd", 1)
    with pytest.raises(ConfigError, match="above the limit of 1;"):
        load(project=places.project)
    places.put("project", "limits.usd", 1)
    assert load(project=places.project).limits.usd == 1
    places.set_variable("REDSTART_LIMITS__USD", "10")
    places.put("project", "limits.usd", 2)
    with pytest.raises(ConfigError, match="above the limit of 1;"):
        load(project=places.project)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "colour"),
        ("[limits]\ndollars = 1", r"limits\.dollars"),
        ("limit.usd = 1", "limit"),
        ("limits = 3", "limits is a group of settings"),
        ("tests.command.x = 1", r"tests\.command"),
        ('"a\\u001b[2J" = 1', r"'a\\x1b\[2J'"),
    ],
)
@pytest.mark.parametrize("layer", ["user", "project"])
def test_an_unknown_key_is_an_error_that_names_file_and_key(places: Places, layer, text, named):
    file = places.user if layer == "user" else places.project / "redstart.toml"
    file.write_text(text + "\n")
    with pytest.raises(ConfigError, match=named) as caught:
        load(project=places.project)
    assert str(file) in str(caught.value)
    assert "\x1b" not in str(caught.value) + caught.value.remedy


def test_unknown_key_suggests_the_nearest(places: Places):
    places.put("user", "limits.attempt", 3)
    with pytest.raises(ConfigError) as caught:
        load()
    assert caught.value.remedy == "did you mean limits.attempts?"


@pytest.mark.parametrize("layer", ["user", "project", "variable"])
def test_earlier_name_of_a_setting_is_accepted(places: Places, layer):
    origin = places.put(layer, "limits.iterations", 3)
    settings, origins = resolve(project=places.project)
    assert (settings.limits.attempts, origins["limits.attempts"]) == (3, origin)
    assert "limits.iterations" not in origins


@pytest.mark.parametrize("name", ["REDSTART_COLOUR", "REDSTART_LIMITS__DOLLARS", "REDSTART_MODELS_STRONG", "REDSTART_"])
def test_unknown_variable_is_an_error(places: Places, name):
    places.set_variable(name, "1")
    with pytest.raises(ConfigError, match=f"^unknown setting {name}"):
        load()


@pytest.mark.parametrize("name", ["REDSTART_LIVE_URL", "REDSTART_PYTHON", "REDSTART_WORKERS"])
def test_unrelated_variables_are_ignored(places: Places, name):
    places.set_variable(name, "1")
    assert load() == Settings()


def test_group_may_be_given_as_json(places: Places):
    places.set_variable("REDSTART_LIMITS", '{"usd": 1}')
    settings, origins = resolve()
    assert (settings.limits.usd, origins["limits.usd"]) == (1, "REDSTART_LIMITS")
    places.set_variable("REDSTART_LIMITS", '{"dollars": 1}')
    with pytest.raises(ConfigError, match=r"REDSTART_LIMITS: unknown setting limits\.dollars"):
        load()


def test_project_with_two_settings_files_is_an_error(places: Places):
    places.put("project", "tests.command", "a")
    (places.project / "pyproject.toml").write_text('[tool.redstart.tests]\ncommand = "b"\n')
    with pytest.raises(ConfigError, match="both"):
        load(project=places.project)


@pytest.mark.parametrize("content", [b"x = ", b"\xff\xfe", b"x = " + b"[" * 100_000, b"#" * 1_000_001])
@pytest.mark.parametrize("layer", ["user", "project"])
def test_invalid_toml_file_is_named(places: Places, layer, content):
    file = places.user if layer == "user" else places.project / "redstart.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(project=places.project)
    assert str(file) in str(caught.value)


def test_broken_pyproject_without_redstart_settings_is_ignored(places: Places):
    (places.project / "pyproject.toml").write_text("[tool.black\n")
    assert load(project=places.project) == Settings()
    (places.project / "pyproject.toml").write_text("[tool.redstart\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml is not valid TOML"):
        load(project=places.project)
    (places.project / "pyproject.toml").write_text("[tool]\nredstart = 3\n")
    with pytest.raises(ConfigError, match="must be a table"):
        load(project=places.project)


def test_named_pipe_does_not_block_loading(places: Places):
    os.mkfifo(places.project / "redstart.toml")
    assert load(project=places.project) == Settings()


def test_project_file_is_not_read_without_a_project(places: Places, monkeypatch):
    places.put("project", "colour", 1)
    monkeypatch.chdir(places.project)
    assert load() == Settings()


def test_relative_config_home_counts_as_unset(places: Places, monkeypatch, tmp_path):
    places.put("user", "limits.usd", 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert load().limits.usd == 1
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert load().limits.usd == 2


def test_config_show_lists_each_value_and_its_origin(places: Places):
    places.set_variable("OPENAI_API_KEY", "sk-secret")
    places.put("project", "tests.command", "make \x1b[2J")
    text = CliRunner().invoke(app, ["show", str(places.project)])
    assert text.exit_code == 0
    assert len(text.output.splitlines()) == len(KEYS.settings)
    [line] = [line for line in text.output.splitlines() if line.startswith("tests.command")]
    assert line.endswith(str(places.project / "redstart.toml"))
    assert "\x1b" not in text.output
    document = json.loads(CliRunner().invoke(app, ["show", str(places.project), "--json"]).output)
    assert document["v"] == 1
    rows = {row["name"]: row for row in document["settings"]}
    assert rows["tests.command"]["value"] == "make \x1b[2J"
    assert rows["limits.usd"] == {"name": "limits.usd", "value": 2.0, "origin": "default"}
    assert "secret" not in text.output + json.dumps(document)


def test_config_schema_covers_exactly_all_settings():
    schema = json.loads(CliRunner().invoke(app, ["schema"]).output)
    assert set(schema["properties"]) == set(Settings.model_fields)
    assert schema["additionalProperties"] is False
    assert schema["properties"]["protect"]["description"]
