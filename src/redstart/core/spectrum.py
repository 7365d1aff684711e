"""Which lines the failing tests run, and which the passing tests run."""

from __future__ import annotations

from math import sqrt
from typing import Annotated

from pydantic import Field

from redstart.core.frozen import FrozenValue

Count = Annotated[int, Field(ge=0)]


class Spectrum(FrozenValue):
    """Line counts from a rerun of the failing tests and some passing tests."""

    red: Count
    """Traced tests that fail; `green` counts those that pass. If none fails, `files` has every line that a test ran."""
    green: Count
    files: dict[str, tuple[tuple[int, Count, Count], ...]]
    """By path as the runner shows it: a line, how many failing tests ran it, and how many passing tests."""

    def compute_suspicion(self) -> dict[str, dict[int, float]]:
        """Compute the suspicion of each line by file, from 0 to 1 (Ochiai). A line with 1 is run by every failing test
        and by no passing test."""
        return {
            path: {line: failed / sqrt(self.red * (failed + passed)) for line, failed, passed in lines if failed}
            for path, lines in self.files.items()
        }
