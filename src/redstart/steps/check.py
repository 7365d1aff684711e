"""Static checks on what changed: a cheat, a syntax error or a new finding goes back before any test runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from redstart.core.change import Snapshot
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Findings, Severity
from redstart.core.run import Mode, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.checks.ruff import check as run_ruff
from redstart.toolkit.checks.ruff import new_findings, syntax_errors
from redstart.toolkit.honesty.baseline import baseline_cases
from redstart.toolkit.honesty.collected import tests_lost
from redstart.toolkit.honesty.tripwires import Tripped, tripped
from redstart.toolkit.patching.policy import protected

SHOWN = 10
Changed = Mapping[str, bytes | None]
"""The files of a change by path; None where there is none."""
ASKS = frozenset({"test_support", "test_changed", "weaker", "keyed_by_tests", "reads_source"})
"""Tripwires that an honest fix may have to touch: the patch is tested, and then a person is asked."""
FROM_TESTS = frozenset({"special_case", "keyed_by_tests"})
"""Tripwires on what the tests ask. A new program may well hold a table that its own tests ask for."""
TESTS_READ = 8 << 20
"""Bytes of the tests' files that are looked at, for what a cheat may have taken from them."""


async def check(run: RunState, ports: Ports) -> Findings:
    after = run.now.apply.snapshot if run.now.apply else None
    if after is None:
        return Findings()
    changed = [change.path for change in ports.trees.changes(run.base, after)]
    found = new_findings(_findings(ports, run.base, changed), _findings(ports, after, changed))
    found = [*_cheats(run, ports, after, changed), *found]
    blocking = [one for one in found if one.severity is Severity.error]
    broken = syntax_errors(blocking)
    fault = f"{broken[0].path}:{broken[0].line} does not parse: {broken[0].message}" if broken else ""
    shown = blocking or [one for one in found if one.tool == TRIPWIRE]
    full = ports.blobs.put(FindingList(findings=tuple(found)).model_dump_json().encode()) if found else ""
    return Findings(count=len(blocking), first=tuple(one.brief() for one in shown[:SHOWN]), full=full, fault=fault)


def _findings(ports: Ports, snapshot: Snapshot, paths: list[str]) -> list[Finding]:
    return run_ruff({path: text for path in paths if (text := ports.trees.read(snapshot, path)) is not None})


def _cheats(run: RunState, ports: Ports, after: Snapshot, changed: list[str]) -> list[Finding]:
    """What the change adds that no honest fix does. The tests themselves are policy's, and not looked at here."""
    source = [path for path in changed if not protected(path, run.spec.protect)]
    before = {path: ports.trees.read(run.base, path) for path in source}
    now = {path: ports.trees.read(after, path) for path in source}
    found = [*_lost_tests(run, ports, before, now), *tripped(before, now, _tests(run, ports))]
    created = run.spec.mode is Mode.create
    return [_finding(one) for one in found if not (created and one.kind in FROM_TESTS)]


def _lost_tests(run: RunState, ports: Ports, before: Changed, now: Changed) -> Iterator[Tripped]:
    """Tests that the runner collected from what is no test file, and that the change would alter."""
    collected: dict[str, list[str]] = {}
    for case in baseline_cases(run, ports.blobs):
        collected.setdefault(case.id.partition("::")[0], []).append(case.id)
    for path, old in before.items():
        if words := tests_lost(path, old, now[path], collected.get(run.spec.suite.as_shown(path), ())):
            yield Tripped(path, 1, "collected_test", words)


def _finding(one: Tripped) -> Finding:
    return Finding(
        tool=TRIPWIRE,
        rule=one.kind,
        path=one.path,
        line=one.line,
        severity=Severity.warning if one.kind in ASKS else Severity.error,
        message=one.words,
        fingerprint=Finding.mark(TRIPWIRE, one.kind, one.path, one.words),
    )


def _tests(run: RunState, ports: Ports) -> dict[str, bytes]:
    """The files of the tests at the baseline, and of the code whose doctests ran, as far as the limit goes."""
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
