"""What models said of failed attempts, as later questions show it."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.learning import Reflection
from redstart.core.run import Attempt, AttemptSummary
from redstart.core.visible import one_line
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.render import section

ASKED = (
    "Before WHY, say in one line each, as `ROOT CAUSE:`, `WHAT FAILED:` and `TRY NEXT:`, what you make of the last "
    "attempt. Then give edits that differ from what was tried. {where}"
)
ASKED_IN_JSON = (
    'Say in "root_cause", "what_failed" and "try_next", in one line each, what you make of the last attempt. Give '
    "edits that differ from what was tried. {where}"
)
ANSWERED = "Give edits that differ from what was tried, and follow what was learned from it. {where}"


def request_to_reflect(history: Sequence[AttemptSummary], *, shaped: bool) -> str:
    """What the next question for edits asks about the last attempt; less where a reflection on it is there already."""
    last = next((one for one in reversed(history) if not one.probe), None)
    if last is not None and last.reflection is not None and last.reflection.explains:
        return ANSWERED
    return ASKED_IN_JSON if shaped else ASKED


def reflected(reflection: Reflection | None) -> list[str]:
    """The reflection on one attempt, a line for each part. What was only noted is one line without a name."""
    if reflection is None:
        return []
    if not reflection.explains:
        return [reflection.what_failed] if reflection.what_failed else []
    parts = {
        "ROOT CAUSE": reflection.root_cause,
        "WHAT FAILED": reflection.what_failed,
        "TRY NEXT": reflection.try_next,
    }
    return [f"{name}: {one_line(text)}" for name, text in parts.items() if text]


def learned(history: Sequence[AttemptSummary], shown: int = 3) -> str:
    """The reflections alone, for a question that shows no diffs of earlier attempts."""
    explained = [one for one in history if one.reflection is not None and one.reflection.explains]
    blocks = (data(f"attempt {one.number}", "\n".join(reflected(one.reflection)), 2000) for one in explained[-shown:])
    return section("Learned from the last attempts", *blocks)


def this_attempt(attempt: Attempt, diff: str) -> str:
    """What the attempt at hand changed, and what its author meant by it."""
    why = f"WHY: {attempt.patch.why}" if attempt.patch and attempt.patch.why else ""
    text = "\n".join(part for part in (why, diff) if part)
    return section("What was tried", data("attempt", text, 6000)) if text else ""
