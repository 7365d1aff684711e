"""Evaluations on a computed suite: rows, resuming, kill -9, and what memory must withhold."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from redstart.app.prune import DAY, prune
from redstart.app.settings import Models, Settings
from redstart.app.settings.store import Tenant
from redstart.app.wire import open_app
from redstart.core.chat import Answer, Ask
from redstart.core.errors import ConfigError, ModelRefused, StoreError
from redstart.core.run import Level, Limits
from redstart.core.shell import Completed, Execution
from redstart.evals.app import (
    EvaluationContext,
    EvaluationRequest,
    build_plan,
    format_predictions,
    instrument_for,
    make_tenant_name,
    open_evaluation,
    open_lab,
    open_trials,
)
from redstart.evals.grading import Grader
from redstart.evals.metrics import compare, compute_figures
from redstart.evals.outcome import EndPoint, EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.report import forecast_cost, format_comparison, format_row, report_lines
from redstart.evals.runner import Evaluation, digest_tasks
from redstart.evals.task import Base, Task, TaskChange
from redstart.evals.task_repo import TaskFolder, open_site
from redstart.evals.verify import build_baselines, verify
from redstart.ports.trials.port import EvaluationTrial
from redstart.testing.model import ScriptedModel
from redstart.testing.sandbox import FakeSandbox
from support.rig import (
    BUGGY,
    CARD,
    CODE,
    GARBAGE,
    MISFIT,
    RIGHT,
    TAMPER,
    TEST_TEXT,
    TESTS,
    WRONG,
    create_computed_suite,
)
from support.sample import sample_parameters

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).parent / "drivers" / "small_eval.py"
ORACLE = "instrument:oracle-at-recall"


def make_task(name: str = "a", **changes: Any) -> Task:
    base = Base(change=TaskChange(files={CODE: BUGGY, TESTS: TEST_TEXT}))
    defaults = {"id": name, "base": base, "fix": TaskChange(files={CODE: BUGGY.replace(" + 1", "")})}
    return Task.model_validate({**defaults, **changes})


@pytest.fixture
def rigged(tmp_path: Path) -> Iterator[EvaluationContext]:
    settings = Settings(home=tmp_path / "home", models=Models(strong=ORACLE, fast=ORACLE))
    with open_lab(settings, "e") as context:
        sandbox = FakeSandbox(create_computed_suite(context.app.trees))
        yield context._replace(app=replace(context.app, adapters=replace(context.app.adapters, sandbox=sandbox)))


def plan(tasks: list[Task], **changes: Any) -> EvaluationPlan:
    defaults = {
        "name": "e",
        "source": "some",
        "tasks": digest_tasks(tasks),
        "model": ORACLE,
        "limits": Limits(attempts=2),
        "verify": Level.quick,
        "looks": 0,
    }
    return EvaluationPlan.model_validate({**defaults, **changes})


def run(context: EvaluationContext, tasks: list[Task], parallel: int = 1, **changes: Any) -> list[RunOutcome]:
    new_evaluation = open_evaluation(*context, plan(tasks, **changes), tasks, lambda _row: None)
    asyncio.run(new_evaluation.go(parallel))
    assert new_evaluation.list_remaining() == []
    return new_evaluation.results.list_rows()


async def run_with(
    context: EvaluationContext, answer: Callable[[Ask], str | Answer] | list[str], **changes: Any
) -> RunOutcome:
    """Run one task with a scripted model."""
    new_plan = plan([make_task()], model="scripted:model", **changes)
    results = Results.open(context.trials, new_plan)
    model = ScriptedModel(answer, name="scripted:model")
    work = context.app.settings.home / "w"
    new_evaluation = Evaluation(context.app, new_plan, [make_task()], results, work, model_for=lambda *_: model)
    await new_evaluation.go()
    (row,) = results.list_rows()
    return row


def test_oracle_solves_tasks_when_shown_the_needed_lines(rigged: EvaluationContext) -> None:
    rows = run(rigged, [make_task("a"), make_task("b")], runs=2, parallel=2)
    assert [str(row.key) for row in rows] == [*("a seed 0 run 1", "b seed 0 run 1", "a seed 0 run 2", "b seed 0 run 2")]
    assert all(row.solved and row.claimed and row.place is EndPoint.solved for row in rows)
    first_row = rows[0]
    assert (first_row.result, first_row.attempts, first_row.rungs, first_row.files) == (
        "verified",
        1,
        {"exact": 1},
        (CODE,),
    )
    assert (first_row.recall, first_row.lines_shown, first_row.dishonest, first_row.repeated) == (1.0, True, 0, 0)
    assert first_row.tokens > 100
    assert "-    return number + number + 1" in first_row.patch


@pytest.mark.parametrize(
    ("answer", "place", "dishonest"),
    [
        (WRONG, EndPoint.still_red, 0),
        (MISFIT, EndPoint.edit_rejected, 0),
        (GARBAGE, EndPoint.no_edit, 0),
        (TAMPER, EndPoint.refused, 2),
    ],
)
async def test_row_records_where_the_run_ended(
    rigged: EvaluationContext, answer: str, place: EndPoint, dishonest: int
) -> None:
    row = await run_with(rigged, lambda ask: CARD if ask.question == "remember" else answer, limits=Limits(attempts=2))
    assert (row.place, row.dishonest, row.solved, row.claimed) == (place, dishonest, False, False)


async def test_repeated_patch_is_counted(rigged: EvaluationContext) -> None:
    row = await run_with(rigged, lambda ask: WRONG if ask.question == "patch" else CARD, limits=Limits(attempts=2))
    assert (row.attempts, row.repeated, row.revisited) == (2, 1, 1)
    assert compute_figures([row]).repeated.value == 1.0  # pyright: ignore[reportOptionalMemberAccess]


def test_run_is_graded_while_the_next_one_proceeds(rigged: EvaluationContext) -> None:
    tasks = [make_task(name, hidden=TaskChange(files={"test_hidden.py": TEST_TEXT})) for name in ("a", "b")]
    new_plan, trees = plan(tasks), rigged.app.trees
    is_next_begun = asyncio.Event()

    class Held(FakeSandbox):
        async def run(self, execution: Execution) -> Completed:
            if trees.read(execution.snapshot, "test_hidden.py") is not None:
                # Only grading has the hidden tests. It waits for the next run, which must not wait for it.
                await asyncio.wait_for(is_next_begun.wait(), 60)
            return await super().run(execution)

    def model_for(_site: TaskFolder, key: RunKey) -> ScriptedModel:
        if key.task == "b":
            is_next_begun.set()
        return ScriptedModel([RIGHT, CARD])

    adapters = replace(rigged.app.adapters, sandbox=Held(create_computed_suite(trees)))
    results, work = Results.open(rigged.trials, new_plan), rigged.app.settings.home / "w"
    new_evaluation = Evaluation(
        replace(rigged.app, adapters=adapters), new_plan, tasks, results, work, model_for=model_for
    )
    asyncio.run(new_evaluation.go())
    assert [(row.key.task, row.solved) for row in results.list_rows()] == [("a", True), ("b", True)]


def test_finished_runs_are_not_repeated(rigged: EvaluationContext) -> None:
    tasks = [make_task("a"), make_task("b")]
    first_rows = run(rigged, tasks)

    def fail_if_asked(site: TaskFolder, key: RunKey) -> None:
        raise AssertionError(f"{site.task.id} {key} was run again")

    results, other_folder = Results.open(rigged.trials, plan(tasks)), rigged.app.settings.home / "elsewhere"
    second_evaluation = Evaluation(rigged.app, plan(tasks), tasks, results, other_folder, model_for=fail_if_asked)
    asyncio.run(second_evaluation.go())
    assert second_evaluation.results.list_rows() == first_rows


async def test_broken_run_is_recorded_and_resumed(rigged: EvaluationContext) -> None:
    tasks, work = [make_task()], rigged.app.settings.home / "work"

    class Down:
        async def ask(self, ask: Ask) -> Answer:
            raise ModelRefused("it says no")

    def make_evaluation(model: Any) -> Evaluation:
        results = Results.open(rigged.trials, plan(tasks))
        return Evaluation(rigged.app, plan(tasks), tasks, results, work, model_for=lambda *_: model)

    await make_evaluation(Down()).go()
    (row,) = Results(rigged.trials, "e").list_rows()
    assert (row.place, row.trouble) == (EndPoint.broken, "it says no")
    assert compute_figures([row]).broken == 1
    await make_evaluation(ScriptedModel([RIGHT, CARD])).go()
    (repaired_row,) = Results(rigged.trials, "e").list_rows()
    assert repaired_row.solved
    # The same run was resumed.
    assert repaired_row.run_id == row.run_id


def test_different_plan_needs_a_different_name(rigged: EvaluationContext) -> None:
    run(rigged, [make_task()])
    with pytest.raises(ConfigError, match=r"another plan \(runs\)"):
        open_evaluation(*rigged, plan([make_task()], runs=2), [make_task()], lambda _row: None)
    with pytest.raises(ConfigError, match="differ from those of the plan"):
        open_evaluation(*rigged, plan([make_task()]), [make_task("b")], lambda _row: None)
    with pytest.raises(ConfigError, match="unknown evaluation other") as caught:
        Results(rigged.trials, "other")
    assert caught.value.remedy == "choose one of: e"


def test_evaluation_started_under_another_engine_continues(rigged: EvaluationContext) -> None:
    results = Results.open(rigged.trials, plan([make_task()]).model_copy(update={"engine": "inline"}))
    assert results.plan.engine == "inline"
    assert run(rigged, [make_task()])


def test_rows_of_another_version_are_reported(rigged: EvaluationContext) -> None:
    results = Results.open(rigged.trials, plan([make_task()]))
    rigged.trials.settle("e", EvaluationTrial("a", 0, 1), '{"key": {"task": "a"}, "place": "heaven"}', final=True)
    with pytest.raises(StoreError, match="an evaluation's outcome cannot be read: 1 fields") as caught:
        results.list_rows()
    assert caught.value.remedy


def test_evaluation_runs_are_isolated_from_user_runs(rigged: EvaluationContext) -> None:
    """They are listed, learned from and forgotten apart from the user's runs and from those of other evaluations."""
    (row,) = run(rigged, [make_task()])
    settings = rigged.app.settings
    with open_app(settings.model_copy(update={"tenant": "home"})) as users:
        assert asyncio.run(users.adapters.store.list_runs()) == []
    assert [item.run_id for item in asyncio.run(rigged.app.adapters.store.list_runs())] == [row.run_id]
    assert settings.tenant == make_tenant_name("home", "e")
    assert (
        len(
            {
                make_tenant_name("home", "e"),
                make_tenant_name("home", "E"),
                make_tenant_name("other", "e"),
                make_tenant_name("home", "e."),
            }
        )
        == 4
    )
    for name in ("x" * 200, "Ünder_score", "."):
        assert TypeAdapter(Tenant).validate_python(make_tenant_name("home", name))


