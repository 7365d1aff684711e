"""Run static checks on the change: a cheat, a syntax error or a new finding goes back before any test runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from redstart.core.change import Snapshot
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Findings, Severity
from redstart.core.noun import clip
from redstart.core.packages import Packages
from redstart.core.run import RunState
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.toolkit.checks.audit import blocked_calls, lint, security
from redstart.toolkit.checks.commands import ToolContext, ask_commands
from redstart.toolkit.checks.narrow import more_than, new_findings, syntax_errors
from redstart.toolkit.checks.syntax import syntax_findings
from redstart.toolkit.honesty.tripwires.protocol import UNREADABLE_CODE
from redstart.toolkit.honesty.tripwires.rules import TripwireHit, tripped
from redstart.toolkit.honesty.verdict.baseline import baseline_cases
from redstart.toolkit.honesty.verdict.collected import tests_lost
from redstart.toolkit.honesty.verdict.inline_tests import changed_inline_tests
from redstart.toolkit.installs.planned import keep_installed, manifests_of
from redstart.toolkit.installs.wanted import SettledPackages, install
from redstart.toolkit.patching.policy import protected

SHOWN = 10
Changed = Mapping[str, bytes | None]
"""The files of a change by path; None if the file does not exist."""
REFUSED = frozenset({"unreadable", "shadows", "skip", "collected_test"})
"""Tripwires for what no honest fix does. For all others the patch is tested, and then a person is asked."""
FROM_TESTS = frozenset({"special_case", "keyed_by_tests"})
"""Tripwires for code that depends on the tests. A new program may contain a table that its own tests require."""
TESTS_READ = 8 << 20
"""Maximum bytes of test files that are searched for what a cheat may have copied from them."""


async def check(run: RunState, ports: Ports) -> Findings:
    after = run.now.apply.snapshot if run.now.apply else None
    if after is None:
        return Findings()
    changed = [change.path for change in ports.trees.changes(run.base, after)]
    found = new_findings(_findings(ports, run.base, changed), _findings(ports, after, changed))
    cheats = _cheats(run, ports, after, changed)
    # A line that a person is asked about does not also count against the patch for its risk.
    asked = {(cheat.path, cheat.line) for cheat in cheats if cheat.rule == UNREADABLE_CODE}
    found = [item for item in found if (item.path, item.line) not in asked or not item.rule.startswith("S")]
    named = asked | {(item.path, item.line) for item in found}
    added = more_than(await _audited(run, ports, run.base, changed), await _audited(run, ports, after, changed))
    found += [item for item in added if (item.path, item.line) not in named]
    found = [*cheats, *found]
    blocking = [item for item in found if item.severity is Severity.error]
    broken = syntax_errors(blocking)
    fault = f"{broken[0].path}:{broken[0].line} does not parse: {broken[0].message}" if broken else ""
    shown = blocking or [item for item in found if item.tool == TRIPWIRE]
    full = ports.blobs.put(FindingList(findings=tuple(found)).model_dump_json().encode()) if found else ""
    told = Findings(count=len(blocking), first=tuple(item.brief() for item in shown[:SHOWN]), full=full, fault=fault)
    packages = run.spec.packages
    return told if blocking or packages is None else await _packages(run, ports, packages, after, told)


async def _packages(run: RunState, ports: Ports, packages: Packages, after: Snapshot, told: Findings) -> Findings:
    """Install the packages that the program requests, ask about them, or refuse them."""
    environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
    known = SettledPackages(packages, run.approved, run.installed, manifests_of(ports, run.spec.base))
    wanted = await install(ports.installer, environment, manifests_of(ports, after), known)
    if wanted is None:
        return told
    if wanted.refused:
        found = [_refused_package(words) for words in wanted.refused]
        full = ports.blobs.put(FindingList(findings=tuple(found)).model_dump_json().encode())
        return Findings(count=len(found), first=tuple(item.brief() for item in found[:SHOWN]), full=full)
    if wanted.asks:
        return told.model_copy(update={"asks": clip(wanted.asks, 400), "packages": wanted.names[:SHOWN]})
    made = keep_installed(ports, wanted, run.packages)
    return told.model_copy(update={"installed": made})


def _refused_package(words: str) -> Finding:
    return Finding(
        tool="packages",
        rule="refused",
        path="",
        line=1,
        severity=Severity.error,
        message=words,
        fingerprint=Finding.mark("packages", "refused", "", words),
    )


def _findings(ports: Ports, snapshot: Snapshot, paths: list[str]) -> list[Finding]:
    files = {path: text for path in paths if (text := ports.trees.read(snapshot, path)) is not None}
    return [*lint(files), *syntax_findings(files)]


async def _audited(run: RunState, ports: Ports, snapshot: Snapshot, paths: list[str]) -> list[Finding]:
    """Find what an audit reports and a patch may not add, including calls that the user blocks."""
    checks = run.spec.checks
    files = {path: text for path in paths if (text := ports.trees.read(snapshot, path)) is not None}
    found = [*blocked_calls(files, checks.block), *security(files, checks.commands)]
    if any(checks.commands.values()):
        environment = Environment.model_validate_json(ports.blobs.get(run.spec.suite.environment))
        place = ToolContext(snapshot, environment, run.spec.sandbox, files)
        found += (await ask_commands(ports.sandbox, checks.commands, place)).findings
    return found


def _cheats(run: RunState, ports: Ports, after: Snapshot, changed: list[str]) -> list[Finding]:
    """Find what the change adds that no honest fix does. Policy covers the tests themselves; they are not checked
    here."""
    source = [path for path in changed if not protected(path, run.spec.guarded)]
    before = {path: ports.trees.read(run.base, path) for path in source}
    now = {path: ports.trees.read(after, path) for path in source}
    lost = (*_lost_tests(run, ports, before, now), *changed_inline_tests(before, now))
    found = [*lost, *tripped(before, now, _tests(run, ports))]
    created = run.spec.task.makes_program
    return [_finding(item) for item in found if not (created and _is_its_own(item))]


def _is_its_own(one: TripwireHit) -> bool:
    """Return whether a new program may do this although a fix may not."""
    return one.kind in FROM_TESTS or one.kind == UNREADABLE_CODE


def _lost_tests(run: RunState, ports: Ports, before: Changed, now: Changed) -> Iterator[TripwireHit]:
    """Find tests that the runner collected from files that are not test files, and that the change alters."""
    collected: dict[str, list[str]] = {}
    for case in baseline_cases(run, ports.blobs):
        collected.setdefault(case.id.partition("::")[0], []).append(case.id)
    for path, old in before.items():
        if words := tests_lost(path, old, now[path], collected.get(run.spec.suite.as_shown(path), ())):
            yield TripwireHit(path, 1, "collected_test", words)


def _finding(one: TripwireHit) -> Finding:
    return Finding(
        tool=TRIPWIRE,
        rule=one.kind,
        path=one.path,
        line=one.line,
        severity=Severity.error if one.kind in REFUSED else Severity.warning,
        message=one.words,
        fingerprint=Finding.mark(TRIPWIRE, one.kind, one.path, one.words),
    )


def _tests(run: RunState, ports: Ports) -> dict[str, bytes]:
    """Read the test files of the baseline, and the code whose doctests ran, up to the size limit."""
    ran = {case.partition("::")[0] for case in (run.now.reproduce.targets.first if run.now.reproduce else ())}
    found: dict[str, bytes] = {}
    left = TESTS_READ
    for path in ports.trees.files(run.base):
        if not protected(path) and run.spec.suite.as_shown(path) not in ran:
            continue
        text = ports.trees.read(run.base, path) or b""
        left -= len(text)
        if left < 0:
            break
        found[path] = text
    return found
