"""Messages that explain to the user why failing tests cannot be targets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from redstart.core.frozen import clip, format_count
from redstart.core.report import FIRST
from redstart.toolkit.suites.problems.environment import EnvironmentProblem

LONGEST = 600
MAX_LISTED_REASONS = 3
"""How many reasons the final message of a run lists."""


def summarize_problems(problems: Mapping[str, EnvironmentProblem]) -> tuple[tuple[str, ...], EnvironmentProblem | None]:
    """Summarize the problems of these tests, most frequent first. Return the texts and the first problem.

    The test with an empty name stands for the whole run: its problem is then the only one.
    """
    counts = Counter(problem.words for id_, problem in problems.items() if id_).most_common()
    texts = [f"{description} ({count} {'test' if count == 1 else 'tests'})" for description, count in counts]
    run_problem = problems.get("")
    ordered = (
        [run_problem]
        if run_problem
        else [item for description, _ in counts for item in problems.values() if item.words == description]
    )
    return tuple([run_problem.words] if run_problem else texts[:FIRST]), next(iter(ordered), None)


def describe_missing_test(attempts: int, fault: str) -> str:
    """Describe that a model was asked for a failing test and wrote none that shows the problem."""
    message = f"the model wrote no usable test in {format_count(attempts, 'attempt')}"
    return clip(f"{message}: {fault}" if fault else message, LONGEST)


def format_message(fault: str, problem_texts: Sequence[str], remedy: str) -> str:
    """Format the message that the user reads if the run ends here."""
    if not problem_texts:
        return fault
    remainder = (
        f"; and {len(problem_texts) - MAX_LISTED_REASONS} other reasons"
        if len(problem_texts) > MAX_LISTED_REASONS
        else ""
    )
    duration = re.search(r"after \d+ seconds", fault.partition("\n")[0])
    shown_problems = "; ".join(problem_texts[:MAX_LISTED_REASONS]) + remainder
    return f"{shown_problems}{f' ({duration[0]})' if duration else ''}. What to do: {remedy}"
