"""Builds the parts of a prompt that more than one question shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from redstart.core.change import RejectedEdit
from redstart.core.context import Context
from redstart.core.course import CourseChange, Strategy
from redstart.core.failures import RecalledFailure
from redstart.core.finding import Findings
from redstart.core.learning import Plan, RecalledCard, Reflection
from redstart.core.lesson import LessonDraws
from redstart.core.noun import clip
from redstart.core.pattern import RecalledPattern
from redstart.core.report import Case
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
    """Choose what the next question for edits asks about the last attempt: less if a reflection on it exists."""
    last = next((entry for entry in reversed(history) if not entry.probe), None)
    if last is not None and last.reflection is not None and last.reflection.explains:
        return ANSWERED
    return ASKED_IN_JSON if shaped else ASKED


def reflected(reflection: Reflection | None) -> list[str]:
    """Format the reflection on one attempt, one line for each part. A mere note is one line without a name."""
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
    """Build a section with the reflections alone, for a question that shows no diffs of earlier attempts."""
    explained = [entry for entry in history if entry.reflection is not None and entry.reflection.explains]
    blocks = (
        data(f"attempt {item.number}", "\n".join(reflected(item.reflection)), 2000) for item in explained[-shown:]
    )
    return section("Learned from the last attempts", *blocks)


def this_attempt(attempt: Attempt, diff: str) -> str:
    """Build a section with the change of the current attempt and its author's reason."""
    why = f"WHY: {attempt.patch.why}" if attempt.patch and attempt.patch.why else ""
    text = "\n".join(part for part in (why, diff) if part)
    return section("What was tried", data("attempt", text, 6000)) if text else ""


CASES_SHOWN = 8
DETAIL = 3000
PLAN = 16_000
"""Bytes of a plan: enough for all criteria of a run, with their titles."""


def goal(text: str, whole: str = "") -> str:
    """Build the section with the goal. For a part of a larger goal, it also shows that goal, for orientation only."""
    if not text:
        return ""
    told = ("It is a part of this, whose other parts are made apart from it:", data("user", whole, 16_000))
    return section("Goal", data("user", text, 16_000), *(told if whole else ()))


def hint(text: str, said: Iterable[str] = ()) -> str:
    """Build a section with the user's messages: the initial hint and later ones."""
    return section("The user says", *(data("user", message, 4000) for message in (text, *said) if message))


def notes(read: Callable[[str], bytes | None]) -> str:
    """Build a section with the project's notes for contributors: data, like everything else in a repo."""
    for name in ("AGENTS.md", "CLAUDE.md"):
        if text := (read(name) or b"").decode(errors="replace").strip():
            return section("The project's own notes", data(name, text, 4000))
    return ""


def plan(made: Plan | None) -> str:
    if made is None or not (made.summary or made.subtasks):
        return ""
    lines = [made.summary]
    for subtask in made.subtasks:
        lines += [f"- {subtask.title}", *(f"  - {criterion}" for criterion in subtask.criteria)]
    return section("Plan", data("plan", "\n".join(lines), PLAN))


def failing(cases: Sequence[Case], total: int) -> str:
    """Build a section with the failing tests: IDs, expected and actual values, and the runner's output.

    Of a test with several sets of parameters, it shows the first in full and only the differences of the others.
    """
    blocks: list[str] = []
    known: set[str] = set()
    for case in cases[:CASES_SHOWN]:
        test = case.id.partition("[")[0]
        again = test in known
        known.add(test)
        told = [f"id: {case.id}", f"message: {clip(case.message, 1000)}"]
        if case.expected is not None:
            told.append(f"expected: {clip(case.expected, 500)}")
        if case.actual is not None:
            told.append(f"actual: {clip(case.actual, 500)}")
        told.append(clip(_parameters(case.detail) if again else case.detail, DETAIL))
        blocks.append(data("test", "\n".join(told), DETAIL + 3000))
    if total > len(cases[:CASES_SHOWN]):
        blocks.append(f"({total - len(cases[:CASES_SHOWN])} more failing tests are not shown.)")
    return section("Failing tests", *blocks)


def failing_briefly(cases: Sequence[Case], shown: int = 3) -> str:
    """Build a section with the calls, expected values and actual values of the first failing tests."""
    blocks: list[str] = []
    for case in cases[:shown]:
        told = [case.id, _parameters(case.detail), clip(case.message, 300)]
        if case.expected is not None and case.actual is not None:
            told.append(f"expected {clip(case.expected, 200)}, got {clip(case.actual, 200)}")
        blocks.append(data("test", "\n".join(line for line in told if line), 1500))
    return section("These tests fail", *blocks)


