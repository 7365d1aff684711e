"""Checks of passing patches that exist only for Python."""

from __future__ import annotations

from redstart.toolkit.languages.python.assertion_counts import examine_assertions
from redstart.toolkit.languages.python.nearby_check import examine_nearby, find_difference

__all__ = ["examine_assertions", "examine_nearby", "find_difference"]
