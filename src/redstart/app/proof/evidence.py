"""Make the proof of an ended run from the store, the blobs and the journal alone: the result is always the same."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from redstart.app.json_schema import render_json_schema
from redstart.app.proof.schema import (
    AttemptRecord,
    CaseLine,
    ChangedFile,
    CheckMark,
    CheckName,
    Cost,
    EditSummary,
    FindingSummary,
    JournalMark,
    LineCounts,
    ModelUse,
    MutantSummary,
    OutcomeTally,
    Proof,
    ProofCheck,
    RecordedOutcome,
    ReflectionText,
    Rerun,
    SetAsideTests,
    ShrinkSummary,
)
from redstart.app.run_status import load_all_records
from redstart.app.show import collect_reflections
from redstart.app.wire import AppContext
from redstart.core.change import ApplyResult
from redstart.core.errors import ConfigError, StoreError
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Severity
from redstart.core.frozen import format_count
from redstart.core.report import (
    Case,
    CaseList,
    Ids,
    OutcomeCounts,
    PatchTestResult,
    Repeat,
    Report,
    ReproductionResult,
    ShrinkEnd,
    Verdict,
)
from redstart.core.run import Decision, Result, RunState, Status, Step
from redstart.engines.journal import KeptAnswer
from redstart.flow.child_runs import make_child_run_id
from redstart.ports.store.port.journal import JournalRecord, compute_digest
from redstart.ports.store.port.runs import StepRow
from redstart.toolkit.honesty.verdict.baseline import load_baseline_cases, load_targets
from redstart.toolkit.honesty.verdict.levels import MEASURES
from redstart.toolkit.honesty.verdict.remaining_failures import explain_unproven
from redstart.toolkit.honesty.verdict.set_aside import list_set_aside, load_ids
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.suites.detection.describe import describe_runner

NOT_TESTED = "the last patch was not tested"


class ProofFacts(NamedTuple):
    """The facts that the checks use. The test result is None if the last patch was not tested."""

    state: RunState
    targets: int
    test_result: PatchTestResult | None
    files: tuple[ChangedFile, ...]
    findings: FindingSummary
    serious_count: int
    """New findings that a patch may not add, without tripwires."""
    shrink: ShrinkSummary
    is_green: bool
    """Whether the run is verified by its tests alone."""

    @property
    def verdict(self) -> Verdict:
        return self.test_result.verdict if self.test_result else Verdict()


def build_checks(facts: ProofFacts) -> tuple[ProofCheck, ...]:
    """Make one check of each name, in the order in which they are shown."""
    return (
        _check_targets(facts),
        _check_other_tests(facts),
        _check_repeats(facts),
        _check_without_patch(facts),
        _check_measure(facts, CheckName.able_to_fail, "control", "failed when altered"),
        _check_measure(facts, CheckName.neutral, "neutral", "passed in surroundings that look like production"),
        _check_untouched_files(facts),
        _check_tripwires(facts),
        _check_findings(facts),
        _check_shrink(facts),
    )


def _check_targets(facts: ProofFacts) -> ProofCheck:
    if facts.test_result is None:
        return _skip_check(CheckName.targets, NOT_TESTED)
    fixed = facts.verdict.fixed.count
    return _check(CheckName.targets, fixed == facts.targets > 0, f"{fixed:,} of {facts.targets:,}")


def _check_other_tests(facts: ProofFacts) -> ProofCheck:
    test_result, reproduction, verdict = facts.test_result, facts.state.now.reproduce, facts.verdict
    if test_result is None or reproduction is None:
        return _skip_check(CheckName.others, NOT_TESTED)
    counts = {
        "newly failing": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "newly skipped": verdict.newly_skipped.count,
    }
    problems = [f"{count:,} {label}" for label, count in counts.items() if count]
    problems += ["the exit code and the results contradict each other"] if verdict.unexplained else []
    before, after = reproduction.report.counts, test_result.report.counts
    if not (problems or facts.is_green) and after.total < before.total:
        return _skip_check(CheckName.others, f"only {after.total:,} of {before.total:,} tests were run on it")
    detail = f"before: {_format_counts(before)}; after: {_format_counts(after)}"
    return _check(CheckName.others, not problems, "; ".join((detail, *problems)))


def _check_repeats(facts: ProofFacts) -> ProofCheck:
    patched_repeats = [repeat for repeat in (facts.test_result.repeats if facts.test_result else ()) if repeat.patched]
    if not patched_repeats:
        return _skip_check(CheckName.repeats, _explain_omission(facts, bool(MEASURES[facts.state.spec.verify].after)))
    steady = not any(item.red for item in patched_repeats) and not facts.verdict.flaky
    variations = ", ".join(_format_variations(item.varied or "nothing" for item in patched_repeats))
    causes = " or ".join(dict.fromkeys(f"the {item.varied}" for item in patched_repeats if item.red and item.varied))
    failed = f"failed when {causes} varied" if causes else "did not pass every time"
    outcome = "all passed" if steady else f"{format_count(facts.verdict.flaky.count, 'test')} {failed}"
    detail = f"{format_count(len(patched_repeats), 'rerun')}, each with one difference ({variations}): {outcome}"
    baseline_repeats = facts.state.now.reproduce.repeats if facts.state.now.reproduce else ()
    baseline_outcome = "all failed" if not any(item.green for item in baseline_repeats) else "flaky tests were excluded"
    return _check(
        CheckName.repeats,
        steady,
        f"{detail}; before the patch, {format_count(len(baseline_repeats), 'rerun')}: {baseline_outcome}"
        if baseline_repeats
        else detail,
    )


def _check_without_patch(facts: ProofFacts) -> ProofCheck:
    unpatched_repeats = [
        repeat for repeat in (facts.test_result.repeats if facts.test_result else ()) if not repeat.patched
    ]
    if not unpatched_repeats:
        return _skip_check(
            CheckName.red_without, _explain_omission(facts, MEASURES[facts.state.spec.verify].fail_again)
        )
    failing_count = min(item.red for item in unpatched_repeats)
    passed = failing_count == facts.targets and not facts.verdict.green_without
    return _check(CheckName.red_without, passed, f"{failing_count:,} of {facts.targets:,} fail without the patch")


def _check_measure(facts: ProofFacts, name: CheckName, check: str, description: str) -> ProofCheck:
    """Check what one measure covered. If it refused the patch, the reason is among the objections to the patch."""
    results = [item for item in (facts.test_result.evidence if facts.test_result else ()) if item.check == check]
    if not results:
        return _skip_check(name, _explain_omission(facts, True))
    result = results[-1]
    detail = f"{result.covered:,} of {result.targets:,} {description}, {format_count(result.runs, 'run')}"
    if facts.verdict.refuted and facts.test_result is not None and facts.test_result.evidence[-1] is result:
        return _check(name, False, detail)
    return _check(name, True, detail) if result.covered else _skip_check(name, detail)


def _check_untouched_files(facts: ProofFacts) -> ProofCheck:
    protected_count = sum(bool(file.protected) for file in facts.files)
    if facts.state.now.made is None and not protected_count:
        return _skip_check(CheckName.untouched, "no file was changed")
    protected_text = f"{protected_count} of them" if protected_count else "none of them"
    files = format_count(len(facts.files), "file")
    return _check(
        CheckName.untouched,
        not protected_count,
        f"{files} in the patch, {protected_text} a test or part of the test configuration",
    )


def _check_tripwires(facts: ProofFacts) -> ProofCheck:
    if facts.findings.new is None:
        return _skip_check(CheckName.no_cheat, "the last patch was not checked")
    tripwire_count = facts.findings.tripwires
    return _check(
        CheckName.no_cheat,
        not tripwire_count,
        f"{format_count(tripwire_count, 'sign')} of a cheat" if tripwire_count else "no sign of a cheat",
    )


def _check_findings(facts: ProofFacts) -> ProofCheck:
    summary = facts.findings
    if summary.new is None:
        return _skip_check(CheckName.findings, "the last patch was not checked")
    new, serious_count = summary.new - summary.tripwires, facts.serious_count
    before_text = "" if summary.before is None else f"{summary.before:,} in the same files before, "
    minor = f", {new - serious_count:,} of them minor" if new > serious_count else ""
    return _check(CheckName.findings, not serious_count, f"{before_text}{new:,} new{minor}")


_NOTHING_LEFT_OUT = {
    ShrinkEnd.complete: "nothing found that could be left out",
    ShrinkEnd.limit: "no hunk left out; the limit was reached before every hunk was tried",
    ShrinkEnd.failed: "no hunk left out: a smaller patch passed the nearest tests, but not all tests",
}


def _check_shrink(facts: ProofFacts) -> ProofCheck:
    is_planned = bool(MEASURES[facts.state.spec.verify].shrink_runs)
    if facts.state.spec.task.makes_program:
        return _skip_check(CheckName.shrunk, "a new program is kept whole")
    if not (is_planned and (facts.is_green or facts.shrink.done)):
        return _skip_check(CheckName.shrunk, _explain_omission(facts, is_planned))
    shrink = facts.shrink
    end = facts.test_result.shrink_end if facts.test_result else ShrinkEnd.complete
    if not shrink.done:
        return _check(CheckName.shrunk, True, _NOTHING_LEFT_OUT[end])
    reduction = f"{format_count(shrink.hunks_dropped, 'hunk')} left out" if shrink.hunks_dropped else "made smaller"
    sizes = (
        f"+{shrink.proposed.added} -{shrink.proposed.removed} proposed, +{shrink.kept.added} "
        f"-{shrink.kept.removed} kept"
    )
    limit = "; the limit was reached before every hunk was tried" if end is ShrinkEnd.limit else ""
    return _check(CheckName.shrunk, True, f"{reduction}: {sizes}{limit}")


def _explain_omission(facts: ProofFacts, is_planned: bool) -> str:
    return "done only for a patch that passes" if is_planned else f"not part of level {facts.state.spec.verify.value}"


def _check(name: CheckName, passed: bool, detail: str) -> ProofCheck:
    return ProofCheck(name=name, mark=CheckMark.passed if passed else CheckMark.failed, said=detail)


def _skip_check(name: CheckName, reason: str) -> ProofCheck:
    return ProofCheck(name=name, mark=CheckMark.not_done, said=reason)


def _format_counts(counts: OutcomeCounts) -> str:
    return f"{counts.passed:,} passed, {counts.red:,} failed, {counts.skipped:,} skipped"


def _format_variations(variations: Iterable[str]) -> list[str]:
    return [
        variation if count == 1 else f"{variation} {count} times" for variation, count in Counter(variations).items()
    ]


async def prove(app: AppContext, state: RunState) -> Proof:
    """Make the proof of an ended run. For a run that is not verified, it says what is missing.

    Raises `ConfigError` if the run has not ended or never proposed a patch, and `StoreError` if its records were
    changed after they were written.
    """
    if state.status is not Status.finished or state.result is None:
        raise ConfigError(
            f"run {state.run_id} has not ended, so there is no proof yet", remedy=f"redstart resume {state.run_id}"
        )
    if state.spec.has_cycles:
        raise ConfigError(
            "each improvement has a proof of its own", remedy=f"for the first: redstart show {state.run_id}.1 --proof"
        )
    if state.now.patch is None and not state.history:
        raise ConfigError(f"run {state.run_id} changed nothing, so there is nothing to prove: {state.reason}")
    proven_run = make_child_run_id(state.run_id, state.work.chosen) if state.work.chosen else state.run_id
    rows = await app.adapters.store.list_steps(proven_run)
    records = await load_all_records(app, state)
    return _Evidence(app, state, state.result).build_proof(rows, records)


def render_schema() -> str:
    """Render the JSON Schema of a proof, which is published in docs/reference/proof.schema.json."""
    return render_json_schema(Proof)


def create_journal_mark(records: Sequence[JournalRecord]) -> JournalMark:
    """Make the mark of the journal. Raises `StoreError` that names the first record changed after it was written."""
    for record in records:
        if compute_digest(record) != record.digest:
            raise StoreError(f"the record of {record.call} was changed and is not valid evidence")
    return JournalMark(
        records=len(records), sha256=hashlib.sha256("".join(item.digest for item in records).encode()).hexdigest()
    )


class _Evidence:
    def __init__(self, app: AppContext, state: RunState, result: Result) -> None:
        self._blobs, self._trees = app.adapters.blobs, app.adapters.trees
        self._state, self._current_attempt, self._result = state, state.now, result
        self._test_result: PatchTestResult | None = state.now.test if state.now.made else None
        self._verdict: Verdict = self._test_result.verdict if self._test_result else Verdict()
        self._targets = sorted(set(load_targets(state, self._blobs)))
        self._files = self._list_changed_files()
        self._set_aside = list_set_aside(state)
        self._is_green = result is Result.verified and self._verdict.is_green and not state.foreign_language

    def build_proof(self, rows: Sequence[StepRow], records: Sequence[JournalRecord]) -> Proof:
        state, test_result, reproduction = self._state, self._test_result, self._current_attempt.reproduce
        snapshot, spend = self._current_attempt.made, state.spend
        serious_count = sum(
            finding.severity is Severity.error and finding.tool != TRIPWIRE for finding in self._load_new_findings()
        )
        facts = ProofFacts(
            state,
            len(self._targets),
            test_result,
            self._files,
            self._summarize_findings(),
            serious_count,
            self._summarize_shrink(),
            self._is_green or (self._result is Result.partial and self._verdict.is_green),
        )
        return Proof(
            run=state.run_id,
            parent=state.spec.parent,
            repo=state.spec.repo,
            mode=state.spec.mode,
            runner=describe_runner(state.spec.suite) if state.spec.suite.junit else state.spec.suite.runner,
            level=state.spec.verify,
            result=self._result,
            verified=self._is_green,
            by_person=self._result is Result.verified and not self._is_green,
            sentence=self._build_sentence(),
            reason=state.reason,
            checks=build_checks(facts),
            lacking=() if self._is_green else tuple(self._list_missing_evidence()),
            before=_count_outcomes(reproduction.report if reproduction else None),
            after=_count_outcomes(test_result.report) if test_result else None,
            cases=self._compare_cases(),
            set_aside=tuple(
                SetAsideTests(
                    ids=tuple(sorted(load_ids((entry,), self._blobs))),
                    reason=entry.reason,
                    source=entry.source,
                    approved=entry.approved,
                )
                for entry in self._set_aside
            ),
            repeats_before=_convert_repeats(reproduction.repeats if reproduction else ()),
            repeats_after=_convert_repeats(test_result.repeats if test_result else ()),
            suite_runs=test_result.runs if test_result else 0,
            flaky=tuple(_list_flaky_tests(reproduction, test_result)),
            mutants=_summarize_mutants(test_result),
            written=reproduction.tests if reproduction else (),
            sure=f"{reproduction.sure}: {reproduction.sure_why}" if reproduction and reproduction.sure else "",
            tree_before=state.base.tree,
            tree_after=snapshot.tree if snapshot else "",
            files=self._files,
            findings=facts.findings,
            shrunk=facts.shrink,
            diff=self._read_text(self._current_attempt.diff),
            attempts=tuple(_build_attempts(rows)),
            models=_summarize_models(records),
            cost=Cost(
                calls=spend.calls,
                input_tokens=spend.input_tokens,
                output_tokens=spend.output_tokens,
                usd=round(spend.usd, 6),
                unpriced=spend.unpriced,
                seconds=spend.seconds,
            ),
            journal=create_journal_mark(records),
        )

    def _build_sentence(self) -> str:
        fixed, level = self._verdict.fixed.count, self._state.spec.verify
        tests, verb = format_count(fixed, "test"), "passes" if fixed == 1 else "pass"
        if self._is_green:
            claim = f"{tests} that failed without this patch {verb} with it"
            if self._state.spec.task.makes_program:
                claim = f"{tests}, written before the code, failed without it and {verb} with it"
            if mutants := (self._test_result.mutants if self._test_result else None):
                claim += f", and the tests notice {mutants.killed} of {mutants.sampled} small changes to it"
            caveat = f" Only the checks of level {level.value} were done." if not MEASURES[level].after else ""
            agreed = f" A person agreed to set {self._count_set_aside()} aside." if self._set_aside else ""
            return f"Verified: {claim}; no other test got worse.{agreed}{caveat}"
        if self._result is Result.partial:
            claim = f"{tests} that failed without this patch {verb} with it; no other test got worse"
            return f"Partial: {claim}. {self._count_set_aside()} set aside, and nobody has agreed to that."
        if self._result is Result.unproven:
            claim = f"{tests} that failed without this patch {verb} with it"
            return f"Unproven: {claim}, but Redstart cannot alter such tests to prove that they can still fail."
        if self._result is Result.verified:
            return f"Accepted by a person: {tests} that failed {verb} with this patch, but not every check passed."
        reasons = {
            Result.refused: "the last patch was refused",
            Result.capped: "a limit of the run was reached first",
            Result.stuck: "the model repeated the same patch",
        }
        attempts_text = format_count(self._current_attempt.number, "attempt")
        return f"Not verified: {reasons.get(self._result, f'no patch passed every check in {attempts_text}')}."

    def _count_set_aside(self) -> str:
        return format_count(sum(entry.tests.count for entry in self._set_aside), "failing test")

    def _list_missing_evidence(self) -> list[str]:
        verdict, attempt = self._verdict, self._current_attempt
        ids_by_label = {
            "still failing": verdict.still_red,
            "newly failing": verdict.newly_red,
            "missing": verdict.missing,
            "set aside, but failing in another way": verdict.changed,
            "newly skipped": verdict.newly_skipped,
            "did not pass in every rerun": verdict.flaky,
            "passes without the patch too": verdict.green_without,
        }
        lines = [f"refused: {text}" for text in verdict.refuted]
        lines += [f"{label}: {item}" for label, ids in ids_by_label.items() for item in _format_ids(ids)]
        lines += [
            f"set aside: {id_} ({entry.reason})"
            for entry in self._set_aside
            for id_ in _format_ids(Ids(count=entry.tests.count, first=entry.tests.first))
        ]
        lines += [f"contradiction: {verdict.unexplained}"] if verdict.unexplained else []
        language = self._state.foreign_language if verdict.fixed and not verdict.still_red else ""
        lines += [f"not proven: {explain_unproven(language)}"] if language else []
        rejects = (
            {_escape_path(reject.path): reject.reason for reject in attempt.apply.rejects} if attempt.apply else {}
        )
        protected_files = {
            file.path: file.protected for file in self._files if file.protected and file.path not in rejects
        }
        lines += [f"not applied: {path}: {reason}" for path, reason in rejects.items()]
        lines += [f"changed a protected file: {path}: {reason}" for path, reason in protected_files.items()]
        findings = attempt.check.first if attempt.check else ()
        lines += [f"finding: {finding.path}:{finding.line} {finding.rule} {finding.message}" for finding in findings]
        lines += [f"no patch: {attempt.patch.fault}"] if attempt.patch and attempt.patch.fault else []
        return list(dict.fromkeys(lines))

    def _list_changed_files(self) -> tuple[ChangedFile, ...]:
        snapshot, spec = self._current_attempt.made, self._state.spec
        if snapshot is not None:
            paths = {change.path for change in self._trees.list_changes(self._state.base, snapshot)}
        else:
            paths = set(self._current_attempt.patch.files) if self._current_attempt.patch else set[str]()
        protections = ((path, find_protection(path, spec.protect, spec.tests)) for path in sorted(paths))
        return tuple(
            ChangedFile(path=_escape_path(path), protected=protection.words if protection else "")
            for path, protection in protections
        )

    def _compare_cases(self) -> tuple[CaseLine, ...]:
        before = {case.id: case for case in load_baseline_cases(self._state, self._blobs)}
        test_result = self._test_result
        cases = (
            _parse_cases(self._blobs.get(test_result.report.full)) if test_result and test_result.report.full else ()
        )
        after, green_ids = {case.id: case for case in cases}, find_passing_targets(self._targets, cases)

        def find_outcome(target: str) -> RecordedOutcome:
            # A target that is an entire file has no case of its own once its tests can be collected.
            return (
                "untested"
                if test_result is None
                else "passed"
                if target in green_ids
                else _get_outcome(after.get(target))
            )

        lines = [
            CaseLine(id=item, target=True, before=_get_outcome(before.get(item)), after=find_outcome(item))
            for item in self._targets
        ]
        target_ids, missing = set(self._targets), set(self._verdict.missing.first)
        for item in sorted((before.keys() | after.keys()) - target_ids):
            outcome_before, outcome_after = _get_outcome(before.get(item)), _get_outcome(after.get(item))
            # A test without a result may not have been selected: the verdict knows which tests are missing.
            if outcome_before != outcome_after and (item in after or item in missing):
                lines.append(CaseLine(id=item, target=False, before=outcome_before, after=outcome_after))
        return tuple(lines)

    def _summarize_findings(self) -> FindingSummary:
        check, audit, context = self._current_attempt.check, self._current_attempt.audit, self._current_attempt.retrieve
        paths = {file.path for file in self._files}
        audited_paths = {chunk.path for chunk in context.chunks} if context else set[str]()
        earlier_findings = self._load_findings(audit.full) if audit else ()
        new = self._load_new_findings()
        return FindingSummary(
            before=sum(item.path in paths for item in earlier_findings) if audit and paths <= audited_paths else None,
            new=len(new) if check and self._current_attempt.apply and self._current_attempt.apply.ok else None,
            blocking=check.count if check else 0,
            tripwires=sum(item.tool == TRIPWIRE for item in new),
        )

    def _load_new_findings(self) -> tuple[Finding, ...]:
        """Load the findings that the patch added, including tripwires."""
        return self._load_findings(self._current_attempt.check.full) if self._current_attempt.check else ()

    def _load_findings(self, full: str) -> tuple[Finding, ...]:
        return FindingList.model_validate_json(self._blobs.get(full)).findings if full else ()

    def _summarize_shrink(self) -> ShrinkSummary:
        test_result, applied = self._test_result, self._current_attempt.apply
        return ShrinkSummary(
            done=bool(test_result and test_result.shrunk),
            hunks_dropped=test_result.dropped if test_result and test_result.shrunk else 0,
            proposed=_count_lines(self._read_text(applied.diff) if applied else ""),
            kept=_count_lines(self._read_text(self._current_attempt.diff)),
        )

    def _read_text(self, blob: str) -> str:
        return self._blobs.get(blob).decode(errors="replace") if blob else ""


def _count_outcomes(report: Report | None) -> OutcomeTally:
    counts = report.counts if report else OutcomeCounts()
    return OutcomeTally(passed=counts.passed, failed=counts.failed, errors=counts.errors, skipped=counts.skipped)


def _convert_repeats(repeats: Iterable[Repeat]) -> tuple[Rerun, ...]:
    return tuple(
        Rerun(patched=repeat.patched, varied=repeat.varied, green=repeat.green, red=repeat.red) for repeat in repeats
    )


def _format_ids(ids: Ids) -> list[str]:
    remaining = ids.count - len(ids.first)
    return [*ids.first, *([f"and {remaining:,} more"] if remaining > 0 else [])]


def _list_flaky_tests(reproduction: ReproductionResult | None, test_result: PatchTestResult | None) -> Iterator[str]:
    yield from reproduction.flaky if reproduction else ()
    if test_result is not None:
        yield from (f"{item} (did not pass in every rerun)" for item in _format_ids(test_result.verdict.flaky))
        yield from (
            f"{item} (failed in one run on the patch, passed in the next)" for item in _format_ids(test_result.unsteady)
        )


def _summarize_mutants(test_result: PatchTestResult | None) -> MutantSummary | None:
    mutants = test_result.mutants if test_result else None
    return (
        MutantSummary(sampled=mutants.sampled, killed=mutants.killed, survivors=mutants.survivors) if mutants else None
    )


def _parse_cases(blob: bytes) -> tuple[Case, ...]:
    return CaseList.model_validate_json(blob).cases


def _get_outcome(case: Case | None) -> RecordedOutcome:
    return case.outcome.value if case else "absent"


def _escape_path(path: str) -> str:
    """Spell out bytes of a path that are not UTF-8 as `\\xff`, because JSON cannot hold them."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _count_lines(diff: str) -> LineCounts:
    """Count added and removed lines only inside hunks, because a removed line may begin with dashes of its own."""
    added = removed = 0
    inside = False
    for line in diff.split("\n"):
        inside = not line.startswith("diff --git ") and (inside or line.startswith("@@ "))
        added += inside and line.startswith("+")
        removed += inside and line.startswith("-")
    return LineCounts(added=added, removed=removed)


