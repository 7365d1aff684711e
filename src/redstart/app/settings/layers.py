"""Read settings layer by layer, and check what a project's own file may set. The package's `load` combines them."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from redstart.core.errors import ConfigError
from redstart.core.run import Limits

PREFIX = "REDSTART_"
NOT_SETTINGS = frozenset({"REDSTART_LIVE_URL", "REDSTART_PYTHON", "REDSTART_WORKERS"})
"""Variables of Redstart's own tasks and tests, which document them."""
ADD_UP = frozenset({"protect", "tests.files"})
"""Settings whose values in a layer are added to those of lower layers instead of replacing them."""
OLD_NAMES = {"limits.iterations": "limits.attempts"}
"""Names of settings in earlier versions, which are still accepted, and their current names."""
TOOLS = "checks.commands"
BUILT_IN = frozenset({"ruff", "bandit", "secrets", "rules"})
"""Tools that a project cannot disable."""
PROJECT_FILE = "redstart.toml"
PROJECT_TABLE = "tool.redstart"
LARGEST_FILE = 1_000_000

_PLAIN_KEY = re.compile(r"[\w.-]+")


class SettingNames(NamedTuple):
    """The dotted names of all settings, and of their groups."""

    settings: frozenset[str]
    groups: frozenset[str]


class LayerValue(NamedTuple):
    """One value in a layer, and its origin: a file, a variable or a flag."""

    value: object
    origin: str


Layer = dict[str, LayerValue]
"""Values by dotted name."""


def merge_layers(*layers: Layer) -> Layer:
    """Merge the layers. A later layer overrides earlier ones."""
    result: Layer = {}
    for layer in layers:
        for name, layer_value in layer.items():
            result[name] = (
                _join_lists(name, result[name], layer_value) if name in ADD_UP and name in result else layer_value
            )
    return result


def _join_lists(name: str, earlier: LayerValue, later: LayerValue) -> LayerValue:
    """Join both lists. Raises `ConfigError` for a value that is not a list: it must not replace the other one."""
    items: list[object] = []
    for item in (earlier, later):
        value = item.value
        if not isinstance(value, list):
            raise ConfigError(f"{item.origin}: {name} must be a list")
        items += cast("list[object]", value)
    return LayerValue(items, f"{earlier.origin}, {later.origin}")


def nest_values(layer: Layer) -> dict[str, object]:
    """Return the values as nested tables."""
    result: dict[str, object] = {}
    for name, layer_value in layer.items():
        *groups, key = name.split(".")
        table = result
        for group in groups:
            table = cast("dict[str, object]", table.setdefault(group, {}))
        table[key] = layer_value.value
    return result


def build_variable_layer(environ: Mapping[str, str], values: Mapping[str, object], keys: SettingNames) -> Layer:
    """Make the layer of `REDSTART_*`; pydantic-settings read `values` from them. Raises `ConfigError` for unknown
    ones."""
    variable_names = {name.upper() for name in environ if name.upper().startswith(PREFIX)} - NOT_SETTINGS
    for variable in sorted(variable_names):
        if _to_setting_name(variable) not in keys.settings | keys.groups:
            known_names = [to_variable_name(name) for name in keys.settings]
            raise ConfigError(f"unknown setting {escape_key(variable)}", remedy=suggest_setting(variable, known_names))
    layer: Layer = {}
    for name, value in _flatten_table(values, keys).items():
        spelled = [
            to_variable_name(candidate)
            for candidate in (name, *_list_old_names(name))
            if to_variable_name(candidate) in variable_names
        ]
        layer[name] = LayerValue(value, next(iter(spelled), to_variable_name(name.partition(".")[0])))
    for name, layer_value in layer.items():
        _refuse_unknown(layer_value.origin, name, keys)
    return layer


def read_user_layer(path: Path, keys: SettingNames) -> Layer:
    """Read the layer of the user's file; empty if there is none. Raises `ConfigError` for an unknown key."""
    table = _parse_file(path)
    return {} if table is None else build_table_layer(table, str(path), keys)


def read_project_layer(folder: Path, keys: SettingNames) -> Layer:
    """Read the layer of a project's own file. `refuse_untrusted` checks whether the project may set these values.

    Raises `ConfigError` for an unknown key, for invalid TOML, and if two files both contain settings.
    """
    project_file, pyproject = folder / PROJECT_FILE, folder / "pyproject.toml"
    table, section = _parse_file(project_file), _read_section(pyproject)
    if table is not None and section is not None:
        raise ConfigError(
            f"{project_file} and [{PROJECT_TABLE}] of {pyproject} both contain settings", remedy="keep one of them"
        )
    if section is not None:
        return build_table_layer(section, f"{pyproject} [{PROJECT_TABLE}]", keys)
    return {} if table is None else build_table_layer(table, str(project_file), keys)


