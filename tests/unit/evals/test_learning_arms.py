"""The arms of the learning curve give what they promise, and their figures are right."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from redstart.core.learning import RecalledCard
from redstart.core.lesson import LessonScope, Situation
from redstart.evals.outcome import EndPoint, RunKey, RunOutcome
from redstart.evals.scripted_models import TrueFix
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.testing.contracts.store import Clock
from redstart.testing.states import make_card, make_lesson, make_signature
from redstart.toolkit.learning.lesson_selector import LessonSelector
from support.store import create_memory_database, put_lesson

BENCH = Path(__file__).parents[3] / "bench"


def import_bench_module(name: str) -> Any:
    """Import a module of `bench/`, which is not a package and imports its neighbors by their bare names."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


arms, curve = import_bench_module("learning.arms"), import_bench_module("learning.curve")
families, plot = import_bench_module("learning.families"), import_bench_module("learning.plot")
instrument = import_bench_module("learning.instrument")
OFF, ON, PLACEBO = arms.Arm
FIX = TrueFix("shop.py", "def f():\n    x = 1\n    return x\n", "def f():\n    x = 2\n    return x\n")
SHOWN = f'<data from="shop.py">\n{FIX.before}</data>\n'


def attempt(number: int) -> str:
    return f'<data from="attempt {number}">\nx\n</data>\n' if number else ""


# -- the order of tasks ------------------------------------------------------------------------------------------------


def test_stream_order_depends_on_the_seed_and_a_part_covers_each_family():
    def list_task_ids(*stream_args: int) -> list[str]:
        return [entry.task.id for entry in families.stream(*stream_args)]

    assert len(set(list_task_ids(12, 10, 1))) == 120
    assert list_task_ids(12, 10, 1) == list_task_ids(12, 10, 1) != list_task_ids(12, 10, 2)
    entries = families.stream(2, 3, 1)
    assert sorted({entry.family.name for entry in entries}) == ["missing_key", "none_value"]
    assert len(entries) == 6


# -- the instrument ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("has_advice", "share"), [(True, 0.9), (False, 0.25)])
def test_success_rate_of_an_attempt_depends_on_the_shown_fact(has_advice, share):
    family = families.read_family("missing_key")
    prompt = f"{SHOWN}{family.advice if has_advice else ''}\n{attempt(1)}"
    correct_count = 0
    for number in range(800):
        model = instrument.FactSensitive([FIX], family, seed=str(number), place="lessons")
        correct_count += "the true fix" in model.patch(prompt)
    assert correct_count / 800 == pytest.approx(share, abs=0.04)


def test_attempt_right_without_the_fact_is_right_with_it():
    family = families.read_family("missing_key")
    outcomes: set[tuple[bool, ...]] = set()
    for number in range(200):
        model = instrument.FactSensitive([FIX], family, seed=str(number), place="lessons")
        patches_without_advice = [model.patch(SHOWN + attempt(attempt_number)) for attempt_number in range(3)]
        patches_with_advice = [
            model.patch(f"{SHOWN}{family.advice}\n{attempt(attempt_number)}") for attempt_number in range(3)
        ]
        assert all(
            a == b for a, b in zip(patches_without_advice, patches_with_advice, strict=True) if "the true fix" in a
        )
        outcomes.add(tuple("the true fix" in item for item in patches_without_advice))
    assert len(outcomes) > 4


def test_fact_is_left_in_only_one_place():
    family = families.read_family("none_value")
    for place, other_key in (("lessons", "fix"), ("cards", "advice")):
        answer = json.loads(instrument.FactSensitive([FIX], family, seed="1", place=place).reply("remember", ""))
        assert family.advice in answer.values()
        assert answer.get(other_key, "") != family.advice


# -- the arms ----------------------------------------------------------------------------------------------------------


def test_run_ids_match_across_arms_and_are_unique_within_an_arm(tmp_path):
    worlds = [arms.SeededWorld(tmp_path / name, 1) for name in ("on", "placebo")]
    for world in worlds:
        world.task = "a/b"
    first_id, second_id = (world.generate_id() for world in worlds)
    assert first_id == second_id
    reopened_world = arms.SeededWorld(tmp_path / "on", 1)
    reopened_world.task = "a/b"
    assert reopened_world.generate_id() != first_id
    reopened_world.task = "a/c"
    assert reopened_world.generate_id() != first_id


