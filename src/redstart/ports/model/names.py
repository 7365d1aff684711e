"""How a model is named, and what is meant by a name that is not one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from redstart.core.errors import ConfigError

PLUGIN = "plugin"
"""`plugin:NAME` is what another package brings: its own word, so that it never takes the place of what is built in."""
WITHOUT_ENDPOINT = ("manual", "command", "replay", PLUGIN, "python")
"""Names (`manual`, `command:…`, `plugin:…` and so on) for which redstart itself sends nothing over a network."""

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
    """Raises `ConfigError` for a name that is not `provider:name` with one of these providers, with what was meant."""
    provider, _, model = name.partition(":")
    if provider in providers and model:
        return
    forms = (
        f"write it as provider:name (providers: {', '.join(providers)}), "
        "or as manual (you answer), command:PROGRAM, replay:FILE or plugin:NAME:MODEL"
    )
    suggestion = _suggested(name, providers)
    raise ConfigError(f"unknown model {name!r}", remedy=f"did you mean {suggestion}?\n{forms}" if suggestion else forms)


def _suggested(name: str, providers: Sequence[str]) -> str:
    provider, colon, model = name.partition(":")
    known = [*providers, *WITHOUT_ENDPOINT]
    near = difflib.get_close_matches(provider.lower(), known, n=1, cutoff=0.75)
    if near and (model or near[0] == "manual"):
        return f"{near[0]}:{model}" if model else near[0]
    if colon and not model:
        return ""
    return next((f"{owner}:{name}" for pattern, owner in _FAMILIES if pattern.match(name.lower())), "")
