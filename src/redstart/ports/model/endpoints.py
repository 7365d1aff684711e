"""Addresses and names of models. No environment variables are read here: callers pass them."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from redstart.core.errors import ConfigError

PLUGIN = "plugin"
"""The prefix of a model from another package. A separate word, so that a plug-in never replaces a built-in provider."""
PREFIXES_WITHOUT_ENDPOINT = ("manual", "command", "replay", PLUGIN, "python")
"""Prefixes (`manual`, `command:…`, `plugin:…` and so on) of models for which Redstart itself uses no network."""

_FAMILIES = (
    (re.compile(r"gpt-oss"), "ollama"),
    (re.compile(r"(?:gpt|chatgpt|o[1-9]|codex|davinci)(?:[-.\d]|$)"), "openai"),
    (re.compile(r"claude|sonnet|opus|haiku"), "anthropic"),
    (
        re.compile(r"(?:code)?llama|qwen|mi[sx]tral|codestral|devstral|gemma|deepseek|phi\d?|starcoder|granite|smollm"),
        "ollama",
    ),
)


def refuse_unknown_form(name: str, providers: Sequence[str]) -> None:
    """Raise `ConfigError`, with a suggestion, for a name that is not `provider:name` with one of these providers."""
    provider, _, model = name.partition(":")
    if provider in providers and model:
        return
    forms = (
        f"write it as provider:name (providers: {', '.join(providers)}), "
        "or as manual (you answer), command:PROGRAM, replay:FILE or plugin:NAME:MODEL"
    )
    suggestion = _suggest_name(name, providers)
    raise ConfigError(f"unknown model {name!r}", remedy=f"did you mean {suggestion}?\n{forms}" if suggestion else forms)


def _suggest_name(name: str, providers: Sequence[str]) -> str:
    provider, colon, model = name.partition(":")
    prefixes = [*providers, *PREFIXES_WITHOUT_ENDPOINT]
    matches = difflib.get_close_matches(provider.lower(), prefixes, n=1, cutoff=0.75)
    if matches and (model or matches[0] == "manual"):
        return f"{matches[0]}:{model}" if model else matches[0]
    if colon and not model:
        return ""
    return next((f"{owner}:{name}" for pattern, owner in _FAMILIES if pattern.match(name.lower())), "")


OLLAMA_PORT = "11434"


class ProviderEndpoint(NamedTuple):
    url: str
    """Empty if the user has to set it."""
    variable: str
    """The usual environment variable for its key; empty if it needs none."""
    url_variable: str = ""
    """The environment variable with which the provider's own SDK changes its address."""
    url_suffix: str = ""
    """The path that the SDK appends to that address before our own paths."""