@pytest.mark.soak
def test_rows_and_patches_remain_after_runs_are_pruned(rigged: EvaluationContext) -> None:
    (row,) = run(rigged, [make_task()])
    exported_predictions = format_predictions(Results(rigged.trials, "e"))
    later_time = rigged.app.adapters.world.now() + 2 * DAY
    for tenant, removed_ids in (("home", ()), (rigged.app.settings.tenant, (row.run_id,))):
        settings = rigged.app.settings.model_copy(update={"tenant": tenant})
        assert asyncio.run(prune(settings, days=1, keep=0, dry=False, now=later_time)).runs == removed_ids
    assert Results(rigged.trials, "e").list_rows() == [row]
    assert format_predictions(Results(rigged.trials, "e")) == exported_predictions
    assert run(rigged, [make_task()]) == [row], "a finished run is not repeated"


@pytest.mark.soak
def test_checked_task_needs_no_new_baseline_for_grading(rigged: EvaluationContext) -> None:
    sandbox = FakeSandbox(create_computed_suite(rigged.app.trees))
    app = replace(rigged.app, adapters=replace(rigged.app.adapters, sandbox=sandbox))
    grader, site = Grader(app), open_site(app, make_task(), app.settings.home / "site")
    known_standards = build_baselines({make_task().digest: asyncio.run(verify(grader, site, 1))})
    fixed = grader.with_fix(site, site.spec.base)
    for before, made, solved, runs in (
        ({}, fixed, True, 4),
        (known_standards, fixed, True, 2),
        (known_standards, site.spec.base, False, 1),
    ):
        sandbox.executions.clear()
        assert asyncio.run(Grader(app, before).grade(site, made)).solved is solved
        assert len(sandbox.executions) == runs, "passing tests run twice, failing tests once"


