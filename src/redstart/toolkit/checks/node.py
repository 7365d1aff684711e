"""Syntax of JavaScript and TypeScript, read and not run."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.finding import Finding, Severity
from redstart.toolkit.languages.node.trees import faults, is_script

SYNTAX = "syntax"
"""The rule of a finding that says: this file cannot be read. It is the one that ruff's findings use too."""
_TOOL = "node"
_TYPES = (".d.ts", ".d.mts", ".d.cts")


def syntax_findings(files: Mapping[str, bytes]) -> list[Finding]:
    """Where these files cannot be read, at most one finding a file, by path. Others than scripts are passed over.

    The grammars lag behind the languages now and then; a caller who asks what is new is not troubled by that.
    """
    found: list[Finding] = []
    for path, data in sorted(files.items()):
        lines = faults(path, data) if is_script(path) and not path.endswith(_TYPES) else []
        if lines:
            found.append(_finding(path, lines[0], data))
    return found


def _finding(path: str, line: int, data: bytes) -> Finding:
    lines = data.decode("utf-8", "replace").split("\n")
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Finding(
        tool=_TOOL,
        rule=SYNTAX,
        path=path,
        line=line,
        severity=Severity.error,
        message="it cannot be read from this line on",
        fingerprint=Finding.mark(_TOOL, SYNTAX, path, text),
    )
