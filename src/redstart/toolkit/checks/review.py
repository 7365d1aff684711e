"""Check a model's claims about code against the code: a claim that its line does not support is dropped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.core.frozen import clip
from redstart.toolkit.checks.source import Source

TOOL = "model"
APART = 3
"""Lines by which a model may miscount."""
MIN_QUOTE_LETTERS = 4
"""The minimum number of letters of a meaningful quote."""


class ReviewClaim(NamedTuple):
    path: str
    line: int
    quote: str
    kind: str
    risk: str
    message: str


class ReviewResult(NamedTuple):
    findings: list[Finding]
    dropped_count: int


def verify_claims(claims: Iterable[ReviewClaim], files: Mapping[str, bytes]) -> ReviewResult:
    """Keep the claims whose file is among these, and whose quoted line is at the claimed line or a few lines off."""
    findings: dict[str, Finding] = {}
    dropped = 0
    sources = {path: Source(path, data) for path, data in files.items()}
    for claim in claims:
        source = sources.get(claim.path.strip().removeprefix("./"))
        line = _place(source, claim) if source is not None else None
        if source is None or line is None or not claim.message.strip():
            dropped += 1
            continue
        kind = next((item for item in FindingKind if item.value == claim.kind.strip().lower()), FindingKind.code)
        risk = next((item for item in Risk if item.value == claim.risk.strip().lower()), Risk.medium)
        finding = source.build_finding(
            TOOL, f"review-{kind.value.replace('_', '-')}", line, clip(claim.message, 400), kind, risk
        )
        findings.setdefault(finding.fingerprint, finding)
    return ReviewResult(list(findings.values()), dropped)


def _place(source: Source, claim: ReviewClaim) -> int | None:
    """Return the line nearest to the claimed one whose text matches the quote; None if there is none."""
    quote = _collapse_spaces(next((line for line in claim.quote.splitlines() if line.strip()), ""))
    if len(quote) < MIN_QUOTE_LETTERS or not 1 <= claim.line <= len(source.lines):
        return None
    nearby = range(max(1, claim.line - APART), min(len(source.lines), claim.line + APART) + 1)
    matches = [
        line
        for line in nearby
        if quote == (text := _collapse_spaces(source.get_line(line))) or (len(quote) > 12 and quote in text)
    ]
    return min(matches, key=lambda line: abs(line - claim.line), default=None)


def _collapse_spaces(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()
