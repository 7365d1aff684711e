"""Negative controls: every target must still be able to fail on the patched code.

Each target's test is altered so that it must fail, and runs on the patched code. If it still passes, something tampered
with the runner, the comparison, the test's reach or the report. Nothing that the test process says about itself is
believed: only this module knows which cases must fail.

Altered tests of different functions share a run. One that passes runs again alone and is investigated: on the original
code, and with a failing statement at the altered place, which shows whether that place is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.report import Case, CheckEvidence
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.honesty.controls.subjects import Subject, subjects
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt

MARK = "~"
"""The mark in the failure message of an altered statement."""
MOST_SUSPECTS = 6
"""The most passing alterations that are investigated; one that refuses the patch ends it."""
NOTES = 20


class AlteredTest(NamedTuple):
    subject: Subject
    alteration: Alteration


async def examine_controls(green: GreenPatch, runs: CheckRuns, *, rounds: int) -> CheckOutcome:
    """Run at most `rounds` alterations of each target, and report those that a target did not detect."""
    trial = _Controls(green, runs)
    everything = subjects(green, runs)
    red: set[str] = set()
    suspects: list[AlteredTest] = []
    rounds = min(rounds, max((len(item.alterations) for item in everything.chosen), default=0))
    for number in range(rounds):
        batch = [
            AlteredTest(item, item.alterations[number]) for item in everything.chosen if number < len(item.alterations)
        ]
        cases = await trial.cases(f"control {number + 1} of {rounds}", green.patched, batch)
        for altered in batch:
            if _is_red(cases, altered.subject):
                red.add(altered.subject.id)
            else:
                suspects.append(altered)
    doubts, notes = await trial.look_into(suspects)
    doubted = {doubt.subject for doubt in doubts}
    covered = sum(len(item.ids) for item in everything.chosen if item.is_target and item.id in red - doubted)
    evidence = CheckEvidence(
        check="control",
        targets=everything.targets,
        covered=covered,
        runs=trial.runs,
        notes=(*everything.left_out, *notes)[:NOTES],
    )
    return CheckOutcome(evidence, tuple(doubt.doubt for doubt in doubts))


class _Doubted(NamedTuple):
    subject: str
    doubt: PatchDoubt


class _Controls:
    def __init__(self, green: GreenPatch, runs: CheckRuns) -> None:
        self._green, self._runs = green, runs
        self.runs = 0

    async def cases(self, activity: str, tree: Snapshot, batch: Sequence[AlteredTest]) -> tuple[Case, ...]:
        """Run these altered tests on the tree and return their cases."""
        altered = self._runs.write(tree, self._files(tree, batch))
        self.runs += 1
        return (await self._runs.suite(activity, altered, [item.subject.id for item in batch])).cases

    def _files(self, tree: Snapshot, batch: Sequence[AlteredTest]) -> dict[str, bytes | None]:
        files: dict[str, bytes | None] = {}
        for path in dict.fromkeys(item.subject.path for item in batch):
            text = self._runs.read(tree, path) or b""
            edits = sorted((item.alteration for item in batch if item.subject.path == path), key=_place, reverse=True)
            before = len(text) + 1
            for edit in edits:
                if edit.end < before or edit.start == edit.end < before:
                    text, before = edit.of(text), edit.start
            files[path] = text
        return files

    async def look_into(self, suspects: Sequence[AlteredTest]) -> tuple[list[_Doubted], list[str]]:
        """Investigate altered tests that passed although they had to fail."""
        doubts: list[_Doubted] = []
        notes: list[str] = []
        ordered = sorted(suspects, key=lambda suspect: (not suspect.subject.is_target, suspect.alteration.asks))
        for altered in ordered[:MOST_SUSPECTS]:
            subject = altered.subject
            if _is_red(await self.cases("control on its own", self._green.patched, [altered]), subject):
                continue
            doubt, note = await self._meaning(altered)
            notes += [note] if note else []
            doubts += [_Doubted(subject.id, doubt)] if doubt else []
            if doubt and doubt.refuses:
                break
        return doubts, notes

    async def _meaning(self, altered: AlteredTest) -> tuple[PatchDoubt | None, str]:
        subject, alteration = altered
        if alteration.kind is AlterationKind.inserted:
            return await self._unreached(altered)
        if alteration.kind is AlterationKind.unrelated or not subject.is_target:
            before = await self.cases("control without the patch", self._green.base, [altered])
            reason = "Unrelated" if alteration.kind is AlterationKind.unrelated else ""
            if not _is_red(before, subject, reason):
                return None, f"{subject.short}: passes on the original code too when {alteration.words}"
            return _doubt(subject, alteration), ""
        if not (alteration.always or await self._is_reached(altered)):
            return None, f"{subject.short}: line {alteration.line} is not reached"
        return _doubt(subject, alteration), ""

    async def _unreached(self, altered: AlteredTest) -> tuple[PatchDoubt | None, str]:
        """Explain a failing statement that does not fail: it is no longer reached, or its failure no longer shows."""
        subject, alteration = altered
        before = await self.cases("control without the patch", self._green.base, [altered])
        if not _is_red(before, subject, MARK):
            return None, f"{subject.short}: line {alteration.line} is not reached on the original code either"
        return _doubt(subject, alteration), ""

    async def _is_reached(self, altered: AlteredTest) -> bool:
        subject, alteration = altered
        inserted = subject.alterer.reach(subject.path, subject.text, subject.name, alteration.line)
        if inserted is None:
            return False
        reached = AlteredTest(subject, inserted)
        return _is_red(await self.cases("control at that line", self._green.patched, [reached]), subject, MARK)


def _doubt(subject: Subject, alteration: Alteration) -> PatchDoubt:
    return PatchDoubt(f"{subject.short} still passes when {alteration.words}", refuses=not alteration.asks)


def _place(alteration: Alteration) -> tuple[int, int]:
    return alteration.start, alteration.end


def _is_red(cases: Iterable[Case], subject: Subject, reason: str = "") -> bool:
    """Return whether the test failed (for `reason`, if given); a file that cannot be collected fails too."""
    sets = (f"{subject.id}[", f"{subject.id} [#")
    own = [case for case in cases if case.id == subject.id or case.id.startswith(sets)]
    shown = subject.id.split("::")[0]
    mine = own or [case for case in cases if case.id == shown]
    return any(case.red and (not reason or reason in case.message + case.detail) for case in mine)
