"""Where models are reached, and what is needed to reach one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from redstart.core.errors import ConfigError


class Endpoint(NamedTuple):
    url: str
    variable: str
    """The environment variable that people keep its key in; empty where it needs none."""


ENDPOINTS: Mapping[str, Endpoint] = {
    "openai": Endpoint("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Endpoint("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "openrouter": Endpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": Endpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "ollama": Endpoint("http://localhost:11434/v1", ""),
}
"""All speak the wire of chat completions but Anthropic's; `base_url` changes the address, not the wire."""


class Address(NamedTuple):
    """A model and everything that a call to it needs."""

    provider: str
    model: str
    url: str
    key: str
    """Empty where none is needed."""
    variable: str
    """Where the key came from, for what is said to a person."""
    own: bool
    """Whether it is the provider's own endpoint, not another that speaks its wire."""

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"


def address(name: str, *, base_url: str | None, api_key: str | None, variable: str = "") -> Address:
    """The address of the model called `name`, which is `provider:model`.

    `base_url` takes the place of the provider's own address; a key is then optional. `variable` is where the key was
    looked for, if not where people keep it. Raises `ConfigError` for an unknown provider, a missing key or an unusable
    address.
    """
    provider, _, model = name.partition(":")
    endpoint = ENDPOINTS.get(provider)
    if endpoint is None or not model:
        raise ConfigError(
            f"{name!r} names no model that can be reached",
            remedy=f"write it as provider:model, where the provider is one of {', '.join(ENDPOINTS)}",
        )
    variable = variable or endpoint.variable
    key = (api_key or "").strip()
    if not key and endpoint.variable and base_url is None:
        raise ConfigError(f"{name} needs a key", remedy=f"set {variable}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the key for {name} holds characters that no key has", remedy=f"set {variable}")
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise ConfigError(f"{base_url!r} is no address of a model", remedy="it begins with http:// or https://")
    return Address(provider, model, base_url or endpoint.url, key, variable, base_url is None)
