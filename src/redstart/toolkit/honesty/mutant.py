"""One small change to a program."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    path: str
    start: int
    end: int
    """Bytes of the file that `text` stands in the place of."""
    text: bytes
    line: int
    kind: str
    """What is other, in words."""
    where: str
    """The function or method; empty outside of any."""

    @property
    def words(self) -> str:
        """Where and what, without any of the code: whoever writes tests from this has not seen the program."""
        place = (
            f"in `{self.where}` ({self.path}, line {self.line})" if self.where else f"in {self.path}, line {self.line}"
        )
        return f"{place}, {self.kind}"

    def of(self, text: bytes) -> bytes:
        """The file with this change."""
        return text[: self.start] + self.text + text[self.end :]


TURNED, BORDER = "a comparison is turned round", "a border is off by one"
CALCULATION, LOGIC = "a calculation is another", "`and` and `or` are swapped"
CONDITION, CONSTANT = "a condition is negated", "a value is another"
NOTHING_BACK, LEFT_OUT, NOT_RAISED = "nothing is given back", "a step is left out", "an error is not raised"
MOVED_BORDERS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
"""Comparisons, each with the one whose border is off by one."""
