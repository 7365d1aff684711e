"""Make the proof of an ended run from the store, the blobs and the journal alone: the result is always the same."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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
    ReflectionText,
    Rerun,
    Seen,
    ShrinkSummary,
)
from redstart.app.show import reflections_of
from redstart.app.standing import all_records
from redstart.app.wire import AppContext
from redstart.core.change import ApplyResult
from redstart.core.errors import ConfigError, StoreError
from redstart.core.finding import TRIPWIRE, Finding, FindingList, Severity
from redstart.core.noun import many
from redstart.core.report import (
    Case,
    CaseList,
    Ids,
    OutcomeCounts,
    PatchTestResult,
    Repeat,
    Report,
    ReproductionResult,
    Verdict,
)
from redstart.core.run import Decision, Result, RunState, Status, Step
from redstart.engines.journal import KeptAnswer
from redstart.ports.store.port.journal import JournalRecord, digest
from redstart.ports.store.port.runs import StepRow
from redstart.toolkit.honesty.verdict.baseline import baseline_cases, targets
from redstart.toolkit.honesty.verdict.levels import MEASURES
from redstart.toolkit.honesty.verdict.shortfall import unproven_in_words
from redstart.toolkit.honesty.verdict.verdict import green_among
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.suites.detection.describe import describe_runner

NOT_TESTED = "the last patch was not tested"


class ProofFacts(NamedTuple):
    """The facts that the checks use. The test result is None if the last patch was not tested."""

    state: RunState
    targets: int
    judged: PatchTestResult | None
    files: tuple[ChangedFile, ...]
    found: FindingSummary
    serious: int
    """New findings that a patch may not add, without tripwires."""
    shrunk: ShrinkSummary
    green: bool
    """Whether the run is verified by its tests alone."""

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict if self.judged else Verdict()


def checks(facts: ProofFacts) -> tuple[ProofCheck, ...]:
    """Make one check of each name, in the order in which they are shown."""
    return (
        _targets(facts),
        _others(facts),
        _repeats(facts),
        _red_without(facts),
        _examined(facts, CheckName.able_to_fail, "control", "failed when altered"),
        _examined(facts, CheckName.neutral, "neutral", "passed in surroundings that look like production"),
        _untouched(facts),
        _no_cheat(facts),
        _findings(facts),
        _shrunk(facts),
    )


def _targets(facts: ProofFacts) -> ProofCheck:
    if facts.judged is None:
        return _not_done(CheckName.targets, NOT_TESTED)
    fixed = facts.verdict.fixed.count
    return _check(CheckName.targets, fixed == facts.targets > 0, f"{fixed:,} of {facts.targets:,}")


def _others(facts: ProofFacts) -> ProofCheck:
    judged, found, verdict = facts.judged, facts.state.now.reproduce, facts.verdict
    if judged is None or found is None:
        return _not_done(CheckName.others, NOT_TESTED)
    counted = {
        "newly red": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "newly skipped": verdict.newly_skipped.count,
    }
    worse = [f"{count:,} {what}" for what, count in counted.items() if count]
    worse += ["the exit code and the results contradict each other"] if verdict.unexplained else []
    was, now = found.report.counts, judged.report.counts
    if not (worse or facts.green) and now.total < was.total:
        return _not_done(CheckName.others, f"only {now.total:,} of {was.total:,} tests were run on it")
    said = f"before: {_counted(was)}; after: {_counted(now)}"
    return _check(CheckName.others, not worse, "; ".join((said, *worse)))


def _repeats(facts: ProofFacts) -> ProofCheck:
    after = [repeat for repeat in (facts.judged.repeats if facts.judged else ()) if repeat.patched]
    if not after:
        return _not_done(CheckName.repeats, _why_not(facts, bool(MEASURES[facts.state.spec.verify].after)))
    steady = not any(item.red for item in after) and not facts.verdict.flaky
    varied = ", ".join(_times(item.varied or "nothing" for item in after))
    causes = " or ".join(dict.fromkeys(f"the {item.varied}" for item in after if item.red and item.varied))
    failed = f"failed when {causes} varied" if causes else "did not pass every time"
    ended = "all passed" if steady else f"{many(facts.verdict.flaky.count, 'test')} {failed}"
    said = f"{many(len(after), 'rerun')}, each with one difference ({varied}): {ended}"
    before = facts.state.now.reproduce.repeats if facts.state.now.reproduce else ()
    red = "all failed" if not any(item.green for item in before) else "flaky tests were excluded"
    return _check(CheckName.repeats, steady, f"{said}; before the patch {len(before)}: {red}" if before else said)


def _red_without(facts: ProofFacts) -> ProofCheck:
    bare = [repeat for repeat in (facts.judged.repeats if facts.judged else ()) if not repeat.patched]
    if not bare:
        return _not_done(CheckName.red_without, _why_not(facts, MEASURES[facts.state.spec.verify].fail_again))
    red = min(item.red for item in bare)
    passed = red == facts.targets and not facts.verdict.green_without
    return _check(CheckName.red_without, passed, f"{red:,} of {facts.targets:,} fail on the code without it")


def _examined(facts: ProofFacts, name: CheckName, check: str, words: str) -> ProofCheck:
    """Check what one measure covered. If it refused the patch, the reason is among the objections to the patch."""
    results = [item for item in (facts.judged.evidence if facts.judged else ()) if item.check == check]
    if not results:
        return _not_done(name, _why_not(facts, True))
    result = results[-1]
    said = f"{result.covered:,} of {result.targets:,} {words}, {many(result.runs, 'run')}"
    if facts.verdict.refuted and facts.judged is not None and facts.judged.evidence[-1] is result:
        return _check(name, False, said)
    return _check(name, True, said) if result.covered else _not_done(name, said)


def _untouched(facts: ProofFacts) -> ProofCheck:
    theirs = sum(bool(file.protected) for file in facts.files)
    if facts.state.now.made is None and not theirs:
        return _not_done(CheckName.untouched, "no file was changed")
    which = f"{theirs} of them" if theirs else "none of them"
    files = many(len(facts.files), "file")
    return _check(CheckName.untouched, not theirs, f"{files} in the patch, {which} a test or part of how tests are run")


def _no_cheat(facts: ProofFacts) -> ProofCheck:
    if facts.found.new is None:
        return _not_done(CheckName.no_cheat, "the last patch was not checked")
    signs = facts.found.tripwires
    return _check(CheckName.no_cheat, not signs, f"{many(signs, 'sign')} of it" if signs else "no sign of it")


def _findings(facts: ProofFacts) -> ProofCheck:
    found = facts.found
    if found.new is None:
        return _not_done(CheckName.findings, "the last patch was not checked")
    new, serious = found.new - found.tripwires, facts.serious
    before = "" if found.before is None else f"{found.before:,} before in the same files, "
    minor = f", {new - serious:,} of them minor" if new > serious else ""
    return _check(CheckName.findings, not serious, f"{before}{new:,} new{minor}")


def _shrunk(facts: ProofFacts) -> ProofCheck:
    tried = bool(MEASURES[facts.state.spec.verify].shrink_runs)
    if facts.state.spec.task.makes_program:
        return _not_done(CheckName.shrunk, "a new program is kept whole")
    if not (tried and (facts.green or facts.shrunk.done)):
        return _not_done(CheckName.shrunk, _why_not(facts, tried))
    cut = facts.shrunk
    if not cut.done:
        return _check(CheckName.shrunk, True, "tried; nothing could be left out")
    left = f"{many(cut.hunks_dropped, 'hunk')} left out" if cut.hunks_dropped else "made smaller"
    sizes = f"+{cut.proposed.added} -{cut.proposed.removed} proposed, +{cut.kept.added} -{cut.kept.removed} kept"
    return _check(CheckName.shrunk, True, f"{left}: {sizes}")


def _why_not(facts: ProofFacts, asked: bool) -> str:
    return "done only for a patch that passes" if asked else f"not part of level {facts.state.spec.verify.value}"


def _check(name: CheckName, passed: bool, said: str) -> ProofCheck:
    return ProofCheck(name=name, mark=CheckMark.passed if passed else CheckMark.failed, said=said)


def _not_done(name: CheckName, why: str) -> ProofCheck:
    return ProofCheck(name=name, mark=CheckMark.not_done, said=why)


def _counted(counts: OutcomeCounts) -> str:
    return f"{counts.passed:,} passed, {counts.red:,} red, {counts.skipped:,} skipped"


def _times(varied: Iterable[str]) -> list[str]:
    return [what if count == 1 else f"{what} {count} times" for what, count in Counter(varied).items()]


async def prove(house: AppContext, state: RunState) -> Proof:
    """Make the proof of an ended run. For a run that is not verified, it says what is missing.

    Raises `ConfigError` if the run has not ended or never proposed a patch, and `StoreError` if its records were
    changed after they were written.
    """
    if state.status is not Status.finished or state.result is None:
        raise ConfigError(
            f"run {state.run_id} has not ended, so there is no proof yet", remedy=f"redstart resume {state.run_id}"
        )
    if state.spec.begins_cycles:
        raise ConfigError(
            "each improvement has a proof of its own", remedy=f"for the first: redstart show {state.run_id}.1 --proof"
        )
    if state.now.patch is None and not state.history:
        raise ConfigError(f"run {state.run_id} changed nothing, so there is nothing to prove: {state.reason}")
    rows = await house.adapters.store.steps(state.run_id)
    records = await all_records(house, state)
    return _Evidence(house, state, state.result).proof(rows, records)


def schema() -> str:
    """Render the JSON Schema of a proof, which is published in docs/reference/proof.schema.json.

    It allows unknown fields, as `v` promises, so that a new field does not break a reader that validates proofs.
    """
    made = Proof.model_json_schema(mode="serialization")
    for shape in (made, *made["$defs"].values()):
        shape.pop("additionalProperties", None)
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**draft, **made}, indent=2) + "\n"


def journal_mark(records: Sequence[JournalRecord]) -> JournalMark:
    """Make the mark of the journal. Raises `StoreError` that names the first record changed after it was written."""
    for record in records:
        if digest(record) != record.digest:
            raise StoreError(f"the record of {record.call} was changed and is not valid evidence")
    return JournalMark(
        records=len(records), sha256=hashlib.sha256("".join(item.digest for item in records).encode()).hexdigest()
    )


class _Evidence:
    def __init__(self, house: AppContext, state: RunState, result: Result) -> None:
        self._blobs, self._trees = house.adapters.blobs, house.adapters.trees
        self._state, self._now, self._result = state, state.now, result
        self._judged: PatchTestResult | None = state.now.test if state.now.made else None
        self._verdict: Verdict = self._judged.verdict if self._judged else Verdict()
        self._targets = sorted(set(targets(state, self._blobs)))
        self._files = self._touched()
        self._green = result is Result.verified and self._verdict.honest_green and not state.foreign_language

    def proof(self, rows: Sequence[StepRow], records: Sequence[JournalRecord]) -> Proof:
        state, judged, found = self._state, self._judged, self._now.reproduce
        made, spend = self._now.made, state.spend
        serious = sum(
            finding.severity is Severity.error and finding.tool != TRIPWIRE for finding in self._new_findings()
        )
        facts = ProofFacts(
            state, len(self._targets), judged, self._files, self._found(), serious, self._shrunk(), self._green
        )
        return Proof(
            run=state.run_id,
            parent=state.spec.parent,
            repo=state.spec.repo,
            mode=state.spec.mode,
            runner=describe_runner(state.spec.suite) if state.spec.suite.junit else state.spec.suite.runner,
            level=state.spec.verify,
            result=self._result,
            verified=self._green,
            by_person=self._result is Result.verified and not self._green,
            sentence=self._sentence(),
            reason=state.reason,
            checks=checks(facts),
            lacking=() if self._green else tuple(self._lacking()),
            before=_tally(found.report if found else None),
            after=_tally(judged.report) if judged else None,
            cases=self._cases(),
            repeats_before=_reruns(found.repeats if found else ()),
            repeats_after=_reruns(judged.repeats if judged else ()),
            suite_runs=judged.runs if judged else 0,
            flaky=tuple(_flaky(found, judged)),
            mutants=_noticed(judged),
            written=found.tests if found else (),
            sure=f"{found.sure}: {found.sure_why}" if found and found.sure else "",
            tree_before=state.base.tree,
            tree_after=made.tree if made else "",
            files=self._files,
            findings=facts.found,
            shrunk=facts.shrunk,
            diff=self._text(self._now.diff),
            attempts=tuple(_attempts(rows)),
            models=_models(records),
            cost=Cost(
                calls=spend.calls,
                input_tokens=spend.input_tokens,
                output_tokens=spend.output_tokens,
                usd=round(spend.usd, 6),
                unpriced=spend.unpriced,
                seconds=spend.seconds,
            ),
            journal=journal_mark(records),
        )

    def _sentence(self) -> str:
        fixed, level = self._verdict.fixed.count, self._state.spec.verify
        tests, passing = many(fixed, "test"), "passes" if fixed == 1 else "pass"
        if self._green:
            which = f"{tests} that failed without this patch {passing} with it"
            if self._state.spec.task.makes_program:
                which = f"{tests}, written before the code, failed without it and {passing} with it"
            if found := (self._judged.mutants if self._judged else None):
                which += f", and the tests notice {found.killed} of {found.sampled} small changes to it"
            least = f" Only what level {level.value} asks for was checked." if not MEASURES[level].after else ""
            return f"Verified: {which}; no other test got worse.{least}"
        if self._result is Result.unproven:
            which = f"{tests} that failed without this patch {passing} with it"
            return f"Unproven: {which}, but Redstart cannot alter such tests to prove that they can still fail."
        if self._result is Result.verified:
            return f"Accepted by a person: {tests} that failed {passing} with this patch, but not every check does."
        why = {
            Result.refused: "the last patch was refused",
            Result.capped: "a limit of the run was reached first",
            Result.stuck: "the model repeated the same patch",
        }
        tried = many(self._now.number, "attempt")
        return f"Not verified: {why.get(self._result, f'no patch passed every check in {tried}')}."

    def _lacking(self) -> list[str]:
        verdict, now = self._verdict, self._now
        named = {
            "still red": verdict.still_red,
            "newly red": verdict.newly_red,
            "missing": verdict.missing,
            "newly skipped": verdict.newly_skipped,
            "not green in every repeat": verdict.flaky,
            "green without the patch as well": verdict.green_without,
        }
        lines = [f"refused: {words}" for words in verdict.refuted]
        lines += [f"{what}: {item}" for what, ids in named.items() for item in _named(ids)]
        lines += [f"contradiction: {verdict.unexplained}"] if verdict.unexplained else []
        language = self._state.foreign_language if verdict.fixed and not verdict.still_red else ""
        lines += [f"not proven: {unproven_in_words(language)}"] if language else []
        rejects = {_readable(reject.path): reject.reason for reject in now.apply.rejects} if now.apply else {}
        theirs = {file.path: file.protected for file in self._files if file.protected and file.path not in rejects}
        lines += [f"not applied: {path}: {reason}" for path, reason in rejects.items()]
        lines += [f"changed a protected file: {path}: {reason}" for path, reason in theirs.items()]
        findings = now.check.first if now.check else ()
        lines += [f"finding: {finding.path}:{finding.line} {finding.rule} {finding.message}" for finding in findings]
        lines += [f"no patch: {now.patch.fault}"] if now.patch and now.patch.fault else []
        return list(dict.fromkeys(lines))

    def _touched(self) -> tuple[ChangedFile, ...]:
        made, spec = self._now.made, self._state.spec
        if made is not None:
            paths = {change.path for change in self._trees.changes(self._state.base, made)}
        else:
            paths = set(self._now.patch.files) if self._now.patch else set[str]()
        found = ((path, protected(path, spec.protect, spec.tests)) for path in sorted(paths))
        return tuple(ChangedFile(path=_readable(path), protected=why.words if why else "") for path, why in found)

    def _cases(self) -> tuple[CaseLine, ...]:
        before = {case.id: case for case in baseline_cases(self._state, self._blobs)}
        judged = self._judged
        cases = _all_cases(self._blobs.get(judged.report.full)) if judged and judged.report.full else ()
        after, green = {case.id: case for case in cases}, green_among(self._targets, cases)

        def now_of(target: str) -> Seen:
            # A target that is an entire file has no case of its own once its tests can be collected.
            return "untested" if judged is None else "passed" if target in green else _seen(after.get(target))

        lines = [
            CaseLine(id=item, target=True, before=_seen(before.get(item)), after=now_of(item)) for item in self._targets
        ]
        known, missing = set(self._targets), set(self._verdict.missing.first)
        for item in sorted((before.keys() | after.keys()) - known):
            was, now = _seen(before.get(item)), _seen(after.get(item))
            # A test without a result may not have been selected: the verdict knows which tests are missing.
            if was != now and (item in after or item in missing):
                lines.append(CaseLine(id=item, target=False, before=was, after=now))
        return tuple(lines)

    def _found(self) -> FindingSummary:
        check, audit, context = self._now.check, self._now.audit, self._now.retrieve
        paths = {file.path for file in self._files}
        looked = {chunk.path for chunk in context.chunks} if context else set[str]()
        earlier = self._findings(audit.full) if audit else ()
        new = self._new_findings()
        return FindingSummary(
            before=sum(item.path in paths for item in earlier) if audit and paths <= looked else None,
            new=len(new) if check and self._now.apply and self._now.apply.ok else None,
            blocking=check.count if check else 0,
            tripwires=sum(item.tool == TRIPWIRE for item in new),
        )

    def _new_findings(self) -> tuple[Finding, ...]:
        """Load the findings that the patch added, including tripwires."""
        return self._findings(self._now.check.full) if self._now.check else ()

    def _findings(self, full: str) -> tuple[Finding, ...]:
        return FindingList.model_validate_json(self._blobs.get(full)).findings if full else ()

    def _shrunk(self) -> ShrinkSummary:
        judged, applied = self._judged, self._now.apply
        return ShrinkSummary(
            done=bool(judged and judged.shrunk),
            hunks_dropped=judged.dropped if judged and judged.shrunk else 0,
            proposed=_lines(self._text(applied.diff) if applied else ""),
            kept=_lines(self._text(self._now.diff)),
        )

    def _text(self, blob: str) -> str:
        return self._blobs.get(blob).decode(errors="replace") if blob else ""


def _tally(report: Report | None) -> OutcomeTally:
    counts = report.counts if report else OutcomeCounts()
    return OutcomeTally(passed=counts.passed, failed=counts.failed, errors=counts.errors, skipped=counts.skipped)


def _reruns(repeats: Iterable[Repeat]) -> tuple[Rerun, ...]:
    return tuple(
        Rerun(patched=repeat.patched, varied=repeat.varied, green=repeat.green, red=repeat.red) for repeat in repeats
    )


def _named(ids: Ids) -> list[str]:
    more = ids.count - len(ids.first)
    return [*ids.first, *([f"and {more:,} more"] if more > 0 else [])]


def _flaky(found: ReproductionResult | None, judged: PatchTestResult | None) -> Iterator[str]:
    yield from found.flaky if found else ()
    if judged is not None:
        yield from (f"{item} (not green in every repeat)" for item in _named(judged.verdict.flaky))
        yield from (f"{item} (failed in one run on the patch, passed in the next)" for item in _named(judged.unsteady))


def _noticed(judged: PatchTestResult | None) -> MutantSummary | None:
    found = judged.mutants if judged else None
    return MutantSummary(sampled=found.sampled, killed=found.killed, survivors=found.survivors) if found else None


def _all_cases(blob: bytes) -> tuple[Case, ...]:
    return CaseList.model_validate_json(blob).cases


def _seen(case: Case | None) -> Seen:
    return case.outcome.value if case else "absent"


def _readable(path: str) -> str:
    """Spell out bytes of a path that are not UTF-8 as `\\xff`, because JSON cannot hold them."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _lines(diff: str) -> LineCounts:
    """Count added and removed lines only inside hunks, because a removed line may begin with dashes of its own."""
    added = removed = 0
    inside = False
    for line in diff.split("\n"):
        inside = not line.startswith("diff --git ") and (inside or line.startswith("@@ "))
        added += inside and line.startswith("+")
        removed += inside and line.startswith("-")
    return LineCounts(added=added, removed=removed)


