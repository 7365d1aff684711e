"""Run static checks on the change: a cheat, a syntax error or a new finding goes back before any test runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from redstart.core.change import Snapshot
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Findings, Severity
from redstart.core.frozen import clip
from redstart.core.packages import Packages
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.checks.audit import find_blocked_calls, find_security_problems
from redstart.toolkit.checks.code_problems import find_code_problems
from redstart.toolkit.checks.commands import ToolContext, ask_commands
from redstart.toolkit.checks.selection import select_increases, select_new_findings, select_syntax_errors
from redstart.toolkit.honesty.tripwires.protocol import UNREADABLE_CODE
from redstart.toolkit.honesty.tripwires.rules import TripwireHit, find_tripwire_hits, read_test_files
from redstart.toolkit.honesty.verdict.baseline import load_baseline_cases
from redstart.toolkit.honesty.verdict.inline_tests import find_changed_inline_tests
from redstart.toolkit.honesty.verdict.unprotected_tests import describe_lost_tests
from redstart.toolkit.installs.package_requests import SettledPackages, install
from redstart.toolkit.installs.planned_packages import keep_installed, read_manifests
from redstart.toolkit.patching.policy import find_protection

MAX_SHOWN_FINDINGS = 10
Changed = Mapping[str, bytes | None]
"""The files of a change by path; None if the file does not exist."""
REFUSED = frozenset({"unreadable", "shadows", "skip", "collected_test"})
"""Tripwires for what no honest fix does. For all others the patch is tested, and then a person is asked."""
FROM_TESTS = frozenset({"special_case", "keyed_by_tests"})
"""Tripwires for code that depends on the tests. A new program may contain a table that its own tests require."""


async def check(run: RunState, ports: Ports) -> Findings:
    after = run.now.apply.snapshot if run.now.apply else None
    if after is None:
        return Findings()
    changed = [change.path for change in ports.trees.list_changes(run.base, after)]
    findings = select_new_findings(
        *(find_code_problems(_read_files(ports, snapshot, changed)) for snapshot in (run.base, after))
    )
    cheats = _find_cheats(run, ports, after, changed)
    # A line that a person is asked about does not also count against the patch for its risk.
    unreadable_lines = {(cheat.path, cheat.line) for cheat in cheats if cheat.rule == UNREADABLE_CODE}
    findings = [
        item for item in findings if (item.path, item.line) not in unreadable_lines or not item.rule.startswith("S")
    ]
    reported_lines = unreadable_lines | {(item.path, item.line) for item in findings}
    added = select_increases(
        await _audit_files(run, ports, run.base, changed), await _audit_files(run, ports, after, changed)
    )
    findings += [item for item in added if (item.path, item.line) not in reported_lines]
    findings = [*cheats, *findings]
    blocking = [item for item in findings if item.severity is Severity.error]
    parse_errors = select_syntax_errors(blocking)
    fault = (
        f"{parse_errors[0].path}:{parse_errors[0].line} does not parse: {parse_errors[0].message}"
        if parse_errors
        else ""
    )
    selected = blocking or [item for item in findings if item.tool == TRIPWIRE]
    full = ports.blobs.put(FindingList(findings=tuple(findings)).model_dump_json().encode()) if findings else ""
    result = Findings(
        count=len(blocking),
        first=tuple(item.shorten() for item in selected[:MAX_SHOWN_FINDINGS]),
        full=full,
        fault=fault,
    )
    packages = run.spec.packages
    return result if blocking or packages is None else await _handle_packages(run, ports, packages, after, result)


async def _handle_packages(
    run: RunState, ports: Ports, packages: Packages, after: Snapshot, result: Findings
) -> Findings:
    """Install the packages that the program requests, ask about them, or refuse them."""
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    settled = SettledPackages(packages, run.approved, run.installed, read_manifests(ports, run.spec.base))
    package_change = await install(ports.installer, environment, read_manifests(ports, after), settled)
    if package_change is None:
        return result
    if package_change.refused:
        findings = [_build_refused_finding(message) for message in package_change.refused]
        full = ports.blobs.put(FindingList(findings=tuple(findings)).model_dump_json().encode())
        return Findings(
            count=len(findings), first=tuple(item.shorten() for item in findings[:MAX_SHOWN_FINDINGS]), full=full
        )
    if package_change.question:
        return result.model_copy(
            update={"asks": clip(package_change.question, 400), "packages": package_change.names[:MAX_SHOWN_FINDINGS]}
        )
    installed = keep_installed(ports, package_change, run.packages)
    return result.model_copy(update={"installed": installed})


def _build_refused_finding(message: str) -> Finding:
    return Finding(
        tool="packages",
        rule="refused",
        path="",
        line=1,
        severity=Severity.error,
        message=message,
        fingerprint=Finding.mark("packages", "refused", "", message),
    )


def _read_files(ports: Ports, snapshot: Snapshot, paths: list[str]) -> dict[str, bytes]:
    return {path: text for path in paths if (text := ports.trees.read(snapshot, path)) is not None}


async def _audit_files(run: RunState, ports: Ports, snapshot: Snapshot, paths: list[str]) -> list[Finding]:
    """Find what an audit reports and a patch may not add, including calls that the user blocks."""
    checks = run.spec.checks
    files = _read_files(ports, snapshot, paths)
    findings = [*find_blocked_calls(files, checks.block), *find_security_problems(files, checks.commands)]
    if any(checks.commands.values()):
        environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
        place = ToolContext(snapshot, environment, run.spec.sandbox, files)
        findings += (await ask_commands(ports.sandbox, checks.commands, place)).findings
    return findings


def _find_cheats(run: RunState, ports: Ports, after: Snapshot, changed: list[str]) -> list[Finding]:
    """Find additions that no honest fix contains. Policy covers the tests themselves; they are not checked here."""
    source = [path for path in changed if not find_protection(path, run.spec.guarded)]
    before = {path: ports.trees.read(run.base, path) for path in source}
    now = {path: ports.trees.read(after, path) for path in source}
    lost_tests = (*_find_lost_tests(run, ports, before, now), *find_changed_inline_tests(before, now))
    hits = [*lost_tests, *find_tripwire_hits(before, now, _read_test_files(run, ports))]
    is_new_program = run.spec.task.makes_program
    return [_build_finding(item) for item in hits if not (is_new_program and _is_allowed_in_new_program(item))]


def _is_allowed_in_new_program(hit: TripwireHit) -> bool:
    """Return whether a new program may do this although a fix may not."""
    return hit.kind in FROM_TESTS or hit.kind == UNREADABLE_CODE


def _find_lost_tests(run: RunState, ports: Ports, before: Changed, now: Changed) -> Iterator[TripwireHit]:
    """Find tests that the runner collected from files that are not test files, and that the change alters."""
    case_ids: dict[str, list[str]] = {}
    for case in load_baseline_cases(run, ports.blobs):
        case_ids.setdefault(case.id.partition("::")[0], []).append(case.id)
    for path, old in before.items():
        if message := describe_lost_tests(path, old, now[path], case_ids.get(run.spec.suite.to_runner_path(path), ())):
            yield TripwireHit(path, 1, "collected_test", message)


def _build_finding(hit: TripwireHit) -> Finding:
    return Finding(
        tool=TRIPWIRE,
        rule=hit.kind,
        path=hit.path,
        line=hit.line,
        severity=Severity.error if hit.kind in REFUSED else Severity.warning,
        message=hit.message,
        fingerprint=Finding.mark(TRIPWIRE, hit.kind, hit.path, hit.message),
    )


def _read_test_files(run: RunState, ports: Ports) -> dict[str, bytes]:
    """Read the test files of the baseline, and the code whose doctests ran, up to the size limit."""
    executed_paths = {
        case.partition("::")[0] for case in (run.now.reproduce.targets.first if run.now.reproduce else ())
    }
    return read_test_files(
        ports.trees,
        run.base,
        lambda path: find_protection(path) or run.spec.suite.to_runner_path(path) in executed_paths,
    )
