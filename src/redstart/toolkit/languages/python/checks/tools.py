"""Tools that find faults in Python code. This module implements `CodeChecks`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from redstart.core.finding import Finding, FindingKind, Risk, Severity
from redstart.toolkit.checks.selection import REMARKS, SYNTAX
from redstart.toolkit.checks.source import Source
from redstart.toolkit.languages.abilities import NamedTool
from redstart.toolkit.languages.python.checks import calls, ruff
from redstart.toolkit.languages.python.checks.bandit import ask_bandit
from redstart.toolkit.languages.python.checks.injection import find_built_strings
from redstart.toolkit.languages.python.checks.source import PythonSource
from redstart.toolkit.languages.python.checks.sql_spelling import find_misspelled_sql

_FROM_RUFF = {
    "S502": Risk.high, "S503": Risk.high, "S504": Risk.medium, "S505": Risk.high, "S507": Risk.high,
    "S508": Risk.medium,
    "S509": Risk.medium, "S609": Risk.high, "S612": Risk.high, "S702": Risk.high, "S304": Risk.high, "S305": Risk.high,
    "S312": Risk.medium, "S321": Risk.medium,
}  # fmt: skip
"""Ruff's security rules whose findings are used without confirmation."""
_CONFIRMS = {
    "S608": FindingKind.sql_injection, "S611": FindingKind.sql_injection, "S610": FindingKind.sql_injection,
    "S105": FindingKind.secret, "S106": FindingKind.secret, "S107": FindingKind.secret,
}  # fmt: skip
"""Security rules that count only if one of our rules confirms them; rules not listed are about calls."""

lint = ruff.check


def list_rules() -> Sequence[NamedTool]:
    return (("rules", _run_own_rules), ("rules", find_misspelled_sql))


def list_programs() -> Sequence[NamedTool]:
    return (("ruff", _run_ruff), ("bandit", ask_bandit))


def needs_confirmation(finding: Finding) -> bool:
    """Whether a finding is an unconfirmed security finding of ruff."""
    return finding.tool == "ruff" and finding.kind is not FindingKind.code and finding.rule not in _FROM_RUFF


def find_blocked_calls(source: Source, names: Sequence[str]) -> list[Finding]:
    return calls.find_blocked_calls(source, names) if isinstance(source, PythonSource) else []


def _run_own_rules(sources: Sequence[Source]) -> list[Finding]:
    python_sources = [source for source in sources if isinstance(source, PythonSource)]
    return [*find_built_strings(python_sources), *calls.find_dangerous_calls(python_sources)]


def _run_ruff(sources: Sequence[Source]) -> list[Finding]:
    files = {source.path: source.data for source in sources}
    return [_grade_finding(item) for item in ruff.check(files, ruff.SECURITY)]


def _grade_finding(finding: Finding) -> Finding:
    rule = finding.rule
    if rule in _FROM_RUFF:
        return finding.model_copy(update={"kind": FindingKind.dangerous_call, "risk": _FROM_RUFF[rule]})
    if rule == SYNTAX:
        return finding.model_copy(update={"risk": Risk.high})
    if rule in ruff.UNTIDY or rule in REMARKS:
        return finding.model_copy(update={"severity": Severity.warning})
    if re.fullmatch(r"S\d+", rule):
        return finding.model_copy(
            update={"kind": _CONFIRMS.get(rule, FindingKind.dangerous_call), "severity": Severity.warning}
        )
    return finding.model_copy(update={"risk": Risk.medium})
