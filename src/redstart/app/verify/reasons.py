"""The verdict on a change in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from redstart.core.frozen import format_count
from redstart.core.verification import ASKING, Claim, ClaimKind, FileRole, SortedFile, VerificationEnd
from redstart.toolkit.honesty.changes.claims import decide_end


class Ending(NamedTuple):
    end: VerificationEnd
    reason: str
    """One sentence, without its full stop."""
    remedy: str = ""


def describe_end(
    end: VerificationEnd, files: Sequence[SortedFile], claims: Sequence[Claim], unexplained: str = ""
) -> Ending:
    """Describe why a verification ends like this, and what to do about it."""
    open_claims = [claim for claim in claims if not claim.accepted]
    if end is VerificationEnd.verified:
        return Ending(end, f"{_describe_proof(claims)}; nothing got worse")
    if end is VerificationEnd.unproven:
        return Ending(end, *_explain_unproven(files, claims))
    if end is VerificationEnd.worse:
        broken = [claim for claim in open_claims if claim.kind is ClaimKind.broken]
        if not broken:
            return Ending(end, f"the result of the tests cannot be trusted: {unexplained}")
        verb = "fails" if len(broken) == 1 else "fail"
        return Ending(end, f"{format_count(len(broken), 'test')} {verb} with the change", "fix the code or the tests")
    if end is VerificationEnd.tampered:
        hidden = sum(claim.kind is ClaimKind.hidden for claim in claims)
        if not hidden:
            return Ending(end, unexplained, "no honest change does this: look at what it adds to the code")
        reason = f"the new test configuration hides the failure of {format_count(hidden, 'test')}"
        return Ending(end, reason, "restore the test configuration, or fix the code")
    if end is VerificationEnd.weakened:
        asking = [claim for claim in open_claims if claim.kind in ASKING]
        verb = "demands" if len(asking) == 1 else "demand"
        reason = f"{format_count(len(asking), 'test')} {verb} less than before, and nobody has accepted that"
        return Ending(end, reason, f"if this is intended: redstart verify --accept '{asking[0].test}'")
    problems = [claim for claim in open_claims if claim.kind is ClaimKind.environment]
    verb = "needs" if len(problems) == 1 else "need"
    reason = f"{format_count(len(problems), 'test')} {verb} something that this machine lacks"
    return Ending(end, reason, problems[0].note if problems else "")


def describe_new_code(claims: Sequence[Claim], files: Sequence[SortedFile], problem: str, remedy: str) -> Ending:
    """Describe the end of a verification whose old code cannot run: it is never verified, and never worse."""
    end = decide_end(claims)
    if end is VerificationEnd.environment:
        failing = sum(claim.kind is ClaimKind.environment for claim in claims)
        verb = "fails" if failing == 1 else "fail"
        reason = f"{format_count(failing, 'test')} {verb} with the change, and the old code cannot run: {problem}"
        return Ending(end, reason, remedy)
    if end is VerificationEnd.unproven:
        return Ending(end, f"the tests pass with the change, and the old code cannot run: {problem}", remedy)
    return describe_end(end, files, claims)


def describe_suspicion(suspicion: str) -> Ending:
    """Describe why the tests prove nothing although they fail without the change and pass with it."""
    reason = f"nothing got worse, but a person must judge the proof: {suspicion}"
    return Ending(VerificationEnd.unproven, reason, "look at what the change adds there")


def _describe_proof(claims: Sequence[Claim]) -> str:
    added = sum(claim.is_proof and claim.kind is ClaimKind.absent_before for claim in claims)
    count = sum(claim.is_proof for claim in claims) - added
    verbs = ("fails", "passes") if count == 1 else ("fail", "pass")
    parts = [f"{format_count(count, 'test')} {verbs[0]} without the change and {verbs[1]} with it"] if count else []
    if added:
        verb = "tests" if added == 1 else "test"
        parts.append(f"{format_count(added, 'new test')} {verb} what the change adds, and can fail")
    return "; ".join(parts)


def _explain_unproven(files: Sequence[SortedFile], claims: Sequence[Claim]) -> tuple[str, str]:
    """Return why nothing proves a change that made nothing worse, and what would prove it."""
    roles = {file.role for file in files}
    if not files:
        return "nothing changed", "name the start of the change with --base"
    if roles <= {FileRole.docs}:
        return "only documentation changed, so no test ran", ""
    if roles <= {FileRole.docs, FileRole.other}:
        return "only files changed that no test reads, so no test ran", ""
    if roles <= {FileRole.docs, FileRole.other, FileRole.tests, FileRole.configuration}:
        return "nothing got worse; only tests changed, which prove nothing about the code", ""
    if absent := sum(claim.kind is ClaimKind.absent_before for claim in claims):
        verb = "tests" if absent == 1 else "test"
        return f"nothing got worse; {format_count(absent, 'new test')} {verb} only what did not exist before", ""
    if any(claim.kind is ClaimKind.green_without for claim in claims):
        return (
            "nothing got worse, and no test proves the change: its new tests pass without it too",
            "let a new test fail on the old code",
        )
    return "nothing got worse, and no test proves the change", "add a test that fails on the old code"
