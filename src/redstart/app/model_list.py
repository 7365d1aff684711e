"""List the models that each endpoint offers, with their prices and context windows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from redstart.app.model_routes import find_model_host, has_endpoint
from redstart.app.plugins import MODELS, list_plugin_names
from redstart.app.settings import NO_MODEL, Models, Settings, find_api_key
from redstart.core.errors import ConfigError, ModelError
from redstart.core.frozen import FrozenValue
from redstart.ports.model.endpoints import (
    ENDPOINTS,
    PLUGIN,
    ModelAddress,
    get_host,
    is_loopback,
    resolve_address,
    resolve_route,
)
from redstart.ports.model.http import create_ssl_context
from redstart.ports.model.listing import list_models
from redstart.ports.model.prices import price
from redstart.ports.model.tiers import get_profile

VERSION = 1
SECONDS = 5.0
"""The timeout for one endpoint. An endpoint on this machine gets a third of it."""
_NOT_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcribe|sora|babbage|davinci|rerank", re.IGNORECASE
)
"""Models that do not answer in text."""
_SAMPLE = 1_000
"""The number of tokens to price: small enough to avoid surcharges for long prompts."""


class OfferedModel(FrozenValue):
    name: str
    input_usd: float | None = None
    """Dollars per million tokens; None if the price is unknown."""
    output_usd: float | None = None
    window: int
    """The maximum number of tokens of prompt and answer together."""
    window_known: bool
    """False if the window is only assumed."""
    listed: bool = True
    """False for a configured model that its endpoint does not list."""
    used: str = ""
    """The role that it would have in a run now: `strong`, `fast`, `fallback`, `step`; empty for none."""


class ListedEndpoint(FrozenValue):
    provider: str
    host: str
    origin: str = ""
    """The setting or variable that names the host; empty for the provider's own."""
    key_variable: str = ""
    """The variable that holds its key; empty if no key is sent."""
    problem: str = ""
    """Why it returned no list; empty if it did."""
    remedy: str = ""
    models: tuple[OfferedModel, ...] = ()


class ModelList(FrozenValue):
    """`v` changes when a field is removed or changes its meaning."""

    v: int = VERSION
    uses: str
    """The model that would write the patches of a run started now; empty for none."""
    host: str = ""
    endpoints: tuple[ListedEndpoint, ...]
    plugins: tuple[str, ...] = ()
    """Models from other packages, as `plugin:NAME`; they are neither asked nor loaded."""
    missing: tuple[str, ...] = ()
    """The key variables of the providers that were not asked."""
    remedy: str = ""
    """What to set if no model is configured."""


class _Place(NamedTuple):
    address: ModelAddress
    origin: str
    configured_models: tuple[str, ...] = ()
    """The configured models at this endpoint."""


def list_offered_models(settings: Settings, environ: Mapping[str, str], seconds: float = SECONDS) -> ModelList:
    """Ask every endpoint that has a key or a configured address for its models, all at once.

    No model is asked a question. Ollama is also asked if it runs on this machine. The result contains no key.
    """
    places = list(_list_endpoints(settings, environ))
    endpoints = asyncio.run(_ask_all(settings, places, seconds))
    providers = {place.address.provider for place in places}
    strong = settings.models.strong
    return ModelList(
        uses=strong,
        host=find_model_host(settings, strong, environ) if strong else "",
        # Do not mention an Ollama that nobody set up.
        endpoints=tuple(endpoint for endpoint in endpoints if not (endpoint.problem and _is_guess(endpoint))),
        plugins=tuple(f"{PLUGIN}:{name}" for name in list_plugin_names(MODELS)),
        missing=tuple(
            endpoint.variable for name, endpoint in ENDPOINTS.items() if endpoint.variable and name not in providers
        ),
        remedy="" if strong else NO_MODEL,
    )


def _is_guess(endpoint: ListedEndpoint) -> bool:
    return endpoint.provider == "ollama" and not endpoint.origin and not endpoint.models