def tried_briefly(history: Sequence[AttemptSummary], diff: Callable[[str], str], shown: int = 2) -> str:
    """Build a section with the last attempts' changes. Attempts without a change teach nothing."""
    made = [entry for entry in history if entry.diff and not entry.probe][-shown:]
    texts = ("\n".join((clip(diff(item.diff), 1500), *_explained(item.reflection))) for item in made)
    return section("This was tried and is not right", *(data("attempt", text, 3000) for text in texts))


def _explained(reflection: Reflection | None) -> list[str]:
    return reflected(reflection) if reflection is not None and reflection.explains else []


def _parameters(detail: str) -> str:
    """Find pytest's lines about a test's parameters, which come before its source."""
    head = detail.strip("\n").partition("\n\n")[0]
    return head if " = " in head.partition("\n")[0] and not head.startswith((" ", ">", "def ", "@")) else ""


def code(context: Context | None, read: Callable[[str], bytes | None]) -> str:
    """Build a section with the retrieved chunks, as they are in the snapshot."""
    if context is None:
        return ""
    blocks: list[str] = []
    for chunk in context.chunks:
        lines = (read(chunk.path) or b"").decode(errors="replace").splitlines()
        shown = "\n".join(lines[chunk.start - 1 : chunk.end])
        blocks.append(data(f"{chunk.path} lines {chunk.start}-{chunk.end}", shown, 30_000))
    return section("Code", *blocks)


def findings(found: Findings | None) -> str:
    if found is None or not found.first:
        return ""
    lines = [f"{item.path}:{item.line} {item.rule} {item.message}" for item in found.first]
    return section("Static findings in this code", data("ruff", "\n".join(lines), 2000))


_LIKE = {"signature": "the same failure", "family": "the same kind of failure"}


def lessons(recalled: Iterable[RecalledCard]) -> str:
    """Build a section with the cards of verified fixes, as hints. Their text cannot pass for lines of ours."""
    blocks: list[str] = []
    for item in recalled:
        card = item.card
        same = _LIKE.get(item.source, "a failure like it")
        summary, cause, fix = map(one_line, (card.summary, card.root_cause, card.fix))
        asked = " (its run asked a person, so trust it less)" if card.asked else ""
        told = f"{same}, fixed before{asked}: {summary}\ncause: {cause}\nfix: {fix}"
        blocks.append(data(f"memory {card.id}", told, 1500))
    return section("Learned from earlier fixes", *blocks)


def advised(taught: LessonDraws | None) -> str:
    """Build a section with the lessons that apply and were not withheld, as hints."""
    shown = [coin for coin in taught.coins if coin.shown] if taught else []
    told = ((item.taught_by, f"when: {one_line(item.when)}\nadvice: {one_line(item.advice)}") for item in shown)
    return section("Lessons of earlier runs", *(data(f"lesson of run {run}", text, 1500) for run, text in told))


PATTERN = 1600
"""Bytes of one pattern in a prompt."""


def patterns(recalled: Iterable[RecalledPattern]) -> str:
    """Build a section with earlier solutions of similar goals and their origin: examples for a plan, as plain text."""
    blocks: list[str] = []
    for item in recalled:
        made, origin = item.pattern, item.pattern.provenance
        told = [f"goal: {clip(one_line(made.goal), 400)}", f"plan: {clip(one_line(made.summary), 300)}"]
        told += [f"- {one_line(title)}" for title in made.subtasks]
        told += ["files:", *(f"- {one_line(f'{part.path}: {part.role}')}" for part in made.shape)] if made.shape else []
        told += [f"- and {made.left_out} more"] if made.left_out else []
        source = f"memory {made.id}: {made.mode}, {made.outcome}, in {origin.get('repo', '')}"
        blocks.append(data(clip(source, 200), "\n".join(told), PATTERN))
    said = "Take from these what fits; where they and the goal differ, the goal holds." if blocks else ""
    return section("Goals like this one that were reached before", said, *blocks)


def tried(history: Sequence[AttemptSummary], diff: Callable[[str], str], shown: int = 3) -> str:
    """Build a section with the last attempts' changes and why they failed. Attempts that only probed are left out."""
    blocks: list[str] = []
    for attempt in [entry for entry in history if not entry.probe][-shown:]:
        told = [f"attempt {attempt.number}"]
        if attempt.diff:
            told.append(clip(diff(attempt.diff), 3000))
        told.append(f"outcome: {attempt.outcome or attempt.reason}")
        told += reflected(attempt.reflection)
        blocks.append(data(f"attempt {attempt.number}", "\n".join(told), 6000))
    return section("Already tried, and it did not work", *blocks)


