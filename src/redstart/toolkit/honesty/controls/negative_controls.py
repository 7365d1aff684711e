"""Negative controls: every target must still be able to fail on the patched code.

Each target's test is altered so that it must fail, and runs on the patched code. If it still passes, something tampered
with the runner, the comparison, the test's reach or the report. Nothing that the test process says about itself is
believed: only this module knows which cases must fail.

Altered tests of different functions share a run. One that passes runs again alone and is investigated: on the original
code, and with a failing statement at the altered place, which shows whether that place is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.report import Case, CheckEvidence
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.honesty.controls.subjects import Subject, collect_subjects
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt, await_each

MARK = "~"
"""The mark in the failure message of an altered statement."""
MOST_SUSPECTS = 6
"""The most passing alterations that are investigated; one that refuses the patch ends it."""
NOTES = 20


class AlteredTest(NamedTuple):
    subject: Subject
    alteration: Alteration


async def examine_controls(patch: GreenPatch, runs: CheckRuns, *, rounds: int) -> CheckOutcome:
    """Run at most `rounds` alterations of each target, and report those that a target did not detect."""
    trial = _Controls(patch, runs)
    all_subjects = collect_subjects(patch, runs)
    subjects = all_subjects.selected
    detected: set[str] = set()
    suspects: list[AlteredTest] = []
    rounds = min(rounds, max((len(item.alterations) for item in subjects), default=0))
    batches = [
        [AlteredTest(item, item.alterations[number]) for item in subjects if number < len(item.alterations)]
        for number in range(rounds)
    ]
    work = [
        partial(trial.run_altered_tests, f"control {number} of {rounds}", patch.patched, batch)
        for number, batch in enumerate(batches, 1)
    ]
    for batch, cases in zip(batches, await await_each(runs, work), strict=True):
        for altered_test in batch:
            if _has_failed(cases, altered_test.subject):
                detected.add(altered_test.subject.id)
            else:
                suspects.append(altered_test)
    doubts, notes = await trial.investigate(suspects)
    doubted_ids = {doubt.subject for doubt in doubts}
    covered_ids = [id_ for item in subjects if item.is_target and item.id in detected - doubted_ids for id_ in item.ids]
    evidence = CheckEvidence(
        check="control",
        targets=all_subjects.targets,
        covered=len(covered_ids),
        runs=trial.runs,
        notes=(*all_subjects.left_out, *notes)[:NOTES],
    )
    undetecting_ids = (
        id_ for item in subjects if item.is_target and item.alterations and item.id not in detected for id_ in item.ids
    )
    patch_doubts = tuple(doubt.patch_doubt for doubt in doubts)
    return CheckOutcome(evidence, patch_doubts, tuple(covered_ids), tuple(undetecting_ids))


class _Doubted(NamedTuple):
    subject: str
    patch_doubt: PatchDoubt


class _Controls:
    def __init__(self, patch: GreenPatch, runs: CheckRuns) -> None:
        self._green_patch, self._runs = patch, runs
        self.runs = 0

    async def run_altered_tests(self, activity: str, tree: Snapshot, batch: Sequence[AlteredTest]) -> tuple[Case, ...]:
        """Run these altered tests on the tree and return their cases."""
        altered_tree = self._runs.write(tree, self._build_files(tree, batch))
        self.runs += 1
        return (await self._runs.run_tests(activity, altered_tree, [item.subject.id for item in batch])).cases

    def _build_files(self, tree: Snapshot, batch: Sequence[AlteredTest]) -> dict[str, bytes | None]:
        files: dict[str, bytes | None] = {}
        for path in dict.fromkeys(item.subject.path for item in batch):
            text = self._runs.read(tree, path) or b""
            edits = sorted((item.alteration for item in batch if item.subject.path == path), key=_place, reverse=True)
            next_start = len(text) + 1
            for edit in edits:
                if edit.end < next_start or edit.start == edit.end < next_start:
                    text, next_start = edit.apply_to(text), edit.start
            files[path] = text
        return files

    async def investigate(self, suspects: Sequence[AlteredTest]) -> tuple[list[_Doubted], list[str]]:
        """Investigate altered tests that passed although they had to fail."""
        doubts: list[_Doubted] = []
        notes: list[str] = []
        ordered = sorted(suspects, key=lambda suspect: (not suspect.subject.is_target, suspect.alteration.asks))
        for altered_test in ordered[:MOST_SUSPECTS]:
            subject = altered_test.subject
            if _has_failed(
                await self.run_altered_tests("control on its own", self._green_patch.patched, [altered_test]), subject
            ):
                continue
            doubt, note = await self._interpret(altered_test)
            notes += [note] if note else []
            doubts += [_Doubted(subject.id, doubt)] if doubt else []
            if doubt and doubt.refuses:
                break
        return doubts, notes

    async def _interpret(self, altered_test: AlteredTest) -> tuple[PatchDoubt | None, str]:
        subject, alteration = altered_test
        if alteration.kind is AlterationKind.inserted:
            return await self._explain_unreached(altered_test)
        if alteration.kind is AlterationKind.unrelated or not subject.is_target:
            baseline_cases = await self.run_altered_tests(
                "control without the patch", self._green_patch.base, [altered_test]
            )
            reason = "Unrelated" if alteration.kind is AlterationKind.unrelated else ""
            if not _has_failed(baseline_cases, subject, reason):
                return None, f"{subject.short}: passes on the original code too when {alteration.message}"
            return _create_doubt(subject, alteration), ""
        if not (alteration.always or await self._is_reached(altered_test)):
            return None, f"{subject.short}: line {alteration.line} is not reached"
        return _create_doubt(subject, alteration), ""

    async def _explain_unreached(self, altered_test: AlteredTest) -> tuple[PatchDoubt | None, str]:
        """Explain a failing statement that does not fail: it is no longer reached, or its failure no longer shows."""
        subject, alteration = altered_test
        baseline_cases = await self.run_altered_tests(
            "control without the patch", self._green_patch.base, [altered_test]
        )
        if not _has_failed(baseline_cases, subject, MARK):
            return None, f"{subject.short}: line {alteration.line} is not reached on the original code either"
        return _create_doubt(subject, alteration), ""

    async def _is_reached(self, altered_test: AlteredTest) -> bool:
        subject, alteration = altered_test
        insertion = subject.alterer.reach(subject.path, subject.text, subject.name, alteration.line)
        if insertion is None:
            return False
        reach_test = AlteredTest(subject, insertion)
        return _has_failed(
            await self.run_altered_tests("control at that line", self._green_patch.patched, [reach_test]), subject, MARK
        )


def _create_doubt(subject: Subject, alteration: Alteration) -> PatchDoubt:
    return PatchDoubt(f"{subject.short} still passes when {alteration.message}", refuses=not alteration.asks)


def _place(alteration: Alteration) -> tuple[int, int]:
    return alteration.start, alteration.end


def _has_failed(cases: Iterable[Case], subject: Subject, reason: str = "") -> bool:
    """Return whether the test failed (for `reason`, if given); a file that cannot be collected fails too."""
    sets = (f"{subject.id}[", f"{subject.id} [#")
    own_cases = [case for case in cases if case.id == subject.id or case.id.startswith(sets)]
    shown_path = subject.id.split("::")[0]
    relevant = own_cases or [case for case in cases if case.id == shown_path]
    return any(case.is_red and (not reason or reason in case.message + case.detail) for case in relevant)