def refuse_untrusted(project: Layer, user_limits: Limits, user_file: Path) -> None:
    """Refuse what an untrusted repo may not set: it may name its tests, add tools, protect files and lower limits.

    Raises `ConfigError` for anything else, and says where to set it instead.
    """
    for name, layer_value in project.items():
        alternative = f"set it in {user_file}, or as {to_variable_name(name)}"
        if name.startswith("limits."):
            _refuse_more(name, layer_value, getattr(user_limits, name.removeprefix("limits.")), alternative)
        elif name == TOOLS:
            _refuse_replaced(layer_value, alternative)
        elif name != "tests.command" and name not in ADD_UP:
            raise ConfigError(f"{layer_value.origin}: a project cannot set {name}", remedy=alternative)


def find_user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's settings file. An `XDG_CONFIG_HOME` that is not absolute counts as unset."""
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".config") / "redstart" / "config.toml"


def to_variable_name(name: str) -> str:
    return PREFIX + name.replace(".", "__").upper()


def escape_key(text: str) -> str:
    """Make a key safe to print: quote and escape it if it has other characters than letters, digits, `_`, `.` and
    `-`."""
    return text if _PLAIN_KEY.fullmatch(text) and text.isascii() else ascii(text)


def _to_setting_name(variable: str) -> str:
    name = variable.removeprefix(PREFIX).replace("__", ".").lower()
    return OLD_NAMES.get(name, name)


def _list_old_names(name: str) -> list[str]:
    return [old for old, new in OLD_NAMES.items() if new == name]


def _refuse_replaced(layer_value: LayerValue, alternative: str) -> None:
    """Refuse a project that replaces a built-in tool. It may only add tools, which run in the sandbox."""
    value = layer_value.value
    if not isinstance(value, dict):
        raise ConfigError(f"{layer_value.origin}: {TOOLS} must be a table", remedy=alternative)
    if replaced := sorted(BUILT_IN & cast("dict[str, object]", value).keys()):
        raise ConfigError(f"{layer_value.origin}: a project cannot replace {TOOLS}.{replaced[0]}", remedy=alternative)


def with_tools(user_layer: Layer, project: Layer) -> Layer:
    """Add the user's own tools to the project's layer: the project may add tools, but replaces none of the user's."""
    if TOOLS not in user_layer or TOOLS not in project:
        return project
    user, project_tools = (cast("dict[str, object]", layer[TOOLS].value) for layer in (user_layer, project))
    origin = f"{user_layer[TOOLS].origin}, {project[TOOLS].origin}"
    return {**project, TOOLS: LayerValue({**project_tools, **user}, origin)}


def _refuse_more(name: str, layer_value: LayerValue, limit: float | None, alternative: str) -> None:
    value = layer_value.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{layer_value.origin}: {name} must be a number")
    if limit is not None and value > limit:
        raise ConfigError(
            f"{layer_value.origin}: {name} = {value:g} is above the limit of {limit:g}; a project may only lower it",
            remedy=f"to allow more, {alternative}",
        )


def build_table_layer(table: Mapping[str, object], origin: str, keys: SettingNames) -> Layer:
    """Make the layer of a parsed file. Raises `ConfigError` for an unknown key."""
    layer = {name: LayerValue(value, origin) for name, value in _flatten_table(table, keys).items()}
    for name in layer:
        _refuse_unknown(origin, name, keys)
    return layer


def _flatten_table(table: Mapping[str, object], keys: SettingNames, prefix: str = "") -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if name in keys.groups and isinstance(value, dict):
            result |= _flatten_table(cast("dict[str, object]", value), keys, f"{name}.")
        else:
            result[name] = value
    for old in OLD_NAMES.keys() & result.keys():
        result.setdefault(OLD_NAMES[old], result.pop(old))
    return result


def _refuse_unknown(origin: str, name: str, keys: SettingNames) -> None:
    if name in keys.groups:
        raise ConfigError(f"{origin}: {name} is a group of settings", remedy=f"write it as a table: [{name}]")
    if name not in keys.settings:
        raise ConfigError(
            f"{origin}: unknown setting {escape_key(name)}", remedy=suggest_setting(name, sorted(keys.settings))
        )


def suggest_setting(name: str, known_names: list[str]) -> str:
    """Suggest the setting that was probably meant."""
    matches = difflib.get_close_matches(name, known_names, n=1)
    return f"did you mean {matches[0]}?" if matches else "to list all settings: redstart config show"


def _read_section(path: Path) -> Mapping[str, object] | None:
    """Read the project's table in `pyproject.toml`. A broken file that does not mention Redstart is ignored."""
    try:
        table = _parse_file(path)
    except ConfigError:
        if PROJECT_TABLE.encode() in path.read_bytes()[:LARGEST_FILE]:
            raise
        return None
    tool = (table or {}).get("tool")
    section = cast("dict[str, object]", tool).get("redstart") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise ConfigError(f"{path}: {PROJECT_TABLE} must be a table")
    return cast("dict[str, object] | None", section)


def _parse_file(path: Path) -> Mapping[str, object] | None:
    """Read a TOML file; None if there is none. It is not trusted: its size is limited, and only plain files are
    read."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > LARGEST_FILE:
        raise ConfigError(f"{path} is larger than {LARGEST_FILE:,} bytes")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"{path} is not valid TOML: {reason}") from error
