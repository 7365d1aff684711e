"""Derive from the runs, test by test, what they show of a change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from redstart.core.frozen import clip
from redstart.core.report import Case, Outcome
from redstart.core.verification import ASKING, Claim, ClaimKind, VerificationEnd
from redstart.toolkit.honesty.changes.edited_tests import EditedTests, count_cases, get_function
from redstart.toolkit.honesty.changes.missing_names import ChangedWords, find_missing_name
from redstart.toolkit.honesty.changes.suite_results import ResultMatrix, SuiteResults
from redstart.toolkit.honesty.verdict.verdict import list_containers

NOTE_BYTES = 200
_RED = frozenset((ClaimKind.broken, ClaimKind.environment, ClaimKind.red_before))
_FROM_OLD_CODE = frozenset(
    (ClaimKind.fixed, ClaimKind.proven, ClaimKind.absent_before, ClaimKind.green_without, ClaimKind.flaky)
)


class ChangeEvidence(NamedTuple):
    """What the runs and the files show of a change."""

    matrix: ResultMatrix
    tests: EditedTests
    words: ChangedWords
    problems: Mapping[str, str]
    """Failing tests that lack something of this machine, each with what."""
    restored: SuiteResults | None = None
    """The new tests on the new code with the old test configuration; None if that did not change."""
    flaky: Collection[str] = ()


def derive_claims(evidence: ChangeEvidence) -> list[Claim]:
    """Derive a claim for each test that the change concerns, in the order of the test IDs."""
    return _Derivation(evidence).derive()


class _Derivation:
    def __init__(self, evidence: ChangeEvidence) -> None:
        self._evidence, self._matrix, self._tests = evidence, evidence.matrix, evidence.tests
        self._old_counts, self._new_counts = count_cases(self._matrix.old.cases), count_cases(self._matrix.new.cases)
        self._loaded = {container for id_ in self._matrix.new.cases for container in list_containers(id_)}
        """The files and classes whose tests run on the new code: such a file is no test that is gone."""

    def derive(self) -> list[Claim]:
        old, new = self._matrix.old.cases, self._matrix.new.cases
        claims = [claim for id_ in sorted({*old, *new}) for claim in self._classify(id_, is_old=id_ in old)]
        return sorted(claims, key=lambda claim: (list(ClaimKind).index(claim.kind), claim.test))

    def _classify(self, id_: str, *, is_old: bool) -> Iterator[Claim]:
        if id_ in self._evidence.flaky:
            yield Claim(test=id_, kind=ClaimKind.flaky)
        elif not is_old:
            yield from self._classify_new_test(id_, self._matrix.new.cases[id_])
        elif case := self._matrix.new.find(id_):
            yield from self._classify_old_test(id_, self._matrix.old.cases[id_], case)
        else:
            yield from self._classify_gone_test(id_, self._matrix.old.cases[id_])

    def _classify_new_test(self, id_: str, case: Case) -> Iterator[Claim]:
        if case.is_red:
            without = self._matrix.without.find(id_)
            is_old_failure = without is not None and without.is_red and self._tests.is_moved(id_)
            yield self._claim_red(id_, case, "new, and it fails", ClaimKind.red_before if is_old_failure else None)
        elif case.outcome is Outcome.passed and not (self._tests.is_moved(id_) or self._has_unsteady_id(id_)):
            yield self._claim_by_old_code(id_, ClaimKind.green_without)

    def _classify_old_test(self, id_: str, old: Case, new: Case) -> Iterator[Claim]:
        if new.is_red:
            yield self._claim_red(id_, new, "", ClaimKind.red_before if old.is_red else None)
        elif hidden := self._explain_hidden(id_, old):
            yield Claim(test=id_, kind=ClaimKind.hidden, note=hidden)
        elif new.outcome is Outcome.skipped:
            if old.outcome is not Outcome.skipped:
                yield Claim(test=id_, kind=ClaimKind.skipped, note=quote_failure(new))
        elif claim := self._compare_forms(id_):
            yield claim
        elif old.is_red:
            yield Claim(test=id_, kind=ClaimKind.fixed)
        elif self._tests.is_edited(id_):
            yield self._claim_by_old_code(id_, ClaimKind.edited)

    def _classify_gone_test(self, id_: str, old: Case) -> Iterator[Claim]:
        if old.outcome is Outcome.skipped or id_ in self._evidence.problems or id_ in self._loaded:
            return
        if hidden := self._explain_hidden(id_, old):
            yield Claim(test=id_, kind=ClaimKind.hidden, note=hidden)
        elif self._keeps_cases(id_):
            former = self._matrix.former.find(id_)
            if former is not None and former.is_red and not old.is_red:
                yield self._claim_former(id_, former)
            elif self._tests.is_edited(id_):
                yield Claim(test=id_, kind=ClaimKind.edited, note="it has other parameters now")
        elif self._tests.is_still_written(id_):
            yield Claim(test=id_, kind=ClaimKind.skipped, note="it is still in its file, and it does not run any more")
        else:
            yield self._claim_gone(id_, old)

    def _claim_gone(self, id_: str, old: Case) -> Claim:
        former = self._matrix.former.find(id_)
        if former is not None and former.is_red and not old.is_red:
            claim = self._claim_former(id_, former)
            is_outdated = claim.kind is ClaimKind.outdated
            return claim.model_copy(update={"kind": ClaimKind.replaced}) if is_outdated else claim
        if old.is_red:
            return Claim(test=id_, kind=ClaimKind.removed, note="it failed before, and it is gone")
        if not self._tests.is_in_changed_file(id_):
            return Claim(test=id_, kind=ClaimKind.replaced, note="it is an example in the code, which changed")
        if self._tests.is_replaced(id_):
            return Claim(test=id_, kind=ClaimKind.replaced, note="other tests have its lines")
        return Claim(test=id_, kind=ClaimKind.removed, note="it still passes on the new code")

    def _compare_forms(self, id_: str) -> Claim | None:
        """Compare the old and the new form of a test that passes on the new code."""
        former = self._matrix.former.find(id_)
        claim = self._claim_former(id_, former) if former is not None and former.is_red else None
        if (claim is None or claim.kind is not ClaimKind.weakened) and (weaker := self._tests.explain_weaker(id_)):
            claim = Claim(test=id_, kind=ClaimKind.weakened, note=weaker)
        if claim is None or claim.kind is not ClaimKind.weakened:
            return claim
        fails_without = self._claim_by_old_code(id_, ClaimKind.edited).kind is ClaimKind.proven
        return claim.model_copy(update={"fails_without": fails_without})

    def _claim_former(self, id_: str, former: Case) -> Claim:
        """Say why the old form of a test fails on the new code."""
        if name := find_missing_name(former, self._evidence.words.removed):
            return Claim(test=id_, kind=ClaimKind.outdated, note=f"its old form needs {name}, which the change removes")
        return Claim(test=id_, kind=ClaimKind.weakened, note=f"its old form fails: {quote_failure(former)}")

    def _claim_by_old_code(self, id_: str, green_kind: ClaimKind) -> Claim:
        """Say what a test that passes on the new code shows by its result on the old code."""
        without = self._matrix.without.find(id_)
        if without is None:
            return Claim(test=id_, kind=ClaimKind.absent_before, note="it does not run on the old code")
        if not without.is_red:
            return Claim(test=id_, kind=green_kind)
        if name := find_missing_name(without, self._evidence.words.added):
            return Claim(test=id_, kind=ClaimKind.absent_before, note=f"the old code has no {name}")
        return Claim(test=id_, kind=ClaimKind.proven, note=f"without the change: {quote_failure(without)}")

    def _claim_red(self, id_: str, case: Case, prefix: str, kind: ClaimKind | None) -> Claim:
        if problem := self._evidence.problems.get(case.id):
            return Claim(test=id_, kind=kind or ClaimKind.environment, note=problem)
        note = ": ".join(filter(None, (prefix, quote_failure(case))))
        return Claim(test=id_, kind=kind or ClaimKind.broken, note=note)

    def _explain_hidden(self, id_: str, old: Case) -> str:
        """Return the failure that only the new test configuration hides; empty if it hides none."""
        restored = self._evidence.restored.find(id_) if self._evidence.restored else None
        if restored is None or not restored.is_red or old.is_red or self._tests.is_edited(id_):
            return ""
        if find_missing_name(restored, self._evidence.words.removed | self._evidence.words.added):
            return ""
        return explain_restored_failure(restored)

    def _has_unsteady_id(self, id_: str) -> bool:
        """Return whether the ID alone is new, as that of parameters with the current time: the test did not change."""
        function = get_function(id_)
        return self._new_counts[function] <= self._old_counts[function] and not self._tests.is_edited(id_)

    def _keeps_cases(self, id_: str) -> bool:
        """Return whether the test's function has at least as many cases as before."""
        function = get_function(id_)
        return self._new_counts[function] >= self._old_counts[function]


