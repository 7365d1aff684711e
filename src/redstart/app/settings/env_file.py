"""Load API keys from an env file that the user names. All other variables in it are ignored: it is not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from redstart.app.settings import Settings
from redstart.core.errors import ConfigError
from redstart.ports.model.endpoints import ENDPOINTS

USUAL_NAME = ".env"
MAX_FILE_BYTES = 1_000_000

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_QUOTED_VALUE = re.compile(r"""(["'])(.*?)\1(?:\s*#.*)?""")


def list_key_variables(settings: Settings) -> frozenset[str]:
    """List the variables that hold a key: each provider's, and those that the settings name."""
    provider_variables = {endpoint.variable for endpoint in ENDPOINTS.values() if endpoint.variable}
    configured_variables = {option.key_variable for option in settings.models.options.values() if option.key_variable}
    # A key may be in any variable except one that holds an address or a setting.
    return frozenset(provider_variables | {name for name in configured_variables if not _is_setting_or_address(name)})


def take_keys(file: Path, names: Iterable[str], environ: MutableMapping[str, str]) -> list[str]:
    """Put the file's keys into `environ`, replacing existing ones, and return their sorted names.

    Raises `ConfigError` if the file cannot be read.
    """
    allowed_names = frozenset(names)
    keys = {name: value for name, value in _read(file).items() if name in allowed_names and value}
    environ.update(keys)
    return sorted(keys)


def _is_setting_or_address(name: str) -> bool:
    return name.upper().startswith("REDSTART_") or name.upper().endswith(("_BASE_URL", "_HOST"))


def _read(file: Path) -> dict[str, str]:
    try:
        if not file.is_file():
            raise ConfigError(f"{file} is not a file", remedy="give an env file with lines such as OPENAI_API_KEY=…")
        with file.open("rb") as stream:
            text = stream.read(MAX_FILE_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read", remedy="--env-file takes a text file") from error
    matches = filter(None, map(_LINE.fullmatch, text.splitlines()))
    return {line[1]: _parse_value(line[2]) for line in matches}


def _parse_value(text: str) -> str:
    if match := _QUOTED_VALUE.fullmatch(text):
        return match[2]
    return re.sub(r"(?:^|\s)#.*", "", text)
