"""Check the tests that prove a change: by reruns, by altered copies of them, and in other surroundings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redstart.app.verify.matrix import CODE_ROLES, MatrixOutcome, VerifiedChange
from redstart.app.verify.suite_runs import SuiteRuns
from redstart.core.frozen import clip
from redstart.core.report import Case, CheckEvidence
from redstart.core.run import Level
from redstart.core.verification import PROVING, Claim, ClaimKind, FileRole
from redstart.toolkit.base.concurrency import run_together
from redstart.toolkit.checks.code_problems import find_code_problems
from redstart.toolkit.checks.selection import select_new_findings
from redstart.toolkit.honesty.all_checks import examine
from redstart.toolkit.honesty.changes.claims import explain_restored_failure
from redstart.toolkit.honesty.changes.suite_results import SuiteResults
from redstart.toolkit.honesty.controls.negative_controls import examine_controls
from redstart.toolkit.honesty.examination import GreenPatch
from redstart.toolkit.honesty.tripwires.rules import find_tripwire_hits, read_test_files
from redstart.toolkit.honesty.verdict.levels import MEASURES
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.suites.execute import load_environment

MOST_NOTES = 10


class ProofChecks(NamedTuple):
    """The claims after the checks, and the evidence."""

    claims: list[Claim]
    evidence: tuple[CheckEvidence, ...] = ()
    refused: str = ""
    """Why the change hides failures; empty if no check shows that."""
    notes: tuple[str, ...] = ()
    suspicions: tuple[str, ...] = ()
    """What an honest change hardly ever adds to the code, one sentence each: with it, tests prove nothing."""


class CheckOptions(NamedTuple):
    level: Level
    seed: str
    """The seed of every random choice: the author of a change cannot predict it."""
    nearby: tuple[Case, ...]
    """Results on the new code of the tests that import a changed file."""


async def check_proof(
    runs: SuiteRuns, change: VerifiedChange, outcome: MatrixOutcome, claims: Sequence[Claim], options: CheckOptions
) -> ProofChecks:
    """Check the tests that prove the change, and whether the new tests that prove nothing yet can fail at all."""
    return await _ProofExaminer(runs, change, outcome, options).examine(claims)


class _ProofExaminer:
    def __init__(self, runs: SuiteRuns, change: VerifiedChange, outcome: MatrixOutcome, options: CheckOptions) -> None:
        self._runs, self._change, self._outcome, self._options = runs, change, outcome, options
        self._measures = MEASURES[options.level]
        self._without = outcome.trees.without

    async def examine(self, claims: Sequence[Claim]) -> ProofChecks:
        steady = await self._find_flaky(claims)
        proving = [claim.test for claim in steady if _fails_without(claim)]
        notes: list[str] = []
        results = await examine(self._build_patch(proving), self._runs, self._measures) if proving else []
        doubts = [doubt for result in results for doubt in result.doubts]
        notes += [doubt.message for doubt in doubts if not doubt.refuses]
        refused = next((doubt.message for doubt in doubts if doubt.refuses), "")
        if refused:
            return ProofChecks(steady, tuple(result.evidence for result in results), refused, tuple(notes))
        controlled, control_notes = await self._control_new_tests(steady)
        notes += [*control_notes, *self._list_findings()]
        evidence = tuple(result.evidence for result in results)
        suspicions = tuple(clip(text, 300) for text in self._find_suspicions()) if proving else ()
        shown = tuple(clip(note, 300) for note in [*suspicions, *notes][:MOST_NOTES])
        return ProofChecks(controlled, evidence, "", shown, suspicions)

    async def _find_flaky(self, claims: Sequence[Claim]) -> list[Claim]:
        """Run the proving tests again, with one varied condition each: those with another result prove nothing."""
        ids = [claim.test for claim in claims if _fails_without(claim) or claim.kind is ClaimKind.absent_before]
        red = [claim.test for claim in claims if _fails_without(claim)]
        change, runs = self._change, self._runs
        repeats = self._measures.after if ids else ()
        count = len(repeats)
        reruns = [
            runs.run_suite(
                f"rerun {number} of {count}",
                change.head,
                change.new_spec,
                ids,
                variation=variation,
                tests=len(ids),
            )
            for number, (_, variation) in enumerate(repeats, 1)
        ]
        if self._measures.fail_again and red:
            reruns.append(runs.run_tests("without the change again", self._without, red))
        suite_runs = await run_together(reruns)
        flaky: dict[str, str] = {}
        for suite_run, (condition, _) in zip(suite_runs, repeats, strict=False):
            flaky |= dict.fromkeys(_list_unless_passed(ids, suite_run.cases), f"it fails with another {condition}")
        if len(suite_runs) > len(repeats):
            results = SuiteResults(suite_runs[-1].cases)
            flaky |= {id_: "it also passes without the change" for id_ in red if results.is_passed(id_)}
        return [_mark_flaky(claim, flaky[claim.test]) if claim.test in flaky else claim for claim in claims]

    async def _control_new_tests(self, claims: Sequence[Claim]) -> tuple[list[Claim], list[str]]:
        """Alter the new tests that prove nothing yet. What tests something absent before proves it if it can fail."""
        kinds = (ClaimKind.absent_before, ClaimKind.green_without)
        failures = self._find_restored_failures(claims)
        ids = [claim.test for claim in claims if claim.kind in kinds or claim.test in failures]
        if not ids:
            return list(claims), []
        patch = self._build_patch(ids)._replace(nearby=())
        outcome = await examine_controls(patch, self._runs, rounds=self._measures.controls)
        able = frozenset(outcome.covered_ids)
        doubts = [f"{doubt.message}: the new test cannot fail" for doubt in outcome.doubts]
        controlled = [
            claim.model_copy(update={"controlled": claim.test in able}) if claim.kind in kinds else claim
            for claim in claims
        ]
        hidden = {
            id_: Claim(test=id_, kind=ClaimKind.hidden, note=explain_restored_failure(failures[id_]))
            for id_ in outcome.undetecting_ids
            if id_ in failures
        }
        controlled = [hidden.get(claim.test, claim) for claim in controlled]
        return controlled, [*doubts, *outcome.evidence.notes]

    def _find_restored_failures(self, claims: Sequence[Claim]) -> dict[str, Case]:
        """Find new and edited tests that fail with the old test configuration. The new one hides that if altered copies
        of them pass, too: else it only sets up what these tests need."""
        restored = self._outcome.restored
        kinds = (ClaimKind.absent_before, ClaimKind.green_without, ClaimKind.edited)
        if restored is None:
            return {}
        cases = ((claim.test, restored.find(claim.test)) for claim in claims if claim.kind in kinds)
        return {id_: case for id_, case in cases if case is not None and case.is_red}

    def _build_patch(self, targets: Sequence[str]) -> GreenPatch:
        change, runs = self._change, self._runs
        return GreenPatch(
            base=self._without,
            patched=change.head,
            suite=change.new_spec.suite,
            environment=load_environment(runs.blobs, change.new_spec),
            targets=tuple(targets),
            before=tuple(self._outcome.results.without.cases.values()),
            nearby=tuple(case.id for case in self._options.nearby),
            changed=tuple(change.list_paths(*CODE_ROLES)),
            seed=self._options.seed,
            after=self._outcome.new.cases,
        )

    def _list_findings(self) -> list[str]:
        """List what the linters newly find in the changed source, one sentence each."""
        paths = self._change.list_paths(FileRole.source)
        before, after = self._read_both(paths)
        findings = select_new_findings(find_code_problems(before), find_code_problems(after))
        return [f"new finding: {item.path}:{item.line} {item.message} ({item.tool} {item.rule})" for item in findings]

    def _find_suspicions(self) -> list[str]:
        """Find what the source gains that only makes the old tests pass. New tests may contain what the code gains."""
        before, after = self._read_both(self._change.list_paths(FileRole.source))
        old_tests = read_test_files(self._runs, self._change.base, find_protection)
        hits = find_tripwire_hits(before, after, old_tests)
        return [f"{hit.path}:{hit.line}: {hit.message}" for hit in hits if hit.kind != "test_changed"]

    def _read_both(self, paths: Sequence[str]) -> tuple[dict[str, bytes | None], dict[str, bytes | None]]:
        """Read files of both sides; None if a side does not have the file."""
        base, head = self._change.base, self._change.head
        return {path: self._runs.read(base, path) for path in paths}, {
            path: self._runs.read(head, path) for path in paths
        }


def _fails_without(claim: Claim) -> bool:
    """Return whether the test proves the change, at least once a person accepts it."""
    return claim.kind in PROVING or claim.fails_without


def _mark_flaky(claim: Claim, note: str) -> Claim:
    """Return the claim about a flaky test. One that a person must accept still asks, and proves nothing."""
    if claim.kind is ClaimKind.weakened:
        return claim.model_copy(update={"fails_without": False})
    return Claim(test=claim.test, kind=ClaimKind.flaky, note=note)


def _list_unless_passed(ids: Sequence[str], cases: Iterable[Case]) -> list[str]:
    results = SuiteResults(cases)
    return [id_ for id_ in ids if not results.is_passed(id_)]
