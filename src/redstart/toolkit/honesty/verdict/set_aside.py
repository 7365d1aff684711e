"""The failing tests that a run sets aside: what is stored about them, and whether a patch changes how they fail."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence

from redstart.core.change import Patch
from redstart.core.frozen import clip, format_count
from redstart.core.report import Case, Ids
from redstart.core.run import Attempt, RunState
from redstart.core.set_aside import LONGEST_REASON, NamedTests, SetAside, SetAsideSource
from redstart.ports.store.port.blobs import Blobs

NO_REASON = "no reason given"
ALL_WITHOUT_REASON = "NOT THIS CODE names every failing test and gives no reason"
MOST_ENTRIES = 12
"""Maximum entries of a run: later ones are merged into the last."""


def build_set_aside(
    ids: Iterable[str], reason: str, source: SetAsideSource, blobs: Blobs, *, ignored: Sequence[str] = ()
) -> SetAside:
    """Store these test IDs, with the reason why they are set aside."""
    return SetAside(
        tests=_store(ids, blobs), reason=clip(reason, LONGEST_REASON), source=source, ignored=tuple(ignored)
    )


def with_set_aside(
    patch: Patch, ids: Sequence[str], reason: str, ignored: Sequence[str], targets: Collection[str], blobs: Blobs
) -> Patch:
    """Add the tests that an answer names to the rest of it. Edits mean nothing if it names every target.

    An answer that asks for a probe is about the probe alone. Naming every target needs a reason.
    """
    is_about_all = set(ids) >= set(targets)
    if patch.probe or patch.over_budget:
        return patch
    nothing: dict[str, object] = {
        "edits": "",
        "tree": None,
        "files": (),
        "fingerprint": "",
        "why": "",
        "test_change": "",
    }
    if is_about_all and not reason:
        return patch.model_copy(update={**nothing, "problem": None, "fault": ALL_WITHOUT_REASON})
    entry = build_set_aside(ids, reason or NO_REASON, SetAsideSource.model, blobs, ignored=ignored)
    if patch.has_edits and not is_about_all:
        return patch.model_copy(update={"set_aside": entry})
    return patch.model_copy(
        update={
            **nothing,
            "set_aside": entry,
            "fingerprint": hashlib.sha256("\n".join(("not this code", *sorted(ids))).encode()).hexdigest()[:32],
            "why": clip(reason, 400),
            "problem": None,
            "fault": "",
        }
    )


def load_ids(entries: Iterable[SetAside], blobs: Blobs) -> frozenset[str]:
    """Return the IDs of all these tests."""
    return frozenset(id_ for entry in entries for id_ in blobs.get(entry.tests.full).decode().splitlines())


def list_set_aside(run: RunState) -> tuple[SetAside, ...]:
    """List what is set aside in the current attempt: for the run, or by the answer that also gives edits."""
    patch = run.now.patch
    entry = patch.set_aside if patch is not None and patch.has_edits else None
    is_new = entry is not None and all(entry.tests != earlier.tests for earlier in run.set_aside)
    return (*run.set_aside, entry) if entry is not None and is_new else run.set_aside


def add(entries: Sequence[SetAside], entry: SetAside, blobs: Blobs) -> tuple[SetAside, ...]:
    """Add an entry. If there are many, merge it into the last."""
    if len(entries) < MOST_ENTRIES:
        return (*entries, entry)
    last = entries[-1]
    ids = load_ids((last, entry), blobs)
    merged = entry.model_copy(
        update={
            "tests": _store(ids, blobs),
            "reason": clip(f"{last.reason}; {entry.reason}", LONGEST_REASON),
            "approved": last.approved and entry.approved,
        }
    )
    return (*entries[:-1], merged)


def without(entries: Iterable[SetAside], ids: Collection[str], blobs: Blobs) -> tuple[SetAside, ...]:
    """Return the entries without these tests."""
    remaining = ((entry, load_ids((entry,), blobs).difference(ids)) for entry in entries)
    return tuple(entry.model_copy(update={"tests": _store(rest, blobs)}) for entry, rest in remaining if rest)


def find_changed(
    before: Sequence[Case], after: Sequence[Case], ids: Collection[str], identify: Callable[[Case], str]
) -> list[str]:
    """Return the tests that were set aside and do not fail as they did before. `identify` names a kind of failure."""
    earlier = {case.id: case for case in before if case.id in ids}
    later = {case.id: case for case in after if case.id in ids}

    def fails_alike(id_: str) -> bool:
        old, new = earlier.get(id_), later.get(id_)
        return old is not None and new is not None and new.is_red and identify(old) == identify(new)

    return [id_ for id_ in sorted(ids) if not fails_alike(id_)]


def describe_set_aside(entries: Sequence[SetAside]) -> str:
    """Describe what is set aside and why: `2 tests set aside (the model: they need a newer click)`."""
    names = {SetAsideSource.model: "the model: ", SetAsideSource.redstart: "", SetAsideSource.unsolved: ""}
    reasons = "; ".join(dict.fromkeys(f"{names[entry.source]}{entry.reason}" for entry in entries))
    count = format_count(sum(entry.tests.count for entry in entries), "failing test")
    return f"{count} set aside ({clip(reasons, 300)})"


def describe_answer_to_set_aside(attempt: Attempt) -> str:
    """Describe for the next attempt what became of the tests that its answer set aside. Empty if that is settled."""
    entry, decision = attempt.patch.set_aside if attempt.patch else None, attempt.decide
    if entry is None or decision is None:
        return ""
    names = ", ".join((*entry.tests.first, *(["..."] if entry.tests.count > len(entry.tests.first) else [])))
    if attempt.patch is not None and not attempt.patch.has_edits:
        is_accepted = decision.set_aside is not None
        return f"NOT THIS CODE was {'accepted for' if is_accepted else 'declined: the code must pass'} {names}"
    if changed := attempt.test.verdict.changed if attempt.test else None:
        return f"NOT THIS CODE is wrong: the edits change how {', '.join(changed.first)} ends"
    if decision.answered and attempt.test is not None and attempt.test.verdict.is_green:
        return f"the user declined NOT THIS CODE: the code must pass {names}. {decision.reason}"
    return ""


def _store(ids: Iterable[str], blobs: Blobs) -> NamedTests:
    sorted_ids = sorted(set(ids))
    listed = Ids.from_ids(sorted_ids)
    return NamedTests(count=listed.count, first=listed.first, full=blobs.put("\n".join(sorted_ids).encode()))
