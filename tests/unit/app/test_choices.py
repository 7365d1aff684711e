"""A run keeps its model and options, without a key; only a flag changes its model, and that is announced."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.app.choices import DriveFlags, options_of, resume_with, with_models
from redstart.app.settings import SandboxSettings, Settings
from redstart.app.settings.models import ModelOptions, Models, StepModels
from redstart.app.settings.store import MemorySettings
from redstart.app.wire import check_models
from redstart.core.errors import ConfigError


def settings(strong: str = "openai:a", **models: object) -> Settings:
    return Settings(home=Path("/nowhere"), models=Models(strong=strong, fast=strong, **models))


RICH = settings(
    fallback=("ollama:c",),
    steps=StepModels(plan="anthropic:b"),
    base_url="https://me:hidden@proxy.example/v1?key=hidden",
    options={"anthropic:b": ModelOptions(base_url="https://other.example", key_variable="OTHER_KEY")},
).model_copy(update={"sandbox": SandboxSettings(backend="docker", image="mine", runtime="runsc")})


def test_options_come_back_from_the_store_as_they_were_and_hold_no_secret():
    stored = options_of(RICH, DriveFlags(unsafe=True, engine="inline", patch=Path("/shop/fix.patch")))
    assert "hidden" not in stored.model_dump_json()
    resumed = resume_with(settings("manual"), stored, flagged=False)
    models, sandbox = resumed.settings.models, resumed.settings.sandbox
    assert (models.strong, models.fast, models.fallback) == ("openai:a", "openai:a", ("ollama:c",))
    assert models.steps.plan == "anthropic:b"
    assert models.option("openai:a").base_url == "https://proxy.example/v1"
    assert models.option("anthropic:b") == ModelOptions(base_url="https://other.example", key_variable="OTHER_KEY")
    assert (sandbox.backend, sandbox.image, sandbox.runtime) == ("docker", "mine", "runsc")
    assert (stored.unsafe, stored.engine, stored.patch) == (True, "inline", "/shop/fix.patch")


def test_the_settings_alone_change_nothing_and_that_is_said():
    stored = options_of(settings("manual"))
    resumed = resume_with(settings("openai:x", base_url="https://elsewhere/v1"), stored, flagged=False)
    assert (resumed.settings.models.strong, resumed.settings.models.base_url) == ("manual", None)
    assert resumed.note == (
        "model: manual, as this run began; your settings name openai:x at https://elsewhere/v1 (change it with --model)"
    )
    assert resume_with(settings(""), stored, flagged=False).note == ""
    assert resume_with(settings("manual"), stored, flagged=False).note == ""


def test_a_flag_changes_the_model_is_announced_and_is_stored():
    stored = options_of(settings("manual"), DriveFlags(engine="inline"))
    resumed = resume_with(settings("openai:x"), stored, flagged=True)
    assert (resumed.settings.models.strong, resumed.note) == ("openai:x", "model: was manual, now openai:x (--model)")
    assert resumed.changed
    assert (resumed.options.models.strong, resumed.options.engine) == ("openai:x", "inline")


def test_another_address_of_the_same_model_needs_a_flag_too():
    stored = options_of(settings())
    moved = settings(base_url="https://elsewhere/v1")
    kept = resume_with(moved, stored, flagged=False)
    assert (kept.settings.models.option("openai:a").base_url, kept.settings.models.base_url) == (None, None)
    assert resume_with(moved, stored, flagged=True).note == (
        "model: was openai:a, now openai:a at https://elsewhere/v1 (--model)"
    )


def test_what_opens_an_address_is_taken_from_the_settings_where_they_have_the_same_one():
    resumed = resume_with(RICH, options_of(RICH), flagged=False)
    assert resumed.settings.models.option("openai:a").base_url == "https://me:hidden@proxy.example/v1?key=hidden"
    assert resumed.note == ""


def test_a_run_of_an_earlier_version_takes_the_configured_model_and_says_so():
    resumed = resume_with(settings(), None, flagged=False)
    assert (resumed.settings, resumed.changed) == (settings(), True)
    assert resumed.note == "model: openai:a, from your settings (this run stored none)"


def test_a_path_in_a_models_name_holds_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert options_of(settings("replay:calls.json")).models.strong == f"replay:{tmp_path / 'calls.json'}"
    assert options_of(settings("manual")).models.strong == "manual"


def test_a_worker_keeps_its_own_address_where_the_run_gave_none():
    worker = settings("anthropic:z", base_url="https://inside/v1")
    asked = with_models(worker, options_of(settings()).models, elsewhere=True).models
    assert (asked.strong, asked.option("openai:a").base_url) == ("openai:a", "https://inside/v1")


def test_the_embedder_keeps_its_address():
    both = settings(base_url="https://inside/v1").model_copy(update={"memory": MemorySettings(embedder="openai:e")})
    chosen = with_models(both, options_of(settings("manual")).models).models
    assert (chosen.base_url, chosen.option("openai:e").base_url) == (None, "https://inside/v1")


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("gpt-5", "gpt-5", "did you mean openai:gpt-5"),
        ("openai:gpt", "openai:gpt needs a key", "set OPENAI_API_KEY"),
        ("", "no model is configured", "ollama"),
    ],
)
def test_a_model_that_cannot_be_had_is_found_without_asking_it(name, message, remedy, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=message) as caught:
        check_models(settings(name))
    assert remedy in caught.value.remedy


def test_models_that_need_no_key_pass_and_a_fleets_key_is_not_asked_for(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("manual", "command:cat", "replay:x.json", "ollama:a"):
        check_models(settings(name))
    check_models(settings("openai:gpt"), keys=False)


def test_the_address_of_an_sdk_variable_is_kept_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:secret@proxy.example/v1")
    stored = options_of(settings())
    assert stored.models.endpoints["openai:a"].base_url == "https://proxy.example/v1"
    assert resume_with(settings(), stored, flagged=False).settings.models.option("openai:a").base_url == (
        "https://me:secret@proxy.example/v1"
    )
    monkeypatch.delenv("OPENAI_BASE_URL")
    resumed = resume_with(settings(), stored, flagged=False)
    assert resumed.settings.models.option("openai:a").base_url == "https://proxy.example/v1"


def test_a_variable_that_is_set_later_does_not_move_the_run_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    stored = options_of(settings())
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/v1")
    resumed = resume_with(settings(), stored, flagged=False)
    assert resumed.settings.models.option("openai:a").base_url == "https://api.openai.com/v1"
    assert "https://elsewhere.example/v1" in resumed.note
