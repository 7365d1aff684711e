"""The state of runs in the store after a drill: whether each ended once, with nothing missing or duplicated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from drills.ground import HOME, Ground

_ENDED = "SELECT id FROM runs WHERE status = 'finished'"
_ENDED_ONCE = """
    SELECT run_id FROM events WHERE body::json->>'name' = 'run' AND body::json->>'phase' = 'end'
    GROUP BY run_id HAVING count(*) = 1"""
_GAPS = """
    SELECT steps.run_id FROM steps JOIN runs ON runs.tenant = steps.tenant AND runs.id = steps.run_id
    GROUP BY steps.run_id, runs.version
    HAVING min(steps.version) <> 1 OR max(steps.version) <> count(*) OR count(*) <> runs.version
    UNION SELECT run_id FROM events GROUP BY run_id HAVING min(seq) <> 0 OR max(seq) + 1 <> count(*)
    UNION SELECT run_id FROM journal WHERE ordinal >= 0
    GROUP BY run_id, attempt, step HAVING max(ordinal) + 1 <> count(*)"""
_TWICE = """
    SELECT run_id FROM steps GROUP BY run_id, attempt, step HAVING count(*) > 1
    UNION SELECT run_id FROM cards GROUP BY run_id HAVING count(*) > 1
    UNION SELECT run_id FROM journal GROUP BY run_id, position HAVING count(*) > 1"""
_TRAILS = "SELECT run_id, string_agg(step, ' ' ORDER BY version) FROM steps GROUP BY run_id"
_CARDS = "SELECT run_id FROM cards"


class Truth(NamedTuple):
    """IDs of runs, by defect."""

    lost: set[str]
    """Did not end, or ended more than once."""
    gaps: set[str]
    """A step, an event or a record is missing."""
    twice: set[str]
    """A step, a card or a record exists more than once."""
    other_way: set[str]
    """Took other steps than most runs, or left no card."""


def check_runs(ground: Ground, ids: Sequence[str], tenant: str = HOME) -> Truth:
    """Check runs that should all have ended verified with the same steps."""

    def query_ids(query: str) -> set[str]:
        return {row[0] for row in ground.query_rows(query, tenant)}

    trails = {run: trail for run, trail in ground.query_rows(_TRAILS, tenant) if run in set(ids)}
    step_sequences = list(trails.values())
    most_common = max(step_sequences, key=step_sequences.count, default="")
    run_ids = set(ids)
    return Truth(
        lost=run_ids - (query_ids(_ENDED) & query_ids(_ENDED_ONCE)),
        gaps=run_ids & query_ids(_GAPS),
        twice=run_ids & query_ids(_TWICE),
        other_way={run for run in run_ids if trails.get(run) != most_common} | (run_ids - query_ids(_CARDS)),
    )
