"""The only configuration. A flag outranks the environment (`REDSTART_*`), which outranks the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from redstart.core.errors import ConfigError
from redstart.core.run import Limits

_DEFAULT_MODELS = {"ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5", "OPENAI_API_KEY": "openai:gpt-6.1-sol"}
"""What is used where a key is there and no model is named."""

_NO_MODEL = """set a key and, if you like, a model; one of these three lines is enough:
  export ANTHROPIC_API_KEY=…       # then: redstart fix
  export OPENAI_API_KEY=…          # then: redstart fix
  redstart fix -m ollama:qwen2.5-coder     # a model on this machine, no key"""


class Models(BaseModel):
    """Which models are asked. `fast` defaults to `strong`."""

    model_config = ConfigDict(extra="forbid")

    strong: str = ""
    """`provider:name`; writes the patches."""
    fast: str = ""
    """`provider:name`; plans and sums up."""
    base_url: str | None = None
    """Address of an OpenAI- or Anthropic-compatible endpoint, instead of the provider's own."""
    deadline: float = Field(default=300.0, gt=0)
    """Seconds that one call may take."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="REDSTART_", env_nested_delimiter="__", extra="forbid")

    home: Path = Field(default_factory=lambda: _data_home(os.environ))
    """Where runs, blobs, snapshots and patches lie."""
    models: Models = Models()
    limits: Limits = Limits()


def load(model: str | None = None) -> Settings:
    """The settings in force; `model` (a flag) stands for both tiers. Raises `ConfigError` for an unusable value."""
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = "__".join(str(part) for part in first["loc"]).upper()
        raise ConfigError(f"REDSTART_{name}: {first['msg']}") from error
    chosen = model or settings.models.strong or _model_of_key(os.environ)
    models = settings.models.model_copy(
        update={"strong": chosen, "fast": chosen if model else settings.models.fast or chosen}
    )
    return settings.model_copy(update={"models": models})


def require_model(settings: Settings) -> None:
    """Raises `ConfigError` with what to type where no model can be had."""
    if not settings.models.strong:
        raise ConfigError("no model is configured", remedy=_NO_MODEL)


def api_key(model: str, environ: Mapping[str, str]) -> str | None:
    """The key of the model's provider, from the variable that people keep it in."""
    return environ.get(f"{model.partition(':')[0].upper()}_API_KEY")


def _model_of_key(environ: Mapping[str, str]) -> str:
    return next((model for variable, model in _DEFAULT_MODELS.items() if environ.get(variable)), "")


def _data_home(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "redstart"
