"""Every tool on the same files, and what they say as one list: a defect is told once, whoever sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from redstart.core.finding import Finding, Kind, Risk, Severity
from redstart.toolkit.checks import ruff
from redstart.toolkit.checks.bandit import ask_bandit
from redstart.toolkit.checks.calls import dangerous_calls
from redstart.toolkit.checks.injection import built_strings
from redstart.toolkit.checks.misspelt import misspelt_sql
from redstart.toolkit.checks.narrow import REMARKS
from redstart.toolkit.checks.secrets import secrets
from redstart.toolkit.checks.source import Source

Tool = Callable[[Sequence[Source]], list[Finding]]

NEAR = 1
"""Lines between two findings of one kind that are about the same statement."""

_FROM_RUFF = {
    "S502": Risk.high, "S503": Risk.high, "S504": Risk.medium, "S505": Risk.high, "S507": Risk.high,
    "S508": Risk.medium,
    "S509": Risk.medium, "S609": Risk.high, "S612": Risk.high, "S702": Risk.high, "S304": Risk.high, "S305": Risk.high,
    "S312": Risk.medium, "S321": Risk.medium,
}  # fmt: skip
"""Its security rules that are taken as they come."""
_CONFIRMS = {
    "S608": Kind.sql_injection, "S611": Kind.sql_injection, "S610": Kind.sql_injection, "S105": Kind.secret,
    "S106": Kind.secret, "S107": Kind.secret,
}  # fmt: skip
"""Security rules that count only where a rule of ours says the same; all that are not named are about calls."""
_SUPPRESSED = re.compile(r"#.*\b(nosec\b|noqa(?!\s*:)|noqa\s*:[^#]*\bS\d|pragma:\s*allowlist)", re.IGNORECASE)


def _ruff(sources: Sequence[Source]) -> list[Finding]:
    files = {source.path: source.data for source in sources}
    return [_graded(one) for one in ruff.check(files, ruff.SECURITY)]


def _graded(one: Finding) -> Finding:
    rule = one.rule
    if rule in _FROM_RUFF:
        return one.model_copy(update={"kind": Kind.dangerous_call, "risk": _FROM_RUFF[rule]})
    if rule == ruff.SYNTAX:
        return one.model_copy(update={"risk": Risk.high})
    if rule in ruff.UNTIDY or rule in REMARKS:
        return one.model_copy(update={"severity": Severity.warning})
    if re.fullmatch(r"S\d+", rule):
        return one.model_copy(update={"kind": _CONFIRMS.get(rule, Kind.dangerous_call), "severity": Severity.warning})
    return one.model_copy(update={"risk": Risk.medium})


TOOLS: Mapping[str, tuple[Tool, ...]] = {
    "ruff": (_ruff,),
    "bandit": (ask_bandit,),
    "secrets": (secrets,),
    "rules": (built_strings, dangerous_calls, misspelt_sql),
}
"""By the name under which a tool can be left out or replaced."""
_APART = ("ruff", "bandit")
"""They run as processes of their own, while ours read."""


def run_tools(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """What all tools say of these files and no others, one finding a defect, by path and line.

    Raises `ConfigError` where a tool is not there or does not work.
    """
    sources = [Source(path, data) for path, data in sorted(files.items())]
    tools = {name: parts for name, parts in TOOLS.items() if name not in left_out}
    with ThreadPoolExecutor(len(_APART)) as pool:
        apart = [pool.submit(part, sources) for name in _APART for part in tools.get(name, ())]
        own = [one for name, parts in tools.items() if name not in _APART for part in parts for one in part(sources)]
        said = [one for each in apart for one in each.result()]
    return merged([*own, *said])


def security(files: Mapping[str, bytes], left_out: Collection[str] = ()) -> list[Finding]:
    """What all tools but ruff say of these files that a patch may not bring along."""
    found = run_tools(files, {*left_out, "ruff"})
    return [one for one in found if one.kind is not Kind.code and one.risk.reaches(Risk.medium)]


def merged(found: Sequence[Finding]) -> list[Finding]:
    """One finding for each defect: those of one kind on one line are told once, the most telling first.

    What only counts when confirmed is dropped where nobody else saw it.
    """
    sure = [one for one in found if not _only_confirms(one)]
    result: list[Finding] = []
    for one in sorted(sure, key=lambda each: (each.path, each.line, -list(Risk).index(each.risk))):
        if not _joined(result, one, 0):
            result.append(one)
    places: dict[str, list[Finding]] = {}
    for one in result:
        places.setdefault(one.path, []).append(one)
    for one in found:
        if _only_confirms(one):
            near = places.get(one.path, [])
            _ = _joined(near, one, 0) or _joined(near, one, NEAR)
    grave = {(one.path, one.line) for one in result if one.kind is not Kind.code}
    # a remark on a line of which something worse is told adds nothing
    told = (
        one for each in places.values() for one in each if one.rule not in REMARKS or (one.path, one.line) not in grave
    )
    return sorted(told, key=lambda each: (each.path, each.line, each.rule, each.message))


def _joined(told: list[Finding], one: Finding, apart: int) -> bool:
    """Whether it says of a line what another one says already; then that one names it."""
    for place in range(len(told) - 1, -1, -1):
        other = told[place]
        if one.path != other.path:
            return False
        alike = one.kind is other.kind and one.kind is not Kind.code and abs(one.line - other.line) <= apart
        if not alike or (one.tool == other.tool and one.rule != other.rule):
            continue
        said = f"{one.tool} {one.rule}"
        if said not in other.also and said != f"{other.tool} {other.rule}":
            told[place] = other.model_copy(update={"also": (*other.also, said)})
        return True
    return False


def _only_confirms(one: Finding) -> bool:
    """Whether it is a guess of ruff's that somebody else has to share."""
    return one.tool == "ruff" and one.kind is not Kind.code and one.rule not in _FROM_RUFF


def without_suppressed(found: Sequence[Finding], files: Mapping[str, bytes]) -> list[Finding]:
    """Without the security findings that a comment on their line accepts (`nosec`, `noqa`, `pragma: allowlist`).

    Only for code of people: in what a model writes such a comment has no effect.
    """
    sources: dict[str, Source] = {}
    kept: list[Finding] = []
    for one in found:
        source = sources.setdefault(one.path, Source(one.path, files.get(one.path, b"")))
        line = source.line(one.line)
        if one.kind is Kind.code or "#" not in line or not _SUPPRESSED.search(line):
            kept.append(one)
    return kept
