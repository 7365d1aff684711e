"""Makes our own harness, which lies in `tests/support`, importable for the benches: import this module before it."""

from __future__ import annotations

import sys
from pathlib import Path

_HARNESS = str(Path(__file__).parents[1] / "tests")
if _HARNESS not in sys.path:
    sys.path.append(_HARNESS)
