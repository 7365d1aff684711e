"""Exit codes that scripts can rely on."""

from __future__ import annotations

from redstart.core.run import Mode, Result, RunState, Status

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


def exit_code(state: RunState) -> int:
    """Return the exit code of a run in its current state: 130 if it can still continue, or 7 if it waits for a
    person."""
    waits = state.status in (Status.needs_input, Status.paused)
    if waits and state.spec.mode is not Mode.improve:
        return _CODES[Result.needs_human]
    if state.status is not Status.finished or state.result is None:
        return INTERRUPTED
    return _CODES[state.result]