ENDPOINTS: Mapping[str, ProviderEndpoint] = {
    "openai": ProviderEndpoint("https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": ProviderEndpoint("https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "openrouter": ProviderEndpoint("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": ProviderEndpoint("https://api.groq.com/openai/v1", "GROQ_API_KEY", "GROQ_BASE_URL", "/openai/v1"),
    "google": ProviderEndpoint("https://generativelanguage.googleapis.com/v1beta/openai", "GOOGLE_API_KEY"),
    "azure": ProviderEndpoint("", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "/openai/v1"),
    "ollama": ProviderEndpoint(f"http://localhost:{OLLAMA_PORT}/v1", "", "OLLAMA_HOST", "/v1"),
}
"""All except Anthropic use the chat completions API; another address does not change the API. Azure has an address
for each customer, and no common one."""


class Route(NamedTuple):
    """The address of an endpoint, and the place where it was set."""

    url: str
    origin: str
    """A setting or an environment variable; empty for the provider's own address."""


class ModelAddress(NamedTuple):
    """A model and everything needed to call it."""

    provider: str
    model: str
    url: str
    key: str
    """Empty if none is needed: then no key is sent."""
    variable: str
    """The environment variable that the key came from, for messages."""
    is_official: bool
    """Whether it is the provider's own endpoint, not another one with the same API."""

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def host(self) -> str:
        return get_host(self.url)


def resolve_route(provider: str, settings_url: str | None, environ: Mapping[str, str], origin: str = "") -> Route:
    """Resolve where calls to this provider go: to the address of the settings, the SDK's variable or the provider.

    `origin` names the setting that `settings_url` comes from. Raises `ConfigError` if the variable contains no usable
    address.
    """
    if settings_url is not None:
        return Route(settings_url, origin)
    endpoint = ENDPOINTS[provider]
    # Quotes may come from an env file whose values were not parsed; Ollama drops them too.
    value = environ.get(endpoint.url_variable, "").strip().strip("\"'").strip() if endpoint.url_variable else ""
    if not value:
        return Route(endpoint.url, "")
    url = _parse_ollama_url(value) if provider == "ollama" else value
    _refuse_unusable(url, endpoint.url_variable)
    return Route(url.rstrip("/") + endpoint.url_suffix if endpoint.url_suffix else url, endpoint.url_variable)


def resolve_address(
    name: str, *, base_url: str | None, api_key: str | None, variable: str = "", origin: str = "the base URL"
) -> ModelAddress:
    """Resolve the address of the model named `provider:model`.

    `base_url` replaces the provider's own address; the provider's usual key is then optional. `variable` is the
    environment variable that the user chose for the key; it must be set. `origin` is where `base_url` was set. Raises
    `ConfigError` for an unknown provider, a missing key or an unusable address.
    """
    refuse_unknown_form(name, tuple(ENDPOINTS))
    provider, _, model = name.partition(":")
    endpoint = ENDPOINTS[provider]
    key = (api_key or "").strip()
    if variable and not key:
        raise ConfigError(f"{name} takes its key from {variable}, which is not set", remedy=f"export {variable}=…")
    variable = variable or endpoint.variable
    if not key and endpoint.variable and base_url is None:
        raise ConfigError(f"{name} needs a key", remedy=f"set {variable}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the key for {name} contains invalid characters", remedy=f"set {variable}")
    if base_url is not None:
        _refuse_unusable(base_url, origin)
    url = base_url or endpoint.url
    if not url:
        remedy = f"set {endpoint.url_variable}, or models.options.{name}.base_url"
        raise ConfigError(f"{name} needs the address of your own endpoint", remedy=remedy)
    return ModelAddress(provider, model, url, key, variable, url.rstrip("/") == endpoint.url)


def get_host(url: str) -> str:
    """Return host and port for display, without credentials."""
    return urlsplit(url).netloc.rpartition("@")[2]


def without_credentials(url: str) -> str:
    """Return the address for display, without credentials and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "…" if parts.query else "", ""))


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_unusable(url: str, origin: str) -> None:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable or not url.isprintable() or " " in url:
        raise ConfigError(
            f"{origin} is not an http address: {_redact_url(url)}",
            remedy="write it as https://host/path or http://host:port",
        )


def _redact_url(url: str) -> str:
    """Format an invalid address for display, without credentials and query."""
    return ascii(re.sub(r"\?.*", "?…", re.sub(r"//.*@", "//", url), flags=re.DOTALL))


def _parse_ollama_url(value: str) -> str:
    """Convert `OLLAMA_HOST` as Ollama does: host, host:port or :port, each with or without scheme and path.

    A listening address (0.0.0.0, ::) becomes this machine's loopback address.
    """
    scheme, separator, rest = value.partition("://")
    scheme, rest = (scheme.lower(), rest) if separator else ("http", value)
    place, _, path = rest.partition("/")
    user, at_sign, place = place.rpartition("@")
    default = {"http": "80", "https": "443"}.get(scheme, OLLAMA_PORT) if separator else OLLAMA_PORT
    if place == "ollama.com" and not separator:
        scheme, default = "https", "443"
    host, port = _split_host_and_port(place)
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  (never listened on)
    port = port if port.isascii() and port.isdigit() and 0 < int(port) < 65536 else default
    formatted_host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{user}{at_sign}{formatted_host}:{port}" + (f"/{path}" if path else "")


def _split_host_and_port(place: str) -> tuple[str, str]:
    if match := re.fullmatch(r"\[([^\]]*)\](?::(.*))?", place):
        return match[1], match[2] or ""
    if place.count(":") > 1:  # an IPv6 address without brackets
        return place, ""
    host, _, port = place.partition(":")
    return host, port
