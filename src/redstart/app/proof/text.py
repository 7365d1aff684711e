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

from redstart.app.proof.schema import AttemptRecord, CheckMark, CheckName, EditSummary, Proof
from redstart.core.change import EditFit, EditKind
from redstart.core.noun import many
from redstart.core.visible import visible_line

SHOWN = 20
"""The maximum number of IDs, files and other names in a list."""
DIFF = 30_000
"""The maximum length of the diff in characters, if there is room."""
ROOM = 56_000
"""The maximum length of all lists and the diff: a pull request body has 65,536, and the table and fences need some."""

TITLES = {
    CheckName.targets: "The failing tests pass",
    CheckName.others: "No other test got worse",
    CheckName.repeats: "They pass in every rerun",
    CheckName.red_without: "They still fail without the patch",
    CheckName.able_to_fail: "They still fail when they are altered",
    CheckName.neutral: "They pass outside a test run",
    CheckName.untouched: "Tests and test configuration are unchanged",
    CheckName.no_cheat: "Nothing in the patch suggests a cheat",
    CheckName.findings: "No new serious static findings",
    CheckName.shrunk: "The patch is reduced to what is needed",
}
RESULTS = {CheckMark.passed: "yes", CheckMark.failed: "NO", CheckMark.not_done: "not done"}

_FORMS = {
    EditKind.block: "search and replace",
    EditKind.diff: "diff",
    EditKind.whole: "whole file",
    EditKind.envelope: "apply_patch",
}
_FITS = {
    EditFit.exact: "fitted as written",
    EditFit.whitespace: "fitted with other whitespace",
    EditFit.recount: "fitted with its line counts corrected",
    EditFit.realign: "fitted at another line",
    EditFit.merge: "fitted with different context",
    EditFit.node: "replaced a definition by its name",
    None: "did not fit",
}
_PLAIN = re.compile(r"[A-Za-z0-9 .,:;()/'+-]")


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
    yield TextLine(visible_line(proof.sentence))
    yield TextLine("")
    yield TextLine("What was checked")
    for check in proof.checks:
        said = f": {visible_line(check.said)}" if check.said else ""
        yield TextLine(f"  {RESULTS[check.mark]:<8}  {TITLES[check.name]}{said}", hang=12)
    for block in _blocks(proof):
        yield TextLine("")
        yield TextLine(block.title)
        yield from (TextLine(f"    {visible_line(line)}".rstrip(), hang=8) for line in block.lines)


def as_markdown(proof: Proof) -> str:
    """Render a proof as Markdown for the body of a pull request."""
    rows = (f"| {TITLES[check.name]} | {RESULTS[check.mark]} | {_inert(check.said)} |" for check in proof.checks)
    table = "\n".join(("| What was checked | Result | |", "|---|---|---|", *rows))
    parts = [f"**{_inert(proof.sentence)}**", table]
    for block in _blocks(proof):
        lines = [visible_line(line) for line in block.lines]
        longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
        fence = "`" * max(3, longest + 1)
        parts.append("\n".join((f"### {block.title}", "", f"{fence}{block.language}", *lines, fence)))
    return "\n\n".join(parts) + "\n"


def as_json(proof: Proof) -> str:
    """Render the complete proof as JSON in ASCII, because text from a repo can contain terminal control characters."""
    return json.dumps(proof.model_dump(mode="json"), indent=2) + "\n"


def _inert(text: str) -> str:
    """Escape text so that Markdown shows it literally: every character with a possible meaning becomes an entity."""
    return "".join(item if _PLAIN.match(item) else f"&#{ord(item)};" for item in visible_line(text))


