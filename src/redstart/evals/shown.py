"""Tasks of the public sets whose tests are all shown."""

from __future__ import annotations

_PYTHON = (32, 51, 64, 81, 82, 89, 90, 92, 99, 138, 140, 141, 149, 157)
_JAVASCRIPT = (51, 64, 81, 89, 91, 92, 108, 112, 125, 127, 136, 138, 141, 149, 157)

SHOWN_WHOLE = frozenset(
    (
        "quixbugs/quicksort",
        *(f"humanevalfix/Python/{number}" for number in _PYTHON),
        *(f"humanevalfix/JavaScript/{number}" for number in _JAVASCRIPT),
    )
)
"""Some of their tests pass on the program with the bug, as `redstart eval check-tasks` reports: there would be no red
to start from."""
