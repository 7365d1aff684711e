"""Format the result of a verification for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from redstart.app.verify.kinds import KINDS, KindText, describe_lines
from redstart.cli.output import create_console, print_styled
from redstart.cli.text_wrap import wrap
from redstart.core.frozen import format_count
from redstart.core.report import OutcomeCounts
from redstart.core.safe_text import escape_line
from redstart.core.verification import Claim, ClaimKind, CodeVersion, FileRole, MatrixRun, Verification, VerificationEnd

MOST_LISTED = 10
"""Tests listed of each kind, unless the user wants all of them."""
LABEL_WIDTH = 9


KIND_STYLES = {
    ClaimKind.hidden: "red",
    ClaimKind.broken: "red",
    ClaimKind.weakened: "yellow",
    ClaimKind.removed: "yellow",
    ClaimKind.skipped: "yellow",
    ClaimKind.environment: "yellow",
    ClaimKind.fixed: "green",
    ClaimKind.proven: "green",
}
END_STYLES = {VerificationEnd.verified: "green", VerificationEnd.unproven: ""}
ROLE_NAMES = {
    FileRole.configuration: "test configuration",
    FileRole.tests: "tests",
}


class ReportLine(NamedTuple):
    text: str
    style: str = ""


def print_report(format_lines: Callable[[int | None], Iterable[ReportLine]]) -> None:
    """Print the lines of a report, which fit into the terminal if there is one."""
    console = create_console()
    for line in format_lines(console.width if console.is_terminal else None):
        print_styled(console, line.text, line.style)


def format_report(result: Verification, width: int | None, *, shows_all: bool = False) -> Iterator[ReportLine]:
    """Format the report. Without a width, each test is one line, so that it can be searched."""
    yield from _format_head(result, width)
    yield from _format_matrix(result.matrix)
    for kind, text in KINDS.items():
        if claims := result.list_claims([kind]):
            yield from _format_claims(claims, text, KIND_STYLES.get(kind, ""), width, shows_all=shows_all)
    yield from _format_unnoticed(result, width)
    for note in result.notes:
        yield from wrap_styled(f"note: {note}", width, "", hang=6)
    yield ReportLine("")
    yield from wrap_styled(
        f"{result.end.value.upper()}: {result.reason}", width, END_STYLES.get(result.end, "bold red"), hang=2
    )
    if result.remedy:
        for line in result.remedy.splitlines():
            yield from wrap_styled(f"hint: {line}", width, "", hang=6)


def _format_head(result: Verification, width: int | None) -> Iterator[ReportLine]:
    versions = f"{name_version(result.base)} to {name_version(result.head)}"
    yield from format_label("change", versions, width)
    counts = [
        f"{sum(file.role is role for file in result.files)} {ROLE_NAMES.get(role, role.value)}"
        for role in FileRole
        if any(file.role is role for file in result.files)
    ]
    files = f"{format_count(len(result.files), 'file')}: {', '.join(counts)}" if counts else "no file differs"
    yield from format_label("files", files, width)


def name_version(version: CodeVersion) -> str:
    """Name a side of the change, with its commit."""
    short = version.commit[:8]
    return f"{version.name} ({short})" if short and not version.name.startswith(short) else version.name


def _format_matrix(matrix: Sequence[MatrixRun]) -> Iterator[ReportLine]:
    """Format the runs as a table: the tests of each side in a row, the code of each side in a column."""
    if not matrix:
        return
    cells = {(run.new_tests, run.new_code): _format_cell(run) for run in matrix}
    column = max(map(cell_len, cells.values())) + 3
    yield ReportLine("")
    yield ReportLine(f"{'':<{LABEL_WIDTH + 2}}{'old code':<{column}}new code", "dim")
    rows = [(False, "old tests"), (True, "new tests")]
    if len(cells) == 2:
        rows, cells = [(False, "tests")], {(False, is_new): text for (_, is_new), text in cells.items()}
    for is_new, name in rows:
        old, new = (cells.get((is_new, code), "as the others") for code in (False, True))
        yield ReportLine(f"{name:<{LABEL_WIDTH + 2}}{old:<{column}}{new}".rstrip())
    if any(run.partial for run in matrix):
        yield ReportLine(f"{'':<{LABEL_WIDTH + 2}}* only the changed test files", "dim")
    if any(run.kept for run in matrix):
        yield ReportLine(f"{'':<{LABEL_WIDTH + 2}}° kept from an earlier verification", "dim")
    for run in matrix:
        if run.reported:
            yield ReportLine(f"{'':<{LABEL_WIDTH + 2}}† from {escape_line(run.reported)}, not rerun here", "dim")


def _format_cell(run: MatrixRun) -> str:
    if run.not_run:
        return "not run"
    counts = "no result" if run.problem else _format_counts(run.counts)
    return f"{counts}{' *' if run.partial else ''}{' °' if run.kept else ' †' if run.reported else ''}"


def _format_counts(counts: OutcomeCounts) -> str:
    parts = ((counts.red, "fail"), (counts.passed, "pass"), (counts.skipped, "skipped"))
    return ", ".join(f"{count:,} {name}" for count, name in parts if count) or "none"


def _format_claims(
    claims: Sequence[Claim], text: KindText, style: str, width: int | None, *, shows_all: bool
) -> Iterator[ReportLine]:
    yield ReportLine("")
    yield from wrap_styled(f"{text.title} ({len(claims):,}): {text.meaning}", width, style, hang=2)
    listed = claims if shows_all else claims[:MOST_LISTED]
    for claim in listed:
        accepted = f"accepted by {claim.accepted}" if claim.accepted else ""
        note = escape_line("; ".join(filter(None, (claim.note, accepted))))
        test = escape_line(claim.test)
        if width is None or cell_len(f"  {test}  {note}") <= width:
            yield ReportLine(f"  {test}  {note}".rstrip())
            continue
        yield ReportLine(f"  {test}")
        yield from wrap_styled(f"      {note}", width, "dim", hang=6)
    if len(listed) < len(claims):
        yield ReportLine(f"  and {len(claims) - len(listed):,} more: --verbose lists them", "dim")


def _format_unnoticed(result: Verification, width: int | None) -> Iterator[ReportLine]:
    if result.untested:
        yield ReportLine("")
        yield from wrap_styled("Untested: no test that imports the file runs these changed lines", width, "", hang=2)
        for item in result.untested:
            yield from wrap_styled(f"  {escape_line(item.path)}, {describe_lines(item.lines)}", width, "", hang=6)
    if result.mutants and result.mutants.survivors:
        mutants = result.mutants
        count = f"{mutants.sampled - mutants.killed} of {format_count(mutants.sampled, 'small change')}"
        yield ReportLine("")
        yield from wrap_styled(f"Unnoticed: no test fails after {count} of the changed lines", width, "", hang=2)
        for survivor in mutants.survivors:
            yield from wrap_styled(f"  {escape_line(survivor)}", width, "", hang=6)


def format_label(label: str, text: str, width: int | None) -> Iterator[ReportLine]:
    """Format a labeled line at the head of a report."""
    yield from wrap_styled(f"{label:<{LABEL_WIDTH}}{escape_line(text)}", width, "", hang=LABEL_WIDTH)


def wrap_styled(text: str, width: int | None, style: str, *, hang: int) -> Iterator[ReportLine]:
    """Wrap a text of any origin as `wrap` does."""
    yield from (ReportLine(line, style) for line in wrap(text, width, hang=hang))
