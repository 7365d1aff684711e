"""The only configuration: flag, then `REDSTART_*`, then the project's file, then the user's file, then the default."""

from __future__ import annotations

import ipaddress
import math
import os
import re
import shlex
from collections.abc import Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError
from pydantic_settings import PydanticBaseSettingsSource as Source

from redstart.app.objects import refuse_object_name
from redstart.app.settings import layers
from redstart.app.settings.layers import Layer, LayerValue, SettingNames
from redstart.app.settings.models import Models
from redstart.app.settings.store import DEFAULT_TENANT, MemorySettings, StoreSettings, Tenant
from redstart.core.errors import ConfigError
from redstart.core.finding import Checks
from redstart.core.frozen import rephrase_validation_message
from redstart.core.learning import ReflectionPolicy
from redstart.core.run import Level, Limits
from redstart.core.shell import SandboxLimits
from redstart.ports.model.endpoints import (
    ENDPOINTS,
    PLUGIN,
    PREFIXES_WITHOUT_ENDPOINT,
    refuse_unknown_form,
    without_credentials,
)
from redstart.toolkit.installs.default_packages import ALLOWED_PACKAGES, is_name


def validate_command_line(text: str) -> str:
    """Check a command line as typed in a shell. Raises `ValueError` if a closing quote is missing."""
    shlex.split(text)
    return text


class ChecksSettings(BaseModel):
    """How code is checked, by `audit` and before the tests of a patch run."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    commands: dict[str, Annotated[str, AfterValidator(validate_command_line)]] = {}
    """More tools by name, as command lines; they run in the sandbox. The name of a built-in tool (ruff, bandit,
    secrets, rules) replaces that tool, and an empty command disables it."""
    block: tuple[str, ...] = ("eval", "exec", "os.system")
    """Calls, by their full names, that no patch may add."""

    @property
    def checks(self) -> Checks:
        return Checks(
            commands={name: tuple(shlex.split(text)) for name, text in self.commands.items()}, block=self.block
        )


class FleetSettings(BaseModel):
    """A fleet: many machines that drive runs together."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    address: str = ""
    """The fleet's server, as host:port; empty for no fleet."""
    namespace: str = "default"
    """The server's namespace for runs."""
    same_machine: bool = False
    """Whether the workers are on this machine, so that a run may use files that exist only here."""
    at_once: int = Field(default=4, gt=0)
    """How many runs a worker drives at a time, in each of its pools."""
    deployment: str = ""
    """The name under which workers are versioned; empty if a worker accepts runs that any version started."""
    build: str = ""
    """The version of a worker in that deployment; empty for the version of Redstart."""


def _name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"{text!a} is not a package name; write it without a version")
    return text


Names = tuple[Annotated[str, AfterValidator(_name)], ...]


class AllowSettings(BaseModel):
    """Packages that are installed without asking, by language. A list replaces the default list."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    python: Names = ALLOWED_PACKAGES["python"]
    """Package names in the Python index."""
    node: Names = ALLOWED_PACKAGES["node"]
    """Package names in the npm registry."""


class DependencySettings(BaseModel):
    """Which packages a project that Redstart creates or changes may add."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    allow: AllowSettings = AllowSettings()

    @property
    def by_language(self) -> dict[str, Names]:
        return {"python": self.allow.python, "node": self.allow.node}


_DEFAULT_MODELS = {"ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5", "OPENAI_API_KEY": "openai:gpt-6.1-sol"}
"""The default model by key variable, used if the key is set and no model is named."""

NO_MODEL = """set a key or choose a model; one of these lines is enough:
  export ANTHROPIC_API_KEY=…       # then: redstart fix
  export OPENAI_API_KEY=…          # then: redstart fix
  redstart fix -m ollama:qwen2.5-coder     # local model, no key"""