def _list_endpoints(settings: Settings, environ: Mapping[str, str]) -> Iterator[_Place]:
    """Yield each endpoint to ask once, with its configured models."""
    models = settings.models
    configured_names = [name for name in (*models.roster.names, *models.options) if name and has_endpoint(name)]
    places: dict[tuple[str, str, str], _Place] = {}
    default_names = [f"{provider}:*" for provider in ENDPOINTS if _is_usable(provider, models, environ)]
    for name in dict.fromkeys([*configured_names, *default_names]):
        provider = name.partition(":")[0]
        if provider not in ENDPOINTS:
            continue
        model_options = models.get_model_options(name)
        setting = f"models.options.{name}.base_url" if model_options.base_url else "models.base_url"
        try:
            route = resolve_route(provider, model_options.base_url or models.base_url, environ, setting)
            key = find_api_key(name, environ, model_options.key_variable)
            base_url = route.url if route.origin else None
            endpoint_address = resolve_address(
                name, base_url=base_url, api_key=key, variable=model_options.key_variable, origin=route.origin
            )
        except ConfigError:
            continue
        place = places.setdefault(
            (provider, endpoint_address.url, endpoint_address.key), _Place(endpoint_address, route.origin)
        )
        if not name.endswith(":*"):
            places[provider, endpoint_address.url, endpoint_address.key] = place._replace(
                configured_models=(*place.configured_models, name)
            )
    yield from places.values()


def _is_usable(provider: str, models: Models, environ: Mapping[str, str]) -> bool:
    endpoint = ENDPOINTS[provider]
    if environ.get(endpoint.variable) or environ.get(endpoint.url_variable):
        return True
    return provider == "ollama" if models.base_url is None else provider == "openai"


async def _ask_all(settings: Settings, places: list[_Place], seconds: float) -> list[ListedEndpoint]:
    context = await asyncio.to_thread(create_ssl_context)

    async def ask(place: _Place) -> ListedEndpoint:
        endpoint_address = place.address
        endpoint = ListedEndpoint(
            provider=endpoint_address.provider,
            host=get_host(endpoint_address.url),
            origin=place.origin,
            key_variable=endpoint_address.variable if endpoint_address.key else "",
        )
        try:
            names = await list_models(
                endpoint_address, context, seconds / 3 if is_loopback(endpoint_address.url) else seconds
            )
        except ModelError as error:
            models = tuple(_describe_model(settings, name) for name in place.configured_models)
            return endpoint.model_copy(update={"problem": str(error), "remedy": error.remedy, "models": models})
        listed_names = [f"{endpoint_address.provider}:{name}" for name in names]
        all_names = dict.fromkeys(
            (*place.configured_models, *(name for name in listed_names if not _NOT_CHAT.search(name)))
        )
        models = tuple(_describe_model(settings, name, is_listed=name in listed_names) for name in all_names)
        return endpoint.model_copy(update={"models": models})

    return list(await asyncio.gather(*map(ask, places)))


def _describe_model(settings: Settings, name: str, *, is_listed: bool = True) -> OfferedModel:
    profile = get_profile(name, settings.models.profiles)
    input_price, output_price = (price(name, *tokens, rates=profile.rates) for tokens in ((_SAMPLE, 0), (0, _SAMPLE)))
    scale = 1_000_000 / _SAMPLE
    return OfferedModel(
        name=name,
        input_usd=None if input_price is None else input_price * scale,
        output_usd=None if output_price is None else output_price * scale,
        window=profile.context,
        window_known="context" in profile.model_fields_set,
        listed=is_listed,
        used=_find_use(settings.models, name),
    )


def _find_use(models: Models, name: str) -> str:
    uses = {"strong": models.strong == name, "fast": models.fast == name, "fallback": name in models.fallback}
    return next((use for use, applies in uses.items() if applies), "step" if name in models.roster.names else "")
