"""Run every tool on the same files and merge their findings: one finding per defect, whichever tool sees it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.checks.narrow import REMARKS
from redstart.toolkit.checks.secrets import secrets
from redstart.toolkit.checks.source import Source, source_of
from redstart.toolkit.languages.abilities import CodeChecks
from redstart.toolkit.languages.registry import abilities

NEAR = 1
"""Lines between two findings of one kind that are about the same statement."""

_SUPPRESSED = re.compile(r"#.*\b(nosec\b|noqa(?!\s*:)|noqa\s*:[^#]*\bS\d|pragma:\s*allowlist)", re.IGNORECASE)


def lint(files: Mapping[str, bytes]) -> list[Finding]:
    """Find syntax errors and violations of a few serious rules in these files.

    Raises `ConfigError` if a tool is missing or does not work.
    """
    return [item for checks in _all_checks() for item in checks.lint(files)]


def blocked_calls(files: Mapping[str, bytes], names: Sequence[str]) -> list[Finding]:
    """Find the calls in these files that the user forbids, by their full names."""
    sources = [source_of(path, data) for path, data in files.items()] if names else []
    return [call for source in sources for checks in _all_checks() for call in checks.blocked_calls(source, names)]


def run_tools(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """Return all tools' findings in these files, one finding per defect, by path and line.

    Raises `ConfigError` if a tool is missing or does not work.
    """
    sources = [source_of(path, data) for path, data in sorted(files.items())]
    known = _all_checks()
    rules = [("secrets", secrets), *(named for checks in known for named in checks.rules())]
    programs = [named for checks in known for named in checks.programs()]
    with ThreadPoolExecutor(max(len(programs), 1)) as pool:
        apart = [pool.submit(tool, sources) for name, tool in programs if name not in left_out]
        own = [item for name, tool in rules if name not in left_out for item in tool(sources)]
        said = [item for each in apart for item in each.result()]
    return merged([*own, *said])


def security(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """Return the findings in these files, of all tools except ruff, that a patch may not introduce."""
    found = run_tools(files, {*left_out, "ruff"})
    return [item for item in found if item.kind is not FindingKind.code and item.risk.reaches(Risk.medium)]


def merged(found: Sequence[Finding]) -> list[Finding]:
    """Merge the findings to one per defect: of one kind on one line, the most severe is kept.

    A finding that only counts when confirmed is dropped if no other tool confirms it.
    """
    known = _all_checks()
    guesses: list[Finding] = []
    sure: list[Finding] = []
    for item in found:
        is_guess = any(checks.only_confirms(item) for checks in known)
        (guesses if is_guess else sure).append(item)
    result: list[Finding] = []
    for item in sorted(sure, key=lambda each: (each.path, each.line, -list(Risk).index(each.risk))):
        if not _joined(result, item, 0):
            result.append(item)
    places: dict[str, list[Finding]] = {}
    for item in result:
        places.setdefault(item.path, []).append(item)
    for guess in guesses:
        near = places.get(guess.path, [])
        _ = _joined(near, guess, 0) or _joined(near, guess, NEAR)
    grave = {(item.path, item.line) for item in result if item.kind is not FindingKind.code}
    # a remark adds nothing to a line with a worse finding
    told = (
        item
        for each in places.values()
        for item in each
        if item.rule not in REMARKS or (item.path, item.line) not in grave
    )
    return sorted(told, key=lambda each: (each.path, each.line, each.rule, each.message))


def _joined(told: list[Finding], one: Finding, apart: int) -> bool:
    """Whether an earlier finding says the same about the line; then that finding names this one."""
    for place in range(len(told) - 1, -1, -1):
        other = told[place]
        if one.path != other.path:
            return False
        alike = one.kind is other.kind and one.kind is not FindingKind.code and abs(one.line - other.line) <= apart
        if not alike or (one.tool == other.tool and one.rule != other.rule):
            continue
        said = f"{one.tool} {one.rule}"
        if said not in other.also and said != f"{other.tool} {other.rule}":
            told[place] = other.model_copy(update={"also": (*other.also, said)})
        return True
    return False


def _all_checks() -> list[CodeChecks]:
    return abilities(lambda language: language.code_checks)


def without_suppressed(found: Sequence[Finding], files: Mapping[str, bytes]) -> list[Finding]:
    """Drop the security findings that a comment on their line accepts (`nosec`, `noqa`, `pragma: allowlist`).

    Only for people's code: in a model's code such a comment has no effect.
    """
    sources: dict[str, Source] = {}
    kept: list[Finding] = []
    for item in found:
        source = sources.setdefault(item.path, Source(item.path, files.get(item.path, b"")))
        line = source.line(item.line)
        if item.kind is FindingKind.code or "#" not in line or not _SUPPRESSED.search(line):
            kept.append(item)
    return kept