def _validate_glob(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError("a glob must not be empty or contain a zero byte")
    return text


def _validate_service(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 1024 <= int(port) < 65536):
        raise ValueError(f"{text!r} is not host:port with a port from 1024 to 65535")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ValueError(f"{text!r} is not on this machine; write it as 127.0.0.1:{port}")
    return text


def _validate_command(text: str) -> str:
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no command: {error}") from error
    return text


def _pair(text: str) -> str:
    local_path, separator, daemon_path = text.partition("=")
    if not (separator and local_path.startswith("/") and daemon_path.startswith("/")):
        raise ValueError(f"{text!r} is not a pair of directories; write it as /here=/there")
    return text


def _parse_bytes(value: object) -> object:
    """Parse a size such as `1g`, `512m` or `2GiB`; return a number unchanged."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", value.lower())
    if not match:
        raise ValueError(f"{value!r} is not a size; write it as 1g, 512m or a number of bytes")
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2] or " "))


def _expand_folder(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


BACKENDS = ("auto", "bwrap", "docker", "seatbelt", "process")


def _validate_backend(text: str) -> str:
    if text in BACKENDS or (text.startswith(f"{PLUGIN}:") and text != f"{PLUGIN}:"):
        return text
    raise ValueError(f"unknown sandbox {text!r}; use {', '.join(BACKENDS)} or {PLUGIN}:NAME")


Size = Annotated[int, BeforeValidator(_parse_bytes, json_schema_input_type=int | str)]

_LIMITS = SandboxLimits()
_LEAST_MEMORY = 16 << 20
"""With less memory no interpreter starts, and Docker refuses less than six megabytes."""


class SuiteSettings(BaseModel):
    """How the project's tests run."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    command: Annotated[str, AfterValidator(validate_command_line)] = ""
    """The command that runs the tests; empty to detect it."""
    files: tuple[Annotated[str, AfterValidator(_validate_glob)], ...] = ()
    """Globs of test files that no patch may change, for files that are not recognized by their names."""


class SandboxSettings(BaseModel):
    """Where the tests run, what they may reach and what they may use."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    backend: Annotated[str, AfterValidator(_validate_backend)] = "auto"
    """`auto` takes the strongest that works here; `bwrap`, `docker`, `seatbelt` or `plugin:NAME` only that sandbox."""
    image: str = ""
    """The image of Docker containers; empty for the one that `redstart sandbox build` builds."""
    runtime: str = ""
    """The runtime of Docker containers, such as `runsc` for gVisor; empty for the daemon's default."""
    network: Literal["none"] = "none"
    """A sandbox has no network; `services` opens single ports."""
    path_map: tuple[Annotated[str, AfterValidator(_pair)], ...] = ()
    """If Redstart runs in a container: its folders and their paths on the daemon's machine, as /here=/there."""
    services: tuple[Annotated[str, AfterValidator(_validate_service)], ...] = ()
    """Services of this machine that the tests need, as host:port on loopback."""
    services_reset: Annotated[str, AfterValidator(_validate_command)] = ""
    """The command that resets these services before each suite of a verification; it runs outside the sandbox."""
    wall: float = Field(default=_LIMITS.wall, gt=0, allow_inf_nan=False)
    """The time limit of one test run, in seconds."""
    cpu: int = Field(default=_LIMITS.cpu, gt=0)
    """Seconds of CPU time, for each process and for all together."""
    test_cpu: int = Field(default=5, ge=0)
    """Seconds of CPU time for each Python test of a program that `create` writes; 0 for no limit."""
    cpus: float = Field(default=_LIMITS.cpus, ge=0, allow_inf_nan=False)
    """The number of CPUs that may be busy at once; 0 for all."""
    memory: Size = Field(default=_LIMITS.memory, ge=_LEAST_MEMORY)
    """Bytes of memory, also as `1g`: for all processes together if that can be measured, else for each process."""
    processes: int = Field(default=_LIMITS.processes, gt=0)
    """The maximum number of processes and threads at one time."""
    file_size: Size = Field(default=_LIMITS.file_size, gt=0)
    """The maximum size of a written file, in bytes."""
    disk: Size = Field(default=_LIMITS.disk, gt=0)
    """Bytes that may be written to the workspace, and as much again to each temporary folder."""
    output: Size = Field(default=_LIMITS.output, gt=0)
    """Bytes of output to keep, from its beginning and its end."""

    @property
    def is_plugin(self) -> bool:
        """Whether another package provides the sandbox."""
        return self.backend.startswith(f"{PLUGIN}:")

    @property
    def limits(self) -> SandboxLimits:
        """The limits of one test run."""
        names = (name for name in SandboxLimits.model_fields if hasattr(self, name))
        return SandboxLimits(**{name: getattr(self, name) for name in names})


class Settings(BaseSettings):
    """All settings. Creating a value reads nothing; `load` reads the environment and the files."""

    model_config = SettingsConfigDict(
        env_prefix=layers.PREFIX, env_nested_delimiter="__", extra="forbid", use_attribute_docstrings=True
    )

    home: Annotated[Path, AfterValidator(_expand_folder)] = Field(default_factory=lambda: _find_data_home(os.environ))
    """The directory of runs, blobs, snapshots and patches."""
    data: Annotated[Path, AfterValidator(_expand_folder)] | None = None
    """The directory of the public task sets of `redstart eval`; None if there are none."""
    models: Models = Models()
    limits: Limits = Limits()
    tests: SuiteSettings = SuiteSettings()
    sandbox: SandboxSettings = SandboxSettings()
    dependencies: DependencySettings = DependencySettings()
    checks: ChecksSettings = ChecksSettings()
    store: StoreSettings = StoreSettings()
    memory: MemorySettings = MemorySettings()
    tenant: Tenant = DEFAULT_TENANT
    """The owner of the runs if several users share one database; a tenant cannot see another tenant's runs."""
    fleet: FleetSettings = FleetSettings()
    reflect: ReflectionPolicy = ReflectionPolicy.auto
    """When the strong model is asked why an attempt failed: auto (from the second on), always or never."""
    verify: Level = Level.standard
    """How thoroughly a fix is verified: quick, standard or strict."""
    keep_related: bool = False
    """Whether a patch keeps its changes of stubs, changelogs and docs, although no test needs them."""
    protect: tuple[Annotated[str, AfterValidator(_validate_glob)], ...] = ()
    """Globs of files that no patch may change, in addition to those that are always protected. Every layer adds some.
    """

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: Source,
        env_settings: Source,
        dotenv_settings: Source,
        file_secret_settings: Source,
    ) -> tuple[Source, ...]:
        del settings_cls, env_settings, dotenv_settings, file_secret_settings  # a .env is not trusted
        return (init_settings,)


