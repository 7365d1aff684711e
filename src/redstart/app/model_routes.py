"""Find where the models of the settings are reached: the host that gets a question, and the key."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.app.settings import Settings, find_api_key
from redstart.core.errors import ConfigError
from redstart.core.frozen import clip
from redstart.ports.model.endpoints import (
    ENDPOINTS,
    PREFIXES_WITHOUT_ENDPOINT,
    ModelAddress,
    Route,
    get_host,
    refuse_unknown_form,
    resolve_address,
    resolve_route,
)

NO_MODEL = "no model"
LONGEST_NAME = 50
"""The maximum length of a command's name in the header of a run."""


def has_endpoint(name: str) -> bool:
    """Whether a question to this model is sent over a network; false for `manual`, `command:` and `replay:`."""
    return name.partition(":")[0] not in PREFIXES_WITHOUT_ENDPOINT


def find_model_route(settings: Settings, name: str, environ: Mapping[str, str]) -> Route:
    """Find where questions to this model go, whether or not it has a key.

    `models.options.<name>.base_url` outranks `models.base_url`, which outranks the variable of the provider's SDK.
    Raises `ConfigError` for an unknown provider or an unusable variable.
    """
    refuse_unknown_form(name, tuple(ENDPOINTS))
    models, model_options = settings.models, settings.models.get_model_options(name)
    setting = f"models.options.{name}.base_url" if model_options.base_url else "models.base_url"
    return resolve_route(name.partition(":")[0], model_options.base_url or models.base_url, environ, setting)


def find_model_address(settings: Settings, name: str, environ: Mapping[str, str]) -> ModelAddress:
    """Find the route of this model and its key. Raises `ConfigError` also if the key is missing."""
    route, variable = find_model_route(settings, name, environ), settings.models.get_model_options(name).key_variable
    key = find_api_key(name, environ, variable)
    return resolve_address(
        name, base_url=route.url if route.origin else None, api_key=key, variable=variable, origin=route.origin
    )


def find_model_host(settings: Settings, name: str, environ: Mapping[str, str]) -> str:
    """Return the model's host with its port and without credentials; empty if it is not reached over a network."""
    if not has_endpoint(name):
        return ""
    try:
        return get_host(find_model_route(settings, name, environ).url)
    except (ConfigError, ValueError):
        return ""


def describe_models(settings: Settings, environ: Mapping[str, str]) -> str:
    """Name the model that writes the patches and its host, then every other host that may get a question."""
    strong = settings.models.strong
    if not strong:
        return NO_MODEL
    host = find_model_host(settings, strong, environ)
    hosts = (find_model_host(settings, name, environ) for name in settings.models.roster.names if name)
    other_hosts = [other_host for other_host in dict.fromkeys(hosts) if other_host not in ("", host)]
    suffix = f" (also asks {', '.join(other_hosts)})" if other_hosts else ""
    return f"model {shorten_model_name(strong)}" + (f" at {host}" if host else "") + suffix


def shorten_model_name(model: str) -> str:
    """Return the model's name; for a command, the program and its arguments without their directories."""
    kind, _, command = model.partition(":")
    if kind != "command":
        return model
    return clip(f"command:{' '.join(word.rstrip('/').rpartition('/')[2] for word in command.split())}", LONGEST_NAME)
