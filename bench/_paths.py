"""Makes our own harness in `tests/support` importable for the benches: import this module before the harness."""

from __future__ import annotations

import sys
from pathlib import Path

_HARNESS = str(Path(__file__).parents[1] / "tests")
if _HARNESS not in sys.path:
    sys.path.append(_HARNESS)
