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
from redstart.core.noun import clip
from redstart.core.run import Mode, RunState
from redstart.core.shell import Environment
from redstart.core.tasks import AuditTask
from redstart.ports.bundle import Ports
from redstart.toolkit.base.text import data
from redstart.toolkit.checks.audit import lint, merged, run_tools, without_suppressed
from redstart.toolkit.checks.commands import ToolContext, ask_commands
from redstart.toolkit.checks.narrow import most_telling, new_since, on_changed_lines, without_noise
from redstart.toolkit.checks.review import ReviewClaim, verified
from redstart.toolkit.languages.registry import is_test_path, reads_code
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section
from redstart.toolkit.prompts.shapes import ReviewAnswer

SHOWN = 10
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
    dropped: int = 0
    """Number of claims that the code does not confirm."""
    summary: ReviewSummary | None = None
    unreviewed: tuple[str, ...] = ()
    """Files that no readable answer covers."""


async def audit(run: RunState, ports: Ports) -> Findings:
    return await AUDITS[run.spec.mode](run, ports)


async def _audit_context(run: RunState, ports: Ports) -> Findings:
    """Lint the code that the model is shown."""
    return _kept(ports, lint(_files(run, ports, _retrieved(run))))


async def _audit_all(run: RunState, ports: Ports) -> Findings:
    """Check the whole program with the tools, most severe findings first: one of them may be the next improvement."""
    files = _files(run, ports, ports.trees.files(run.ground))
    return _kept(ports, most_telling(without_suppressed(run_tools(files, run.spec.checks.commands), files)))


async def _scan(run: RunState, ports: Ports) -> Findings:
    scan = run.spec.task_of(AuditTask).scan
    if scan is None:
        return await _audit_context(run, ports)
    files = _files(run, ports, _retrieved(run) or _within(scan, ports.trees.files(run.ground)))
    found = run_tools(files, run.spec.checks.commands)
    found += await _commands(run, ports, files)
    found = without_suppressed(found, files)
    reviewed = await _review(run, ports, files, found) if scan.review else ModelReview()
    found = without_noise(_asked_for(run, merged([*found, *reviewed.findings])), is_test_path)
    if scan.lines:
        found = on_changed_lines(found, ChangedLines.model_validate_json(ports.blobs.get(scan.lines)).lines)
    accepted = 0
    if scan.known:
        new = new_since(found, KnownFindings.model_validate_json(ports.blobs.get(scan.known)).findings)
        accepted = len(found) - len(new)
        ports.note(known=accepted)
        found = new
    failing = sum(item.risk.reaches(scan.fail_on) for item in found) if scan.fail_on else 0
    kept = _kept(ports, most_telling(found), reviewed, accepted)
    return kept.model_copy(update={"failing": failing, "dropped": reviewed.dropped})


def _kept(ports: Ports, found: Sequence[Finding], reviewed: ModelReview | None = None, accepted: int = 0) -> Findings:
    summary = reviewed.summary if reviewed else None
    report = FindingList(
        findings=tuple(found),
        warnings=(summary.warning,) if summary and summary.warning else (),
        unreviewed=reviewed.unreviewed if reviewed else (),
        accepted=accepted,
    )
    full = ports.blobs.put(report.model_dump_json().encode()) if report != FindingList() else ""
    first = tuple(finding.brief() for finding in found[:SHOWN])
    return Findings(count=len(found), first=first, full=full, accepted=accepted, review=summary)


def _retrieved(run: RunState) -> list[str]:
    return sorted({chunk.path for chunk in run.now.retrieve.chunks}) if run.now.retrieve else []


def _within(scan: Scan, paths: Sequence[str]) -> list[str]:
    if not scan.paths:
        return list(paths)
    return [path for path in paths if any(path == item or path.startswith(f"{item}/") for item in scan.paths)]


def _files(run: RunState, ports: Ports, paths: Sequence[str]) -> dict[str, bytes]:
    return {path: text for path in paths if (text := ports.trees.read(run.ground, path)) is not None}


def _asked_for(run: RunState, found: list[Finding]) -> list[Finding]:
    """Keep the findings that belong to the reviews that the goal asks for."""
    reviews = set(run.now.plan.reviews) if run.now.plan else set[str]()
    if len(reviews) != 1:
        return found
    return [item for item in found if (item.kind in SQL) == ("sql" in reviews)]


async def _commands(run: RunState, ports: Ports, files: Mapping[str, bytes]) -> list[Finding]:
    commands = run.spec.checks.commands
    if not any(commands.values()):
        return []
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    said = await ask_commands(ports.sandbox, commands, ToolContext(run.ground, environment, run.spec.sandbox, files))
    for name, words in said.silent.items():
        ports.note(tool=name, silent=words)
    return said.findings


async def _review(run: RunState, ports: Ports, files: Mapping[str, bytes], found: Sequence[Finding]) -> ModelReview:
    """Ask a model to review as much code as fits a few questions, most suspicious files first."""
    findings: list[Finding] = []
    unreviewed: list[str] = []
    dropped = answers = unreadable = 0
    reason = ""
    for shown in _portions(files, found):
        told = [f"{item.path}:{item.line} {item.message}" for item in found if item.path in shown][:40]
        messages = fitted(
            ports.note,
            "audit",
            run.spec.asks.room(ANSWER),
            goal=sections.goal(run.spec.goal),
            findings=section("Found already", data("tools", "\n".join(told), 4000)) if told else "",
            code=section("Code", *(data(path, _numbered(text), READ_AT_ONCE * 2) for path, text in shown.items())),
        )
        asked = Ask(
            question="audit",
            tier=Tier.strong,
            messages=messages,
            max_tokens=run.spec.asks.answer(ANSWER),
        )
        heard = await ask_for(ports.model, asked, ReviewAnswer)
        answers += heard.repairs + 1
        if heard.value is None:
            unreadable += heard.repairs + 1
            unreviewed += shown
            reason = clip(heard.fault, REASON)
            continue
        unreadable += heard.repairs
        held = verified((ReviewClaim(**remark.model_dump()) for remark in heard.value.findings), shown)
        findings += held.findings
        dropped += held.dropped
    summary = ReviewSummary(answers=answers, unreadable=unreadable, reason=reason, unreviewed=len(unreviewed))
    return ModelReview(tuple(findings), dropped, summary, tuple(sorted(unreviewed)))


def _portions(files: Mapping[str, bytes], found: Sequence[Finding]) -> list[dict[str, bytes]]:
    """Split the code files, those with findings first, into portions that each fit a question."""
    counted = {path: sum(item.path == path for item in found) for path in files}
    code = [path for path in files if reads_code(path) or path.endswith(".sql")]
    portions: list[dict[str, bytes]] = []
    room = 0
    for path in sorted(code, key=lambda item: (-counted[item], item)):
        size = len(files[path])
        if not size or size > READ_AT_ONCE * 2:
            continue
        if not portions or size > room:
            if len(portions) == QUESTIONS:
                break
            portions.append({})
            room = READ_AT_ONCE
        portions[-1][path] = files[path]
        room -= size
    return portions


def _numbered(text: bytes) -> str:
    lines = text.decode(errors="replace").splitlines()
    return "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))


AUDITS: dict[Mode, Callable[[RunState, Ports], Awaitable[Findings]]] = {
    Mode.fix: _audit_context,
    Mode.create: _audit_context,
    Mode.improve: _audit_all,
    Mode.audit: _scan,
}
