"""The user's choices for a run: stored when it starts, applied again when it is resumed. No key is stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from redstart.app.model_routes import find_model_route, has_endpoint
from redstart.app.settings import Settings
from redstart.app.settings.models import StepModels
from redstart.core.errors import ConfigError
from redstart.core.run_options import ChosenEndpoint, ChosenModels, RunOptions
from redstart.ports.model.endpoints import ENDPOINTS, Route

_WITH_PATH = ("manual", "replay")
"""The providers whose model names end with a path."""


class DriveFlags(NamedTuple):
    """The flags that control how a run is driven. They are stored with the run."""

    unsafe: bool = False
    engine: str = ""
    patch: Path | None = None


class Resumption(NamedTuple):
    """The settings that drive a resumed run, and a note about its model."""

    settings: Settings
    options: RunOptions
    changed: bool = False
    """Whether to store these options with the run."""
    note: str = ""


def build_run_options(settings: Settings, flags: DriveFlags | None = None) -> RunOptions:
    """Return the options of these settings and flags in the form that is stored."""
    flags = flags or DriveFlags()
    sandbox = settings.sandbox
    return RunOptions(
        models=_collect_models(settings),
        sandbox=sandbox.backend,
        image=sandbox.image,
        runtime=sandbox.runtime,
        unsafe=flags.unsafe,
        engine=flags.engine,
        patch=str(flags.patch.resolve()) if flags.patch is not None else "",
    )


def with_models(settings: Settings, chosen_models: ChosenModels, *, on_other_machine: bool = False) -> Settings:
    """Return the settings with the run's models and their addresses. Keys still come from where the settings say.

    The flag is set on a machine of a fleet: a model without a stored address keeps the address of the settings.
    """
    models, embedder = settings.models, settings.memory.embedder
    options = dict(models.options)
    if embedder and models.base_url:
        options[embedder] = models.get_model_options(embedder).model_copy(
            update={"base_url": models.get_model_options(embedder).base_url or models.base_url}
        )
    for name in _list_model_names(chosen_models):
        endpoint = chosen_models.endpoints.get(name, ChosenEndpoint())
        model_options = models.get_model_options(name)
        # Credentials of an address are not stored. If the settings have the same address, use it with its credentials.
        current_route = _route_now(settings, name)
        is_same_address = _remove_credentials(current_route.url) == endpoint.base_url or (
            on_other_machine and not endpoint.base_url
        )
        base_url = current_route.url if is_same_address else endpoint.base_url or _find_provider_url(name)
        changed = {"base_url": base_url or None, "key_variable": endpoint.key_variable or model_options.key_variable}
        options[name] = model_options.model_copy(update=changed)
    changed_models = models.model_copy(
        update={
            "strong": chosen_models.strong,
            "fast": chosen_models.fast,
            "fallback": chosen_models.fallback,
            "steps": StepModels(**chosen_models.steps),
            "escalate": chosen_models.escalate,
            "base_url": None,
            "options": options,
        }
    )
    return settings.model_copy(update={"models": changed_models})


def resume_with(settings: Settings, stored: RunOptions | None, *, has_model_flag: bool) -> Resumption:
    """Return how a run with these stored options continues. Only a flag, already in the settings, changes its model."""
    current_options = build_run_options(settings)
    if stored is None or not stored.models.strong:
        name = _describe_model(current_options.models)
        options = current_options if stored is None else stored.model_copy(update={"models": current_options.models})
        note = (
            f"model: {name}, from {'--model' if has_model_flag else 'your settings'} (this run stored none)"
            if name
            else ""
        )
        return Resumption(settings, options, changed=bool(name), note=note)
    sandbox = settings.sandbox.model_copy(
        update={"backend": stored.sandbox, "image": stored.image, "runtime": stored.runtime}
    )
    run_settings = settings.model_copy(update={"sandbox": sandbox})
    stored_model, current_model = _describe_model(stored.models), _describe_model(current_options.models)
    if has_model_flag:
        options = stored.model_copy(update={"models": current_options.models})
        note = "" if stored_model == current_model else f"model: was {stored_model}, now {current_model} (--model)"
        return Resumption(run_settings, options, changed=True, note=note)
    is_different = bool(current_options.models.strong) and stored_model != current_model
    note = (
        f"model: {stored_model}, as when the run began; your settings name {current_model} (change it with --model)"
        if is_different
        else ""
    )
    return Resumption(with_models(run_settings, stored.models), stored, note=note)


def _collect_models(settings: Settings) -> ChosenModels:
    models = settings.models
    roster = models.roster
    endpoints = {
        name: ChosenEndpoint(
            base_url=_remove_credentials(_route_now(settings, name).url),
            key_variable=models.get_model_options(name).key_variable,
        )
        for name in roster.names
    }
    return ChosenModels(
        strong=_make_path_absolute(models.strong),
        fast=_make_path_absolute(models.fast),
        fallback=models.fallback,
        steps=dict(roster.steps),
        escalate=models.escalate,
        endpoints={name: endpoint for name, endpoint in endpoints.items() if name and endpoint != ChosenEndpoint()},
    )


def _list_model_names(chosen_models: ChosenModels) -> list[str]:
    return list(
        dict.fromkeys(
            [chosen_models.strong, chosen_models.fast, *chosen_models.steps.values(), *chosen_models.fallback]
        )
    )


def _route_now(settings: Settings, name: str) -> Route:
    """Find where the settings and the SDK's variable route this model; empty for its provider's own address."""
    try:
        route = find_model_route(settings, name, os.environ) if has_endpoint(name) else None
    except ConfigError:  # an unknown provider: the first call reports it
        route = None
    return route if route is not None and route.origin else Route("", "")


def _find_provider_url(name: str) -> str:
    """Return the provider's own address if a variable set since the run started would replace it; else empty."""
    endpoint = ENDPOINTS.get(name.partition(":")[0])
    return endpoint.url if endpoint is not None and os.environ.get(endpoint.url_variable) else ""


def _make_path_absolute(name: str) -> str:
    """Return a model name that stays valid if the run is resumed from another folder."""
    kind, _, path = name.partition(":")
    return f"{kind}:{Path(path).resolve()}" if kind in _WITH_PATH and path else name


def _remove_credentials(address: str) -> str:
    """Return the address without credentials, query and fragment."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _describe_model(chosen_models: ChosenModels) -> str:
    """Name the strong model, and its address if it is not its provider's own."""
    endpoint = chosen_models.endpoints.get(chosen_models.strong, ChosenEndpoint())
    return f"{chosen_models.strong} at {endpoint.base_url}" if endpoint.base_url else chosen_models.strong
