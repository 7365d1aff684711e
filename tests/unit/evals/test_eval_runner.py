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
from redstart.app.wire import open_house
from redstart.core.chat import Answer, Ask
from redstart.core.errors import ConfigError, ModelRefused, StoreError
from redstart.core.run import Level, Limits
from redstart.core.shell import Completed, Execution
from redstart.evals.desk import (
    EvaluationContext,
    EvaluationRequest,
    evaluation,
    instrument_for,
    open_lab,
    open_trials,
    plan_of,
    predictions,
    tenant_of,
)
from redstart.evals.grading import Grader
from redstart.evals.metrics import compare, figures
from redstart.evals.outcome import EndPoint, EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.report import comparison_lines, forecast, report_lines, row_line
from redstart.evals.runner import Evaluation, digest_of
from redstart.evals.sealed import TaskFolder, open_site
from redstart.evals.task import Base, Task, TaskChange
from redstart.evals.verify import standards, verify
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
    computed_suite,
)
from support.sample import short_form

pytestmark = pytest.mark.slow

DRIVER = Path(__file__).parent / "drivers" / "small_eval.py"
ORACLE = "instrument:oracle-at-recall"


def task(name: str = "a", **over: Any) -> Task:
    base = Base(change=TaskChange(files={CODE: BUGGY, TESTS: TEST_TEXT}))
    plain = {"id": name, "base": base, "fix": TaskChange(files={CODE: BUGGY.replace(" + 1", "")})}
    return Task.model_validate({**plain, **over})


@pytest.fixture
def rigged(tmp_path: Path) -> Iterator[EvaluationContext]:
    settings = Settings(home=tmp_path / "home", models=Models(strong=ORACLE, fast=ORACLE))
    with open_lab(settings, "e") as lab:
        sandbox = FakeSandbox(computed_suite(lab.house.trees))
        yield lab._replace(house=replace(lab.house, adapters=replace(lab.house.adapters, sandbox=sandbox)))


def plan(tasks: list[Task], **over: Any) -> EvaluationPlan:
    plain = {
        "name": "e",
        "source": "some",
        "tasks": digest_of(tasks),
        "model": ORACLE,
        "limits": Limits(attempts=2),
        "verify": Level.quick,
        "looks": 0,
    }
    return EvaluationPlan.model_validate({**plain, **over})


def run(lab: EvaluationContext, tasks: list[Task], parallel: int = 1, **over: Any) -> list[RunOutcome]:
    made = evaluation(*lab, plan(tasks, **over), tasks, lambda _row: None)
    asyncio.run(made.go(parallel))
    assert made.left() == []
    return made.results.rows()


def run_with(lab: EvaluationContext, answer: Callable[[Ask], str | Answer] | list[str], **over: Any) -> RunOutcome:
    """Run one task with a scripted model."""
    asked = plan([task()], model="scripted:model", **over)
    results = Results.open(lab.trials, asked)
    model = ScriptedModel(answer, name="scripted:model")
    work = lab.house.settings.home / "w"
    made = Evaluation(lab.house, asked, [task()], results, work, model_for=lambda *_: model)
    asyncio.run(made.go())
    (row,) = results.rows()
    return row


def test_the_oracle_solves_what_it_is_shown(rigged: EvaluationContext) -> None:
    rows = run(rigged, [task("a"), task("b")], runs=2, parallel=2)
    assert [str(row.key) for row in rows] == [*("a seed 0 run 1", "b seed 0 run 1", "a seed 0 run 2", "b seed 0 run 2")]
    assert all(row.solved and row.claimed and row.place is EndPoint.solved for row in rows)
    first = rows[0]
    assert (first.result, first.attempts, first.rungs, first.files) == ("verified", 1, {"exact": 1}, (CODE,))
    assert (first.recall, first.lines_shown, first.dishonest, first.repeated) == (1.0, True, 0, 0)
    assert first.tokens > 100
    assert "-    return number + number + 1" in first.patch


