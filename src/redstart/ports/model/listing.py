"""List the models that an endpoint offers."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import cast

from redstart.core.errors import ModelError, ModelGarbled, ModelRefused, ModelTimeout, ModelUnreachable
from redstart.ports.model import endpoint_errors
from redstart.ports.model.endpoints import ModelAddress
from redstart.ports.model.http import AnswerTooLong, BrokenConnection, create_client, get

LONGEST_ANSWER = 16 << 20
MOST_MODELS = 5_000
ANTHROPIC_VERSION = "2023-06-01"


async def list_models(model_address: ModelAddress, ssl_context: ssl.SSLContext, seconds: float) -> list[str]:
    """List the names of the models at this endpoint, without the `provider:` prefix. `where.model` is ignored.

    Raises `ModelError`, with the host and without the key, if the endpoint returns no list.
    """
    urls = [_make_listing_url(model_address)]
    if model_address.provider == "ollama":
        # Ollama's own list first; another server in its place may only have OpenAI's.
        urls.insert(0, f"{model_address.url.rstrip('/').removesuffix('/v1')}/api/tags")
    failure: ModelError | None = None
    for url in urls:
        try:
            return await _fetch_names(model_address, url, ssl_context, seconds)
        except ModelRefused as error:
            failure = failure or error
    raise cast("ModelError", failure)


async def _fetch_names(model_address: ModelAddress, url: str, ssl_context: ssl.SSLContext, seconds: float) -> list[str]:
    try:
        async with asyncio.timeout(seconds), create_client(ssl_context, seconds) as http:
            response = await get(http, url, headers=_make_headers(model_address), longest=LONGEST_ANSWER)
    except TimeoutError:
        raise ModelTimeout(f"{model_address.host} did not answer within {seconds:g} s") from None
    except BrokenConnection as broken:
        raise ModelUnreachable(f"{model_address.host} cannot be reached ({broken})") from None
    except AnswerTooLong:
        raise ModelGarbled(f"{model_address.host} sent too long a list of models") from None
    except Exception as error:  # the client's error for an invalid answer; it contains the key
        raise ModelGarbled(f"{model_address.host} sent an invalid response ({type(error).__name__})") from None
    if response.status != 200:
        remedy = endpoint_errors.suggest_remedy(response.status, model_address.variable)
        raise ModelRefused(
            f"{model_address.host} refused to list its models with status {response.status}", remedy=remedy
        )
    return _parse_names(model_address, response.body)


def _make_listing_url(model_address: ModelAddress) -> str:
    path = "/v1/models?limit=1000" if model_address.provider == "anthropic" else "/models"
    return f"{model_address.url.rstrip('/')}{path}"


def _make_headers(model_address: ModelAddress) -> dict[str, str]:
    if model_address.provider != "anthropic":
        return {"Authorization": f"Bearer {model_address.key}"} if model_address.key else {}
    key = {"X-Api-Key": model_address.key} if model_address.key else {}
    return {"Anthropic-Version": ANTHROPIC_VERSION, **key}


def _parse_names(model_address: ModelAddress, body: bytes) -> list[str]:
    """Extract the names from `{"data": [{"id": …}]}` or from Ollama's `{"models": [{"name": …}]}`."""
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    table = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    rows = table.get("data", table.get("models"))
    if not isinstance(rows, list):
        raise ModelGarbled(f"{model_address.host} sent something that is not a list of models")
    names: list[str] = []
    for row in cast("list[object]", rows)[:MOST_MODELS]:
        fields = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        name = fields.get("id", fields.get("name"))
        if isinstance(name, str) and name and name.isprintable():
            # Ollama's default tag and Google's directory are not part of the name that a question uses.
            short_names = {"ollama": name.removesuffix(":latest"), "google": name.removeprefix("models/")}
            names.append(short_names.get(model_address.provider, name))
    return sorted(dict.fromkeys(names))
