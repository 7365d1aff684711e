"""Exit codes that scripts can rely on."""

from __future__ import annotations

from redstart.core.history import ChangeCounts
from redstart.core.run import Mode, Result, RunState, Status
from redstart.core.triage import TriageEnd
from redstart.core.verification import ProofRequirement, VerificationEnd

INTERRUPTED = 130

_CODES: dict[Result, int] = {
    Result.verified: 0,
    Result.already_green: 0,
    Result.unsolved: 1,
    Result.stuck: 1,
    Result.environment: 3,
    Result.capped: 4,
    Result.no_tests: 5,
    Result.refused: 6,
    Result.needs_human: 7,
    Result.unproven: 8,
    Result.partial: 9,
    Result.reported: 0,
    Result.found: 1,
}

_VERIFICATION_CODES: dict[VerificationEnd, int] = {
    VerificationEnd.verified: 0,
    VerificationEnd.worse: 1,
    VerificationEnd.environment: 3,
    VerificationEnd.no_tests: 5,
    VerificationEnd.tampered: 6,
    VerificationEnd.weakened: 7,
    VerificationEnd.unproven: 8,
}


_TRIAGE_CODES: dict[TriageEnd, int] = {
    TriageEnd.green: 0,
    TriageEnd.not_yours: 0,
    TriageEnd.yours: 1,
    TriageEnd.environment: 3,
    TriageEnd.no_tests: 5,
}


def triage_exit_code(end: TriageEnd) -> int:
    """Return the exit code of `redstart triage`: 0 if no failing test is the user's."""
    return _TRIAGE_CODES[end]


def history_exit_code(counts: ChangeCounts) -> int:
    """Return the exit code of `redstart verify --history`: 3 if there are changes and none of them has a verdict."""
    return 3 if counts.changes and not (counts.judged or counts.no_test_ran) else 0


def verification_exit_code(end: VerificationEnd, require: ProofRequirement) -> int:
    """Return the exit code of `redstart verify`: 0 for an unproven change too, unless a proof is required."""
    is_enough = end is VerificationEnd.unproven and require is ProofRequirement.no_worse
    return 0 if is_enough else _VERIFICATION_CODES[end]


def exit_code(state: RunState) -> int:
    """Return the exit code of a run in its current state: 130 if it can still continue, or 7 if it waits for a
    person."""
    waits = state.status in (Status.needs_input, Status.paused)
    if waits and state.spec.mode is not Mode.improve:
        return _CODES[Result.needs_human]
    if state.status is not Status.finished or state.result is None:
        return INTERRUPTED
    return _CODES[state.result]
