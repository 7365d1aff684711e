"""Evaluations on a computed suite: rows, resuming, kill -9, and what a memory may not give."""

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

from redstart.app.settings import Models, Settings
from redstart.app.wire import House, open_house
from redstart.core.chat import Answer, Ask
from redstart.core.errors import ConfigError, ModelRefused
from redstart.core.run import Level, Limits
from redstart.evals.desk import Wanted, evaluation, folder_of, kept_results, plan_of, predictions
from redstart.evals.instrument import instrument_for
from redstart.evals.metrics import compare, figures
from redstart.evals.outcome import Key, Outcome, Place
from redstart.evals.report import comparison_lines, forecast, report_lines, row_line
from redstart.evals.results import FileResults, Plan
from redstart.evals.runner import Evaluation, digest_of
from redstart.evals.sealed import Site
from redstart.evals.task import Base, Change, Task
from redstart.testing.model import ScriptedModel
from redstart.testing.rig import (
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
from redstart.testing.sample import short_form
from redstart.testing.sandbox import FakeSandbox

DRIVER = Path(__file__).parent / "drivers" / "small_eval.py"
ORACLE = "instrument:oracle-at-recall"


def task(name: str = "a", **over: Any) -> Task:
    base = Base(change=Change(files={CODE: BUGGY, TESTS: TEST_TEXT}))
    plain = {"id": name, "base": base, "fix": Change(files={CODE: BUGGY.replace(" + 1", "")})}
    return Task.model_validate({**plain, **over})


@pytest.fixture
def rigged(tmp_path: Path) -> Iterator[House]:
    settings = Settings(home=tmp_path / "home", models=Models(strong=ORACLE, fast=ORACLE))
    with open_house(settings) as house:
        sandbox = FakeSandbox(computed_suite(house.trees))
        yield replace(house, adapters=replace(house.adapters, sandbox=sandbox))


def plan(tasks: list[Task], **over: Any) -> Plan:
    plain = {
        "name": "e",
        "source": "some",
        "tasks": digest_of(tasks),
        "model": ORACLE,
        "limits": Limits(iterations=2),
        "verify": Level.quick,
        "looks": 0,
    }
    return Plan.model_validate({**plain, **over})


def run(house: House, tasks: list[Task], parallel: int = 1, **over: Any) -> list[Outcome]:
    made = evaluation(house, plan(tasks, **over), tasks, lambda _row: None)
    asyncio.run(made.go(parallel))
    assert made.left() == []
    return made.results.rows()


def run_with(house: House, answer: Callable[[Ask], str | Answer] | list[str], **over: Any) -> Outcome:
    """One run with a scripted model."""
    asked = plan([task()], model="scripted:model", **over)
    results = FileResults.open(folder_of(house.settings, asked.name), asked)
    model = ScriptedModel(answer, name="scripted:model")
    made = Evaluation(house, asked, [task()], results, house.settings.home / "w", model_for=lambda *_: model)
    asyncio.run(made.go())
    (row,) = results.rows()
    return row


def test_the_oracle_solves_what_it_is_shown(rigged: House) -> None:
    rows = run(rigged, [task("a"), task("b")], runs=2, parallel=2)
    assert [str(row.key) for row in rows] == [*("a seed 0 run 1", "b seed 0 run 1", "a seed 0 run 2", "b seed 0 run 2")]
    assert all(row.solved and row.claimed and row.place is Place.solved for row in rows)
    first = rows[0]
    assert (first.result, first.attempts, first.rungs, first.files) == ("verified", 1, {"exact": 1}, (CODE,))
    assert (first.recall, first.lines_shown, first.dishonest, first.repeated) == (1.0, True, 0, 0)
    assert first.tokens > 100
    assert b"-    return number + number + 1" in rigged.adapters.blobs.get(first.patch)


@pytest.mark.parametrize(
    ("answer", "place", "dishonest"),
    [
        (WRONG, Place.still_red, 0),
        (MISFIT, Place.edit_rejected, 0),
        (GARBAGE, Place.no_edit, 0),
        (TAMPER, Place.refused, 2),
    ],
)
def test_where_a_run_ended_is_told(rigged: House, answer: str, place: Place, dishonest: int) -> None:
    row = run_with(rigged, lambda ask: CARD if ask.question == "remember" else answer, limits=Limits(iterations=2))
    assert (row.place, row.dishonest, row.solved, row.claimed) == (place, dishonest, False, False)


def test_a_patch_that_comes_again_is_counted(rigged: House) -> None:
    row = run_with(rigged, lambda ask: WRONG if ask.question == "patch" else CARD, limits=Limits(iterations=2))
    assert (row.attempts, row.repeated, row.revisited) == (2, 1, 1)
    assert figures([row]).repeated.value == 1.0  # pyright: ignore[reportOptionalMemberAccess]


def test_what_is_done_is_not_done_again(rigged: House) -> None:
    tasks = [task("a"), task("b")]
    first = run(rigged, tasks)

    def nobody(site: Site, key: Key) -> None:
        raise AssertionError(f"{site.task.id} {key} was run again")

    results = FileResults.open(folder_of(rigged.settings, "e"), plan(tasks))
    again = Evaluation(rigged, plan(tasks), tasks, results, rigged.settings.home / "elsewhere", model_for=nobody)
    asyncio.run(again.go())
    assert again.results.rows() == first


def test_broken_machinery_is_a_row_and_is_tried_again(rigged: House) -> None:
    tasks, folder = [task()], folder_of(rigged.settings, "e")

    class Down:
        async def ask(self, ask: Ask) -> Answer:
            raise ModelRefused("it says no")

    def made(model: Any) -> Evaluation:
        results = FileResults.open(folder, plan(tasks))
        return Evaluation(rigged, plan(tasks), tasks, results, folder / "work", model_for=lambda *_: model)

    asyncio.run(made(Down()).go())
    (row,) = FileResults(folder).rows()
    assert (row.place, row.trouble) == (Place.broken, "it says no")
    assert figures([row]).broken == 1
    asyncio.run(made(ScriptedModel([RIGHT, CARD])).go())
    (mended,) = FileResults(folder).rows()
    assert mended.solved
    # The same run was taken up again.
    assert mended.run_id == row.run_id


def test_another_plan_needs_another_name(rigged: House) -> None:
    run(rigged, [task()])
    with pytest.raises(ConfigError, match=r"another plan \(runs\)"):
        evaluation(rigged, plan([task()], runs=2), [task()], lambda _row: None)
    with pytest.raises(ConfigError, match="not those of the plan"):
        evaluation(rigged, plan([task()]), [task("b")], lambda _row: None)
    with pytest.raises(ConfigError, match="no evaluation other") as caught:
        kept_results(rigged.settings, "other")
    assert caught.value.remedy == "there are: e"


def test_a_line_that_a_crash_cut_off_is_none(tmp_path: Path) -> None:
    asked = plan([task()])
    results = FileResults.open(tmp_path, asked)
    done = Outcome(key=Key(task="a"), place=Place.solved, solved=True)
    results.add(done)
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write(done.model_dump_json()[:40])
    assert FileResults(tmp_path).rows() == [done]
    again = FileResults.open(tmp_path, asked)
    other = Outcome(key=Key(task="b"), place=Place.still_red)
    again.add(other)
    assert again.rows() == [done, other]


def test_memory_gives_what_other_tasks_left_and_never_the_same(rigged: House) -> None:
    tasks, seen = [task("a"), task("b")], dict[str, str]()

    def model_for(site: Site, key: Key) -> ScriptedModel:
        def answer(ask: Ask) -> str:
            if ask.question == "patch":
                seen[f"{site.task.id}{key.run}"] = ask.messages[-1].text
            return RIGHT if ask.question == "patch" else CARD.replace("off by one", f"card of {site.task.id}")

        return ScriptedModel(answer)

    for remembers, name in ((True, "with"), (False, "without")):
        asked = plan(tasks, runs=2, remembers=remembers, name=name)
        results = FileResults.open(folder_of(rigged.settings, name), asked)
        made = Evaluation(rigged, asked, tasks, results, rigged.settings.home / "w", model_for=model_for)
        asyncio.run(made.go())
        told = {key: {one for one in "ab" if f"card of {one}" in text} for key, text in seen.items()}
        if remembers:
            assert told == {"a1": set(), "b1": {"a"}, "a2": {"b"}, "b2": {"a"}}
        else:
            assert told == {"a1": set(), "b1": set(), "a2": set(), "b2": set()}


def test_a_plan_needs_tasks_and_a_model() -> None:
    found = plan_of(Wanted("some/file.jsonl", seeds=2, runs=3), [task()], "openai:x y")
    assert (found.name, found.seeds, len(found.keys(["a"]))) == ("file-openai-x-y", (0, 1), 6)
    with pytest.raises(ConfigError, match="no task"):
        plan_of(Wanted("x"), [], "openai:x")
    with pytest.raises(ConfigError, match="no model"):
        plan_of(Wanted("x"), [task()], "")


@pytest.mark.parametrize("name", ["instrument:none", "instrument:noisy-oracle", "instrument:noisy-oracle:often"])
def test_an_unknown_instrument_is_an_error(rigged: House, name: str) -> None:
    with pytest.raises(ConfigError):
        instrument_for(rigged, name)
    assert instrument_for(rigged, "openai:x") is None


def test_reports_and_predictions_say_what_the_rows_do(rigged: House) -> None:
    asked = plan([task()])
    assert forecast(asked, [], 3) == "3 runs: at the most $6.00, 1,200,000 tokens, 90 minutes of work"
    rows = run(rigged, [task()])
    assert "by 1 that are done" in forecast(asked, rows, 3)
    assert row_line(rows[0], 1, 2).startswith("[1/2] a seed 0 run 1: solved, 1 attempts")
    text = "\n".join(report_lines(asked, figures(rows), 1))
    assert "1 of 1 runs, 1 tasks" in text
    assert "solved (pass@1)                    100.0 % [20.7, 100.0]" in text
    results = kept_results(rigged.settings, "e")
    (line,) = predictions(rigged, results)
    assert json.loads(line)["instance_id"] == "a"
    assert json.loads(line)["model_patch"].startswith("diff --git a/calc.py")
    assert "both solved 1" in "\n".join(comparison_lines(asked, asked, compare(rows, rows)))


def driven(home: Path, die_after: int = 0) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(DRIVER), str(home), *([str(die_after)] if die_after else [])]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


def said_by(home: Path) -> tuple[str, list[Outcome]]:
    rows = kept_results(Settings(home=home), "small").rows()
    return figures(rows).model_dump_json(), [row.model_copy(update={"run_id": ""}) for row in rows]


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, list[Outcome]], int]:
    """What the evaluation says that nobody killed, and how many events it had."""
    home = tmp_path_factory.mktemp("unbroken")
    done = driven(home)
    assert done.returncode == 0, done.stderr
    return said_by(home), int(done.stdout)


@pytest.mark.parametrize("moment", short_form([pytest.param(one, id=f"moment-{one}") for one in range(20)], 3))
def test_killed_at_any_moment_it_ends_with_the_same_report(
    moment: int, unbroken: tuple[tuple[str, list[Outcome]], int], tmp_path: Path
) -> None:
    (figures_said, rows), events = unbroken
    assert len(rows) == 8
    assert 0 < sum(row.solved for row in rows) < 8
    assert driven(tmp_path, random.Random(moment).randrange(1, events)).returncode == -9
    resumed = driven(tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert said_by(tmp_path) == (figures_said, rows)