def _attempts(rows: Sequence[StepRow]) -> Iterator[AttemptRecord]:
    reflections = reflections_of(rows)
    for number in sorted({row.attempt for row in rows}):
        mine = {row.step: row.artifact for row in rows if row.attempt == number}
        applied = ApplyResult.model_validate_json(mine[Step.apply]) if Step.apply in mine else None
        decided = Decision.model_validate_json(mine[Step.decide]).reason if Step.decide in mine else ""
        counted = Counter((item.kind, item.rung) for item in (applied.rungs if applied else ()))
        edits = tuple(EditSummary(form=form, fit=fit, count=count) for (form, fit), count in counted.items())
        said = reflections.get(number)
        reflection = ReflectionText.model_validate(said.model_dump()) if said else None
        yield AttemptRecord(number=number, outcome=decided, edits=edits, reflection=reflection)


def _models(records: Sequence[JournalRecord]) -> tuple[ModelUse, ...]:
    """List the models that were asked, most calls first. A call that the budget stopped counts if a model was asked."""
    answers = [KeptAnswer.of(record).answer for record in records if record.kind == "model"]
    given = [item for item in answers if item.asked]
    return tuple(
        ModelUse(
            name=name,
            calls=calls,
            input_tokens=sum(item.usage.input_tokens for item in given if item.model == name),
            output_tokens=sum(item.usage.output_tokens for item in given if item.model == name),
        )
        for name, calls in Counter(item.model for item in given).most_common()
    )
