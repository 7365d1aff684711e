"""List the models that an endpoint offers."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import cast

from redstart.core.errors import ModelError, ModelGarbled, ModelRefused, ModelTimeout, ModelUnreachable
from redstart.ports.model import refusals
from redstart.ports.model.endpoints import ModelAddress
from redstart.ports.model.http import AnswerTooLong, BrokenConnection, client, get

LONGEST_ANSWER = 16 << 20
MOST_MODELS = 5_000
ANTHROPIC_VERSION = "2023-06-01"


async def list_models(where: ModelAddress, trusted: ssl.SSLContext, seconds: float) -> list[str]:
    """List the names of the models at this endpoint, without the `provider:` prefix. `where.model` is ignored.

    Raises `ModelError`, with the host and without the key, if the endpoint returns no list.
    """
    urls = [_listing_url(where)]
    if where.provider == "ollama":
        # Ollama's own list first; another server in its place may only have OpenAI's.
        urls.insert(0, f"{where.url.rstrip('/').removesuffix('/v1')}/api/tags")
    failure: ModelError | None = None
    for url in urls:
        try:
            return await _names(where, url, trusted, seconds)
        except ModelRefused as error:
            failure = failure or error
    raise cast("ModelError", failure)


async def _names(where: ModelAddress, url: str, trusted: ssl.SSLContext, seconds: float) -> list[str]:
    try:
        async with asyncio.timeout(seconds), client(trusted, seconds) as http:
            got = await get(http, url, headers=_headers(where), longest=LONGEST_ANSWER)
    except TimeoutError:
        raise ModelTimeout(f"{where.host} did not answer within {seconds:g} s") from None
    except BrokenConnection as broken:
        raise ModelUnreachable(f"{where.host} cannot be reached ({broken})") from None
    except AnswerTooLong:
        raise ModelGarbled(f"{where.host} sent too long a list of models") from None
    except Exception as error:  # the client's error for an invalid answer; it contains the key
        raise ModelGarbled(f"{where.host} sent something that is not an answer ({type(error).__name__})") from None
    if got.status != 200:
        remedy = refusals.remedy(got.status, where.variable)
        raise ModelRefused(f"{where.host} refused to list its models with status {got.status}", remedy=remedy)
    return _parsed(where, got.body)


def _listing_url(where: ModelAddress) -> str:
    path = "/v1/models?limit=1000" if where.provider == "anthropic" else "/models"
    return f"{where.url.rstrip('/')}{path}"


def _headers(where: ModelAddress) -> dict[str, str]:
    if where.provider != "anthropic":
        return {"Authorization": f"Bearer {where.key}"} if where.key else {}
    key = {"X-Api-Key": where.key} if where.key else {}
    return {"Anthropic-Version": ANTHROPIC_VERSION, **key}


def _parsed(where: ModelAddress, body: bytes) -> list[str]:
    """Extract the names from `{"data": [{"id": …}]}` or from Ollama's `{"models": [{"name": …}]}`."""
    try:
        document: object = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    table = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    rows = table.get("data", table.get("models"))
    if not isinstance(rows, list):
        raise ModelGarbled(f"{where.host} sent something that is not a list of models")
    names: list[str] = []
    for row in cast("list[object]", rows)[:MOST_MODELS]:
        fields = cast("dict[str, object]", row) if isinstance(row, dict) else {}
        name = fields.get("id", fields.get("name"))
        if isinstance(name, str) and name and name.isprintable():
            # Ollama's default tag and Google's directory are not part of the name that a question uses.
            shown = {"ollama": name.removesuffix(":latest"), "google": name.removeprefix("models/")}
            names.append(shown.get(where.provider, name))
    return sorted(dict.fromkeys(names))
