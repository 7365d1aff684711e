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


def merged(*layers: Layer) -> Layer:
    """Merge the layers. A later layer overrides earlier ones."""
    result: Layer = {}
    for layer in layers:
        for name, given in layer.items():
            result[name] = _added(name, result[name], given) if name in ADD_UP and name in result else given
    return result


def _added(name: str, before: LayerValue, given: LayerValue) -> LayerValue:
    """Join both lists. Raises `ConfigError` for a value that is not a list: it must not replace the other one."""
    both: list[object] = []
    for item in (before, given):
        value = item.value
        if not isinstance(value, list):
            raise ConfigError(f"{item.origin}: {name} must be a list")
        both += cast("list[object]", value)
    return LayerValue(both, f"{before.origin}, {given.origin}")


def nested(layer: Layer) -> dict[str, object]:
    """Return the values as nested tables."""
    result: dict[str, object] = {}
    for name, given in layer.items():
        *groups, last = name.split(".")
        table = result
        for group in groups:
            table = cast("dict[str, object]", table.setdefault(group, {}))
        table[last] = given.value
    return result


def of_variables(environ: Mapping[str, str], values: Mapping[str, object], keys: SettingNames) -> Layer:
    """Make the layer of `REDSTART_*`; pydantic-settings read `values` from them. Raises `ConfigError` for unknown
    ones."""
    named = {name.upper() for name in environ if name.upper().startswith(PREFIX)} - NOT_SETTINGS
    for variable in sorted(named):
        if _name_of(variable) not in keys.settings | keys.groups:
            known = [variable_of(name) for name in keys.settings]
            raise ConfigError(f"unknown setting {shown(variable)}", remedy=suggested(variable, known))
    layer: Layer = {}
    for name, value in _flat(values, keys).items():
        spelled = [variable_of(each) for each in (name, *_old_names(name)) if variable_of(each) in named]
        layer[name] = LayerValue(value, next(iter(spelled), variable_of(name.partition(".")[0])))
    for name, given in layer.items():
        _refuse_unknown(given.origin, name, keys)
    return layer


def of_user_file(path: Path, keys: SettingNames) -> Layer:
    """Read the layer of the user's file; empty if there is none. Raises `ConfigError` for an unknown key."""
    table = _parsed(path)
    return {} if table is None else of_table(table, str(path), keys)


def of_project(folder: Path, keys: SettingNames) -> Layer:
    """Read the layer of a project's own file. `refuse_untrusted` checks whether the project may set these values.

    Raises `ConfigError` for an unknown key, for invalid TOML, and if two files both contain settings.
    """
    own, shared = folder / PROJECT_FILE, folder / "pyproject.toml"
    table, section = _parsed(own), _section(shared)
    if table is not None and section is not None:
        raise ConfigError(f"{own} and [{PROJECT_TABLE}] of {shared} both contain settings", remedy="keep one of them")
    if section is not None:
        return of_table(section, f"{shared} [{PROJECT_TABLE}]", keys)
    return {} if table is None else of_table(table, str(own), keys)


def refuse_untrusted(project: Layer, below: Limits, user_file: Path) -> None:
    """Refuse what an untrusted repo may not set: it may name its tests, add tools, protect files and lower limits.

    Raises `ConfigError` for anything else, and says where to set it instead.
    """
    for name, given in project.items():
        elsewhere = f"set it in {user_file}, or as {variable_of(name)}"
        if name.startswith("limits."):
            _refuse_more(name, given, getattr(below, name.removeprefix("limits.")), elsewhere)
        elif name == TOOLS:
            _refuse_replaced(given, elsewhere)
        elif name != "tests.command" and name not in ADD_UP:
            raise ConfigError(f"{given.origin}: a project cannot set {name}", remedy=elsewhere)


def user_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's settings file. An `XDG_CONFIG_HOME` that is not absolute counts as unset."""
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".config") / "redstart" / "config.toml"


def variable_of(name: str) -> str:
    return PREFIX + name.replace(".", "__").upper()


