"""Run pip so that no package's code runs (wheels only, by hash), and put its refusals into words."""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from redstart.core.errors import ConfigError, PortError
from redstart.ports.install.port import PackageRefusal
from redstart.toolkit.installs.names import hyphenate
from redstart.toolkit.installs.stage import StageResult, run

QUIET_VARIABLES = {
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_PROGRESS_BAR": "off",
    "PIP_RETRIES": "2",
    "PIP_NO_PYTHON_VERSION_WARNING": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_USER": "0",
    "PIP_REQUIRE_VIRTUALENV": "0",
}
_KEPT_OPTIONS = ("cert", "client-cert", "proxy", "trusted-host", "timeout", "default-timeout", "keyring-provider")
_UNREACHABLE = re.compile(r"Retrying \(Retry|ProxyError|Max retries exceeded|Temporary failure in name resolution")
_NOT_THERE = re.compile(r"No matching distribution found for ([^\s\[=<>!~;]+)")
_YANKED = re.compile(r"yanked version: '([^']+)' candidate \(version (\S+)")
_OTHER_HASH = re.compile(r"^\s+([\w.-]+)(?:[=<>!~]\S*)? from \S+", re.MULTILINE)
_OTHER_NAME = re.compile(r"Requested (\S+) from \S+ has (?:inconsistent|different) (?:name|version)", re.IGNORECASE)


def find_pip(python: Path, environ: Mapping[str, str]) -> list[str]:
    """Find the command that starts pip for the environment of `python`, which need not contain pip.

    This is Redstart's own pip, the one bundled with a Python that can install it, or the one on PATH. Raises
    `ConfigError` if there is none.
    """
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-m", "pip", "--python", str(python)]
    if bundled_wheel := _find_bundled():
        return [str(python), "-I", str(bundled_wheel / "pip")]
    if executable := shutil.which("pip", path=environ.get("PATH", "")) or shutil.which(
        "pip3", path=environ.get("PATH", "")
    ):
        return [executable, "--python", str(python)]
    raise ConfigError(
        "pip is required to install packages, but was not found",
        remedy="Put it on PATH; on Debian and Ubuntu: apt install python3-pip",
    )


def _find_bundled() -> Path | None:
    spec = importlib.util.find_spec("ensurepip")
    folder = Path(spec.origin).parent / "_bundled" if spec and spec.origin else Path()
    return next(iter(sorted(folder.glob("pip-*.whl"), reverse=True)), None) if spec else None


def find_yanked(result: StageResult) -> list[PackageRefusal]:
    return [
        PackageRefusal(name=name, reason=f"{name} {version.rstrip(',')} was withdrawn by its authors.")
        for name, version in _YANKED.findall(result.output)
    ]


def explain_refusals(result: StageResult) -> list[PackageRefusal]:
    """Describe what pip could not download. Raises `PortError` if no package is at fault."""
    text = result.output
    if _UNREACHABLE.search(text):
        raise PortError("the package index cannot be reached", remedy="look at pip's own settings: pip config list")
    if "DO NOT MATCH THE HASHES" in text:
        names = [hyphenate(name) for name in _OTHER_HASH.findall(text)] or [""]
        reason = "is not what its index promised: the hashes differ"
        return [PackageRefusal(name=name, reason=f"{name or 'a package'} {reason}.") for name in dict.fromkeys(names)]
    if match := _OTHER_NAME.search(text):
        name = hyphenate(re.split(r"[=<>!~]", match[1])[0])
        return [PackageRefusal(name=name, reason=f"{name} says that it is another package.")]
    if match := _NOT_THERE.search(text):
        name = hyphenate(match[1])
        reason = "has no wheel that fits here, and source is not built, since that would run its code"
        return [PackageRefusal(name=name, reason=f"{name} {reason}.")]
    if "ResolutionImpossible" in text:
        return [PackageRefusal(name="", reason="no versions of these packages fit together.")]
    errors = [line for line in text.splitlines() if line.startswith("ERROR:")] or text.splitlines()[-1:]
    raise PortError(f"pip failed: {errors[0].removeprefix('ERROR:').strip()[:300]}" if errors else "pip failed")


def on_several_indexes(
    pip: list[str], names: list[str], folder: Path, environ: Mapping[str, str]
) -> list[PackageRefusal]:
    """Refuse names that exist on more than one of the user's indexes: their owners may differ."""
    options = dict(_list_options(pip, folder, environ))
    indexes = [options.get("index-url", ""), *options.get("extra-index-url", "").split()]
    if len(indexes) < 2 or not names:
        return []
    kept_options = {f"PIP_{name.replace('-', '_').upper()}": options[name] for name in _KEPT_OPTIONS if name in options}
    isolated_variables = {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_FIND_LINKS": "",
        **kept_options,
        **QUIET_VARIABLES,
    }

    def is_on_index(index: str, name: str) -> bool:
        address = {"PIP_INDEX_URL": index} if index else {}
        return (
            run(
                [*pip, "index", "versions", name], folder, _without_index(environ), {**isolated_variables, **address}
            ).code
            == 0
        )

    reason = "is on more than one of your indexes, and they need not mean the same package"
    return [
        PackageRefusal(name=name, reason=f"{name} {reason}.")
        for name in names
        if sum(is_on_index(index, name) for index in indexes) > 1
    ]


def _without_index(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.upper() != "PIP_INDEX_URL"}


def _list_options(pip: list[str], folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """List pip's effective options, the one with the highest precedence last."""
    lines = run([*pip, "config", "list"], folder, environ, QUIET_VARIABLES).output.splitlines()
    for line in sorted(lines, key=lambda item: item.startswith(":env:")):
        key, separator, value = line.partition("=")
        if separator and value[:1] in "'\"":
            yield key.rpartition(".")[2], str(ast.literal_eval(value))
