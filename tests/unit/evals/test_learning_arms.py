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
from redstart.evals.oracles import TrueFix
from redstart.evals.outcome import EndPoint, RunKey, RunOutcome
from redstart.ports.sql.lessons import SqlLessonStore
from redstart.testing.contracts.store import Clock
from redstart.testing.states import card, lesson, signature
from redstart.toolkit.learning.advisor import LessonSelector
from support.store import memory_database, put_lesson

BENCH = Path(__file__).parents[3] / "bench"


def of_bench(name: str) -> Any:
    """Import a module of `bench/`, which is not a package and imports its neighbors by their bare names."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


arms, curve = of_bench("learning.arms"), of_bench("learning.curve")
families, plot = of_bench("learning.families"), of_bench("learning.plot")
instrument = of_bench("learning.instrument")
OFF, ON, PLACEBO = arms.Arm
FIX = TrueFix("shop.py", "def f():\n    x = 1\n    return x\n", "def f():\n    x = 2\n    return x\n")
SHOWN = f'<data from="shop.py">\n{FIX.before}</data>\n'


def attempt(number: int) -> str:
    return f'<data from="attempt {number}">\nx\n</data>\n' if number else ""


# -- the order of tasks ------------------------------------------------------------------------------------------------


def test_the_order_is_that_of_its_seed_and_a_part_has_the_first_of_each_family():
    def ids(*asked: int) -> list[str]:
        return [known.task.id for known in families.stream(*asked)]

    assert len(set(ids(12, 10, 1))) == 120
    assert ids(12, 10, 1) == ids(12, 10, 1) != ids(12, 10, 2)
    few = families.stream(2, 3, 1)
    assert sorted({known.family.name for known in few}) == ["missing_key", "none_value"]
    assert len(few) == 6


# -- the instrument ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("told", "share"), [(True, 0.9), (False, 0.25)])
def test_an_attempt_is_right_with_the_chance_that_belongs_to_what_it_is_told(told, share):
    family = families.read_family("missing_key")
    prompt = f"{SHOWN}{family.advice if told else ''}\n{attempt(1)}"
    right = 0
    for number in range(800):
        one = instrument.FactSensitive([FIX], family, seed=str(number), place="lessons")
        right += "the true fix" in one.patch(prompt)
    assert right / 800 == pytest.approx(share, abs=0.04)


def test_what_is_right_untold_is_right_when_told_and_every_attempt_has_a_chance_of_its_own():
    family = families.read_family("missing_key")
    seen: set[tuple[bool, ...]] = set()
    for number in range(200):
        one = instrument.FactSensitive([FIX], family, seed=str(number), place="lessons")
        untold = [one.patch(SHOWN + attempt(tried)) for tried in range(3)]
        told = [one.patch(f"{SHOWN}{family.advice}\n{attempt(tried)}") for tried in range(3)]
        assert all(a == b for a, b in zip(untold, told, strict=True) if "the true fix" in a)
        seen.add(tuple("the true fix" in item for item in untold))
    assert len(seen) > 4


def test_the_fact_is_left_in_one_place_only():
    family = families.read_family("none_value")
    for place, other in (("lessons", "fix"), ("cards", "advice")):
        said = json.loads(instrument.FactSensitive([FIX], family, seed="1", place=place).reply("remember", ""))
        assert family.advice in said.values()
        assert said.get(other, "") != family.advice


# -- the arms ----------------------------------------------------------------------------------------------------------


def test_runs_have_the_same_ids_in_all_arms_and_none_twice_in_one(tmp_path):
    worlds = [arms.SeededWorld(tmp_path / name, 1) for name in ("on", "placebo")]
    for world in worlds:
        world.task = "a/b"
    first, second = (world.fresh_id() for world in worlds)
    assert first == second
    again = arms.SeededWorld(tmp_path / "on", 1)
    again.task = "a/b"
    assert again.fresh_id() != first
    again.task = "a/c"
    assert again.fresh_id() != first


def test_lessons_leave_their_repo_by_the_word_of_the_bench_and_what_was_given_is_written_down(tmp_path):
    database, clock = memory_database(), Clock()
    shelf, given = SqlLessonStore(database), arms.Given(tmp_path / "given.jsonl")
    taught = lesson("one", repo="shop")
    again = lesson("two", repo="shop", same_as="one")
    for item in (taught, again):
        put_lesson(database, item)
    advisor = LessonSelector(shelf, clock, lambda _: False)
    elsewhere = Situation(tenant="home", repo="other", family=taught.family)
    assert asyncio.run(advisor.offered(elsewhere)).lessons == ()
    offered = asyncio.run(arms.Widening(advisor, shelf, clock, given).offered(elsewhere))
    assert [item.id for item in offered.lessons] == ["one"]
    kept = {item.id: item for item in asyncio.run(shelf.lessons())}
    assert (kept["one"].scope, kept["one"].approved_by) == (LessonScope.tenant, arms.BY)
    assert kept["two"].scope is LessonScope.repo
    assert [item["id"] for item in given.last("lessons", "other")["lessons"]] == ["one"]
    assert given.last("lessons", "shop") is None


def test_a_placebo_is_as_long_and_as_many_and_about_neither_family(tmp_path):
    tasks = families.stream(12, 10, 1)
    slugs = {known.family.name: known.task.slug for known in tasks}
    advice = {name: families.read_family(name).advice for name in families.FAMILIES}
    words = arms.OtherWords(tasks)
    said = {
        words.instead(f"{number}" + "x" * 300, slugs["missing_key"], slugs["off_by_one"])[:40] for number in range(400)
    }
    assert said == {text[:40] for name, text in advice.items() if name not in ("missing_key", "off_by_one")}

    given = arms.Given(tmp_path / "given.jsonl")
    provenance = lesson().provenance.model_copy(update={"repo": slugs["missing_key"]})
    taught = [lesson(f"l{number}", advice=advice["missing_key"], provenance=provenance) for number in range(3)]
    given.add(
        "lessons", slugs["missing_key"], {"lessons": [item.model_dump(mode="json") for item in taught], "now": 5.0}
    )
    found = asyncio.run(
        arms.PlaceboLessons(given, words).offered(Situation(tenant="eval", repo=slugs["missing_key"]))
    ).lessons
    assert [(item.id, item.when, item.status, len(item.advice)) for item in found] == [
        (item.id, item.when, item.status, len(item.advice)) for item in taught
    ]
    assert not any(advice["missing_key"][:20] in item.advice for item in found)
    assert {item.tenant for item in found} == {"eval"}, "another tenant's lesson is never shown"
    assert asyncio.run(arms.PlaceboLessons(given, words).offered(Situation(tenant="eval", repo="other"))).lessons == ()


def test_placebo_cards_keep_their_lengths_and_lose_their_words(tmp_path):
    given = arms.Given(tmp_path / "given.jsonl")
    shown = RecalledCard(card=card(fix="read it with get"), score=0.5, source="family")
    given.add("cards", "here", [shown.model_dump(mode="json")])
    memory = arms.PlaceboMemory(given, arms.OtherWords([]))
    (found,) = asyncio.run(memory.recall(signature(), tenant="t", repo="here"))
    assert (len(found.card.fix), found.card.id) == (len(shown.card.fix), shown.card.id)
    assert found.card.fix != shown.card.fix
    assert asyncio.run(memory.recall(signature(), tenant="t", repo="elsewhere")) == []


# -- the figures -------------------------------------------------------------------------------------------------------


def row(task: int, *, solved: bool, attempts: int = 1, tokens: int = 100, place: EndPoint | None = None) -> RunOutcome:
    ended = place or (EndPoint.solved if solved else EndPoint.still_red)
    return RunOutcome(key=RunKey(task=f"t{task}"), solved=solved, place=ended, attempts=attempts, input_tokens=tokens)


def rows(count: int = 40) -> dict[Any, list[RunOutcome]]:
    """Make rows: half is solved without memory; with it, all of the last half is, with fewer tokens."""
    off = [row(number, solved=number % 2 == 0) for number in range(count)]
    late = count // 2
    on = [row(number, solved=number % 2 == 0 or number >= late, tokens=50) for number in range(count)]
    return {OFF: off, ON: on, PLACEBO: off}


def seen(lessons: int = 0, fact: bool = False) -> list[Any]:
    return [curve.Seen(lessons, 1, fact)] * 40


def test_the_figures_are_paired_by_task():
    shown = {OFF: seen(), ON: seen(2, fact=True), PLACEBO: seen(2)}
    found = {figure.name: figure for figure in curve.figures(rows(), 40, shown, has_aims=True)}
    assert found["solved_off"].value[0] == 0.5
    assert found["solved_on"].value[0] == 0.75
    assert found["on_minus_off"].value[0] == 0.25
    assert found["on_minus_off_last_half"].value[0] == 0.5
    assert [found[f"solved_on_quarter_{number}"].value[0] for number in (1, 2, 3, 4)] == [0.5, 0.5, 1.0, 1.0]
    assert found["placebo_minus_off"].value == [0.0, 0.0, 0.0]
    assert found["tokens_ratio_on_off"].value == [0.5, 0.5, 0.5]
    assert found["attempts_off"].value == 2.5
    assert (found["lessons_shown_on"].value, found["told_the_fact_on"].value) == (2, 1)
    assert all(item.holds for item in found.values())


def test_aims_that_are_missed_say_so_and_a_model_has_none():
    shown = {OFF: seen(), ON: seen(2), PLACEBO: seen(1, fact=True)}
    same = {arm: rows()[OFF] for arm in arms.Arm}

    def missed(found: dict[Any, list[RunOutcome]], least: int, *, has_aims: bool = True) -> set[str]:
        return {figure.name for figure in curve.figures(found, least, shown, has_aims=has_aims) if not figure.holds}

    assert missed(same, 50) == {"tasks", "on_minus_off", "placebo_unlike_on", "told_the_fact_placebo"}
    assert "placebo_minus_off" in missed({OFF: rows()[ON], ON: rows()[ON], PLACEBO: rows()[OFF]}, 40)
    assert missed(same, 40, has_aims=False) == {"placebo_unlike_on"}


def test_what_broke_or_is_missing_in_one_arm_is_left_out_in_all():
    found = rows(8)
    found[ON][3] = row(3, solved=False, place=EndPoint.broken)
    found[PLACEBO] = found[PLACEBO][:6]
    kept = curve.paired(found)
    assert [[item.key.task for item in kept[arm]] for arm in arms.Arm] == [["t0", "t1", "t2", "t4", "t5"]] * 3
    said = {figure.name: figure for figure in curve.figures(found, 8, {}, has_aims=True)}
    assert (said["tasks"].holds, said["broken"].value, said["broken"].holds) == (False, 1, False)
    none = {OFF: [], ON: [], PLACEBO: []}
    assert [figure.name for figure in curve.figures(none, 1, none, has_aims=True)] == [
        "tasks",
        "broken",
        "false_greens",
    ]


# -- the plot ----------------------------------------------------------------------------------------------------------


def test_the_plot_is_an_svg_with_a_line_and_a_band_for_each_arm_and_says_whose_result_it_is():
    shares = {arm: [item.solved for item in found] for arm, found in rows().items()}
    text = plot.svg(shares, plot.Words("Solved <over> time", "An instrument's result, not a model's"))
    tree = ElementTree.fromstring(text)
    space = "{http://www.w3.org/2000/svg}"
    lines = tree.findall(f"{space}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [31, 31, 31]
    assert len(tree.findall(f"{space}polygon")) == 3
    said = [item.text for item in tree.findall(f"{space}text")]
    assert {"An instrument's result, not a model's", "Solved <over> time", "off", "on", "placebo"} <= set(said)
    # A higher share is drawn higher, and y counts from the top.
    heights = {
        arm: float(share.attrib["points"].split()[-1].split(",")[1]) for arm, share in zip(shares, lines, strict=True)
    }
    assert heights[ON] < heights[OFF] == heights[PLACEBO]


def test_a_share_over_the_last_tasks_forgets_the_ones_before():
    found = plot.moving([True, True, False, False], 2)
    assert [item.value for item in found] == [1.0, 0.5, 0.0]
    assert found[0].low < 1.0
