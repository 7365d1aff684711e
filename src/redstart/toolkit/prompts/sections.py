"""Build the parts of a prompt that more than one question shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from redstart.core.change import RejectedEdit
from redstart.core.context import Context
from redstart.core.failures import RecalledFailure
from redstart.core.finding import Findings
from redstart.core.frozen import clip
from redstart.core.learning import Plan, RecalledCard, Reflection
from redstart.core.lesson import LessonDraws
from redstart.core.pattern import RecalledPattern
from redstart.core.progress import CourseChange, Strategy
from redstart.core.report import Case
from redstart.core.run import Attempt, AttemptSummary
from redstart.core.safe_text import to_one_line
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts.fit_window import OTHER_TESTS, TEST_OUTPUT, TEST_SOURCE
from redstart.toolkit.prompts.render import format_section

REFLECTION_REQUEST = (
    "Before WHY, say in one line each, as `ROOT CAUSE:`, `WHAT FAILED:` and `TRY NEXT:`, what you make of the last "
    "attempt. Then give edits that differ from what was tried. {where}"
)
JSON_REFLECTION_REQUEST = (
    'Say in "root_cause", "what_failed" and "try_next", in one line each, what you make of the last attempt. Give '
    "edits that differ from what was tried. {where}"
)
RETRY_REQUEST = "Give edits that differ from what was tried, and follow what was learned from it. {where}"


def request_to_reflect(history: Sequence[AttemptSummary], *, as_json: bool) -> str:
    """Choose what the next question for edits asks about the last attempt: less if a reflection on it exists."""
    last = next((entry for entry in reversed(history) if not entry.probe), None)
    if last is not None and last.reflection is not None and last.reflection.explains:
        return RETRY_REQUEST
    return JSON_REFLECTION_REQUEST if as_json else REFLECTION_REQUEST


def format_reflection(reflection: Reflection | None) -> list[str]:
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
    return [f"{name}: {to_one_line(text)}" for name, text in parts.items() if text]


def build_reflections_section(history: Sequence[AttemptSummary], limit: int = 3) -> str:
    """Build a section with the reflections alone, for a question that shows no diffs of earlier attempts."""
    entries = [entry for entry in history if entry.reflection is not None and entry.reflection.explains]
    blocks = (
        wrap_untrusted(f"attempt {item.number}", "\n".join(format_reflection(item.reflection)), 2000)
        for item in entries[-limit:]
    )
    return format_section("Learned from the last attempts", *blocks)


def build_attempt_section(attempt: Attempt, diff: str) -> str:
    """Build a section with the change of the current attempt and its author's reason."""
    reason = f"WHY: {attempt.patch.why}" if attempt.patch and attempt.patch.why else ""
    text = "\n".join(part for part in (reason, diff) if part)
    return format_section("What was tried", wrap_untrusted("attempt", text, 6000)) if text else ""


MAX_SHOWN_CASES = 8
MIN_SHOWN_CASES = 3
"""How many failing tests are shown in full even if they seem to have the same cause."""
MAX_GROUPED_CASES = 200
MAX_LISTED_CASES = 30
FIRST_DETAIL, DETAIL = 6000, 3000
"""Bytes of the runner's text about the first failing test, and about each of the others."""
VALUE = 2000
"""Bytes of an expected or actual value."""
SOURCE, CAPTURED = 6000, 2000
"""Bytes of a test's source, and of what it printed to each stream."""
PLAN = 16_000
"""Bytes of a plan: enough for all criteria of a run, with their titles."""
TEST_FILE = 40_000
"""Bytes of a test file of a new program."""


def build_goal_section(text: str, full_goal: str = "") -> str:
    """Build the section with the goal. For a part of a larger goal, it also shows that goal, for orientation only."""
    if not text:
        return ""
    context = (
        "It is a part of this, whose other parts are made apart from it:",
        wrap_untrusted("user", full_goal, 16_000),
    )
    return format_section("Goal", wrap_untrusted("user", text, 16_000), *(context if full_goal else ()))


def build_hint_section(text: str, messages: Iterable[str] = ()) -> str:
    """Build a section with the user's messages: the initial hint and later ones."""
    return format_section(
        "The user says", *(wrap_untrusted("user", message, 4000) for message in (text, *messages) if message)
    )


def build_notes_section(read: Callable[[str], bytes | None]) -> str:
    """Build a section with the project's notes for contributors: data, like everything else in a repo."""
    for name in ("AGENTS.md", "CLAUDE.md"):
        if text := (read(name) or b"").decode(errors="replace").strip():
            return format_section("The project's own notes", wrap_untrusted(name, text, 4000))
    return ""


def plan(current_plan: Plan | None) -> str:
    if current_plan is None or not (current_plan.summary or current_plan.subtasks):
        return ""
    lines = [current_plan.summary]
    for subtask in current_plan.subtasks:
        lines += [f"- {subtask.title}", *(f"  - {criterion}" for criterion in subtask.criteria)]
    text = "\n".join(lines)
    return format_section("Plan", wrap_untrusted("plan", text, PLAN), _note_excess(text, PLAN))


def build_new_tests_section(paths: Sequence[str], read: Callable[[str], bytes | None]) -> str:
    """Build a section with the test files of a new program, each as a whole or with a note on what is left out."""
    texts = {path: (read(path) or b"").decode(errors="replace") for path in paths}
    blocks = ((wrap_untrusted(path, text, TEST_FILE), _note_excess(text, TEST_FILE)) for path, text in texts.items())
    return format_section("The tests", *(item for block in blocks for item in block))


def _note_excess(text: str, limit: int) -> str:
    excess = len(text.encode(errors="replace")) - limit
    return f"({excess} bytes are left out above, at the mark […].)" if excess > 0 else ""


def _get_id(case: Case) -> str:
    return case.id


def _read_nothing(_case: Case) -> str:
    return ""


def build_failing_section(
    cases: Sequence[Case],
    total: int,
    *,
    group: Callable[[Case], str] = _get_id,
    read_source: Callable[[Case], str] = _read_nothing,
) -> str:
    """Build a section with the failing tests: one test of each group in full, then the IDs of the others.

    `group` names the cause of a failure; by default, each test is its own group. `read_source` returns the parts of a
    test's source that its traceback does not show. A test in full is its ID, expected and actual values, the runner's
    output, its source and what it printed. Of a test with several sets of parameters, only the first is shown in full
    and only the differences of the others.

    The cases may be those of the start, or those of an attempt's report.
    """
    shown_cases = _choose_full_cases(cases, group)
    blocks: list[str] = []
    seen: set[str] = set()
    for case in shown_cases:
        test = case.id.partition("[")[0]
        blocks += _format_full_case(case, read_source, is_first=not blocks, is_repeated=test in seen)
        seen.add(test)
    shown_ids = {case.id for case in shown_cases}
    other_cases = [case for case in cases if case.id not in shown_ids]
    return format_section("Failing tests", *blocks, *_format_other_cases(other_cases, total - len(shown_cases)))


def build_broken_section(cases: Sequence[Case], read_source: Callable[[Case], str] = _read_nothing) -> str:
    """Build a section with tests that passed before the last edits and fail now: each in full, then IDs of others."""
    shown_cases, other_cases = cases[:MAX_SHOWN_CASES], cases[MAX_SHOWN_CASES:]
    blocks = [
        block
        for number, case in enumerate(shown_cases)
        for block in _format_full_case(case, read_source, is_first=not number)
    ]
    return format_section(
        "Tests that passed before the last edits and fail now",
        *blocks,
        *_format_other_cases(other_cases, len(other_cases)),
    )


def _choose_full_cases(cases: Sequence[Case], group: Callable[[Case], str]) -> list[Case]:
    """Choose the first test of each group. If there are few groups, add tests of other functions."""
    first_by_group: dict[str, Case] = {}
    for case in cases[:MAX_GROUPED_CASES]:
        first_by_group.setdefault(group(case), case)
    chosen = list(first_by_group.values())[:MAX_SHOWN_CASES]
    tests = {case.id.partition("[")[0] for case in chosen}
    for case in cases:
        test = case.id.partition("[")[0]
        if len(chosen) < MIN_SHOWN_CASES and test not in tests:
            chosen.append(case)
            tests.add(test)
    return chosen


def _format_full_case(
    case: Case, read_source: Callable[[Case], str], *, is_first: bool, is_repeated: bool = False
) -> list[str]:
    limit = FIRST_DETAIL if is_first else DETAIL
    lines = [f"id: {case.id}", f"message: {clip(case.message, 1000)}"]
    if case.expected is not None:
        lines.append(f"expected: {clip(case.expected, VALUE)}")
    if case.actual is not None:
        lines.append(f"actual: {clip(case.actual, VALUE)}")
    lines.append(clip(_find_parameters(case.detail) if is_repeated else case.detail, limit))
    blocks = [wrap_untrusted("test", "\n".join(lines), limit + 2 * VALUE + 2000)]
    if is_repeated:
        return blocks
    if source := read_source(case):
        blocks.append(wrap_untrusted(TEST_SOURCE, source, SOURCE))
    if output := format_test_output(case, CAPTURED):
        blocks.append(wrap_untrusted(TEST_OUTPUT, output, 2 * CAPTURED + 100))
    return blocks


def format_test_output(case: Case, limit: int) -> str:
    """Format what a test printed to each stream, clipped to `limit` bytes. Empty if it printed nothing."""
    printed = {"stdout": case.stdout, "stderr": case.stderr}
    return "\n".join(f"{name}:\n{clip(text, limit)}" for name, text in printed.items() if text.strip())


def _format_other_cases(cases: Sequence[Case], count: int) -> list[str]:
    """Format the other failing tests, each as one line, and the number of those that are left out."""
    lines = [
        f"{case.id}: {clip(to_one_line(case.message), 200)}".removesuffix(": ") for case in cases[:MAX_LISTED_CASES]
    ]
    blocks = [wrap_untrusted(OTHER_TESTS, "\n".join(lines), MAX_LISTED_CASES * 510)] if lines else []
    left_out = count - len(lines)
    return [*blocks, f"({left_out} more failing tests are not shown.)"] if left_out > 0 else blocks


def build_brief_failing_section(cases: Sequence[Case], limit: int = 3) -> str:
    """Build a section with the calls, expected values and actual values of the first failing tests."""
    blocks: list[str] = []
    for case in cases[:limit]:
        lines = [case.id, _find_parameters(case.detail), clip(case.message, 300)]
        if case.expected is not None and case.actual is not None:
            lines.append(f"expected {clip(case.expected, 200)}, got {clip(case.actual, 200)}")
        blocks.append(wrap_untrusted("test", "\n".join(line for line in lines if line), 1500))
    return format_section("These tests fail", *blocks)


def build_brief_tried_section(history: Sequence[AttemptSummary], diff: Callable[[str], str], limit: int = 2) -> str:
    """Build a section with the last attempts' changes. Attempts without a change teach nothing."""
    changed = [entry for entry in history if entry.diff and not entry.probe][-limit:]
    texts = ("\n".join((clip(diff(item.diff), 1500), *_format_explanation(item.reflection))) for item in changed)
    return format_section("This was tried and is not right", *(wrap_untrusted("attempt", text, 3000) for text in texts))


def _format_explanation(reflection: Reflection | None) -> list[str]:
    return format_reflection(reflection) if reflection is not None and reflection.explains else []


def _find_parameters(detail: str) -> str:
    """Find pytest's lines about a test's parameters, which come before its source."""
    head = detail.strip("\n").partition("\n\n")[0]
    return head if " = " in head.partition("\n")[0] and not head.startswith((" ", ">", "def ", "@")) else ""


def build_code_section(context: Context | None, read: Callable[[str], bytes | None]) -> str:
    """Build a section with the retrieved chunks, as they are in the snapshot."""
    if context is None:
        return ""
    blocks: list[str] = []
    for chunk in context.chunks:
        lines = (read(chunk.path) or b"").decode(errors="replace").splitlines()
        excerpt = "\n".join(lines[chunk.start - 1 : chunk.end])
        blocks.append(wrap_untrusted(f"{chunk.path} lines {chunk.start}-{chunk.end}", excerpt, 30_000))
    return format_section("Code", *blocks)


def build_findings_section(static_findings: Findings | None) -> str:
    if static_findings is None or not static_findings.first:
        return ""
    lines = [f"{item.path}:{item.line} {item.rule} {item.message}" for item in static_findings.first]
    return format_section("Static findings in this code", wrap_untrusted("ruff", "\n".join(lines), 2000))


_SIMILARITY_PHRASES = {"signature": "the same failure", "family": "the same kind of failure"}


def build_fixes_section(recalled_cards: Iterable[RecalledCard]) -> str:
    """Build a section with the cards of verified fixes, as hints. Their text cannot look like Redstart's own lines."""
    blocks: list[str] = []
    for item in recalled_cards:
        card = item.card
        likeness = _SIMILARITY_PHRASES.get(item.source, "a failure like it")
        summary, cause, fix = map(to_one_line, (card.summary, card.root_cause, card.fix))
        note = " (its run asked a person, so trust it less)" if card.asked else ""
        text = f"{likeness}, fixed before{note}: {summary}\ncause: {cause}\nfix: {fix}"
        blocks.append(wrap_untrusted(f"memory {card.id}", text, 1500))
    return format_section("Learned from earlier fixes", *blocks)


def build_lessons_section(draws: LessonDraws | None) -> str:
    """Build a section with the lessons that apply and were not withheld, as hints."""
    visible = [coin for coin in draws.coins if coin.shown] if draws else []
    texts = (
        (item.taught_by, f"when: {to_one_line(item.when)}\nadvice: {to_one_line(item.advice)}") for item in visible
    )
    return format_section(
        "Lessons of earlier runs", *(wrap_untrusted(f"lesson of run {run}", text, 1500) for run, text in texts)
    )


PATTERN = 1600
"""Bytes of one pattern in a prompt."""


def build_patterns_section(recalled_patterns: Iterable[RecalledPattern]) -> str:
    """Build a section with earlier solutions of similar goals and their origin: examples for a plan, as plain text."""
    blocks: list[str] = []
    for item in recalled_patterns:
        pattern, origin = item.pattern, item.pattern.provenance
        lines = [f"goal: {clip(to_one_line(pattern.goal), 400)}", f"plan: {clip(to_one_line(pattern.summary), 300)}"]
        lines += [f"- {to_one_line(title)}" for title in pattern.subtasks]
        lines += (
            ["files:", *(f"- {to_one_line(f'{part.path}: {part.role}')}" for part in pattern.shape)]
            if pattern.shape
            else []
        )
        lines += [f"- and {pattern.left_out} more"] if pattern.left_out else []
        source = f"memory {pattern.id}: {pattern.mode}, {pattern.outcome}, in {origin.get('repo', '')}"
        blocks.append(wrap_untrusted(clip(source, 200), "\n".join(lines), PATTERN))
    instruction = "Take from these what fits; where they and the goal differ, the goal holds." if blocks else ""
    return format_section("Goals like this one that were reached before", instruction, *blocks)


def build_tried_section(history: Sequence[AttemptSummary], diff: Callable[[str], str], limit: int = 3) -> str:
    """Build a section with the last attempts' changes and why they failed. Attempts that only probed are left out."""
    blocks: list[str] = []
    for attempt in [entry for entry in history if not entry.probe][-limit:]:
        lines = [f"attempt {attempt.number}"]
        if attempt.diff:
            lines.append(clip(diff(attempt.diff), 3000))
        lines.append(f"outcome: {attempt.outcome or attempt.reason}")
        lines += format_reflection(attempt.reflection)
        blocks.append(wrap_untrusted(f"attempt {attempt.number}", "\n".join(lines), 6000))
    return format_section("Already tried, and it did not work", *blocks)


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


def format_advice(turn: CourseChange | None) -> str:
    """Build the advice to a run that goes in circles. Empty if the change of course needs no words."""
    if turn is None or turn.strategy not in ADVICE:
        return ""
    return ADVICE[turn.strategy].format(attempts=", ".join(map(str, turn.attempts)))


def build_probes_section(history: Sequence[AttemptSummary], printed: Callable[[str], str]) -> str:
    """Build a section with the probes of this run and their output."""
    blocks = [
        wrap_untrusted(f"probe of attempt {entry.number}", printed(entry.probe), 9000)
        for entry in history
        if entry.probe
    ]
    return format_section("What was run to find out more", *blocks)


def build_tools_section(limit: int, probes: int = 0, language: str = "Python") -> str:
    """Build a section that allows tool calls before the answer, and `probes` more probes. Empty if `limit` is 0.

    `language` is the language of a probe's snippet.
    """
    if not limit:
        return ""
    tools_text = (
        f"Before you answer you may look at the project, at most {limit} times: read, search, outline, references, "
        "history. Look where what is shown above is not enough; otherwise answer at once."
    )
    probe = (
        "Instead of edits you may answer with a probe: a line `PROBE:` followed by ids of tests, or by a fenced "
        f"snippet of {language}. It is run in a sandbox on the code as it stands, what it prints is shown to you, and "
        f"you are asked again. {probes} more {'probe is' if probes == 1 else 'probes are'} possible."
    )
    return format_section("Looking around", tools_text, probe if probes else "")


_FAILURE_PHRASES = {"signature": "at this failure"}


def build_failed_before_section(failures: Iterable[RecalledFailure], repo: str) -> str:
    """Build a section with edits that failed in earlier runs, how, and in which run. All of it is data from models.

    Lines of code are shown only in the repo that they come from.
    """
    blocks = [
        wrap_untrusted(f"failed attempt {item.record.id}", _format_failure(item, repo), 2500) for item in failures
    ]
    instruction = "These edits did not work in earlier runs. Do not give them again." if blocks else ""
    return format_section("Tried before and failed", instruction, *blocks)


def _format_failure(failure: RecalledFailure, repo: str) -> str:
    record, origin = failure.record, failure.record.provenance.get("run", "")
    occasion = _FAILURE_PHRASES.get(failure.source, "at this kind of failure, in the same test")
    lines = [f"tried before {occasion}, in run {origin}" if origin else f"tried before {occasion}"]
    parts = {
        "what was tried": record.tried,
        "files": ", ".join(record.files[:5]),
        "how it failed": record.what_failed,
        "root cause": record.root_cause,
        "try next": record.try_next,
    }
    lines += [f"{name}: {clip(to_one_line(text), 400)}" for name, text in parts.items() if text]
    if record.change and failure.repo == repo:
        lines += ["the change:", record.change]
    return "\n".join(lines)


MAX_SENT_CHARACTERS, MAX_NEAREST_CHARACTERS, REASON, PATH = 1500, 800, 400, 200


def build_rejected_section(edits: Sequence[RejectedEdit], limit: int = 3) -> str:
    """Build a section with the rejected edits and the closest text of the file. Empty if all edits fit."""
    blocks = [_block(edit) for edit in edits[:limit]]
    if not blocks:
        return ""
    if len(edits) > limit:
        blocks.append(f"({len(edits) - limit} more edits did not fit.)")
    instruction = (
        "Nothing of the last answer was applied. Copy the lines to change from the file exactly as they stand."
    )
    return format_section("Your last edits that did not fit", instruction, *blocks)


def _block(edit: RejectedEdit) -> str:
    title = f"edit {edit.number} of {edit.path}" if edit.number else f"edits of {edit.path}"
    lines = [f"reason: {clip(edit.reason, REASON)}", "you sent:", clip(edit.edit_text, MAX_SENT_CHARACTERS)]
    if edit.nearest:
        lines += ["the file:", clip(edit.nearest, MAX_NEAREST_CHARACTERS)]
    return wrap_untrusted(
        clip(title, PATH), "\n".join(lines), MAX_SENT_CHARACTERS + MAX_NEAREST_CHARACTERS + REASON + 200
    )
