"""A run keeps its model and options, without a key; only a flag changes its model, and that is announced."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.run_choices import DriveFlags, build_run_options, resume_with, with_models
from redstart.app.settings import SandboxSettings, Settings
from redstart.app.settings.models import ModelOptions, Models, StepModels
from redstart.app.settings.store import MemorySettings
from redstart.app.wire import check_models
from redstart.core.errors import ConfigError


def make_settings(strong: str = "openai:a", **models: object) -> Settings:
    return Settings(home=Path("/nowhere"), models=Models(strong=strong, fast=strong, **models))


RICH = make_settings(
    fallback=("ollama:c",),
    steps=StepModels(plan="anthropic:b"),
    base_url="https://me:hidden@proxy.example/v1?key=hidden",
    options={"anthropic:b": ModelOptions(base_url="https://other.example", key_variable="OTHER_KEY")},
).model_copy(update={"sandbox": SandboxSettings(backend="docker", image="mine", runtime="runsc")})


def test_options_survive_the_store_and_contain_no_secret():
    stored = build_run_options(RICH, DriveFlags(unsafe=True, engine="inline", patch=Path("/shop/fix.patch")))
    assert "hidden" not in stored.model_dump_json()
    resumed_options = resume_with(make_settings("manual"), stored, has_model_flag=False)
    models, sandbox = resumed_options.settings.models, resumed_options.settings.sandbox
    assert (models.strong, models.fast, models.fallback) == ("openai:a", "openai:a", ("ollama:c",))
    assert models.steps.plan == "anthropic:b"
    assert models.get_model_options("openai:a").base_url == "https://proxy.example/v1"
    assert models.get_model_options("anthropic:b") == ModelOptions(
        base_url="https://other.example", key_variable="OTHER_KEY"
    )
    assert (sandbox.backend, sandbox.image, sandbox.runtime) == ("docker", "mine", "runsc")
    assert (stored.unsafe, stored.engine, stored.patch) == (True, "inline", "/shop/fix.patch")


def test_changed_settings_alone_keep_the_model_and_add_a_note():
    stored = build_run_options(make_settings("manual"))
    resumed_options = resume_with(
        make_settings("openai:x", base_url="https://elsewhere/v1"), stored, has_model_flag=False
    )
    assert (resumed_options.settings.models.strong, resumed_options.settings.models.base_url) == ("manual", None)
    assert resumed_options.note == (
        "model: manual, as when the run began; your settings name openai:x at https://elsewhere/v1 "
        "(change it with --model)"
    )
    assert resume_with(make_settings(""), stored, has_model_flag=False).note == ""
    assert resume_with(make_settings("manual"), stored, has_model_flag=False).note == ""


def test_flag_changes_the_model_with_a_note_and_is_stored():
    stored = build_run_options(make_settings("manual"), DriveFlags(engine="inline"))
    resumed_options = resume_with(make_settings("openai:x"), stored, has_model_flag=True)
    assert (resumed_options.settings.models.strong, resumed_options.note) == (
        "openai:x",
        "model: was manual, now openai:x (--model)",
    )
    assert resumed_options.changed
    assert (resumed_options.options.models.strong, resumed_options.options.engine) == ("openai:x", "inline")


def test_new_address_of_the_same_model_needs_a_flag_too():
    stored = build_run_options(make_settings())
    moved_settings = make_settings(base_url="https://elsewhere/v1")
    resumed_options = resume_with(moved_settings, stored, has_model_flag=False)
    assert (
        resumed_options.settings.models.get_model_options("openai:a").base_url,
        resumed_options.settings.models.base_url,
    ) == (None, None)
    assert resume_with(moved_settings, stored, has_model_flag=True).note == (
        "model: was openai:a, now openai:a at https://elsewhere/v1 (--model)"
    )


def test_address_credentials_come_from_settings_with_the_same_address():
    resumed_options = resume_with(RICH, build_run_options(RICH), has_model_flag=False)
    assert (
        resumed_options.settings.models.get_model_options("openai:a").base_url
        == "https://me:hidden@proxy.example/v1?key=hidden"
    )
    assert resumed_options.note == ""


def test_run_of_earlier_version_takes_the_configured_model_with_a_note():
    resumed_options = resume_with(make_settings(), None, has_model_flag=False)
    assert (resumed_options.settings, resumed_options.changed) == (make_settings(), True)
    assert resumed_options.note == "model: openai:a, from your settings (this run stored none)"


def test_path_in_a_model_name_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert build_run_options(make_settings("replay:calls.json")).models.strong == f"replay:{tmp_path / 'calls.json'}"
    assert build_run_options(make_settings("manual")).models.strong == "manual"


def test_worker_keeps_its_own_address_when_the_run_has_none():
    worker = make_settings("anthropic:z", base_url="https://inside/v1")
    worker_models = with_models(worker, build_run_options(make_settings()).models, on_other_machine=True).models
    assert (worker_models.strong, worker_models.get_model_options("openai:a").base_url) == (
        "openai:a",
        "https://inside/v1",
    )


def test_embedder_keeps_its_address():
    base_settings = make_settings(base_url="https://inside/v1").model_copy(
        update={"memory": MemorySettings(embedder="openai:e")}
    )
    resulting_models = with_models(base_settings, build_run_options(make_settings("manual")).models).models
    assert (resulting_models.base_url, resulting_models.get_model_options("openai:e").base_url) == (
        None,
        "https://inside/v1",
    )


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("gpt-5", "gpt-5", "did you mean openai:gpt-5"),
        ("openai:gpt", "openai:gpt needs a key", "set OPENAI_API_KEY"),
        ("", "no model is configured", "ollama"),
    ],
)
def test_unavailable_model_is_detected_without_a_request(name, message, remedy, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=message) as caught:
        check_models(make_settings(name))
    assert remedy in caught.value.remedy


def test_keyless_models_pass_and_fleet_keys_are_not_required(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("manual", "command:cat", "replay:x.json", "ollama:a"):
        check_models(make_settings(name))
    check_models(make_settings("openai:gpt"), keys=False)


def test_address_from_an_sdk_variable_is_stored_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret@proxy.example/v1")
    stored = build_run_options(make_settings())
    assert stored.models.endpoints["openai:a"].base_url == "https://proxy.example/v1"
    assert resume_with(make_settings(), stored, has_model_flag=False).settings.models.get_model_options(
        "openai:a"
    ).base_url == ("https://me:secret@proxy.example/v1")
    monkeypatch.delenv("OPENAI_BASE_URL")
    resumed_options = resume_with(make_settings(), stored, has_model_flag=False)
    assert resumed_options.settings.models.get_model_options("openai:a").base_url == "https://proxy.example/v1"


def test_variable_set_later_does_not_move_the_run_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    stored = build_run_options(make_settings())
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
    resumed_options = resume_with(make_settings(), stored, has_model_flag=False)
    assert resumed_options.settings.models.get_model_options("openai:a").base_url == "https://api.openai.com/v1"
    assert "https://elsewhere.example/v1" in resumed_options.note
