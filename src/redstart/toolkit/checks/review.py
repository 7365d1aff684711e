"""Check a model's claims about code against the code: a claim that its line does not support is dropped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.core.noun import clip
from redstart.toolkit.checks.source import Source

TOOL = "model"
APART = 3
"""Lines by which a model may miscount."""
LEAST = 4
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
    dropped: int


def verified(claims: Iterable[ReviewClaim], files: Mapping[str, bytes]) -> ReviewResult:
    """Keep the claims whose file is among these, and whose quoted line is at the claimed line or a few lines off."""
    found: dict[str, Finding] = {}
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
        one = source.finding(TOOL, f"review-{kind.value.replace('_', '-')}", line, clip(claim.message, 400), kind, risk)
        found.setdefault(one.fingerprint, one)
    return ReviewResult(list(found.values()), dropped)


def _place(source: Source, claim: ReviewClaim) -> int | None:
    """Return the line nearest to the claimed one whose text matches the quote; None if there is none."""
    quote = _plain(next((line for line in claim.quote.splitlines() if line.strip()), ""))
    if len(quote) < LEAST or not 1 <= claim.line <= len(source.lines):
        return None
    near = range(max(1, claim.line - APART), min(len(source.lines), claim.line + APART) + 1)
    fits = [
        line for line in near if quote == (text := _plain(source.line(line))) or (len(quote) > 12 and quote in text)
    ]
    return min(fits, key=lambda line: abs(line - claim.line), default=None)


def _plain(line: str) -> str:
    return re.sub(r"\s+", " ", line).strip()
