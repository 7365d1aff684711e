"""Problems that the previous version stored only as text are read as today's enums."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redstart.core.change import Patch, PatchProblem
from redstart.core.formats import STATE
from redstart.core.learning import Plan
from redstart.core.report import ReproductionProblem, ReproductionResult
from redstart.core.run import AttemptSummary

OVER_BUDGET = "the model was not asked, or not until it answered: this call is over budget"
UNCHANGED = "the answer gives a.py back as it was: something in it must change to make the failing test pass"
REPORT = (
    '{"runner":"pytest","counts":{"passed":0,"failed":0,"errors":0,"skipped":0},"cases":[],'
    '"failing":"","full":"","output":"","cause":"ok","exit_code":0,"seconds":0.0,"signature":null,"fault":"budget"}'
)


def upgrade_step(step: str, document: str) -> dict[str, Any]:
    return STATE.upgrade({"now": {step: json.loads(document)}}, 0)["now"][step]


@pytest.mark.parametrize(
    ("fault", "problem"),
    [(OVER_BUDGET, PatchProblem.over_budget), (UNCHANGED, PatchProblem.unchanged), ("no edits", None)],
)
def test_old_patch_gets_its_problem_from_its_fault(fault, problem):
    old = f'{{"edits":"","probe":"","answer":"","model":"m","form":"block","files":[],"fault":"{fault}"}}'
    assert Patch.model_validate(upgrade_step("patch", old)).problem is problem
    summary = f'{{"number":1,"fingerprint":"","diff":"","files":[],"outcome":"{fault}","refused":false,"red":null}}'
    (attempt,) = STATE.upgrade({"history": [json.loads(summary)]}, 0)["history"]
    assert AttemptSummary.model_validate(attempt).problem is problem
    assert Patch(fault=fault, problem=None).problem is None, "the text alone no longer sets the problem"


@pytest.mark.parametrize("fault", ["budget", "empty"])
def test_old_question_skipped_for_its_price_is_over_budget(fault):
    plan = upgrade_step("plan", f'{{"summary":"","subtasks":[],"fault":"{fault}"}}')
    assert Plan.model_validate(plan).over_budget is (fault == "budget")
    old = f'{{"report":{REPORT},"targets":{{"count":0,"first":[]}},"trouble":"no_tests","remedy":"{fault}","flaky":[]}}'
    reproduction = ReproductionResult.model_validate(upgrade_step("reproduce", old))
    assert (reproduction.trouble, reproduction.over_budget) == (ReproductionProblem.no_tests, fault == "budget")


@pytest.mark.parametrize("trouble", ["", "already_green", "no_tests", "no_usable_test", "flaky", "environment"])
def test_trouble_of_an_old_run_survives_a_round_trip(trouble):
    reproduction = ReproductionResult.model_validate_json(f'{{"report":{REPORT},"trouble":"{trouble}"}}')
    assert reproduction.trouble is ReproductionProblem(trouble)
    assert bool(reproduction.trouble) == bool(trouble)
    assert reproduction.model_dump(mode="json")["trouble"] == trouble