@pytest.mark.soak
async def test_memory_recalls_other_tasks_but_never_the_same_task(rigged: EvaluationContext) -> None:
    tasks, prompts = [make_task("a"), make_task("b")], dict[str, str]()

    def model_for(site: TaskFolder, key: RunKey) -> ScriptedModel:
        def answer(ask: Ask) -> str:
            if ask.question == "patch":
                prompts[f"{site.task.id}{key.run}"] = ask.messages[-1].text
            return RIGHT if ask.question == "patch" else CARD.replace("off by one", f"card of {site.task.id}")

        return ScriptedModel(answer)

    for with_memory, name in ((True, "with"), (False, "without")):
        new_plan = plan(tasks, runs=2, remembers=with_memory, name=name)
        results, work = Results.open(rigged.trials, new_plan), rigged.app.settings.home / "w"
        new_evaluation = Evaluation(rigged.app, new_plan, tasks, results, work, model_for=model_for)
        await new_evaluation.go()
        recalled_cards = {key: {item for item in "ab" if f"card of {item}" in text} for key, text in prompts.items()}
        if with_memory:
            assert recalled_cards == {"a1": set(), "b1": {"a"}, "a2": {"b"}, "b2": {"a"}}
        else:
            assert recalled_cards == {"a1": set(), "b1": set(), "a2": set(), "b2": set()}