@pytest.mark.parametrize(
    ("answer", "place", "dishonest"),
    [
        (WRONG, EndPoint.still_red, 0),
        (MISFIT, EndPoint.edit_rejected, 0),
        (GARBAGE, EndPoint.no_edit, 0),
        (TAMPER, EndPoint.refused, 2),
    ],
)
def test_where_a_run_ended_is_told(rigged: EvaluationContext, answer: str, place: EndPoint, dishonest: int) -> None:
    row = run_with(rigged, lambda ask: CARD if ask.question == "remember" else answer, limits=Limits(attempts=2))
    assert (row.place, row.dishonest, row.solved, row.claimed) == (place, dishonest, False, False)


def test_a_patch_that_comes_again_is_counted(rigged: EvaluationContext) -> None:
    row = run_with(rigged, lambda ask: WRONG if ask.question == "patch" else CARD, limits=Limits(attempts=2))
    assert (row.attempts, row.repeated, row.revisited) == (2, 1, 1)
    assert figures([row]).repeated.value == 1.0  # pyright: ignore[reportOptionalMemberAccess]


def test_a_run_is_graded_while_the_next_one_goes_on(rigged: EvaluationContext) -> None:
    tasks = [task(name, hidden=TaskChange(files={"test_hidden.py": TEST_TEXT})) for name in ("a", "b")]
    asked, trees = plan(tasks), rigged.house.trees
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

    adapters = replace(rigged.house.adapters, sandbox=Held(computed_suite(trees)))
    results, work = Results.open(rigged.trials, asked), rigged.house.settings.home / "w"
    made = Evaluation(replace(rigged.house, adapters=adapters), asked, tasks, results, work, model_for=model_for)
    asyncio.run(made.go())
    assert [(row.key.task, row.solved) for row in results.rows()] == [("a", True), ("b", True)]


def test_what_is_done_is_not_done_again(rigged: EvaluationContext) -> None:
    tasks = [task("a"), task("b")]
    first = run(rigged, tasks)

    def nobody(site: TaskFolder, key: RunKey) -> None:
        raise AssertionError(f"{site.task.id} {key} was run again")

    results, elsewhere = Results.open(rigged.trials, plan(tasks)), rigged.house.settings.home / "elsewhere"
    again = Evaluation(rigged.house, plan(tasks), tasks, results, elsewhere, model_for=nobody)
    asyncio.run(again.go())
    assert again.results.rows() == first


def test_broken_machinery_is_a_row_and_is_tried_again(rigged: EvaluationContext) -> None:
    tasks, work = [task()], rigged.house.settings.home / "work"

    class Down:
        async def ask(self, ask: Ask) -> Answer:
            raise ModelRefused("it says no")

    def made(model: Any) -> Evaluation:
        results = Results.open(rigged.trials, plan(tasks))
        return Evaluation(rigged.house, plan(tasks), tasks, results, work, model_for=lambda *_: model)

    asyncio.run(made(Down()).go())
    (row,) = Results(rigged.trials, "e").rows()
    assert (row.place, row.trouble) == (EndPoint.broken, "it says no")
    assert figures([row]).broken == 1
    asyncio.run(made(ScriptedModel([RIGHT, CARD])).go())
    (mended,) = Results(rigged.trials, "e").rows()
    assert mended.solved
    # The same run was resumed.
    assert mended.run_id == row.run_id


def test_another_plan_needs_another_name(rigged: EvaluationContext) -> None:
    run(rigged, [task()])
    with pytest.raises(ConfigError, match=r"another plan \(runs\)"):
        evaluation(*rigged, plan([task()], runs=2), [task()], lambda _row: None)
    with pytest.raises(ConfigError, match="differ from those of the plan"):
        evaluation(*rigged, plan([task()]), [task("b")], lambda _row: None)
    with pytest.raises(ConfigError, match="unknown evaluation other") as caught:
        Results(rigged.trials, "other")
    assert caught.value.remedy == "choose one of: e"


def test_an_evaluation_begun_under_another_engine_goes_on(rigged: EvaluationContext) -> None:
    begun = Results.open(rigged.trials, plan([task()]).model_copy(update={"engine": "inline"}))
    assert begun.plan.engine == "inline"
    assert run(rigged, [task()])


def test_rows_of_another_version_are_told_of(rigged: EvaluationContext) -> None:
    results = Results.open(rigged.trials, plan([task()]))
    rigged.trials.settle("e", EvaluationTrial("a", 0, 1), '{"key": {"task": "a"}, "place": "heaven"}', final=True)
    with pytest.raises(StoreError, match="an evaluation's outcome cannot be read: 1 fields") as caught:
        results.rows()
    assert caught.value.remedy


