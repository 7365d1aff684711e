"""Which lines the red tests run that green ones do not."""

from __future__ import annotations

from math import sqrt
from typing import Annotated

from pydantic import Field

from redstart.core.noun import FrozenValue

Count = Annotated[int, Field(ge=0)]


class Spectrum(FrozenValue):
    """What was seen while the red tests, and some of the green ones beside them, were run once more."""

    red: Annotated[int, Field(ge=1)]
    """Tests of each colour that were seen."""
    green: Count
    files: dict[str, tuple[tuple[int, Count, Count], ...]]
    """By file, as the runner shows its path: a line, how many red tests ran it, and how many green ones."""

    def suspicion(self) -> dict[str, dict[int, float]]:
        """By file and line, from 0 to 1 (Ochiai): 1 is run by every red test and by no green one."""
        return {
            path: {line: red / sqrt(self.red * (red + green)) for line, red, green in lines if red}
            for path, lines in self.files.items()
        }