class ResolvedSettings(NamedTuple):
    """The settings in force, and the origin of each by its dotted name."""

    settings: Settings
    origins: dict[str, str]


def load(model: str | None = None, project: Path | None = None, flags: Mapping[str, object] | None = None) -> Settings:
    """Load the settings in force, without their origins."""
    return resolve(model, project, flags).settings


def resolve(
    model: str | None = None, project: Path | None = None, flags: Mapping[str, object] | None = None
) -> ResolvedSettings:
    """Load the settings in force with their origins.

    `model` (a flag) sets both tiers; `flags` are other flags by the dotted name of their setting; `project` is the
    target's folder, whose file may set only a few settings. Raises `ConfigError`, naming the file, variable or flag,
    for an unknown key, an unusable value, or a setting that a project may not set.
    """
    keys, file = collect_setting_names(Settings), layers.find_user_file(os.environ)
    user_layer = layers.read_user_layer(file, keys)
    project_layer = layers.read_project_layer(project, keys) if project else {}
    layers.refuse_untrusted(project_layer, _build_settings(user_layer).limits, file)
    project_layer = layers.with_tools(user_layer, project_layer)
    layer = layers.merge_layers(
        user_layer, project_layer, layers.build_variable_layer(os.environ, _read_variables(), keys)
    )
    layer |= {name: LayerValue(value, "flag") for name, value in (flags or {}).items()}
    if model:
        # If the user names one model, no other model is asked.
        layer = {name: value for name, value in layer.items() if not name.startswith("models.steps.")}
        layer |= {name: LayerValue(model, "flag") for name in ("models.strong", "models.fast")}
        layer["models.fallback"] = LayerValue((), "flag")
    settings = _build_settings(layer)
    origins = {name: layer[name].origin if name in layer else "default" for name in sorted(keys.settings)}
    if "home" not in layer and os.environ.get("XDG_DATA_HOME"):
        origins["home"] = "XDG_DATA_HOME"
    return _with_models(settings, origins)


def require_model(settings: Settings) -> None:
    """Raise `ConfigError` with a remedy if no model is configured, or if the name of a model has an unknown form."""
    models = settings.models
    if not models.strong:
        raise ConfigError("no model is configured", remedy=NO_MODEL)
    replaces_all = models.strong.partition(":")[0] in ("manual", "replay")
    for name in [models.strong] if replaces_all else models.roster.names:
        refuse_object_name(name, "model")
        if name.partition(":")[0] not in PREFIXES_WITHOUT_ENDPOINT:
            refuse_unknown_form(name, tuple(ENDPOINTS))