def _blocks(proof: Proof) -> list[TextBlock]:
    above = [
        TextBlock("Why it is not verified" if not proof.by_person else "What a person accepted", _against(proof)),
        TextBlock(f"Target tests ({_fixed(proof)})", _cases(proof, target=True)),
        TextBlock("Other tests with a different result than before", _cases(proof, target=False)),
        TextBlock("Flaky tests, never counted as fixed", _first([f"flaky: {item}" for item in proof.flaky])),
        TextBlock(
            "Tests written for this run, before the code", _first([f"written: {item}" for item in proof.written])
        ),
        TextBlock("Confidence that they match the issue", [f"confidence: {proof.sure}"] if proof.sure else []),
        TextBlock(
            "Mutants of the program that no test noticed",
            _first([f"unnoticed: {survivor}" for survivor in _survivors(proof)]),
        ),
        TextBlock("Files in the patch", _first([_file(file.path, file.protected) for file in proof.files])),
    ]
    below = [TextBlock("How it was made", _made(proof)), TextBlock("How to check it", _how_to_check(proof))]
    taken = sum(len(visible_line(line)) + 1 for block in (*above, *below) for line in block.lines)
    title = "The patch" if proof.verified or proof.by_person else "The last patch"
    patch = TextBlock(title, _diff(proof, min(DIFF, ROOM - taken)), "diff")
    return [block for block in (*above, patch, *below) if block.lines]


def _survivors(proof: Proof) -> Sequence[str]:
    return proof.mutants.survivors if proof.mutants else ()


def _against(proof: Proof) -> list[str]:
    return [] if proof.verified else [f"the run ended: {proof.reason}", *_first(proof.lacking)]


def _fixed(proof: Proof) -> str:
    wanted = [case for case in proof.cases if case.target]
    return f"{sum(item.after == 'passed' for item in wanted):,} of {len(wanted):,} pass"


def _cases(proof: Proof, *, target: bool) -> list[str]:
    mine = [case for case in proof.cases if case.target is target]
    return _first([f"{item.before} -> {item.after}  {item.id}" for item in mine])


def _file(path: str, why: str) -> str:
    return f"protected: {path}: {why}" if why else f"changes: {path}"


def _first(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *([f"... and {more:,} more"] if more > 0 else [])]


def _diff(proof: Proof, room: int) -> list[str]:
    lines = proof.diff.removesuffix("\n").split("\n") if proof.diff else []
    kept: list[str] = []
    for line in lines:
        room -= len(visible_line(line)) + 1
        if room < 0:
            return [*kept, f"... and {len(lines) - len(kept):,} more lines: redstart show {proof.run}"]
        kept.append(line)
    return kept


def _made(proof: Proof) -> list[str]:
    cost = proof.cost
    unknown = f" and {many(cost.unpriced, 'call')} of unknown price" if cost.unpriced else ""
    tokens = f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
    attempts = [_attempt(item) for item in proof.attempts]
    kept = attempts if len(attempts) <= SHOWN else [*attempts[: SHOWN - 1], ["..."], attempts[-1]]
    return [
        f"run:      {proof.run}, {proof.mode.value}, {proof.runner}, level {proof.level.value}",
        f"repo:     {proof.repo}",
        *([f"forked:   from run {proof.parent}, whose records hold the earlier steps"] if proof.parent else []),
        *(f"model:    {many(model.calls, 'call')} to {model.name}" for model in proof.models[:SHOWN]),
        f"cost:     {tokens}, ${cost.usd:.4f}{unknown}, {cost.seconds:.1f} s",
        f"tests:    {many(proof.suite_runs, 'run')} on the last patch",
        *(line for attempt in kept for line in attempt),
    ]


def _attempt(tried: AttemptRecord) -> list[str]:
    """Format the outcome of an attempt, followed by the model's explanation."""
    said = tried.reflection
    parts = {} if said is None else {"root cause": said.root_cause, "try next": said.try_next}
    why = [f"  {name}, by the model: {text}" for name, text in parts.items() if text]
    return [f"attempt {tried.number}: {tried.outcome}{_edits(tried.edits)}", *why]


def _edits(edits: Sequence[EditSummary]) -> str:
    return "".join(f"; {many(edit.count, 'edit')} ({_FORMS[edit.form]}) {_FITS[edit.fit]}" for edit in edits)


def _how_to_check(proof: Proof) -> list[str]:
    return [
        f"made on git tree {proof.tree_before}" + (f", produces {proof.tree_after}" if proof.tree_after else ""),
        f"journal: {many(proof.journal.records, 'record')}, SHA-256 {proof.journal.sha256}",
        f"redstart runs replay {proof.run}    repeats every step from the journal and compares; asks no model",
        f"redstart show {proof.run} --proof   derives this again from the stored records; names any that changed",
    ]