ADVICE = {
    Strategy.plan: "These edits, or edits that come to the same, were given before. Follow the plan to others.",
    Strategy.both: "Attempts {attempts} failed in two ways by turns: what mends the one breaks the other. Give one "
    "change that is right in both cases.",
    Strategy.restart: "The last edits made it worse. Start again from the code as shown, change less, and keep green "
    "what is green.",
    Strategy.wider: "More of the code is shown than before: look for the cause where nothing was changed yet.",
    Strategy.hypothesis: "What was tried does not lead there. Think of other causes that would explain the failure, "
    "and mend the likeliest that no attempt was about.",
}
"""What the question for edits says about each strategy."""


def advice(turn: CourseChange | None) -> str:
    """Build the advice to a run that goes in circles. Empty if the change is not one of wording."""
    if turn is None or turn.strategy not in ADVICE:
        return ""
    return ADVICE[turn.strategy].format(attempts=", ".join(map(str, turn.attempts)))


def probed(history: Sequence[AttemptSummary], printed: Callable[[str], str]) -> str:
    """Build a section with the probes of this run and their output."""
    told = [data(f"probe of attempt {entry.number}", printed(entry.probe), 9000) for entry in history if entry.probe]
    return section("What was run to find out more", *told)


def looking(limit: int, probes: int = 0, language: str = "Python") -> str:
    """Build a section that allows tool calls before the answer, and `probes` more probes. Empty if `limit` is 0.

    `language` is the language of a probe's snippet.
    """
    if not limit:
        return ""
    look = (
        f"Before you answer you may look at the project, at most {limit} times: read, search, outline, references, "
        "history. Look where what is shown above is not enough; otherwise answer at once."
    )
    probe = (
        "Instead of edits you may answer with a probe: a line `PROBE:` followed by ids of tests, or by a fenced "
        f"snippet of {language}. It is run in a sandbox on the code as it stands, what it prints is shown to you, and "
        f"you are asked again. {probes} more {'probe is' if probes == 1 else 'probes are'} possible."
    )
    return section("Looking around", look, probe if probes else "")


_AT = {"signature": "at this failure"}


def tried_before(recalled: Iterable[RecalledFailure], repo: str) -> str:
    """Build a section with edits that failed in earlier runs, how, and in which run. All of it is data from models.

    Lines of code are shown only in the repo that they come from.
    """
    blocks = [data(f"failed attempt {item.record.id}", _lines(item, repo), 2500) for item in recalled]
    said = "These edits did not work in earlier runs. Do not give them again." if blocks else ""
    return section("Tried before and failed", said, *blocks)


def _lines(recalled: RecalledFailure, repo: str) -> str:
    record, origin = recalled.record, recalled.record.provenance.get("run", "")
    at = _AT.get(recalled.source, "at this kind of failure, in the same test")
    lines = [f"tried before {at}, in run {origin}" if origin else f"tried before {at}"]
    parts = {
        "what was tried": record.tried,
        "files": ", ".join(record.files[:5]),
        "how it failed": record.what_failed,
        "root cause": record.root_cause,
        "try next": record.try_next,
    }
    lines += [f"{name}: {clip(one_line(text), 400)}" for name, text in parts.items() if text]
    if record.change and recalled.repo == repo:
        lines += ["the change:", record.change]
    return "\n".join(lines)


SENT, NEAREST, REASON, PATH = 1500, 800, 400, 200


def rejected(edits: Sequence[RejectedEdit], shown: int = 3) -> str:
    """Build a section with the rejected edits and the closest text of the file. Empty if all edits fit."""
    blocks = [_block(edit) for edit in edits[:shown]]
    if not blocks:
        return ""
    if len(edits) > shown:
        blocks.append(f"({len(edits) - shown} more edits did not fit.)")
    said = "Nothing of the last answer was applied. Copy the lines to change from the file exactly as they stand."
    return section("Your last edits that did not fit", said, *blocks)


def _block(edit: RejectedEdit) -> str:
    which = f"edit {edit.number} of {edit.path}" if edit.number else f"edits of {edit.path}"
    told = [f"reason: {clip(edit.reason, REASON)}", "you sent:", clip(edit.sent, SENT)]
    if edit.nearest:
        told += ["the file:", clip(edit.nearest, NEAREST)]
    return data(clip(which, PATH), "\n".join(told), SENT + NEAREST + REASON + 200)
