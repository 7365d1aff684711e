from __future__ import annotations

from redstart.core.change import Patch, Snapshot
from redstart.core.run import Attempt, AttemptSummary, Mode, RunSpec, RunState, Step, Suite
from redstart.toolkit.learning.stuck import repeated


def state(patch: Patch | None, *earlier: str) -> RunState:
    base = Snapshot(tree="t", base="t", pack="p")
    return RunState(
        run_id="r",
        spec=RunSpec(mode=Mode.fix, base=base, suite=Suite(runner="pytest")),
        base=base,
        now=Attempt(number=len(earlier) + 1, entry=Step.patch, patch=patch),
        history=tuple(AttemptSummary(number=n, fingerprint=mark) for n, mark in enumerate(earlier, 1)),
    )


def test_counts_the_earlier_attempts_with_the_same_patch() -> None:
    assert repeated(state(Patch(fingerprint="a"), "a", "b", "a")) == 2
    assert repeated(state(Patch(fingerprint="c"), "a", "b")) == 0


def test_no_patch_repeats_nothing() -> None:
    assert repeated(state(None, "a")) == 0
    assert repeated(state(Patch(fault="empty answer"), "", "")) == 0