def shown(text: str) -> str:
    """Make a key safe to print: quote and escape it if it has other characters than letters, digits, `_`, `.` and
    `-`."""
    return text if _PLAIN_KEY.fullmatch(text) and text.isascii() else ascii(text)


def _name_of(variable: str) -> str:
    name = variable.removeprefix(PREFIX).replace("__", ".").lower()
    return OLD_NAMES.get(name, name)


def _old_names(name: str) -> list[str]:
    return [old for old, new in OLD_NAMES.items() if new == name]


def _refuse_replaced(given: LayerValue, elsewhere: str) -> None:
    """Refuse a project that replaces a built-in tool. It may only add tools, which run in the sandbox."""
    value = given.value
    if not isinstance(value, dict):
        raise ConfigError(f"{given.origin}: {TOOLS} must be a table", remedy=elsewhere)
    if replaced := sorted(BUILT_IN & cast("dict[str, object]", value).keys()):
        raise ConfigError(f"{given.origin}: a project cannot replace {TOOLS}.{replaced[0]}", remedy=elsewhere)


def with_tools(below: Layer, project: Layer) -> Layer:
    """Add the user's own tools to the project's layer: the project may add tools, but replaces none of the user's."""
    if TOOLS not in below or TOOLS not in project:
        return project
    user, added = (cast("dict[str, object]", layer[TOOLS].value) for layer in (below, project))
    origin = f"{below[TOOLS].origin}, {project[TOOLS].origin}"
    return {**project, TOOLS: LayerValue({**added, **user}, origin)}


def _refuse_more(name: str, given: LayerValue, below: float | None, elsewhere: str) -> None:
    value = given.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{given.origin}: {name} must be a number")
    if below is not None and value > below:
        raise ConfigError(
            f"{given.origin}: {name} = {value:g} is above the limit of {below:g}; a project may only lower it",
            remedy=f"to allow more, {elsewhere}",
        )


def of_table(table: Mapping[str, object], origin: str, keys: SettingNames) -> Layer:
    """Make the layer of a parsed file. Raises `ConfigError` for an unknown key."""
    layer = {name: LayerValue(value, origin) for name, value in _flat(table, keys).items()}
    for name in layer:
        _refuse_unknown(origin, name, keys)
    return layer


def _flat(table: Mapping[str, object], keys: SettingNames, prefix: str = "") -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if name in keys.groups and isinstance(value, dict):
            result |= _flat(cast("dict[str, object]", value), keys, f"{name}.")
        else:
            result[name] = value
    for old in OLD_NAMES.keys() & result.keys():
        result.setdefault(OLD_NAMES[old], result.pop(old))
    return result


def _refuse_unknown(origin: str, name: str, keys: SettingNames) -> None:
    if name in keys.groups:
        raise ConfigError(f"{origin}: {name} is a group of settings", remedy=f"write it as a table: [{name}]")
    if name not in keys.settings:
        raise ConfigError(f"{origin}: unknown setting {shown(name)}", remedy=suggested(name, sorted(keys.settings)))


def suggested(name: str, known: list[str]) -> str:
    """Suggest the setting that was probably meant."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else "to see every setting: redstart config show"


def _section(path: Path) -> Mapping[str, object] | None:
    """Read the project's table in `pyproject.toml`. A broken file that does not mention Redstart is ignored."""
    try:
        table = _parsed(path)
    except ConfigError:
        if PROJECT_TABLE.encode() in path.read_bytes()[:LARGEST_FILE]:
            raise
        return None
    tool = (table or {}).get("tool")
    section = cast("dict[str, object]", tool).get("redstart") if isinstance(tool, dict) else None
    if section is not None and not isinstance(section, dict):
        raise ConfigError(f"{path}: {PROJECT_TABLE} must be a table")
    return cast("dict[str, object] | None", section)


def _parsed(path: Path) -> Mapping[str, object] | None:
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
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError(f"{path} is not valid TOML: {why}") from error