def find_api_key(model: str, environ: Mapping[str, str], variable: str = "") -> str | None:
    """Find the key of the model: in `variable` if that is given, else in its provider's usual variable. None if
    unset."""
    provider = model.partition(":")[0]
    return environ.get(variable or (ENDPOINTS[provider].variable if provider in ENDPOINTS else ""))


def check_user_settings(table: Mapping[str, object], origin: str) -> None:
    """Raise `ConfigError` if this content of the user's file cannot be used. The error names it by `origin`."""
    _build_settings(layers.build_table_layer(table, origin, collect_setting_names(Settings)))


def list_public_values(settings: Settings) -> dict[str, Any]:
    """List every value by its dotted name in a form that is safe to print: JSON values, addresses without
    credentials."""
    values: dict[str, Any] = {}
    dumped = settings.model_dump(mode="json")
    for name in sorted(collect_setting_names(Settings).settings):
        values[name] = reduce(getitem, name.split("."), dumped)
    # Only the fields of a profile that were set: the defaults of the others are not in force.
    values["models.profiles"] = {
        name: profile.model_dump(mode="json", exclude_unset=True) for name, profile in settings.models.profiles.items()
    }
    if settings.models.base_url:
        values["models.base_url"] = without_credentials(settings.models.base_url)
    if settings.store.url:
        values["store.url"] = without_credentials(settings.store.url)
    for option in values["models.options"].values():
        if option["base_url"]:
            option["base_url"] = without_credentials(option["base_url"])
    return values


def collect_setting_names(shape: type[BaseModel], prefix: str = "") -> SettingNames:
    settings: set[str] = set()
    groups: set[str] = set()
    for name, field in shape.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            group_names = collect_setting_names(field.annotation, f"{prefix}{name}.")
            groups |= {prefix + name, *group_names.groups}
            settings |= group_names.settings
        else:
            settings.add(prefix + name)
    return SettingNames(frozenset(settings), frozenset(groups))


def _read_variables() -> dict[str, Any]:
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        field = str(error).partition('"')[2].partition('"')[0]
        names = sorted(name for name in os.environ if name.upper().startswith(layers.to_variable_name(field)))
        raise ConfigError(
            f"{' or '.join(names)} cannot be read", remedy='write a list as JSON: ["one", "two"]'
        ) from error


def _build_settings(layer: Layer) -> Settings:
    """Make the settings of a layer. Raises `ConfigError` with the origin of the first value that cannot be used."""
    try:
        settings = Settings(**layers.nest_values(layer))  # pyright: ignore[reportArgumentType]  (validated here)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        place = [str(part) for part in first_error["loc"]]
        name = next(".".join(place[:end]) for end in range(len(place), -1, -1) if ".".join(place[:end]) in layer)
        raise _create_value_error(name, layer[name].origin, rephrase_validation_message(first_error["msg"])) from error
    for key, value in settings.limits:
        minimum = 1 if key in ("attempts", "stall", "stall_warning") else 0
        if value is not None and not minimum <= value < math.inf:
            name = f"limits.{key}"
            raise _create_value_error(name, layer[name].origin, f"must be {minimum} or more")
    return settings


def _create_value_error(name: str, origin: str, reason: str) -> ConfigError:
    subject = origin if origin.startswith(layers.PREFIX) else f"{origin}: {name}"
    return ConfigError(f"{subject} {reason}" if reason.startswith("must ") else f"{subject}: {reason}")


def _with_models(settings: Settings, origins: dict[str, str]) -> ResolvedSettings:
    """Fill in the models that are not set: `strong` by the key that is set, `fast` as `strong`."""
    models, changed = settings.models, dict(origins)
    strong, fast = models.strong, models.fast
    if not strong:
        key = next((variable for variable in _DEFAULT_MODELS if os.environ.get(variable)), "")
        strong = _DEFAULT_MODELS.get(key, "")
        changed["models.strong"] = f"default, because {key} is set" if key else "default"
    if not fast:
        fast = strong
        changed["models.fast"] = "same as models.strong" if strong else "default"
    resolved_models = models.model_copy(update={"strong": strong, "fast": fast})
    return ResolvedSettings(settings.model_copy(update={"models": resolved_models}), changed)


def _find_data_home(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "redstart"
