"""Edit the user's settings file: change one setting and keep everything else as it was written."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, cast

from redstart.app.settings import Settings, check_user_settings, collect_setting_names
from redstart.app.settings.layers import escape_key, find_user_file, suggest_setting
from redstart.core.errors import ConfigError

EDITORS = ("nano", "vi")
"""The editors to try if neither VISUAL nor EDITOR is set."""
STARTING_TEXT = """# Settings of Redstart. To see every setting: redstart config show
# [models]
# strong = "anthropic:claude-sonnet-5-5"
"""

_HEADER = re.compile(r"\s*\[(?!\[)\s*([^\]]+?)\s*\]\s*(?:#.*)?")
_ANY_HEADER = re.compile(r"\s*\[")


class SettingChange(NamedTuple):
    """The changed setting, its new value and the file."""

    path: Path
    name: str
    value: object


def get_file_path(environ: Mapping[str, str]) -> Path:
    return find_user_file(environ)


def set_value(name: str, text: str, environ: Mapping[str, str]) -> SettingChange:
    """Set one setting in the user's file. Comments, order and everything else stay.

    `text` is a TOML value, or a string without quotes. Raises `ConfigError`, with the file unchanged, for an unknown
    setting, a value that cannot be used, or a file that cannot be changed safely.
    """
    refuse_unknown(name)
    path = find_user_file(environ)
    before = _read_text(path)
    value, after = _change_value(path, before, name, text)
    _write(path, after)
    return SettingChange(path, name, value)


def refuse_unknown(name: str) -> None:
    """Raise `ConfigError` if this is not the dotted name of one setting."""
    keys = collect_setting_names(Settings)
    if name in keys.settings:
        return
    table = next(
        (candidate for candidate in ("models.options", "models.profiles") if name.startswith(f"{candidate}.")), ""
    )
    if table:
        raise ConfigError(
            f"{table} is a table with one entry per model", remedy="edit the file by hand: redstart config edit"
        )
    if name in keys.groups:
        members = sorted(candidate for candidate in keys.settings if candidate.startswith(f"{name}."))
        raise ConfigError(f"{name} is a group of settings", remedy=f"choose one of them, such as {members[0]}")
    raise ConfigError(f"unknown setting {escape_key(name)}", remedy=suggest_setting(name, sorted(keys.settings)))


def find_editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the arguments that start the user's editor. Raises `ConfigError` if there is none."""
    for variable in ("VISUAL", "EDITOR"):
        if arguments := shlex.split(environ.get(variable, "")):
            return arguments
    for program in EDITORS:
        if executable := shutil.which(program, path=environ.get("PATH")):
            return [executable]
    raise ConfigError("no editor is set", remedy="export EDITOR=nano")


def prepare_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's file. Create it with a few comments if it does not exist."""
    path = find_user_file(environ)
    if not path.exists():
        _write(path, STARTING_TEXT)
    return path