async def test_bench_shares_lessons_across_repos_and_records_what_was_given(tmp_path):
    database, clock = create_memory_database(), Clock()
    lesson_store, log = SqlLessonStore(database), arms.Given(tmp_path / "given.jsonl")
    first_lesson = make_lesson("one", repo="shop")
    second_lesson = make_lesson("two", repo="shop", same_as="one")
    for item in (first_lesson, second_lesson):
        put_lesson(database, item)
    advisor = LessonSelector(lesson_store, clock, lambda _: False)
    other_situation = Situation(tenant="home", repo="other", family=first_lesson.family)
    assert (await advisor.offer_lessons(other_situation)).lessons == ()
    offer = await arms.Widening(advisor, lesson_store, clock, log).offer_lessons(other_situation)
    assert [item.id for item in offer.lessons] == ["one"]
    lessons_by_id = {item.id: item for item in await lesson_store.list_lessons()}
    assert (lessons_by_id["one"].scope, lessons_by_id["one"].approved_by) == (LessonScope.tenant, arms.BY)
    assert lessons_by_id["two"].scope is LessonScope.repo
    assert [item["id"] for item in log.get_last("lessons", "other")["lessons"]] == ["one"]
    assert log.get_last("lessons", "shop") is None


async def test_placebo_lessons_match_in_length_and_number_but_not_in_topic(tmp_path):
    tasks = families.stream(12, 10, 1)
    slugs = {entry.family.name: entry.task.slug for entry in tasks}
    advice = {name: families.read_family(name).advice for name in families.FAMILIES}
    replacements = arms.OtherWords(tasks)
    openings = {
        replacements.replace_text(f"{number}" + "x" * 300, slugs["missing_key"], slugs["off_by_one"])[:40]
        for number in range(400)
    }
    assert openings == {text[:40] for name, text in advice.items() if name not in ("missing_key", "off_by_one")}

    log = arms.Given(tmp_path / "given.jsonl")
    provenance = make_lesson().provenance.model_copy(update={"repo": slugs["missing_key"]})
    lessons = [make_lesson(f"l{number}", advice=advice["missing_key"], provenance=provenance) for number in range(3)]
    log.add(
        "lessons", slugs["missing_key"], {"lessons": [item.model_dump(mode="json") for item in lessons], "now": 5.0}
    )
    placebo_lessons = (
        await arms.PlaceboLessons(log, replacements).offer_lessons(Situation(tenant="eval", repo=slugs["missing_key"]))
    ).lessons
    assert [(item.id, item.when, item.status, len(item.advice)) for item in placebo_lessons] == [
        (item.id, item.when, item.status, len(item.advice)) for item in lessons
    ]
    assert not any(advice["missing_key"][:20] in item.advice for item in placebo_lessons)
    assert {item.tenant for item in placebo_lessons} == {"eval"}, "another tenant's lesson is never shown"
    assert (
        await arms.PlaceboLessons(log, replacements).offer_lessons(Situation(tenant="eval", repo="other"))
    ).lessons == ()


def test_placebo_cards_keep_their_length_but_not_their_words(tmp_path):
    log = arms.Given(tmp_path / "given.jsonl")
    original = RecalledCard(card=make_card(fix="read it with get"), score=0.5, source="family")
    log.add("cards", "here", [original.model_dump(mode="json")])
    memory = arms.PlaceboMemory(log, arms.OtherWords([]))
    (placebo,) = asyncio.run(memory.recall(make_signature(), tenant="t", repo="here"))
    assert (len(placebo.card.fix), placebo.card.id) == (len(original.card.fix), original.card.id)
    assert placebo.card.fix != original.card.fix
    assert asyncio.run(memory.recall(make_signature(), tenant="t", repo="elsewhere")) == []


# -- the figures -------------------------------------------------------------------------------------------------------


def build_outcome(
    task: int, *, solved: bool, attempts: int = 1, tokens: int = 100, place: EndPoint | None = None
) -> RunOutcome:
    end_point = place or (EndPoint.solved if solved else EndPoint.still_red)
    return RunOutcome(
        key=RunKey(task=f"t{task}"), solved=solved, place=end_point, attempts=attempts, input_tokens=tokens
    )


def build_arm_outcomes(count: int = 40) -> dict[Any, list[RunOutcome]]:
    """Make rows: half is solved without memory; with it, all of the last half is, with fewer tokens."""
    off_outcomes = [build_outcome(number, solved=number % 2 == 0) for number in range(count)]
    half = count // 2
    on_outcomes = [
        build_outcome(number, solved=number % 2 == 0 or number >= half, tokens=50) for number in range(count)
    ]
    return {OFF: off_outcomes, ON: on_outcomes, PLACEBO: off_outcomes}


