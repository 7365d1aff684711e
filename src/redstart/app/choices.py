"""The user's choices for a run: stored when it starts, applied again when it is resumed. No key is stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from redstart.app.model_routes import has_endpoint, model_route
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


def options_of(settings: Settings, flags: DriveFlags | None = None) -> RunOptions:
    """Return the options of these settings and flags in the form that is stored."""
    flags = flags or DriveFlags()
    sandbox = settings.sandbox
    return RunOptions(
        models=_models_of(settings),
        sandbox=sandbox.backend,
        image=sandbox.image,
        runtime=sandbox.runtime,
        unsafe=flags.unsafe,
        engine=flags.engine,
        patch=str(flags.patch.resolve()) if flags.patch is not None else "",
    )


def with_models(settings: Settings, chosen: ChosenModels, *, elsewhere: bool = False) -> Settings:
    """Return the settings with the run's models and their addresses. Keys still come from where the settings say.

    The flag is set on a machine of a fleet: a model without a stored address keeps the address of the settings.
    """
    models, embedder = settings.models, settings.memory.embedder
    options = dict(models.options)
    if embedder and models.base_url:
        options[embedder] = models.option(embedder).model_copy(
            update={"base_url": models.option(embedder).base_url or models.base_url}
        )
    for name in _roster(chosen):
        endpoint = chosen.endpoints.get(name, ChosenEndpoint())
        own = models.option(name)
        # Credentials of an address are not stored. If the settings have the same address, use it with its credentials.
        now = _route_now(settings, name)
        same = _public(now.url) == endpoint.base_url or (elsewhere and not endpoint.base_url)
        kept = now.url if same else endpoint.base_url or _own_url(name)
        changed = {"base_url": kept or None, "key_variable": endpoint.key_variable or own.key_variable}
        options[name] = own.model_copy(update=changed)
    changed_models = models.model_copy(
        update={
            "strong": chosen.strong,
            "fast": chosen.fast,
            "fallback": chosen.fallback,
            "steps": StepModels(**chosen.steps),
            "escalate": chosen.escalate,
            "base_url": None,
            "options": options,
        }
    )
    return settings.model_copy(update={"models": changed_models})


def resume_with(settings: Settings, stored: RunOptions | None, *, flagged: bool) -> Resumption:
    """Return how a run with these stored options continues. Only a flag, already in the settings, changes its model."""
    now = options_of(settings)
    if stored is None or not stored.models.strong:
        name = _in_words(now.models)
        options = now if stored is None else stored.model_copy(update={"models": now.models})
        note = f"model: {name}, from {'--model' if flagged else 'your settings'} (this run stored none)" if name else ""
        return Resumption(settings, options, changed=bool(name), note=note)
    sandbox = settings.sandbox.model_copy(
        update={"backend": stored.sandbox, "image": stored.image, "runtime": stored.runtime}
    )
    kept = settings.model_copy(update={"sandbox": sandbox})
    was, chosen = _in_words(stored.models), _in_words(now.models)
    if flagged:
        options = stored.model_copy(update={"models": now.models})
        note = "" if was == chosen else f"model: was {was}, now {chosen} (--model)"
        return Resumption(kept, options, changed=True, note=note)
    differs = bool(now.models.strong) and was != chosen
    note = f"model: {was}, as this run began; your settings name {chosen} (change it with --model)" if differs else ""
    return Resumption(with_models(kept, stored.models), stored, note=note)


def _models_of(settings: Settings) -> ChosenModels:
    models = settings.models
    roster = models.roster
    endpoints = {
        name: ChosenEndpoint(
            base_url=_public(_route_now(settings, name).url), key_variable=models.option(name).key_variable
        )
        for name in roster.names
    }
    return ChosenModels(
        strong=_absolute(models.strong),
        fast=_absolute(models.fast),
        fallback=models.fallback,
        steps=dict(roster.steps),
        escalate=models.escalate,
        endpoints={name: endpoint for name, endpoint in endpoints.items() if name and endpoint != ChosenEndpoint()},
    )


def _roster(chosen: ChosenModels) -> list[str]:
    return list(dict.fromkeys([chosen.strong, chosen.fast, *chosen.steps.values(), *chosen.fallback]))


def _route_now(settings: Settings, name: str) -> Route:
    """Find where the settings and the SDK's variable route this model; empty for its provider's own address."""
    try:
        route = model_route(settings, name, os.environ) if has_endpoint(name) else None
    except ConfigError:  # an unknown provider: the first call reports it
        route = None
    return route if route is not None and route.origin else Route("", "")


def _own_url(name: str) -> str:
    """Return the provider's own address if a variable set since the run started would replace it; else empty."""
    endpoint = ENDPOINTS.get(name.partition(":")[0])
    return endpoint.url if endpoint is not None and os.environ.get(endpoint.url_variable) else ""


def _absolute(name: str) -> str:
    """Return a model name that stays valid if the run is resumed from another folder."""
    kind, _, path = name.partition(":")
    return f"{kind}:{Path(path).resolve()}" if kind in _WITH_PATH and path else name


def _public(address: str) -> str:
    """Return the address without credentials, query and fragment."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _in_words(chosen: ChosenModels) -> str:
    """Name the strong model, and its address if it is not its provider's own."""
    endpoint = chosen.endpoints.get(chosen.strong, ChosenEndpoint())
    return f"{chosen.strong} at {endpoint.base_url}" if endpoint.base_url else chosen.strong
