"""Checks of the models: which keys are set, which host serves each model and, on request, whether it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping

from redstart.app.doctor.results import DoctorCheck, Health
from redstart.app.model_routes import find_model_host, find_model_route, has_endpoint
from redstart.app.plugins import MODELS, find_package, list_plugin_names
from redstart.app.settings import Settings, list_public_values, require_model
from redstart.app.settings.models import StepModels
from redstart.app.wire import connect, create_embedder, find_embedding_address
from redstart.core.chat import Ask, Message, Role, Tier
from redstart.core.errors import ConfigError, ModelError
from redstart.ports.model.endpoints import ENDPOINTS, PLUGIN

PING_SECONDS = 20.0
PING_TOKENS = 16


def _check(name: str, health: Health, detail: str, remedy: str = "") -> DoctorCheck:
    return DoctorCheck(group="models", name=name, health=health, detail=detail, remedy=remedy)


def check_models(settings: Settings, environ: Mapping[str, str], *, online: bool) -> Iterator[DoctorCheck]:
    """Check keys, plug-ins and models. With `online`, ask each model one small question, which may cost a little."""
    keys = [endpoint.variable for endpoint in ENDPOINTS.values() if environ.get(endpoint.variable)]
    yield _check("keys", Health.ok if keys else Health.absent, ", ".join(keys) if keys else "no API key is set")
    yield from _check_plugins()
    try:
        require_model(settings)
    except ConfigError as error:
        detail = str(error) if settings.models.strong else "not configured; `redstart demo` works without one"
        yield _check("model", Health.fail, detail, error.remedy)
        return
    for label, name in _list_labeled_models(settings):
        yield (
            _ping_model(settings, label, name, environ)
            if online
            else _check_configuration(settings, label, name, environ)
        )
    if settings.memory.embedder:
        yield _check_embedder(settings, environ, online=online)


def _check_plugins() -> Iterator[DoctorCheck]:
    for name in list_plugin_names(MODELS):
        try:
            yield _check(f"{PLUGIN}:{name}", Health.ok, f"of {find_package(MODELS, name)}")
        except ConfigError as error:
            yield _check(f"{PLUGIN}:{name}", Health.warn, str(error), error.remedy)


def _list_labeled_models(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield every model that a run may ask once, with its label."""
    models = settings.models
    yield Tier.strong.value, models.strong
    for name in models.roster.names:
        if name and name != models.strong:
            yield (Tier.fast.value if name == models.fast else "also"), name


def _check_embedder(settings: Settings, environ: Mapping[str, str], *, online: bool) -> DoctorCheck:
    name = settings.memory.embedder
    try:
        find_embedding_address(settings)
        if not online:
            return _check("embedder", Health.ok, _describe_location(settings, name, environ))
        embedder = create_embedder(settings)
        asyncio.run(embedder.embed(["KeyError: 'price'"]))
    except (ConfigError, ModelError) as error:
        # A run continues without the embedder and searches memory by failure names only.
        return _check("embedder", Health.warn, _mask_base_url(str(error), settings), error.remedy)
    return _check("embedder", Health.ok, f"{name} answered with {embedder.dimension} numbers per embedding")


def _describe_location(settings: Settings, name: str, environ: Mapping[str, str]) -> str:
    if not has_endpoint(name):
        return name
    origin = find_model_route(settings, name, environ).origin
    origin_note = f" (set by {origin})" if origin else ""
    return f"{name} at {find_model_host(settings, name, environ)}{origin_note}; not asked, --online asks it"


def _restrict_to_model(settings: Settings, name: str) -> Settings:
    """Return settings that name only this model, so that an error is reported for the right model."""
    single_model: dict[str, object] = {"strong": name, "fast": name, "fallback": (), "steps": StepModels()}
    single_try: dict[str, object] = {"tries": 1, "deadline": PING_SECONDS, "patience": PING_SECONDS * 2}
    models = settings.models.model_copy(update={**single_model, **single_try})
    return settings.model_copy(update={"models": models})


def _check_configuration(settings: Settings, label: str, name: str, environ: Mapping[str, str]) -> DoctorCheck:
    try:
        connect(_restrict_to_model(settings, name))
    except ConfigError as error:
        return _check(label, Health.fail, _mask_base_url(str(error), settings), error.remedy)
    return _check(label, Health.ok, _describe_location(settings, name, environ))


def _ping_model(settings: Settings, label: str, name: str, environ: Mapping[str, str]) -> DoctorCheck:
    messages = (Message(role=Role.user, text="Reply with the word ok."),)
    ask = Ask(question="doctor", tier=Tier.strong, messages=messages, max_tokens=PING_TOKENS)
    began = time.monotonic()
    try:
        asyncio.run(connect(_restrict_to_model(settings, name)).ask(ask))
    except (ConfigError, ModelError) as error:
        remedy = error.remedy or "check the model's name, its key and the network"
        return _check(label, Health.fail, _mask_base_url(str(error), settings), remedy)
    host = find_model_host(settings, name, environ)
    place = f"{name} at {host}" if host else name
    return _check(label, Health.ok, f"{place} answered in {time.monotonic() - began:.1f} s")


def _mask_base_url(message: str, settings: Settings) -> str:
    """Mask the base URL, because an address may hold a password. Keys are removed where the model is asked."""
    url = settings.models.base_url
    return message.replace(url, str(list_public_values(settings)["models.base_url"])) if url else message
