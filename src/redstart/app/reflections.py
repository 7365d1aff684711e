"""Why each attempt of a run failed, read from its steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redstart.core.change import Patch
from redstart.core.learning import Reflection
from redstart.core.run import Step
from redstart.ports.store.port.runs import StepRow


def reflections_of(rows: Sequence[StepRow]) -> dict[int, Reflection]:
    """The reflection on each attempt, by its number: of the step `reflect`, else of the next attempt's answer."""
    found: dict[int, Reflection] = {}
    last = 0
    for row in rows:
        if row.step is Step.reflect:
            asked = Reflection.model_validate_json(row.artifact)
            if asked.explains:
                found[row.attempt] = asked
        elif row.step is Step.patch:
            patch = Patch.model_validate_json(row.artifact)
            if last and patch.reflection is not None:
                found.setdefault(last, patch.reflection)
            last = last if patch.probe else row.attempt
    return found


def reflection_lines(reflection: Reflection | None) -> Iterator[str]:
    """A line for each part that says something."""
    if reflection is not None:
        parts = {
            "root cause": reflection.root_cause,
            "what failed": reflection.what_failed,
            "try next": reflection.try_next,
        }
        yield from (f"{name}: {text}" for name, text in parts.items() if text)
