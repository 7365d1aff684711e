"""Verify a change: run the matrix, derive the claims, decide the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from redstart.app.exit_codes import verification_exit_code
from redstart.app.runs import find_test_files
from redstart.app.verify.changed_files import sort_changed_files
from redstart.app.verify.matrix import (
    CODE_ROLES,
    MatrixOutcome,
    VerifiedChange,
    find_nearby,
    repeat_failures,
    run_matrix,
    run_new_code,
)
from redstart.app.verify.proof_checks import CheckOptions, ProofChecks, check_proof
from redstart.app.verify.reasons import Ending, describe_end, describe_new_code, describe_suspicion
from redstart.app.verify.reported_base import ReportedBase
from redstart.app.verify.revisions import RevisionRequest, Revisions, resolve_revisions
from redstart.app.verify.service_reset import ServicesNotReset, describe_services
from redstart.app.verify.side_environments import SideEnvironment, create_side_environments, with_new_environment
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.app.verify.suite_specs import SuiteOptions, choose_changed_suite, create_specs
from redstart.app.verify.unnoticed import UnnoticedSearch, find_unnoticed
from redstart.app.wire import AppContext
from redstart.app.workspace import MayLend
from redstart.core.events import Progress
from redstart.core.run import Level
from redstart.core.verification import (
    ASKING,
    Claim,
    ClaimKind,
    FileRole,
    ProofRequirement,
    SortedFile,
    Verification,
    VerificationEnd,
)
from redstart.engines.progress import StepWatch
from redstart.toolkit.base.concurrency import finish_by, run_together
from redstart.toolkit.base.git import ask_git, require_git
from redstart.toolkit.honesty.changes.claims import ChangeEvidence, decide_end, derive_claims, remove_unknown
from redstart.toolkit.honesty.changes.edited_tests import EditedTests
from redstart.toolkit.honesty.changes.missing_names import FileVersions, collect_changed_words
from redstart.toolkit.suites.detection.command import require_results
from redstart.toolkit.suites.detection.history import find_work_root
from redstart.toolkit.suites.execute import SuiteRun, load_environment
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.selection import build_selector

STEP = "verify"
MUTANTS = {Level.quick: 0, Level.standard: 4, Level.strict: 10}
NO_TESTS_READ = (FileRole.docs, FileRole.other)
"""If only such files change, no test runs."""


class VerifyRequest(NamedTuple):
    """The user's options for a verification, besides the folder."""

    revisions: RevisionRequest = RevisionRequest()
    require: ProofRequirement = ProofRequirement.no_worse
    level: Level = Level.standard
    accept: tuple[str, ...] = ()
    """Tests that may demand less than before: IDs, files or directories."""
    command: tuple[str, ...] = ()
    junit: str = ""
    tests: tuple[str, ...] = ()
    """Globs of test files that their names do not identify."""
    python: str | None = None
    minutes: float | None = None
    """When to stop; None for no limit."""
    mutants: int | None = None
    """The most small changes of the changed lines that are tried; None for what the level tries."""
    reuses_base: bool = True
    """Whether results of the base that an earlier verification kept may be used."""
    reuses_head: bool = False
    """Whether the same holds for the head, which then is the base of another verification."""
    lists_untested: bool = False
    """Whether changed lines that no test runs are listed even if no small change is tried."""
    base_junit: Path | None = None
    """The JUnit file of an earlier CI job with results of the base."""


async def verify(
    app: AppContext,
    path: Path,
    request: VerifyRequest,
    *,
    report: Callable[[Progress], None],
    may_lend: MayLend | None = None,
) -> Verification:
    """Verify a change of the repo around `path`. The repo is only read.

    `report` is called with the progress, and `may_lend` decides as for `create_fix_run`. Raises `ConfigError` if a
    revision or the tests cannot be determined, and what the sandbox raises.
    """
    require_git()
    require_results(request.command, request.junit)
    revisions = resolve_revisions(app.trees, find_work_root(path), request.revisions)
    return await verify_revisions(app, path, revisions, request, report=report, may_lend=may_lend)