def _build_attempts(rows: Sequence[StepRow]) -> Iterator[AttemptRecord]:
    reflections = collect_reflections(rows)
    for number in sorted({row.attempt for row in rows}):
        artifacts = {row.step: row.artifact for row in rows if row.attempt == number}
        applied = ApplyResult.model_validate_json(artifacts[Step.apply]) if Step.apply in artifacts else None
        outcome = Decision.model_validate_json(artifacts[Step.decide]).reason if Step.decide in artifacts else ""
        counts = Counter((item.kind, item.rung) for item in (applied.rungs if applied else ()))
        edits = tuple(EditSummary(form=form, fit=fit, count=count) for (form, fit), count in counts.items())
        stored_reflection = reflections.get(number)
        reflection = ReflectionText.model_validate(stored_reflection.model_dump()) if stored_reflection else None
        yield AttemptRecord(number=number, outcome=outcome, edits=edits, reflection=reflection)


def _summarize_models(records: Sequence[JournalRecord]) -> tuple[ModelUse, ...]:
    """List the models that were asked, most calls first. A call that the budget stopped counts if a model was asked."""
    answers = [KeptAnswer.from_record(record).answer for record in records if record.kind == "model"]
    counted_answers = [item for item in answers if item.was_asked]
    return tuple(
        ModelUse(
            name=name,
            calls=calls,
            input_tokens=sum(item.usage.input_tokens for item in counted_answers if item.model == name),
            output_tokens=sum(item.usage.output_tokens for item in counted_answers if item.model == name),
        )
        for name, calls in Counter(item.model for item in counted_answers).most_common()
    )