def build_exposures(lessons: int = 0, fact: bool = False) -> list[Any]:
    return [curve.Seen(lessons, 1, fact)] * 40


def test_figures_are_paired_by_task():
    exposures = {OFF: build_exposures(), ON: build_exposures(2, fact=True), PLACEBO: build_exposures(2)}
    figures = {
        figure.name: figure for figure in curve.build_figures(build_arm_outcomes(), 40, exposures, has_aims=True)
    }
    assert figures["solved_off"].value[0] == 0.5
    assert figures["solved_on"].value[0] == 0.75
    assert figures["on_minus_off"].value[0] == 0.25
    assert figures["on_minus_off_last_half"].value[0] == 0.5
    assert [figures[f"solved_on_quarter_{number}"].value[0] for number in (1, 2, 3, 4)] == [0.5, 0.5, 1.0, 1.0]
    assert figures["placebo_minus_off"].value == [0.0, 0.0, 0.0]
    assert figures["tokens_ratio_on_off"].value == [0.5, 0.5, 0.5]
    assert figures["attempts_off"].value == 2.5
    assert (figures["lessons_shown_on"].value, figures["told_the_fact_on"].value) == (2, 1)
    assert all(item.holds for item in figures.values())


def test_missed_goals_are_reported_and_a_model_has_no_goals():
    exposures = {OFF: build_exposures(), ON: build_exposures(2), PLACEBO: build_exposures(1, fact=True)}
    same_outcomes = {arm: build_arm_outcomes()[OFF] for arm in arms.Arm}

    def find_missed_aims(outcomes: dict[Any, list[RunOutcome]], min_tasks: int, *, has_aims: bool = True) -> set[str]:
        return {
            figure.name
            for figure in curve.build_figures(outcomes, min_tasks, exposures, has_aims=has_aims)
            if not figure.holds
        }

    assert find_missed_aims(same_outcomes, 50) == {
        "tasks",
        "on_minus_off",
        "placebo_unlike_on",
        "told_the_fact_placebo",
    }
    assert "placebo_minus_off" in find_missed_aims(
        {OFF: build_arm_outcomes()[ON], ON: build_arm_outcomes()[ON], PLACEBO: build_arm_outcomes()[OFF]}, 40
    )
    assert find_missed_aims(same_outcomes, 40, has_aims=False) == {"placebo_unlike_on"}


def test_task_broken_or_missing_in_one_arm_is_excluded_from_all():
    outcomes = build_arm_outcomes(8)
    outcomes[ON][3] = build_outcome(3, solved=False, place=EndPoint.broken)
    outcomes[PLACEBO] = outcomes[PLACEBO][:6]
    paired_outcomes = curve.pair_rows(outcomes)
    assert [[item.key.task for item in paired_outcomes[arm]] for arm in arms.Arm] == [
        ["t0", "t1", "t2", "t4", "t5"]
    ] * 3
    figures = {figure.name: figure for figure in curve.build_figures(outcomes, 8, {}, has_aims=True)}
    assert (figures["tasks"].holds, figures["broken"].value, figures["broken"].holds) == (False, 1, False)
    none = {OFF: [], ON: [], PLACEBO: []}
    assert [figure.name for figure in curve.build_figures(none, 1, none, has_aims=True)] == [
        "tasks",
        "broken",
        "false_greens",
    ]


# -- the plot ----------------------------------------------------------------------------------------------------------


def test_plot_is_an_svg_with_a_line_and_a_band_for_each_arm():
    shares = {arm: [item.solved for item in outcomes] for arm, outcomes in build_arm_outcomes().items()}
    text = plot.render_svg(shares, plot.Words("Solved <over> time", "An instrument's result, not a model's"))
    tree = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    lines = tree.findall(f"{space}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [31, 31, 31]
    assert len(tree.findall(f"{space}polygon")) == 3
    labels = [item.text for item in tree.findall(f"{space}text")]
    assert {"An instrument's result, not a model's", "Solved <over> time", "off", "on", "placebo"} <= set(labels)
    # A higher share is drawn higher, and y counts from the top.
    heights = {
        arm: float(share.attrib["points"].split()[-1].split(",")[1]) for arm, share in zip(shares, lines, strict=True)
    }
    assert heights[ON] < heights[OFF] == heights[PLACEBO]


def test_moving_share_covers_only_the_last_tasks():
    points = plot.estimate_moving_share([True, True, False, False], 2)
    assert [item.value for item in points] == [1.0, 0.5, 0.0]
    assert points[0].low < 1.0
