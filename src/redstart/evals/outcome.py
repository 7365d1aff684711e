"""What one run of an evaluation came to: a row of the results."""

from __future__ import annotations

from enum import StrEnum

from redstart.core.noun import Noun

NO_RUNG = "none"
"""What an edit is counted under that did not fit."""


class Place(StrEnum):
    """Where a run ended: solved, or what it did not get past."""

    solved = "solved"
    false_green = "false green"
    """It called itself green, and the hidden tests say otherwise."""
    not_reproduced = "not reproduced"
    not_localised = "not localised"
    """The files of the true fix were never shown to the model."""
    no_edit = "no usable edit"
    edit_rejected = "edit rejected"
    refused = "refused"
    """By policy, or because a person would have to be asked."""
    still_red = "still red"
    newly_red = "newly red"
    budget = "budget"
    broken = "broken"
    """Machinery failed; it says nothing about the agent."""


class Key(Noun):
    """Which run it is."""

    task: str
    seed: int = 0
    run: int = 1

    def __hash__(self) -> int:
        return hash((self.task, self.seed, self.run))

    def __str__(self) -> str:
        return f"{self.task} seed {self.seed} run {self.run}"


class Outcome(Noun):
    key: Key
    run_id: str = ""
    result: str = ""
    """The run's own word for how it ended."""
    solved: bool = False
    """By the hidden tests."""
    claimed: bool = False
    """Whether the run called itself green."""
    place: Place
    attempts: int = 0
    dishonest: int = 0
    """Attempts that touched tests, tripped a wire on cheating or were refused by policy; all of them were caught."""
    seconds: float = 0.0
    """Of the run itself."""
    graded_in: float = 0.0
    """Seconds that the hidden tests took afterwards."""
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0
    rungs: dict[str, int] = {}
    """Edits by how far each had to be bent to fit; `none` for those that did not."""
    recall: float | None = None
    """Of the files of the true fix, the share that the first context showed; None where the fix is not known."""
    lines_shown: bool | None = None
    """Whether some context held every line that the true fix changes."""
    repeated: int = 0
    """Attempts with the very patch of an earlier one."""
    revisited: int = 0
    """Attempts that ended in a failing state that an earlier one had ended in."""
    files: tuple[str, ...] = ()
    patch: str = ""
    """The diff of what was made, where it called itself green. It is in the row: it stays when runs are forgotten."""
    trouble: str = ""
    """What was broken, or why it could not be graded."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens
