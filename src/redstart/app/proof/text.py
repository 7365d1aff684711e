"""Render a proof as plain text, Markdown for a pull request, or JSON for programs.

Text from the repo, a model or a person (test IDs, paths, the diff, reasons, names) is not trusted. In Markdown, it is
in code blocks whose fence is longer than any fence in it. In both forms, each of its lines stays one line after our own
words or spaces, and invisible characters are spelled out. So it can neither leave its place nor imitate our lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.app.markdown import escape_markdown
from redstart.app.proof.schema import AttemptRecord, CheckMark, CheckName, EditSummary, Proof
from redstart.core.change import EditFit, EditKind
from redstart.core.frozen import format_count
from redstart.core.safe_text import escape_line

MAX_LISTED = 20
"""The maximum number of IDs, files and other names in a list."""
DIFF = 30_000
"""The maximum length of the diff in characters, if there is room."""
MAX_TEXT_LENGTH = 56_000
"""The maximum length of all lists and the diff: a pull request body has 65,536, and the table and fences need some."""

TITLES = {
    CheckName.targets: "The failing tests pass",
    CheckName.others: "No other test got worse",
    CheckName.repeats: "They pass in every rerun",
    CheckName.red_without: "They still fail without the patch",
    CheckName.able_to_fail: "They fail when they are altered to fail",
    CheckName.neutral: "They pass outside a test run",
    CheckName.untouched: "Tests and test configuration are unchanged",
    CheckName.no_cheat: "Nothing in the patch suggests a cheat",
    CheckName.findings: "No new serious static findings",
    CheckName.shrunk: "Parts that are not needed are left out",
}
RESULTS = {CheckMark.passed: "yes", CheckMark.failed: "NO", CheckMark.not_done: "not done"}

_FORMS = {
    EditKind.block: "search and replace",
    EditKind.diff: "diff",
    EditKind.whole: "whole file",
    EditKind.envelope: "apply_patch",
}
_FIT_TEXTS = {
    EditFit.exact: "fitted as written",
    EditFit.whitespace: "fitted with other whitespace",
    EditFit.recount: "fitted with its line counts corrected",
    EditFit.realign: "fitted at another line",
    EditFit.merge: "fitted with different context",
    EditFit.node: "replaced a definition by its name",
    None: "did not fit",
}


class TextBlock(NamedTuple):
    """Lines under a title. All of them may contain untrusted text."""

    title: str
    lines: Sequence[str]
    language: str = "text"


class TextLine(NamedTuple):
    """A line of text, and the indentation of its continuation lines if it has to be wrapped."""

    text: str
    hang: int = 0


def as_text(proof: Proof) -> str:
    """Render a proof as text for a log or an email."""
    return "".join(f"{line.text}\n" for line in text_lines(proof))


def text_lines(proof: Proof) -> Iterator[TextLine]:
    """Yield the lines of a proof for a terminal, which wraps them."""
    yield TextLine(escape_line(proof.sentence))
    yield TextLine("")
    yield TextLine("What was checked")
    for check in proof.checks:
        detail = f": {escape_line(check.said)}" if check.said else ""
        yield TextLine(f"  {RESULTS[check.mark]:<8}  {TITLES[check.name]}{detail}", hang=12)
    for block in _build_blocks(proof):
        yield TextLine("")
        yield TextLine(block.title)
        yield from (TextLine(f"    {escape_line(line)}".rstrip(), hang=8) for line in block.lines)


def as_markdown(proof: Proof) -> str:
    """Render a proof as Markdown for the body of a pull request."""
    rows = (
        f"| {TITLES[check.name]} | {RESULTS[check.mark]} | {escape_markdown(check.said)} |" for check in proof.checks
    )
    table = "\n".join(("| What was checked | Result | |", "|---|---|---|", *rows))
    parts = [f"**{escape_markdown(proof.sentence)}**", table]
    for block in _build_blocks(proof):
        lines = [escape_line(line) for line in block.lines]
        longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append("\n".join((f"### {block.title}", "", f"{fence}{block.language}", *lines, fence)))
    return "\n\n".join(parts) + "\n"


def as_json(proof: Proof) -> str:
    """Render the complete proof as JSON in ASCII, because text from a repo can contain terminal control characters."""
    return json.dumps(proof.model_dump(mode="json"), indent=2) + "\n"


def _build_blocks(proof: Proof) -> list[TextBlock]:
    leading_blocks = [
        TextBlock(
            "Why it is not verified" if not proof.by_person else "What a person accepted", _list_objections(proof)
        ),
        TextBlock(f"Target tests ({_format_fixed_count(proof)})", _format_cases(proof, target=True)),
        TextBlock("Other tests whose result changed", _format_cases(proof, target=False)),
        TextBlock(
            "Failing tests that were set aside",
            _limit_lines([f"set aside: {id_}: {entry.reason}" for entry in proof.set_aside for id_ in entry.ids]),
        ),
        TextBlock("Flaky tests, never counted as fixed", _limit_lines([f"flaky: {item}" for item in proof.flaky])),
        TextBlock(
            "Tests written for this run, before the code", _limit_lines([f"written: {item}" for item in proof.written])
        ),
        TextBlock("Confidence that they match the issue", [f"confidence: {proof.sure}"] if proof.sure else []),
        TextBlock(
            "Changes to the program that no test noticed",
            _limit_lines([f"unnoticed: {survivor}" for survivor in _list_survivors(proof)]),
        ),
        TextBlock(
            "Files in the patch", _limit_lines([_format_file(file.path, file.protected) for file in proof.files])
        ),
    ]
    trailing_blocks = [
        TextBlock("How it was made", _format_origin(proof)),
        TextBlock("How to check it", _format_check_instructions(proof)),
    ]
    used_length = sum(
        len(escape_line(line)) + 1 for block in (*leading_blocks, *trailing_blocks) for line in block.lines
    )
    title = "The patch" if proof.verified or proof.by_person else "The last patch"
    patch = TextBlock(title, _diff(proof, min(DIFF, MAX_TEXT_LENGTH - used_length)), "diff")
    return [block for block in (*leading_blocks, patch, *trailing_blocks) if block.lines]


def _list_survivors(proof: Proof) -> Sequence[str]:
    return proof.mutants.survivors if proof.mutants else ()


def _list_objections(proof: Proof) -> list[str]:
    return [] if proof.verified else [f"the run ended: {proof.reason}", *_limit_lines(proof.lacking)]


def _format_fixed_count(proof: Proof) -> str:
    targets = [case for case in proof.cases if case.target]
    return f"{sum(item.after == 'passed' for item in targets):,} of {len(targets):,} pass"


def _format_cases(proof: Proof, *, target: bool) -> list[str]:
    cases = [case for case in proof.cases if case.target is target]
    return _limit_lines([f"{item.before} -> {item.after}  {item.id}" for item in cases])


def _format_file(path: str, reason: str) -> str:
    return f"protected: {path}: {reason}" if reason else f"changes: {path}"


def _limit_lines(lines: Sequence[str]) -> list[str]:
    remaining = len(lines) - MAX_LISTED
    return [*lines[:MAX_LISTED], *([f"... and {remaining:,} more"] if remaining > 0 else [])]


def _diff(proof: Proof, remaining: int) -> list[str]:
    lines = proof.diff.removesuffix("\n").split("\n") if proof.diff else []
    kept_lines: list[str] = []
    for line in lines:
        remaining -= len(escape_line(line)) + 1
        if remaining < 0:
            return [*kept_lines, f"... and {len(lines) - len(kept_lines):,} more lines: redstart show {proof.run}"]
        kept_lines.append(line)
    return kept_lines


def _format_origin(proof: Proof) -> list[str]:
    cost = proof.cost
    unpriced_text = f" and {format_count(cost.unpriced, 'call')} of unknown price" if cost.unpriced else ""
    tokens = f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
    attempts = [_attempt(item) for item in proof.attempts]
    shown_attempts = attempts if len(attempts) <= MAX_LISTED else [*attempts[: MAX_LISTED - 1], ["..."], attempts[-1]]
    return [
        f"run:      {proof.run}, {proof.mode.value}, {proof.runner}, level {proof.level.value}",
        f"repo:     {proof.repo}",
        *([f"forked:   from run {proof.parent}, whose records hold the earlier steps"] if proof.parent else []),
        *(f"model:    {format_count(model.calls, 'call')} to {model.name}" for model in proof.models[:MAX_LISTED]),
        f"cost:     {tokens}, ${cost.usd:.4f}{unpriced_text}, {cost.seconds:.1f} s",
        f"tests:    {format_count(proof.suite_runs, 'run')} on the last patch",
        *(line for attempt in shown_attempts for line in attempt),
    ]


def _attempt(attempt: AttemptRecord) -> list[str]:
    """Format the outcome of an attempt, followed by the model's explanation."""
    reflection = attempt.reflection
    parts = {} if reflection is None else {"root cause": reflection.root_cause, "try next": reflection.try_next}
    explanations = [f"  {name}, by the model: {text}" for name, text in parts.items() if text]
    return [f"attempt {attempt.number}: {attempt.outcome}{_format_edits(attempt.edits)}", *explanations]


def _format_edits(edits: Sequence[EditSummary]) -> str:
    return "".join(
        f"; {format_count(edit.count, 'edit')} ({_FORMS[edit.form]}) {_FIT_TEXTS[edit.fit]}" for edit in edits
    )


def _format_check_instructions(proof: Proof) -> list[str]:
    return [
        f"made on git tree {proof.tree_before}" + (f", produces {proof.tree_after}" if proof.tree_after else ""),
        f"journal: {format_count(proof.journal.records, 'record')}, SHA-256 {proof.journal.sha256}",
        f"redstart runs replay {proof.run}    repeats every step from the journal and compares; calls no model",
        f"redstart show {proof.run} --proof   makes this proof again from the stored records; names a changed record",
    ]