def check_file(environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` if the file contains something that cannot be used."""
    path = find_user_file(environ)
    check_user_settings(_parse_toml(path, _read_text(path)), str(path))


def _change_value(path: Path, before: str, name: str, text: str) -> tuple[object, str]:
    """Return the parsed value and the new text, which is checked as a whole."""
    failures: list[ConfigError] = []
    for value in _parse_candidates(text):
        after = _with_value(before, name, value)
        expected = _with_key(_parse_toml(path, before), name, value)
        if _parse_toml(path, after) != expected:
            remedy = "edit the file by hand: redstart config edit"
            raise ConfigError(f"{path} is written in a way that cannot be changed safely", remedy=remedy)
        try:
            check_user_settings(expected, "the new value")
        except ConfigError as error:
            failures.append(error)
        else:
            return value, after
    raise failures[0]


def _parse_candidates(text: str) -> list[object]:
    """Return the possible values of a text: a TOML value such as a number or a list, then the text itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return [text]
    return [table["value"], text] if list(table) == ["value"] else [text]


def _with_value(text: str, name: str, value: object) -> str:
    *groups, key = name.split(".")
    table = ".".join(groups)
    lines = text.splitlines()
    begin, end = _find_table_lines(lines, table)
    if begin is None:
        if not table:
            index = next((number for number, line in enumerate(lines) if _ANY_HEADER.match(line)), len(lines))
            lines[index:index] = [f"{key} = {_format_toml(value)}", *([""] if index < len(lines) else [])]
        else:
            lines += [*([""] if lines and lines[-1].strip() else []), f"[{table}]", f"{key} = {_format_toml(value)}"]
        return "\n".join(lines) + "\n"
    place = _find_value_lines(lines, begin, end, key)
    if place is None:
        while end > begin and not lines[end - 1].strip():
            end -= 1
        lines.insert(end, f"{key} = {_format_toml(value)}")
    else:
        comment = _comment(lines[place[1] - 1]) if place[1] == place[0] + 1 else ""
        lines[place[0] : place[1]] = [f"{key} = {_format_toml(value)}{comment}"]
    return "\n".join(lines) + "\n"


def _find_table_lines(lines: list[str], table: str) -> tuple[int | None, int]:
    """Find the lines below the table's header, up to the next header; None if the file has no such table."""
    headers = [number for number, line in enumerate(lines) if _ANY_HEADER.match(line)]
    if not table:
        first_header = headers[0] if headers else len(lines)
        has_keys = any(line.strip() and not line.lstrip().startswith("#") for line in lines[:first_header])
        return (0, first_header) if has_keys else (None, first_header)
    for number in headers:
        match = _HEADER.fullmatch(lines[number])
        if match and re.sub(r"\s|\"|'", "", match[1]) == table:
            return number + 1, next((header for header in headers if header > number), len(lines))
    return None, len(lines)


def _find_value_lines(lines: list[str], begin: int, end: int, key: str) -> tuple[int, int] | None:
    """Find the lines of `key = value`, which may be several for a list; None if the key is not set."""
    start = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
    first = next((number for number in range(begin, end) if start.match(lines[number])), None)
    if first is None:
        return None
    for last in range(first + 1, end + 1):
        try:
            tomllib.loads("\n".join(lines[first:last]))
        except tomllib.TOMLDecodeError:
            continue
        return first, last
    return None


def _comment(line: str) -> str:
    """Find the comment after a one-line value, with the space before it."""
    for index in (place for place, char in enumerate(line) if char == "#"):
        try:
            tomllib.loads(line[:index])
        except tomllib.TOMLDecodeError:
            continue
        return line[len(line[:index].rstrip()) :]
    return ""


def _format_toml(value: object) -> str:
    """Format a value as TOML. JSON's strings, numbers and lists are valid TOML; tables are written inline."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        return "{ " + ", ".join(f"{_format_toml(key)} = {_format_toml(item)}" for key, item in entries) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_toml, cast("list[object]", value))) + "]"
    if isinstance(value, float):
        return repr(value)
    # TOML allows neither this control character unescaped nor an escaped surrogate.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with_key(table: Mapping[str, object], name: str, value: object) -> dict[str, object]:
    key, _, remaining = name.partition(".")
    subtable = table.get(key, {})
    if not remaining:
        return {**table, key: value}
    return {
        **table,
        key: _with_key(cast("dict[str, object]", subtable if isinstance(subtable, dict) else {}), remaining, value),
    }


def _parse_toml(path: Path, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", remedy="repair it: redstart config edit") from error


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _write(path: Path, text: str) -> None:
    """Write a file atomically. A link stays a link, and the file keeps its permissions."""
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".config-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            if target.exists():
                shutil.copymode(target, name)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except (OSError, UnicodeEncodeError) as error:
        raise ConfigError(f"{path} cannot be written: {error}") from error
