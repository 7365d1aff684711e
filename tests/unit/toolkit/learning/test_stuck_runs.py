from __future__ import annotations

from redstart.core.change import Patch, Snapshot
from redstart.core.run import Attempt, AttemptSummary, Mode, RunSpec, RunState, Step, Suite
from redstart.toolkit.learning.stuck_runs import count_repeated_patches


def build_state(patch: Patch | None, *fingerprints: str) -> RunState:
    base = Snapshot(tree="t", base="t", pack="p")
    return RunState(
        run_id="r",
        spec=RunSpec(mode=Mode.fix, base=base, suite=Suite(runner="pytest")),
        base=base,
        now=Attempt(number=len(fingerprints) + 1, entry=Step.patch, patch=patch),
        history=tuple(AttemptSummary(number=n, fingerprint=mark) for n, mark in enumerate(fingerprints, 1)),
    )


def test_earlier_attempts_with_the_same_patch_are_counted() -> None:
    assert count_repeated_patches(build_state(Patch(fingerprint="a"), "a", "b", "a")) == 2
    assert count_repeated_patches(build_state(Patch(fingerprint="c"), "a", "b")) == 0


def test_missing_patch_repeats_nothing() -> None:
    assert count_repeated_patches(build_state(None, "a")) == 0
    assert count_repeated_patches(build_state(Patch(fault="empty answer"), "", "")) == 0