async def verify_revisions(
    app: AppContext,
    path: Path,
    revisions: Revisions,
    request: VerifyRequest,
    *,
    report: Callable[[Progress], None],
    may_lend: MayLend | None = None,
) -> Verification:
    """Verify the change between two snapshots of the repo around `path`, as `verify` does."""
    root = find_work_root(path)
    files = sort_changed_files(app.trees, revisions.base.snapshot, revisions.head.snapshot)
    draft = _Draft(root, request, revisions, files, app.adapters.world.generate_id())
    if all(file.role in NO_TESTS_READ for file in files):
        return draft.finish(describe_end(VerificationEnd.unproven, files, ()))
    options = SuiteOptions(request.command, request.junit, request.python)
    choose = partial(choose_changed_suite, "verify", files)
    old_spec, new_spec = create_specs(app, path, options, revisions, choose, may_lend)
    globs = find_test_files(app, revisions.head.snapshot, new_spec.suite, request.tests, None)
    files = sort_changed_files(app.trees, revisions.base.snapshot, revisions.head.snapshot, globs)
    change = VerifiedChange(revisions, files, old_spec, new_spec)
    watch = StepWatch(Progress("", 0, STEP), report)
    sides = await create_side_environments(app, change, watch)
    environment = load_environment(app.adapters.blobs, new_spec)
    sharing = describe_services(environment.services, app.settings.sandbox.services_reset)
    draft = draft._replace(files=files, notes=(*filter(None, (sharing,)), *sides.notes))
    if sides.new.problem:
        reason = f"the code with the change cannot run: {sides.new.problem}"
        return draft.finish(Ending(VerificationEnd.environment, reason, sides.new.remedy))
    change = with_new_environment(app, change, sides.new)
    runs = SuiteRuns(app, change.new_spec, watch)
    try:
        if sides.old.problem:
            return await _verify_new_code(runs, change, draft, sides.old)
        runs.set_environment(change.base, sides.old.environment or environment)
        return await _verify_change(runs, change, draft)
    except ServicesNotReset as error:
        return draft.finish(Ending(VerificationEnd.environment, str(error), error.remedy))


class _Draft(NamedTuple):
    """What is known of a verification before any test runs."""

    root: Path
    request: VerifyRequest
    revisions: Revisions
    files: tuple[SortedFile, ...]
    seed: str
    notes: tuple[str, ...] = ()
    """What the result says of the environments."""

    def finish(
        self,
        ending: Ending,
        claims: Sequence[Claim] = (),
        outcome: MatrixOutcome | None = None,
        notes: Sequence[str] = (),
    ) -> Verification:
        return Verification(
            redstart=version("redstart"),
            repo=self.root.name,
            end=ending.end,
            exit_code=verification_exit_code(ending.end, self.request.require),
            reason=ending.reason,
            remedy=ending.remedy,
            require=self.request.require,
            level=self.request.level,
            base=self.revisions.base.version,
            head=self.revisions.head.version,
            files=self.files,
            matrix=outcome.table if outcome else (),
            claims=tuple(claims),
            notes=(*self.notes, *notes),
        )


