"""The contract of every store of evaluations. Subclass it as `Test...` and provide the fixture `trials`."""

from __future__ import annotations

import pytest

from redstart.core.errors import StoreError
from redstart.ports.trials.port import EvaluationTrial, Trials

FIRST = EvaluationTrial("a", 0, 1)


class TrialsContract:
    def test_first_plan_of_a_name_is_kept(self, trials: Trials) -> None:
        assert trials.plan("one") is None
        assert trials.begin("one", "first plan") == "first plan"
        assert trials.begin("one", "another plan") == "first plan"
        trials.begin("Two", "its own")
        assert (trials.plan("one"), trials.plan("Two")) == ("first plan", "its own")
        assert trials.list_evaluations() == ["Two", "one"]

    def test_trial_keeps_the_last_assigned_run(self, trials: Trials) -> None:
        for name in ("one", "two"):
            trials.begin(name, "plan")
        trials.assign("one", FIRST, "run-1")
        trials.assign("one", FIRST, "run-2")
        trials.assign("one", EvaluationTrial("a", 1, 1), "run-3")
        trials.settle("one", EvaluationTrial("b", 0, 1), "outcome without a run", final=False)
        assert trials.get_assigned_runs("one") == {FIRST: "run-2", EvaluationTrial("a", 1, 1): "run-3"}
        assert trials.get_assigned_runs("two") == {}
        assert trials.list_outcomes("one") == ["outcome without a run"]

    def test_first_final_outcome_is_kept(self, trials: Trials) -> None:
        trials.begin("one", "plan")
        trials.assign("one", FIRST, "run-1")
        for outcome, final, expected in (
            ("broken", False, "broken"),
            ("broken again", False, "broken again"),
            ("done", True, "done"),
            ("done by somebody else", True, "done"),
            ("broken later", False, "done"),
        ):
            trials.settle("one", FIRST, outcome, final=final)
            assert trials.list_outcomes("one") == [expected]
        trials.assign("one", FIRST, "run-2")
        assert trials.get_assigned_runs("one") == {FIRST: "run-1"}, "the run of what is done stays too"

    def test_outcomes_are_sorted_by_seed_run_and_task(self, trials: Trials) -> None:
        trials.begin("one", "plan")
        keys = [
            EvaluationTrial(task, seed, run) for seed in (0, 1) for run in (1, 2, 10) for task in ("B", "a", "a/b", "ä")
        ]
        for key in reversed(keys):
            trials.settle("one", key, repr(key), final=True)
        assert trials.list_outcomes("one") == [repr(key) for key in keys]

    def test_trial_of_an_unknown_evaluation_is_rejected(self, trials: Trials) -> None:
        with pytest.raises(StoreError):
            trials.assign("none", FIRST, "run-1")
        with pytest.raises(StoreError):
            trials.settle("none", FIRST, "done", final=True)
        assert trials.list_outcomes("none") == []
