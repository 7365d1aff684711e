"""The search for the first commit at which tests fail, on made-up histories."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from redstart.toolkit.repo.bisection import BisectionSearch, CommitResult, FoundCommit, OpenRange

Judge = Callable[[str, int], CommitResult]


def search(ranges: dict[str, OpenRange], judge: Judge) -> tuple[dict[str, FoundCommit], int]:
    """Search until the end. Return what is found, and the number of runs."""
    bisection, runs = BisectionSearch(ranges), 0
    while step := bisection.choose_next():
        bisection.record(step.commit, {id_: judge(id_, step.commit) for id_ in step.tests})
        runs += 1
        assert runs < 100
    return {id_: bisection.get_found(id_) for id_ in ranges}, runs


@pytest.mark.parametrize("start", [-1, 0])
@pytest.mark.parametrize("culprit", [1, 2, 77, 100, 150, 198, 199])
def test_one_culprit_of_200_commits_takes_at_most_8_runs(start: int, culprit: int):
    def judge(_: str, commit: int) -> CommitResult:
        return CommitResult.bad if commit >= culprit else CommitResult.good

    found, runs = search({"a": OpenRange(start, 199), "b": OpenRange(start, 199)}, judge)
    assert found == dict.fromkeys("ab", FoundCommit(culprit, (), added=False))
    assert runs <= 8


def test_two_culprits_share_the_runs_until_their_ranges_differ():
    culprits = {"a": 30, "b": 170, "c": 170}

    def judge(id_: str, commit: int) -> CommitResult:
        return CommitResult.bad if commit >= culprits[id_] else CommitResult.good

    found, runs = search(dict.fromkeys(culprits, OpenRange(0, 199)), judge)
    assert {id_: result.commit for id_, result in found.items()} == culprits
    assert runs <= 8 + 7


def test_untestable_commits_are_left_out_and_named_if_one_may_be_the_first():
    def judge(_: str, commit: int) -> CommitResult:
        if commit in (9, 10, 11):
            return CommitResult.untestable
        return CommitResult.bad if commit >= 11 else CommitResult.good

    found, _ = search({"a": OpenRange(0, 20)}, judge)
    assert found["a"] == FoundCommit(12, (9, 10, 11), added=False)


def test_old_commits_that_cannot_run_cost_few_runs():
    def judge(_: str, commit: int) -> CommitResult:
        if commit < 150:
            return CommitResult.untestable
        return CommitResult.bad if commit >= 180 else CommitResult.good

    found, runs = search({"a": OpenRange(-1, 199)}, judge)
    assert found["a"] == FoundCommit(180, (), added=False)
    assert runs <= 9


def test_search_ends_if_nothing_can_run_and_a_new_test_is_told_apart():
    found, runs = search({"a": OpenRange(0, 199)}, lambda _, __: CommitResult.untestable)
    assert (found["a"].commit, len(found["a"].unknown), runs) == (199, 198, 16)

    def judge(_: str, commit: int) -> CommitResult:
        return CommitResult.bad if commit >= 7 else CommitResult.absent

    assert search({"a": OpenRange(-1, 20)}, judge)[0]["a"] == FoundCommit(7, (), added=True)
