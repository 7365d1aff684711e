"""Evaluations of runs with candidates: was any of them right, and was the chosen one?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redstart.app.settings import Models, Settings
from redstart.core.chat import Ask
from redstart.core.run import Level, Limits
from redstart.core.shell import Completed, Execution
from redstart.evals.app import EvaluationContext, open_lab
from redstart.evals.metrics import EvaluationFigures, compute_figures
from redstart.evals.outcome import EvaluationPlan, Results, RunOutcome
from redstart.evals.report import report_lines
from redstart.evals.runner import Evaluation, digest_tasks
from redstart.evals.task import Base, Task, TaskChange
from redstart.testing.model import ScriptedModel
from redstart.testing.sandbox import FakeSandbox
from support.rig import BUGGY, CARD, CODE, RIGHT, TEST_TEXT, TESTS, WRONG, block, create_computed_suite

pytestmark = pytest.mark.slow

HIDDEN = "hidden.txt"
THOROUGH = "    # for every number\n    return number + number"
LONGER = block("    return number + number + 1", THOROUGH)
TASK = Task(
    id="a",
    base=Base(change=TaskChange(files={CODE: BUGGY, TESTS: TEST_TEXT})),
    hidden=TaskChange(files={HIDDEN: "strict"}),
    fix=TaskChange(files={CODE: BUGGY.replace("    return number + number + 1", THOROUGH)}),
)


@pytest.fixture
def rigged(tmp_path: Path) -> Iterator[EvaluationContext]:
    """Open an evaluation whose hidden test passes only for the longer patch."""
    settings = Settings(home=tmp_path / "home", models=Models(strong="openai:scripted", fast="openai:scripted"))
    with open_lab(settings, "e") as context:
        trees = context.app.trees
        suite = create_computed_suite(trees)

        def run(execution: Execution) -> Completed:
            code = (trees.read(execution.snapshot, CODE) or b"").decode()
            if HIDDEN in trees.list_files(execution.snapshot) and THOROUGH not in code:
                buggy = trees.write(execution.snapshot, {CODE: BUGGY.encode()})
                return suite(execution.model_copy(update={"snapshot": buggy}))
            return suite(execution)

        adapters = replace(context.app.adapters, sandbox=FakeSandbox(run))
        yield context._replace(app=replace(context.app, adapters=adapters))


async def play(context: EvaluationContext, answers: list[str], *, choose: bool) -> tuple[RunOutcome, EvaluationFigures]:
    """Run the task with one candidate per answer."""
    remaining = iter(answers)

    def reply(ask: Ask) -> str:
        return next(remaining) if ask.question == "patch" else CARD

    plan = EvaluationPlan(
        name="e",
        source="some",
        tasks=digest_tasks([TASK]),
        model="scripted:model",
        limits=Limits(attempts=1),
        verify=Level.quick,
        looks=0,
        candidates=len(answers),
        choose=choose,
    )
    results = Results.open(context.trials, plan)
    model = ScriptedModel(reply, name="scripted:model")
    await Evaluation(
        context.app, plan, [TASK], results, context.app.settings.home / "w", model_for=lambda *_: model
    ).go()
    (row,) = results.list_rows()
    figures = compute_figures([row])
    assert any("(coverage)" in line for line in report_lines(plan, figures, 1))
    return row, figures


@pytest.mark.parametrize(
    ("answers", "choose", "covered", "solved"),
    [
        ([RIGHT, LONGER], True, True, False),
        ([LONGER, WRONG], True, True, True),
        ([LONGER, RIGHT], False, True, True),
        ([RIGHT, WRONG], True, False, False),
        ([WRONG, WRONG], True, False, False),
    ],
)
async def test_coverage_counts_any_candidate_and_selection_the_chosen_one(rigged, answers, choose, covered, solved):
    row, figures = await play(rigged, answers, choose=choose)
    assert (row.covered, row.solved) == (covered, solved)
    assert row.attempts >= 1
    assert figures.coverage is not None
    assert figures.selection is not None
    assert (figures.coverage.value, figures.selection.value) == (float(covered), float(solved))