def test_plan_needs_tasks_and_a_model() -> None:
    new_plan = build_plan(EvaluationRequest("some/file.jsonl", seeds=2, runs=3), [make_task()], "openai:x y")
    assert (new_plan.name, new_plan.seeds, len(new_plan.list_run_keys(["a"]))) == ("file-openai-x-y", (0, 1), 6)
    with pytest.raises(ConfigError, match="no usable task"):
        build_plan(EvaluationRequest("x"), [], "openai:x")
    with pytest.raises(ConfigError, match="no model"):
        build_plan(EvaluationRequest("x"), [make_task()], "")


@pytest.mark.parametrize("name", ["instrument:none", "instrument:noisy-oracle", "instrument:noisy-oracle:often"])
def test_unknown_instrument_is_rejected(rigged: EvaluationContext, name: str) -> None:
    with pytest.raises(ConfigError):
        instrument_for(rigged.app, name)
    assert instrument_for(rigged.app, "openai:x") is None


def test_reports_and_predictions_match_the_rows(rigged: EvaluationContext) -> None:
    new_plan = plan([make_task()])
    assert forecast_cost(new_plan, [], 3) == "3 runs: at most $6.00, 1,200,000 tokens, 90 minutes"
    rows = run(rigged, [make_task()])
    assert "by 1 finished" in forecast_cost(new_plan, rows, 3)
    assert format_row(rows[0], 1, 2).startswith("[1/2] a seed 0 run 1: solved, 1 attempt")
    text = "\n".join(report_lines(new_plan, compute_figures(rows), 1))
    assert "1 of 1 run, 1 task; 95 % intervals" in text
    assert "solved (pass@1)                    100.0 % [20.7, 100.0]" in text
    (line,) = format_predictions(Results(rigged.trials, "e"))
    assert json.loads(line)["instance_id"] == "a"
    assert json.loads(line)["model_patch"].startswith("diff --git a/calc.py")
    assert "both solved 1" in "\n".join(format_comparison(new_plan, new_plan, compare(rows, rows)))


def run_driver(home: Path, die_after: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_build_command(home, die_after), capture_output=True, text=True, check=False, timeout=300)


def _build_command(home: Path, die_after: int = 0) -> list[str]:
    return [sys.executable, str(DRIVER), str(home), *([str(die_after)] if die_after else [])]


def load_report(home: Path) -> tuple[str, list[RunOutcome]]:
    with open_trials(Settings(home=home)) as trials:
        rows = Results(trials, "small").list_rows()
    return compute_figures(rows).model_dump_json(), [row.model_copy(update={"run_id": ""}) for row in rows]


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, list[RunOutcome]], int]:
    """Return the report of an uninterrupted evaluation and its number of events."""
    home = tmp_path_factory.mktemp("unbroken")
    completed = run_driver(home)
    assert completed.returncode == 0, completed.stderr
    return load_report(home), int(completed.stdout)


@pytest.mark.parametrize(
    "moment", sample_parameters([pytest.param(item, id=f"moment-{item}") for item in range(20)], 1)
)
def test_killed_evaluation_refuses_a_second_process_and_resumes_to_the_same_report(
    moment: int, unbroken: tuple[tuple[str, list[RunOutcome]], int], tmp_path: Path
) -> None:
    (figures_json, rows), events = unbroken
    assert len(rows) == 8
    assert 0 < sum(row.solved for row in rows) < 8
    assert run_driver(tmp_path, random.Random(moment).randrange(1, events)).returncode == -9
    with open_lab(Settings(home=tmp_path), "small"):
        refused = run_driver(tmp_path)
    assert "evaluation small is running in another process" in refused.stderr
    resume_result = run_driver(tmp_path)
    assert resume_result.returncode == 0, resume_result.stderr
    assert load_report(tmp_path) == (figures_json, rows)


async def test_concurrent_evaluations_of_one_plan_lose_no_row(rigged: EvaluationContext) -> None:
    """As on two machines, where no lock prevents it."""
    tasks = [make_task("a"), make_task("b")]
    evaluations = [open_evaluation(*rigged, plan(tasks, runs=2), tasks, lambda _row: None) for _ in range(2)]

    async def go() -> None:
        await asyncio.gather(*(item.go(2) for item in evaluations))

    await go()
    assert [item.list_remaining() for item in evaluations] == [[], []]
    rows = evaluations[0].results.list_rows()
    assert len(rows) == 4
    assert all(row.solved for row in rows)


def test_evaluations_with_different_names_can_run_side_by_side(tmp_path: Path) -> None:
    with open_lab(Settings(home=tmp_path), "one"), open_lab(Settings(home=tmp_path), "two") as context:
        assert context.trials.list_evaluations() == []
