"""Check the code with tools, and in an audit also with a model whose claims the code must confirm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from redstart.core.chat import Ask, Tier
from redstart.core.finding import (
    ChangedLines,
    Finding,
    FindingKind,
    FindingList,
    Findings,
    KnownFindings,
    ReviewSummary,
    Scan,
)
from redstart.core.frozen import clip
from redstart.core.run import Mode, RunState
from redstart.core.shell import Environment
from redstart.core.tasks import AuditTask
from redstart.ports.bundle import Ports
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.checks.audit import lint, merge_findings, run_tools, without_suppressed
from redstart.toolkit.checks.commands import ToolContext, ask_commands
from redstart.toolkit.checks.review import ReviewClaim, verify_claims
from redstart.toolkit.checks.selection import exclude_known_findings, on_changed_lines, sort_by_severity, without_noise
from redstart.toolkit.languages.registry import is_parsable_code, is_test_path
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import ReviewAnswer
from redstart.toolkit.prompts.ask_model import ask_for
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section

MAX_SHOWN_FINDINGS = 10
ANSWER = 3000
"""Maximum tokens of a review."""
READ_AT_ONCE = 24_000
"""Maximum characters of code in one question."""
REASON = 200
"""Maximum bytes of the reason why an answer could not be read."""
QUESTIONS = 6
"""Maximum questions to a model in one audit."""
SQL = frozenset({FindingKind.sql_injection, FindingKind.sql_misspelt})


class ModelReview(NamedTuple):
    """The claims of a model that the code confirms, and how many of its answers could be read."""

    findings: tuple[Finding, ...] = ()
    dropped_claims: int = 0
    """Number of claims that the code does not confirm."""
    summary: ReviewSummary | None = None
    unreviewed: tuple[str, ...] = ()
    """Files that no readable answer covers."""


async def audit(run: RunState, ports: Ports) -> Findings:
    return await AUDITS[run.spec.mode](run, ports)


async def _audit_context(run: RunState, ports: Ports) -> Findings:
    """Lint the code that the model is shown."""
    return _store_findings(ports, lint(_read_files(run, ports, _list_retrieved_paths(run))))


async def _audit_all(run: RunState, ports: Ports) -> Findings:
    """Check the whole program with the tools, most severe findings first: one of them may be the next improvement."""
    files = _read_files(run, ports, ports.trees.list_files(run.workspace))
    return _store_findings(
        ports, sort_by_severity(without_suppressed(run_tools(files, run.spec.checks.commands), files))
    )


async def _scan(run: RunState, ports: Ports) -> Findings:
    scan = run.spec.get_task(AuditTask).scan
    if scan is None:
        return await _audit_context(run, ports)
    files = _read_files(
        run, ports, _list_retrieved_paths(run) or _filter_paths(scan, ports.trees.list_files(run.workspace))
    )
    findings = run_tools(files, run.spec.checks.commands)
    findings += await _run_commands(run, ports, files)
    findings = without_suppressed(findings, files)
    reviewed = await _review(run, ports, files, findings) if scan.review else ModelReview()
    findings = without_noise(_filter_by_goal(run, merge_findings([*findings, *reviewed.findings])), is_test_path)
    if scan.lines:
        findings = on_changed_lines(findings, ChangedLines.model_validate_json(ports.blobs.get(scan.lines)).lines)
    accepted = 0
    if scan.known:
        new = exclude_known_findings(findings, KnownFindings.model_validate_json(ports.blobs.get(scan.known)).findings)
        accepted = len(findings) - len(new)
        ports.note(known=accepted)
        findings = new
    failing = sum(item.risk.is_at_least(scan.fail_on) for item in findings) if scan.fail_on else 0
    report = _store_findings(ports, sort_by_severity(findings), reviewed, accepted)
    return report.model_copy(update={"failing": failing, "dropped": reviewed.dropped_claims})


def _store_findings(
    ports: Ports, findings: Sequence[Finding], reviewed: ModelReview | None = None, accepted: int = 0
) -> Findings:
    summary = reviewed.summary if reviewed else None
    report = FindingList(
        findings=tuple(findings),
        warnings=(summary.warning,) if summary and summary.warning else (),
        unreviewed=reviewed.unreviewed if reviewed else (),
        accepted=accepted,
    )
    full = ports.blobs.put(report.model_dump_json().encode()) if report != FindingList() else ""
    first = tuple(finding.shorten() for finding in findings[:MAX_SHOWN_FINDINGS])
    return Findings(count=len(findings), first=first, full=full, accepted=accepted, review=summary)


def _list_retrieved_paths(run: RunState) -> list[str]:
    return sorted({chunk.path for chunk in run.now.retrieve.chunks}) if run.now.retrieve else []


def _filter_paths(scan: Scan, paths: Sequence[str]) -> list[str]:
    if not scan.paths:
        return list(paths)
    return [path for path in paths if any(path == item or path.startswith(f"{item}/") for item in scan.paths)]


def _read_files(run: RunState, ports: Ports, paths: Sequence[str]) -> dict[str, bytes]:
    return {path: text for path in paths if (text := ports.trees.read(run.workspace, path)) is not None}


def _filter_by_goal(run: RunState, findings: list[Finding]) -> list[Finding]:
    """Keep the findings that belong to the reviews that the goal asks for."""
    reviews = set(run.now.plan.reviews) if run.now.plan else set[str]()
    if len(reviews) != 1:
        return findings
    return [item for item in findings if (item.kind in SQL) == ("sql" in reviews)]


async def _run_commands(run: RunState, ports: Ports, files: Mapping[str, bytes]) -> list[Finding]:
    commands = run.spec.checks.commands
    if not any(commands.values()):
        return []
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    report = await ask_commands(
        ports.sandbox, commands, ToolContext(run.workspace, environment, run.spec.sandbox, files)
    )
    for name, message in report.unparsed_outputs.items():
        ports.note(tool=name, silent=message)
    return report.findings


async def _review(
    run: RunState, ports: Ports, files: Mapping[str, bytes], tool_findings: Sequence[Finding]
) -> ModelReview:
    """Ask a model to review as much code as fits a few questions, most suspicious files first."""
    findings: list[Finding] = []
    unreviewed: list[str] = []
    dropped = answers = unreadable = 0
    reason = ""
    for portion in _split_portions(files, tool_findings):
        known_lines = [f"{item.path}:{item.line} {item.message}" for item in tool_findings if item.path in portion][:40]
        messages = fit_messages(
            ports.note,
            "audit",
            run.spec.asks.compute_question_tokens(ANSWER),
            goal=sections.build_goal_section(run.spec.goal),
            findings=format_section("Found already", wrap_untrusted("tools", "\n".join(known_lines), 4000))
            if known_lines
            else "",
            code=format_section(
                "Code", *(wrap_untrusted(path, _number_lines(text), READ_AT_ONCE * 2) for path, text in portion.items())
            ),
        )
        request = Ask(
            question="audit",
            tier=Tier.strong,
            messages=messages,
            max_tokens=run.spec.asks.answer(ANSWER),
        )
        outcome = await ask_for(ports.model, request, ReviewAnswer)
        answers += outcome.repairs + 1
        if outcome.value is None:
            unreadable += outcome.repairs + 1
            unreviewed += portion
            reason = clip(outcome.fault, REASON)
            continue
        unreadable += outcome.repairs
        result = verify_claims((ReviewClaim(**remark.model_dump()) for remark in outcome.value.findings), portion)
        findings += result.findings
        dropped += result.dropped_count
    summary = ReviewSummary(answers=answers, unreadable=unreadable, reason=reason, unreviewed=len(unreviewed))
    return ModelReview(tuple(findings), dropped, summary, tuple(sorted(unreviewed)))


def _split_portions(files: Mapping[str, bytes], findings: Sequence[Finding]) -> list[dict[str, bytes]]:
    """Split the code files, those with findings first, into portions that each fit a question."""
    counts = {path: sum(item.path == path for item in findings) for path in files}
    code = [path for path in files if is_parsable_code(path) or path.endswith(".sql")]
    portions: list[dict[str, bytes]] = []
    remaining = 0
    for path in sorted(code, key=lambda item: (-counts[item], item)):
        size = len(files[path])
        if not size or size > READ_AT_ONCE * 2:
            continue
        if not portions or size > remaining:
            if len(portions) == QUESTIONS:
                break
            portions.append({})
            remaining = READ_AT_ONCE
        portions[-1][path] = files[path]
        remaining -= size
    return portions


def _number_lines(text: bytes) -> str:
    lines = text.decode(errors="replace").splitlines()
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))


AUDITS: dict[Mode, Callable[[RunState, Ports], Awaitable[Findings]]] = {
    Mode.fix: _audit_context,
    Mode.create: _audit_context,
    Mode.improve: _audit_all,
    Mode.audit: _scan,
}