def decide_end(claims: Collection[Claim]) -> VerificationEnd:
    """Decide how a verification with these claims ends. What a person has accepted does not count."""
    kinds = {claim.kind for claim in claims if not claim.accepted}
    if ClaimKind.hidden in kinds:
        return VerificationEnd.tampered
    if ClaimKind.broken in kinds:
        return VerificationEnd.worse
    if kinds & ASKING:
        return VerificationEnd.weakened
    if ClaimKind.environment in kinds:
        return VerificationEnd.environment
    is_proven = any(claim.is_proof for claim in claims)
    return VerificationEnd.verified if is_proven else VerificationEnd.unproven


def remove_unknown(claims: Iterable[Claim]) -> list[Claim]:
    """Return what the claims show if the old code did not run, and the old tests on the new code stand in for it.

    Whether a failing test failed before is not known then, nor whether a test proves the change.
    """
    note = "whether it failed without the change is not known"
    kept = (claim for claim in claims if claim.kind not in _FROM_OLD_CODE)
    return [
        Claim(test=claim.test, kind=ClaimKind.environment, note="; ".join(filter(None, (claim.note, note))))
        if claim.kind in _RED
        else claim.model_copy(update={"fails_without": False})
        for claim in kept
    ]


def explain_restored_failure(case: Case) -> str:
    """Say how a test fails that passes only with the new test configuration."""
    return f"with the old test configuration: {quote_failure(case)}"


def quote_failure(case: Case) -> str:
    """Return the first line of a failure."""
    return clip(next(iter((case.message or case.detail).strip().splitlines()), ""), NOTE_BYTES)