def test_the_runs_of_an_evaluation_are_nobody_elses(rigged: EvaluationContext) -> None:
    """They are listed, learned from and forgotten apart from the user's runs and from those of other evaluations."""
    (row,) = run(rigged, [task()])
    settings = rigged.house.settings
    with open_house(settings.model_copy(update={"tenant": "home"})) as users:
        assert asyncio.run(users.adapters.store.runs()) == []
    assert [item.run_id for item in asyncio.run(rigged.house.adapters.store.runs())] == [row.run_id]
    assert settings.tenant == tenant_of("home", "e")
    assert len({tenant_of("home", "e"), tenant_of("home", "E"), tenant_of("other", "e"), tenant_of("home", "e.")}) == 4
    for name in ("x" * 200, "Ünder_score", "."):
        assert TypeAdapter(Tenant).validate_python(tenant_of("home", name))


@pytest.mark.soak
def test_rows_and_patches_stay_when_runs_are_forgotten(rigged: EvaluationContext) -> None:
    (row,) = run(rigged, [task()])
    exported = predictions(Results(rigged.trials, "e"))
    later = rigged.house.adapters.world.now() + 2 * DAY
    for tenant, gone in (("home", ()), (rigged.house.settings.tenant, (row.run_id,))):
        settings = rigged.house.settings.model_copy(update={"tenant": tenant})
        assert asyncio.run(prune(settings, days=1, keep=0, dry=False, now=later)).runs == gone
    assert Results(rigged.trials, "e").rows() == [row]
    assert predictions(Results(rigged.trials, "e")) == exported
    assert run(rigged, [task()]) == [row], "a finished run is not repeated"


@pytest.mark.soak
def test_a_task_that_was_verified_is_not_run_again_to_know_its_standard(rigged: EvaluationContext) -> None:
    sandbox = FakeSandbox(computed_suite(rigged.house.trees))
    house = replace(rigged.house, adapters=replace(rigged.house.adapters, sandbox=sandbox))
    grader, site = Grader(house), open_site(house, task(), house.settings.home / "site")
    known = standards({task().digest: asyncio.run(verify(grader, site, 1))})
    fixed = grader.with_fix(site, site.spec.base)
    for before, made, solved, runs in (
        ({}, fixed, True, 4),
        (known, fixed, True, 2),
        (known, site.spec.base, False, 1),
    ):
        sandbox.executions.clear()
        assert asyncio.run(Grader(house, before).grade(site, made)).solved is solved
        assert len(sandbox.executions) == runs, "passing tests run twice, failing tests once"


@pytest.mark.soak
def test_memory_gives_what_other_tasks_left_and_never_the_same(rigged: EvaluationContext) -> None:
    tasks, seen = [task("a"), task("b")], dict[str, str]()

    def model_for(site: TaskFolder, key: RunKey) -> ScriptedModel:
        def answer(ask: Ask) -> str:
            if ask.question == "patch":
                seen[f"{site.task.id}{key.run}"] = ask.messages[-1].text
            return RIGHT if ask.question == "patch" else CARD.replace("off by one", f"card of {site.task.id}")

        return ScriptedModel(answer)

    for remembers, name in ((True, "with"), (False, "without")):
        asked = plan(tasks, runs=2, remembers=remembers, name=name)
        results, work = Results.open(rigged.trials, asked), rigged.house.settings.home / "w"
        made = Evaluation(rigged.house, asked, tasks, results, work, model_for=model_for)
        asyncio.run(made.go())
        told = {key: {item for item in "ab" if f"card of {item}" in text} for key, text in seen.items()}
        if remembers:
            assert told == {"a1": set(), "b1": {"a"}, "a2": {"b"}, "b2": {"a"}}
        else:
            assert told == {"a1": set(), "b1": set(), "a2": set(), "b2": set()}


def test_a_plan_needs_tasks_and_a_model() -> None:
    found = plan_of(EvaluationRequest("some/file.jsonl", seeds=2, runs=3), [task()], "openai:x y")
    assert (found.name, found.seeds, len(found.keys(["a"]))) == ("file-openai-x-y", (0, 1), 6)
    with pytest.raises(ConfigError, match="no usable task"):
        plan_of(EvaluationRequest("x"), [], "openai:x")
    with pytest.raises(ConfigError, match="no model"):
        plan_of(EvaluationRequest("x"), [task()], "")


