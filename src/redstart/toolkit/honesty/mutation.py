"""One small change to a program."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    path: str
    start: int
    end: int
    """The byte range of the file that `text` replaces."""
    text: bytes
    line: int
    kind: str
    """The description of the change."""
    function_name: str
    """The function or method; empty outside any."""

    @property
    def words(self) -> str:
        """Describe the place and the change, without any code: whoever writes the tests must not see the program."""
        place = (
            f"in `{self.function_name}` ({self.path}, line {self.line})"
            if self.function_name
            else f"in {self.path}, line {self.line}"
        )
        return f"{place}, {self.kind}"

    def apply_to(self, text: bytes) -> bytes:
        """Apply this change to the text of the file."""
        return text[: self.start] + self.text + text[self.end :]


NEGATED_COMPARISON, BORDER = "a comparison is turned round", "a border is off by one"
CALCULATION, LOGIC = "a calculation is another", "`and` and `or` are swapped"
CONDITION, CONSTANT = "a condition is negated", "a value is another"
NOTHING_BACK, LEFT_OUT, NOT_RAISED = "nothing is given back", "a step is left out", "an error is not raised"
MOVED_BORDERS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
"""Each comparison with its off-by-one counterpart."""
