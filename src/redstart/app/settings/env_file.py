"""Load API keys from an env file that the user names. All other variables in it are ignored: it is not trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from pathlib import Path

from redstart.app.settings import Settings
from redstart.core.errors import ConfigError
from redstart.ports.model.endpoints import ENDPOINTS

USUAL_NAME = ".env"
LARGEST = 1_000_000

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")
_QUOTED = re.compile(r"""(["'])(.*?)\1(?:\s*#.*)?""")


def key_variables(settings: Settings) -> frozenset[str]:
    """List the variables that hold a key: each provider's, and those that the settings name."""
    usual = {endpoint.variable for endpoint in ENDPOINTS.values() if endpoint.variable}
    named = {option.key_variable for option in settings.models.options.values() if option.key_variable}
    # A key may be in any variable except one that holds an address or a setting.
    return frozenset(usual | {name for name in named if not _steers(name)})


def take_keys(file: Path, names: Iterable[str], environ: MutableMapping[str, str]) -> list[str]:
    """Put the file's keys into `environ`, replacing existing ones, and return their sorted names.

    Raises `ConfigError` if the file cannot be read.
    """
    wanted = frozenset(names)
    keys = {name: value for name, value in _read(file).items() if name in wanted and value}
    environ.update(keys)
    return sorted(keys)


def _steers(name: str) -> bool:
    return name.upper().startswith("REDSTART_") or name.upper().endswith(("_BASE_URL", "_HOST"))


def _read(file: Path) -> dict[str, str]:
    try:
        if not file.is_file():
            raise ConfigError(f"{file} is not a file", remedy="give an env file with lines such as OPENAI_API_KEY=…")
        with file.open("rb") as opened:
            text = opened.read(LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read", remedy="--env-file takes a text file") from error
    matched = filter(None, map(_LINE.fullmatch, text.splitlines()))
    return {line[1]: _value(line[2]) for line in matched}


def _value(text: str) -> str:
    if quoted := _QUOTED.fullmatch(text):
        return quoted[2]
    return re.sub(r"(?:^|\s)#.*", "", text)