@pytest.mark.parametrize("name", ["instrument:none", "instrument:noisy-oracle", "instrument:noisy-oracle:often"])
def test_an_unknown_instrument_is_an_error(rigged: EvaluationContext, name: str) -> None:
    with pytest.raises(ConfigError):
        instrument_for(rigged.house, name)
    assert instrument_for(rigged.house, "openai:x") is None


def test_reports_and_predictions_say_what_the_rows_do(rigged: EvaluationContext) -> None:
    asked = plan([task()])
    assert forecast(asked, [], 3) == "3 runs: at most $6.00, 1,200,000 tokens, 90 minutes"
    rows = run(rigged, [task()])
    assert "by 1 finished" in forecast(asked, rows, 3)
    assert row_line(rows[0], 1, 2).startswith("[1/2] a seed 0 run 1: solved, 1 attempt")
    text = "\n".join(report_lines(asked, figures(rows), 1))
    assert "1 of 1 run, 1 task; 95 % intervals" in text
    assert "solved (pass@1)                    100.0 % [20.7, 100.0]" in text
    (line,) = predictions(Results(rigged.trials, "e"))
    assert json.loads(line)["instance_id"] == "a"
    assert json.loads(line)["model_patch"].startswith("diff --git a/calc.py")
    assert "both solved 1" in "\n".join(comparison_lines(asked, asked, compare(rows, rows)))


def driven(home: Path, die_after: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_driver(home, die_after), capture_output=True, text=True, check=False, timeout=120)


def _driver(home: Path, die_after: int = 0) -> list[str]:
    return [sys.executable, str(DRIVER), str(home), *([str(die_after)] if die_after else [])]


def said_by(home: Path) -> tuple[str, list[RunOutcome]]:
    with open_trials(Settings(home=home)) as trials:
        rows = Results(trials, "small").rows()
    return figures(rows).model_dump_json(), [row.model_copy(update={"run_id": ""}) for row in rows]


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, list[RunOutcome]], int]:
    """Return the report of an uninterrupted evaluation and its number of events."""
    home = tmp_path_factory.mktemp("unbroken")
    done = driven(home)
    assert done.returncode == 0, done.stderr
    return said_by(home), int(done.stdout)


@pytest.mark.parametrize("moment", short_form([pytest.param(item, id=f"moment-{item}") for item in range(20)], 1))
def test_killed_at_any_moment_it_ends_with_the_same_report(
    moment: int, unbroken: tuple[tuple[str, list[RunOutcome]], int], tmp_path: Path
) -> None:
    (figures_said, rows), events = unbroken
    assert len(rows) == 8
    assert 0 < sum(row.solved for row in rows) < 8
    assert driven(tmp_path, random.Random(moment).randrange(1, events)).returncode == -9
    resumed = driven(tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert said_by(tmp_path) == (figures_said, rows)


def test_a_second_process_at_once_is_told_and_does_nothing_twice(
    unbroken: tuple[tuple[str, list[RunOutcome]], int], tmp_path: Path
) -> None:
    with open_lab(Settings(home=tmp_path), "small"):
        refused = driven(tmp_path)
    assert "evaluation small is running in another process" in refused.stderr
    assert driven(tmp_path).returncode == 0
    assert said_by(tmp_path) == unbroken[0]


def test_two_that_do_the_same_at_once_lose_no_row(rigged: EvaluationContext) -> None:
    """As on two machines, where no lock prevents it."""
    tasks = [task("a"), task("b")]
    both = [evaluation(*rigged, plan(tasks, runs=2), tasks, lambda _row: None) for _ in range(2)]

    async def go() -> None:
        await asyncio.gather(*(item.go(2) for item in both))

    asyncio.run(go())
    assert [item.left() for item in both] == [[], []]
    rows = both[0].results.rows()
    assert len(rows) == 4
    assert all(row.solved for row in rows)


def test_an_evaluation_of_another_name_goes_on_beside_it(tmp_path: Path) -> None:
    with open_lab(Settings(home=tmp_path), "one"), open_lab(Settings(home=tmp_path), "two") as lab:
        assert lab.trials.evaluations() == []