async def _verify_change(runs: SuiteRuns, change: VerifiedChange, draft: _Draft) -> Verification:
    minutes = draft.request.minutes
    end_time = None if minutes is None else asyncio.get_running_loop().time() + 60 * minutes
    report = draft.request.base_junit
    both_sides = (
        _run_with_report(runs, change, ReportedBase(runs, change, report))
        if report
        else _run_both_sides(runs, change, draft.request)
    )
    outcome = await finish_by(end_time, both_sides)
    if outcome is None:
        return draft.finish(_describe_late_suites(minutes))
    if isinstance(outcome, Ending):
        return draft.finish(outcome)
    unchecked: list[str] = []
    evidence = _collect_evidence(runs, change, outcome)
    claims = derive_claims(evidence)
    former = evidence.matrix.former
    broken = [claim.test for claim in claims if claim.kind is ClaimKind.broken]
    demanding = [claim.test for claim in claims if claim.kind is ClaimKind.weakened and former.is_red(claim.test)]
    if broken or demanding:
        steadiness = await finish_by(end_time, repeat_failures(runs, change, outcome, broken, demanding))
        if steadiness is None:
            unchecked.append("whether the failures repeat")
        else:
            matrix = evidence.matrix._replace(former=steadiness.former)
            claims = derive_claims(evidence._replace(matrix=matrix, flaky=steadiness.flaky))
    checks, unnoticed = ProofChecks(claims), None
    if decide_end(claims) not in (VerificationEnd.tampered, VerificationEnd.worse):
        request = draft.request
        nearby = find_nearby(runs, change, outcome.new.cases)
        options = CheckOptions(request.level, draft.seed, nearby)
        finished = await finish_by(end_time, check_proof(runs, change, outcome, claims, options))
        checks = finished or checks
        unchecked += [] if finished else ["whether the proof stands in reruns, and whether altered tests fail"]
        mutants = MUTANTS[request.level] if request.mutants is None else request.mutants
        search = UnnoticedSearch(mutants, draft.seed, lists_untested=bool(mutants) or request.lists_untested)
        unnoticed = await finish_by(end_time, find_unnoticed(runs, change, nearby, search))
        unchecked += [] if unnoticed else ["what no test notices"]
    late = (f"not checked, because {minutes:g} minutes were over: {text}" for text in unchecked)
    notes = (*outcome.notes, *checks.notes, *(unnoticed.notes if unnoticed else ()), *late)
    result = _conclude(draft, outcome, checks._replace(notes=notes))
    found = {"untested": unnoticed.untested, "mutants": unnoticed.mutants} if unnoticed else {}
    return result.model_copy(update=found)


async def _verify_new_code(
    runs: SuiteRuns, change: VerifiedChange, draft: _Draft, old: SideEnvironment
) -> Verification:
    """Verify what can be seen without the old code, which cannot run."""
    minutes = draft.request.minutes
    end_time = None if minutes is None else asyncio.get_running_loop().time() + 60 * minutes
    outcome = await finish_by(end_time, _run_new_side(runs, change, old))
    if outcome is None:
        return draft.finish(_describe_late_suites(minutes))
    if isinstance(outcome, Ending):
        return draft.finish(outcome)
    claims = remove_unknown(derive_claims(_collect_evidence(runs, change, outcome)))
    accepted, unmatched = _accept(claims, draft)
    ending = describe_new_code(accepted, draft.files, old.problem, old.remedy)
    report = draft.request.base_junit
    unused = [f"{report.name} is not used: no test could run again on the old code"] if report else []
    return draft.finish(ending, accepted, outcome, (*unused, *unmatched))


async def _run_new_side(runs: SuiteRuns, change: VerifiedChange, old: SideEnvironment) -> MatrixOutcome | Ending:
    new = await runs.run_suite("new tests on the new code", change.head, change.new_spec)
    return _explain_missing_results(runs, change, new, new) or await run_new_code(runs, change, new, old.problem)


async def _run_both_sides(runs: SuiteRuns, change: VerifiedChange, request: VerifyRequest) -> MatrixOutcome | Ending:
    activity, reuses_base = "new tests on the new code", request.reuses_base
    old, new = await run_together(
        (
            runs.run_kept("old tests on the old code", change.base, change.old_spec, reuses=reuses_base),
            runs.run_kept(activity, change.head, change.new_spec, reuses=True)
            if request.reuses_head
            else runs.run_suite(activity, change.head, change.new_spec),
        )
    )
    return _explain_missing_results(runs, change, old, new) or await run_matrix(runs, change, old, new)


async def _run_with_report(runs: SuiteRuns, change: VerifiedChange, base: ReportedBase) -> MatrixOutcome | Ending:
    new = await runs.run_suite("new tests on the new code", change.head, change.new_spec)
    old = await base.complete(new)
    if ending := _explain_missing_results(runs, change, old, new):
        return ending
    outcome = await run_matrix(runs, change, old, new)
    return await base.decide(outcome, derive_claims(_collect_evidence(runs, change, outcome)))


