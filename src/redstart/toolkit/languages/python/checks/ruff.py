"""Check syntax and a few rules that indicate bugs, with the ruff of Redstart's own environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import tokenize
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from redstart.core.errors import ConfigError, PolicyViolation
from redstart.core.finding import Finding, Severity
from redstart.toolkit.checks.selection import SYNTAX

SECURITY = ("S",)
"""Rules used in addition to `RULES` in an audit."""
RULES = ("E9", "F", "PLE", "B006", "S102", "S307", "S602", "S605")
UNTIDY = frozenset({"F401", "F841"})
"""Rules for unused code, which are warnings."""

_TOOL = "ruff"
_UNREADABLE = frozenset({"invalid-syntax", "E902", "E999"})
_SECONDS = 120
_LINE_END = re.compile(r"\r\n|\r|\n")
_INSTALL_HINT = "install ruff next to redstart: pip install ruff"


def check(files: Mapping[str, bytes], extra_rules: Sequence[str] = ()) -> list[Finding]:
    """Return ruff's findings in these files and no others, sorted by path and line. Non-`.py` files are skipped.

    Ruff checks `RULES` and the extra rules, if any.

    The files are not trusted: neither a configuration among them nor a `noqa` comment has an effect, and none of their
    code runs. Raises `ConfigError` if ruff is missing or does not work, and `PolicyViolation` for a path that leaves
    the directory.
    """
    sources = {_normalize_path(path): data for path, data in sorted(files.items()) if path.endswith(".py")}
    findings = _check(sources, (*RULES, *extra_rules)) if sources else []
    return sorted(findings, key=lambda item: (item.path, item.line, item.rule, item.message))


def _check(sources: Mapping[str, bytes], rules: Sequence[str]) -> list[Finding]:
    with tempfile.TemporaryDirectory(prefix="redstart-ruff-") as name:
        folder = Path(name).resolve()
        for path, data in sources.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(_as_utf8(data))
        messages = _run(folder, rules)
        if messages is not None:
            lines = {path: _LINE_END.split(data.decode(errors="replace")) for path, data in sources.items()}
            return [_parse_finding(message, folder, lines) for message in messages]
    # a file that crashes ruff (nested too deeply) must not prevent checking the others
    if len(sources) > 1:
        return [item for path, data in sources.items() for item in _check({path: data}, rules)]
    (path,) = sources
    return [_create_finding(SYNTAX, path, 1, "the file cannot be parsed: ruff crashed on it", [])]


def _run(folder: Path, rules: Sequence[str]) -> list[dict[str, Any]] | None:
    """Run ruff on every file in the directory; None if it crashed."""
    command = [_find_program(), "check", "--isolated", "--no-cache", "--ignore-noqa", "--exit-zero", "--quiet"]
    command += ["--output-format", "json", "--target-version", "py313", "--select", ",".join(rules)]
    # check directories such as `build` and files listed in a .gitignore like any other
    command += ["--no-respect-gitignore", "--config", "exclude = []", "."]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")}
    try:
        completed = subprocess.run(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS
        )
        if completed.returncode < 0:
            return None
        if completed.returncode > 0:
            raise ConfigError(f"ruff failed: {completed.stderr.decode(errors='replace')[-500:]}", remedy=_INSTALL_HINT)
        return json.loads(completed.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"ruff does not work: {error}", remedy=_INSTALL_HINT) from error


def _find_program() -> str:
    try:
        # a packager may omit the wheel and put ruff on PATH
        from ruff import find_ruff_bin  # pyright: ignore[reportMissingTypeStubs]

        return os.fspath(find_ruff_bin())
    except (ImportError, FileNotFoundError):
        program = shutil.which("ruff")
    if program is None:
        raise ConfigError("ruff is not installed", remedy=_INSTALL_HINT)
    return program


def _normalize_path(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise PolicyViolation(f"not a path inside the repo: {path!r}")
    return pure.as_posix()


def _as_utf8(data: bytes) -> bytes:
    """Re-encode a file that declares another encoding as UTF-8, the only one that ruff reads; else leave its bytes."""
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
        return data if encoding.startswith("utf-8") else data.decode(encoding).encode()
    except (SyntaxError, UnicodeError, LookupError):
        return data


def _parse_finding(message: dict[str, Any], folder: Path, lines: Mapping[str, Sequence[str]]) -> Finding:
    path = Path(message["filename"]).relative_to(folder).as_posix()
    code = message["code"]
    rule = SYNTAX if code is None or code in _UNREADABLE else str(code)
    return _create_finding(rule, path, int(message["location"]["row"]), str(message["message"]), lines[path])


def _create_finding(rule: str, path: str, line: int, message: str, lines: Sequence[str]) -> Finding:
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Finding(
        tool=_TOOL,
        rule=rule,
        path=path,
        line=line,
        severity=Severity.warning if rule in UNTIDY else Severity.error,
        message=message,
        fingerprint=Finding.mark(_TOOL, rule, path, text),
    )
