"""Messages that explain to the user why failing tests cannot be targets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from redstart.core.noun import clip, many
from redstart.core.report import FIRST
from redstart.toolkit.suites.problems.ground import EnvironmentProblem

LONGEST = 600
SAID = 3
"""How many reasons the final message of a run lists."""


def reasons(lacking: Mapping[str, EnvironmentProblem]) -> tuple[tuple[str, ...], EnvironmentProblem | None]:
    """Summarize the problems of these tests, most frequent first. Return the texts and the first problem.

    The test with an empty name stands for the whole run: its problem is then the only one.
    """
    counted = Counter(ground.words for id_, ground in lacking.items() if id_).most_common()
    texts = [f"{words} ({count} {'test' if count == 1 else 'tests'})" for words, count in counted]
    whole = lacking.get("")
    ordered = [whole] if whole else [item for words, _ in counted for item in lacking.values() if item.words == words]
    return tuple([whole.words] if whole else texts[:FIRST]), next(iter(ordered), None)


def no_usable_test(attempts: int, fault: str) -> str:
    """Describe that a model was asked for a failing test and wrote none that shows the problem."""
    words = f"the model wrote no usable test in {many(attempts, 'attempt')}"
    return clip(f"{words}: {fault}" if fault else words, LONGEST)


def sentence(fault: str, grounds: Sequence[str], remedy: str) -> str:
    """Format the message that the user reads if the run ends here."""
    if not grounds:
        return fault
    more = f"; and {len(grounds) - SAID} other reasons" if len(grounds) > SAID else ""
    after = re.search(r"after \d+ seconds", fault.partition("\n")[0])
    return f"{'; '.join(grounds[:SAID])}{more}{f' ({after[0]})' if after else ''}. What to do: {remedy}"