def _describe_late_suites(minutes: float | None) -> Ending:
    reason = f"the tests of both sides did not finish within {minutes:g} minutes"
    return Ending(VerificationEnd.environment, reason, "allow more with --max-minutes")


def _conclude(draft: _Draft, outcome: MatrixOutcome, checks: ProofChecks) -> Verification:
    """Decide the end from what the runs and the checks show, and from what a person accepts."""
    claims, unmatched = _accept(checks.claims, draft)
    end, why = decide_end(claims), outcome.new.unexplained
    if why and not outcome.old.unexplained:
        end = VerificationEnd.worse
    elif checks.refused:
        end, why = VerificationEnd.tampered, checks.refused
    ending = describe_end(end, draft.files, claims, why)
    if end is VerificationEnd.verified and checks.suspicions:
        ending = describe_suspicion(checks.suspicions[0])
    result = draft.finish(ending, claims, outcome, (*checks.notes, *unmatched))
    return result.model_copy(update={"evidence": checks.evidence})


def _explain_missing_results(runs: SuiteRuns, change: VerifiedChange, old: SuiteRun, new: SuiteRun) -> Ending | None:
    """Return how the verification ends if one of the two main runs has no results per test; None if both have."""
    if misplaced := new.misplaced or old.misplaced:
        return Ending(VerificationEnd.environment, "the tests do not import the code of this repo", misplaced)
    if not new.problem and old.problem in (SuiteProblem.none, SuiteProblem.no_tests):
        return None
    if new.problem is old.problem is SuiteProblem.no_tests:
        return Ending(VerificationEnd.no_tests, "no tests were found", "name their command with --test-cmd")
    failed, tree, side = (new, change.head, "with") if new.problem else (old, change.base, "without")
    problem = runs.explain_missing_results(tree, failed)
    fault = failed.report.fault.strip()
    if new.problem and not old.problem and (problem is None or new.problem is SuiteProblem.no_tests):
        return Ending(VerificationEnd.worse, "the tests ran without the change and do not run with it", fault)
    reason = f"the tests do not run {side} the change{f': {problem.words}' if problem else ''}"
    return Ending(VerificationEnd.environment, reason, problem.remedy if problem else fault)


def _collect_evidence(runs: SuiteRuns, change: VerifiedChange, outcome: MatrixOutcome) -> ChangeEvidence:
    before, after = runs.create_test_view(change.base), runs.create_test_view(change.head)
    problems = runs.find_environment_problems(change.head, outcome.new.cases)
    source = [
        FileVersions(path, runs.read(change.base, path) or b"", runs.read(change.head, path) or b"")
        for path in change.list_paths(*CODE_ROLES)
    ]
    return ChangeEvidence(
        outcome.results,
        EditedTests(before, after, change.list_shown_paths(FileRole.tests)),
        collect_changed_words(source),
        {id_: problem.words for id_, problem in problems.items()},
        outcome.restored,
    )


def _accept(claims: Sequence[Claim], draft: _Draft) -> tuple[list[Claim], list[str]]:
    """Record who accepts the tests that the user names. Return the claims, and notes on the names that match none."""
    selectors = {text: build_selector((text,), "") for text in draft.request.accept}
    who = _find_person(draft.root) if selectors else ""
    used: set[str] = set()
    result: list[Claim] = []
    for claim in claims:
        names = {text for text, is_selected in selectors.items() if claim.kind in ASKING and is_selected(claim.test)}
        used |= names
        result.append(claim.model_copy(update={"accepted": who}) if names else claim)
    return result, [f"--accept {text} names no test that demands less" for text in selectors if text not in used]


def _find_person(root: Path) -> str:
    """Name the person who runs the command, as git knows them, else as the system does."""
    name, address = (
        (ask_git(root, "config", "--get", key) or b"").decode().strip() for key in ("user.name", "user.email")
    )
    return f"{name} <{address}>" if name and address else name or os.environ.get("USER", "") or "an unnamed user"
