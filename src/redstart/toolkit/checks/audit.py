"""Run every tool on the same files and merge their findings: one finding per defect, whichever tool sees it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.checks.secrets import find_secrets
from redstart.toolkit.checks.selection import REMARKS
from redstart.toolkit.checks.source import Source, create_source
from redstart.toolkit.languages.abilities import CodeChecks
from redstart.toolkit.languages.registry import list_abilities

MAX_LINE_DISTANCE = 1
"""Lines between two findings of one kind that are about the same statement."""

_SUPPRESSED = re.compile(r"#.*\b(nosec\b|noqa(?!\s*:)|noqa\s*:[^#]*\bS\d|pragma:\s*allowlist)", re.IGNORECASE)


def lint(files: Mapping[str, bytes]) -> list[Finding]:
    """Find syntax errors and violations of a few serious rules in these files.

    Raises `ConfigError` if a tool is missing or does not work.
    """
    return [item for checks in _list_checks() for item in checks.lint(files)]


def find_blocked_calls(files: Mapping[str, bytes], names: Sequence[str]) -> list[Finding]:
    """Find the calls in these files that the user forbids, by their full names."""
    sources = [create_source(path, data) for path, data in files.items()] if names else []
    return [
        call for source in sources for checks in _list_checks() for call in checks.find_blocked_calls(source, names)
    ]


def run_tools(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """Return all tools' findings in these files, one finding per defect, by path and line.

    Raises `ConfigError` if a tool is missing or does not work.
    """
    sources = [create_source(path, data) for path, data in sorted(files.items())]
    checkers = _list_checks()
    rules = [("secrets", find_secrets), *(entry for checks in checkers for entry in checks.list_rules())]
    programs = [entry for checks in checkers for entry in checks.list_programs()]
    with ThreadPoolExecutor(max(len(programs), 1)) as pool:
        apart = [pool.submit(tool, sources) for name, tool in programs if name not in left_out]
        rule_findings = [item for name, tool in rules if name not in left_out for item in tool(sources)]
        program_findings = [item for future in apart for item in future.result()]
    return merge_findings([*rule_findings, *program_findings])


def find_security_problems(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """Return the findings in these files, of all tools except ruff, that a patch may not introduce."""
    findings = run_tools(files, {*left_out, "ruff"})
    return [item for item in findings if item.kind is not FindingKind.code and item.risk.is_at_least(Risk.medium)]


def merge_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Keep one finding per defect: of several findings of one kind on one line, the most severe.

    A finding that only counts when confirmed is dropped if no other tool confirms it.
    """
    checkers = _list_checks()
    guesses: list[Finding] = []
    confirmed: list[Finding] = []
    for item in findings:
        is_guess = any(checks.needs_confirmation(item) for checks in checkers)
        (guesses if is_guess else confirmed).append(item)
    result: list[Finding] = []
    for item in sorted(confirmed, key=lambda entry: (entry.path, entry.line, -list(Risk).index(entry.risk))):
        if not _merge_into(result, item, 0):
            result.append(item)
    places: dict[str, list[Finding]] = {}
    for item in result:
        places.setdefault(item.path, []).append(item)
    for guess in guesses:
        nearby = places.get(guess.path, [])
        _ = _merge_into(nearby, guess, 0) or _merge_into(nearby, guess, MAX_LINE_DISTANCE)
    grave = {(item.path, item.line) for item in result if item.kind is not FindingKind.code}
    # a remark adds nothing to a line with a worse finding
    reported = (
        item
        for entry in places.values()
        for item in entry
        if item.rule not in REMARKS or (item.path, item.line) not in grave
    )
    return sorted(reported, key=lambda entry: (entry.path, entry.line, entry.rule, entry.message))


def _merge_into(findings: list[Finding], finding: Finding, apart: int) -> bool:
    """Whether an earlier finding says the same about the line; then that finding names this one."""
    for place in range(len(findings) - 1, -1, -1):
        other = findings[place]
        if finding.path != other.path:
            return False
        alike = (
            finding.kind is other.kind
            and finding.kind is not FindingKind.code
            and abs(finding.line - other.line) <= apart
        )
        if not alike or (finding.tool == other.tool and finding.rule != other.rule):
            continue
        label = f"{finding.tool} {finding.rule}"
        if label not in other.also and label != f"{other.tool} {other.rule}":
            findings[place] = other.model_copy(update={"also": (*other.also, label)})
        return True
    return False


def _list_checks() -> list[CodeChecks]:
    return list_abilities(lambda language: language.code_checks)


def without_suppressed(findings: Sequence[Finding], files: Mapping[str, bytes]) -> list[Finding]:
    """Drop the security findings that a comment on their line accepts (`nosec`, `noqa`, `pragma: allowlist`).

    Only for people's code: in a model's code such a comment has no effect.
    """
    sources: dict[str, Source] = {}
    remaining: list[Finding] = []
    for item in findings:
        source = sources.setdefault(item.path, Source(item.path, files.get(item.path, b"")))
        line = source.get_line(item.line)
        if item.kind is FindingKind.code or "#" not in line or not _SUPPRESSED.search(line):
            remaining.append(item)
    return remaining
