"""The result of a verification as Markdown, for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redstart.app.markdown import escape_markdown
from redstart.app.verify.kinds import KINDS, SUMMARIZED_KINDS, describe_lines
from redstart.core.frozen import format_count
from redstart.core.verification import Claim, ClaimKind, MatrixRun, Verification, VerificationEnd

MOST_ROWS = 30
MOST_DETAILS = 100
_MARKS = {VerificationEnd.verified: "✅", VerificationEnd.unproven: "⚪"}


def as_markdown(result: Verification) -> str:
    """Render the verdict, a table of the tests that matter, and the rest in collapsed details."""
    return "\n".join((*_render_verdict(result), *_render_claims(result), *_render_details(result), ""))


def _render_verdict(result: Verification) -> Iterator[str]:
    mark = _MARKS.get(result.end, "❌")
    yield f"### {mark} {result.end.value.capitalize()}: {escape_markdown(result.reason)}"
    yield ""
    if result.remedy:
        yield f"What to do: {escape_markdown(result.remedy)}"
        yield ""


def _render_claims(result: Verification) -> Iterator[str]:
    claims = result.list_claims(kind for kind in KINDS if kind not in SUMMARIZED_KINDS)
    if not claims:
        return
    yield "| | test | what the runs show |"
    yield "|---|---|---|"
    for claim in claims[:MOST_ROWS]:
        yield _render_row(claim)
    if len(claims) > MOST_ROWS:
        yield f"| | and {len(claims) - MOST_ROWS} more | |"
    yield ""


def _render_row(claim: Claim) -> str:
    kind = KINDS[claim.kind]
    accepted = f"accepted by {claim.accepted}" if claim.accepted else ""
    note = "; ".join(escape_markdown(text) for text in (kind.meaning, claim.note, accepted) if text)
    return f"| **{kind.title}** | {escape_markdown(claim.test)} | {note} |"


def _render_details(result: Verification) -> Iterator[str]:
    summarized = [claim for claim in result.claims if claim.kind in SUMMARIZED_KINDS]
    yield "<details><summary>What ran</summary>"
    yield ""
    yield f"{escape_markdown(result.base.name)} to {escape_markdown(result.head.name)}, level {result.level.value}"
    yield ""
    if result.matrix:
        yield from _render_matrix(result.matrix)
    for kind in ClaimKind:
        if claims := [claim for claim in summarized if claim.kind is kind]:
            names = ", ".join(escape_markdown(claim.test) for claim in claims[:MOST_DETAILS])
            yield f"- **{KINDS[kind].title}** ({len(claims)}): {KINDS[kind].meaning}: {names}"
    for evidence in result.evidence:
        yield f"- Check `{evidence.check}`: {evidence.covered} of {format_count(evidence.targets, 'test')}"
    for item in result.untested:
        yield f"- Not run by any test that imports it: {escape_markdown(item.path)}, {describe_lines(item.lines)}"
    for survivor in result.mutants.survivors if result.mutants else ():
        yield f"- No test notices a small change: {escape_markdown(survivor)}"
    for note in result.notes:
        yield f"- {escape_markdown(note)}"
    yield ""
    yield "</details>"


def _render_matrix(matrix: Sequence[MatrixRun]) -> Iterator[str]:
    yield "| tests | code | fail | pass | skipped | seconds |"
    yield "|---|---|---|---|---|---|"
    for run in matrix:
        tests, code = (("new" if is_new else "old") for is_new in (run.new_tests, run.new_code))
        origin = f" ({escape_markdown(run.reported)}, not rerun here)" if run.reported else ""
        part = " (changed files)" if run.partial else " (kept)" if run.kept else origin
        if run.not_run:
            yield f"| {tests} | {code} | not run | not run | not run | |"
            continue
        counts = run.counts
        yield f"| {tests}{part} | {code} | {counts.red} | {counts.passed} | {counts.skipped} | {run.seconds:.1f} |"
    yield ""
