"""Check the syntax of the languages whose grammar Redstart has, without running the code."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.finding import Finding, Severity
from redstart.toolkit.checks.selection import SYNTAX
from redstart.toolkit.languages.registry import find_file_language


def find_syntax_errors(files: Mapping[str, bytes]) -> list[Finding]:
    """Find where these files cannot be read, at most one finding per file, by path.

    The grammars sometimes lag behind the languages; a caller who asks only for new findings is not affected.
    """
    findings: list[Finding] = []
    for path, data in sorted(files.items()):
        language = find_file_language(path)
        if language and (line := language.find_unreadable_line(path, data)):
            findings.append(_build_finding(language.program or language.name, path, line, data))
    return findings


def _build_finding(tool: str, path: str, line: int, data: bytes) -> Finding:
    lines = data.decode("utf-8", "replace").split("\n")
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Finding(
        tool=tool,
        rule=SYNTAX,
        path=path,
        line=line,
        severity=Severity.error,
        message="it cannot be read from this line on",
        fingerprint=Finding.mark(tool, SYNTAX, path, text),
    )
