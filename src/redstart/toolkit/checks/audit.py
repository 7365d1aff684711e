"""Every tool on the same files, and what they say as one list: a defect is told once, whoever sees it."""

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
    """Syntax errors and a few rules that mean trouble, of these files and no others.

    Raises `ConfigError` where a tool is not there or does not work.
    """
    return [item for checks in _all_checks() for item in checks.lint(files)]


def blocked_calls(files: Mapping[str, bytes], names: Sequence[str]) -> list[Finding]:
    """The calls in these files that the user refuses, by their full names."""
    sources = [source_of(path, data) for path, data in files.items()] if names else []
    return [call for source in sources for checks in _all_checks() for call in checks.blocked_calls(source, names)]


def run_tools(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """What all tools say of these files and no others, one finding a defect, by path and line.

    Raises `ConfigError` where a tool is not there or does not work.
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
    """What all tools but ruff say of these files that a patch may not bring along."""
    found = run_tools(files, {*left_out, "ruff"})
    return [item for item in found if item.kind is not FindingKind.code and item.risk.reaches(Risk.medium)]


def merged(found: Sequence[Finding]) -> list[Finding]:
    """One finding for each defect: those of one kind on one line are told once, the most telling first.

    What only counts when confirmed is dropped where nobody else saw it.
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
    # a remark on a line of which something worse is told adds nothing
    told = (
        item
        for each in places.values()
        for item in each
        if item.rule not in REMARKS or (item.path, item.line) not in grave
    )
    return sorted(told, key=lambda each: (each.path, each.line, each.rule, each.message))


def _joined(told: list[Finding], one: Finding, apart: int) -> bool:
    """Whether it says of a line what another one says already; then that one names it."""
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
    """Without the security findings that a comment on their line accepts (`nosec`, `noqa`, `pragma: allowlist`).

    Only for code of people: in what a model writes such a comment has no effect.
    """
    sources: dict[str, Source] = {}
    kept: list[Finding] = []
    for item in found:
        source = sources.setdefault(item.path, Source(item.path, files.get(item.path, b"")))
        line = source.line(item.line)
        if item.kind is FindingKind.code or "#" not in line or not _SUPPRESSED.search(line):
            kept.append(item)
    return kept
