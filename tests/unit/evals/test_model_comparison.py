"""The comparison of two models: its order, its limits, what it concludes, and its page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from redstart.core.run import Limits, Spend
from redstart.evals.comparison_text import format_model_comparison, format_offer, list_comparison_figures
from redstart.evals.model_comparison import (
    FEWEST,
    MOST_BROKEN,
    ComparisonFrame,
    ComparisonLimits,
    ModelComparison,
    PlayReport,
    build_comparison,
    play_pairs,
)
from redstart.evals.outcome import EndPoint, EvaluationPlan, RunKey, RunOutcome
from redstart.evals.page.comparison import render_comparison
from redstart.evals.task import Base, Task

RUN_LIMITS = Limits(usd=1.0, minutes=10.0)
HOSTILE = "</b><script>document.title='taken'</script>"


def make_tasks(count: int) -> list[Task]:
    return [Task(id=f"shop/{number:012}", base=Base(), goal=f"Fix {number}\n\nWhy") for number in range(count)]


def make_row(task: str, *, solved: bool = False, **changes: Any) -> RunOutcome:
    place = EndPoint.solved if solved else EndPoint.still_red
    defaults = {"key": RunKey(task=task), "solved": solved, "place": place, "attempts": 1, "seconds": 60.0, "usd": 0.5}
    return RunOutcome.model_validate({**defaults, **changes})


@dataclass
class FakeEvaluation:
    """An evaluation whose runs cost a fixed amount; it records the order of play in `played`."""

    model: str
    tasks: list[Task]
    played: list[tuple[str, str]]
    usd: float = 0.5
    minutes: float = 1.0
    broken: frozenset[str] = frozenset()
    spends: dict[RunKey, Spend] = field(default_factory=dict)
    finished: set[RunKey] = field(default_factory=set)

    @property
    def plan(self) -> EvaluationPlan:
        return EvaluationPlan(name=self.model, source="s", tasks="t", model=self.model, limits=RUN_LIMITS)

    def list_remaining(self) -> list[RunKey]:
        return [key for task in self.tasks if (key := RunKey(task=task.id)) not in self.finished]

    async def load_spend(self) -> dict[RunKey, Spend]:
        return self.spends

    async def play(self, key: RunKey) -> RunOutcome:
        self.played.append((self.model, key.task))
        self.spends[key] = Spend(usd=self.usd, seconds=60 * self.minutes)
        if key.task in self.broken:
            return make_row(key.task, place=EndPoint.broken, trouble="the endpoint is down")
        self.finished.add(key)
        return make_row(key.task)


def make_pair(count: int, **changes: Any) -> tuple[FakeEvaluation, FakeEvaluation]:
    tasks, played = make_tasks(count), list[tuple[str, str]]()
    return FakeEvaluation("a", tasks, played), FakeEvaluation("b", tasks, played, **changes)


def play(pair: Any, usd: float = 100.0, minutes: float = 1000.0, prior_seconds: float = 0.0) -> PlayReport:
    return asyncio.run(play_pairs(pair, ComparisonLimits(usd=usd, minutes=minutes), prior_seconds))


def test_both_models_play_a_task_before_the_next_begins() -> None:
    pair = make_pair(3)
    assert play(pair) == PlayReport()
    assert pair[0].played == [(model, task.id) for task in pair[0].tasks for model in "ab"]


def test_only_missing_runs_are_played() -> None:
    pair = make_pair(3)
    first, second, third = (RunKey(task=task.id) for task in pair[0].tasks)
    pair[0].finished |= {first, second}
    pair[1].finished |= {first}
    play(pair)
    assert pair[0].played == [("b", second.task), ("a", third.task), ("b", third.task)]


@pytest.mark.parametrize(
    ("usd", "minutes", "prior_seconds", "tasks_played", "limit"),
    [
        # A task may cost $2 and 20 minutes, and costs $1 and 2 minutes.
        (4.0, 1000.0, 0.0, 3, "usd"),
        (3.99, 1000.0, 0.0, 2, "usd"),
        (1.99, 1000.0, 0.0, 0, "usd"),
        (100.0, 24.0, 0.0, 3, "minutes"),
        (100.0, 24.0, 120.0, 2, "minutes"),
    ],
)
def test_task_is_played_only_if_its_limits_fit(
    usd: float, minutes: float, prior_seconds: float, tasks_played: int, limit: str
) -> None:
    pair = make_pair(5)
    report = play(pair, usd, minutes, prior_seconds)
    names = [task.id for task in pair[0].tasks]
    assert [task for model, task in pair[0].played if model == "a"] == names[:tasks_played]
    assert report == PlayReport(dict.fromkeys(names[tasks_played:], limit))


def test_started_run_reserves_only_what_it_may_still_spend() -> None:
    pair = make_pair(1)
    pair[0].spends[RunKey(task=pair[0].tasks[0].id)] = Spend(usd=0.9)
    assert play(pair, usd=2.0) == PlayReport()
    other = make_pair(1)
    other[0].spends[RunKey(task="another")] = Spend(usd=0.9)
    assert play(other, usd=2.0).unplayed == {other[0].tasks[0].id: "usd"}


def test_broken_run_spares_the_other_model_and_many_in_a_row_stop() -> None:
    names = [task.id for task in make_tasks(9)]
    pair = make_pair(9)
    pair[0].broken = frozenset(names[1:3] + names[4:])
    report = play(pair)
    assert [task for model, task in pair[0].played if model == "b"] == [names[0], names[3]]
    assert report.stopped == "a: the endpoint is down"
    assert pair[0].played[-1] == ("a", names[3 + MOST_BROKEN])


def test_limits_of_a_run_let_both_models_play_one_task() -> None:
    limits = ComparisonLimits(usd=1.0, minutes=500.0).fit(Limits())
    assert (limits.usd, limits.minutes, limits.attempts) == (0.5, 30.0, 5)
    assert ComparisonLimits(usd=3.0, minutes=4.0).fit(Limits(usd=None, minutes=None)).usd == 1.5


def compare(a: list[bool], b: list[bool], report: PlayReport | None = None, **changes: Any) -> ModelComparison:
    """Compare models that solved these bugs; `changes` are those of B's rows."""
    tasks = make_tasks(max(len(a), len(b)))
    rows_a = [make_row(task.id, solved=solved) for task, solved in zip(tasks, a, strict=False)]
    rows_b = [make_row(task.id, solved=solved, **changes) for task, solved in zip(tasks, b, strict=False)]
    limits = ComparisonLimits(usd=10.0, minutes=240.0)
    frame = ComparisonFrame("shop-1", "shop", ("x:one", "y:two"), limits, RUN_LIMITS)
    spent = Spend(usd=sum(row.usd for row in rows_a + rows_b), seconds=60)
    return build_comparison(frame, tasks, (rows_a, rows_b), report or PlayReport(), spent)


def test_difference_within_noise_is_not_told_apart() -> None:
    comparison = compare([True] * 8 + [False] * 4, [True] * 9 + [False] * 3)
    assert comparison.better == ""
    assert comparison.conclusions[0].startswith("the two cannot be told apart on 12 bugs: B minus A is +8 points")
    assert "would often be missed" in comparison.conclusions[0]


@pytest.mark.parametrize(("a", "b", "side", "model"), [(0, 8, "B", "y:two"), (9, 1, "A", "x:one")])
def test_clear_difference_names_the_better_model(a: int, b: int, side: str, model: str) -> None:
    comparison = compare(*([True] * count + [False] * (10 - count) for count in (a, b)))
    assert comparison.better == model
    assert comparison.conclusions[0].startswith(f"{side} solves more bugs than ")
    assert comparison.difference.p < 0.01


def test_too_few_bugs_never_show_a_difference() -> None:
    assert FEWEST == 6
    few, enough = (compare([True] * count, [False] * count) for count in (5, 6))
    assert few.conclusions == (
        "5 bugs are too few to tell the two apart: with fewer than 6, even all against none may be chance",
    )
    assert (few.better, enough.better) == ("", "x:one")
    assert compare([], []).conclusions == ("no bug was played with both models, so nothing can be said",)


def test_cheaper_and_faster_model_is_named_only_if_prices_are_known() -> None:
    solved = [True] * 8
    cheaper = compare(solved, solved, usd=0.25, seconds=30.0).conclusions
    assert cheaper[1:] == ("B costs $0.25 less per bug than A", "B takes 0.5 minutes less per bug than A")
    unpriced = compare(solved, solved, usd=0.0, unpriced=3)
    assert unpriced.conclusions[1:] == ()
    assert unpriced.b.usd is None
    assert "the price of B is unknown" in "\n".join(format_model_comparison(unpriced))


def test_figures_cover_only_bugs_that_both_played() -> None:
    comparison = compare([True] * 8, [True] * 6, PlayReport({"shop/000000000006": "usd", "shop/000000000007": "usd"}))
    assert (comparison.compared, comparison.a.solved, comparison.b.solved) == (6, 6, 6)
    assert comparison.a.solved_share is not None
    assert comparison.a.solved_share.count == 6
    lines = format_model_comparison(comparison)
    assert any(line.startswith("not played: 2 bugs, because the rest of $10.00") for line in lines)
    assert "S ·  000000000006  Fix 6" in lines
    broken = compare([True] * 8, [True] * 8, place=EndPoint.broken, trouble="it is down")
    assert (broken.compared, broken.a.solved_share) == (0, None)
    assert any("8 runs broke" in line and "it is down" in line for line in format_model_comparison(broken))


def test_offer_says_the_most_that_it_costs() -> None:
    frame = ComparisonFrame("n", "shop", ("x:one", "y:two"), ComparisonLimits(usd=10.0, minutes=240.0), RUN_LIMITS)
    lines = format_offer(frame, 12, 24, Spend(usd=1.5, seconds=600))
    assert lines[2] == "12 past bugs of shop, 24 runs to play: at most $8.50 and 230 minutes"
    assert lines[3] == "each run: at most 5 attempts, $1.00, 10 minutes, 400,000 tokens"
    assert len(lines) == 4
    assert "at most $4.00 and 40 minutes" in format_offer(frame, 12, 4, Spend())[2]
    assert "too few usable bugs" in format_offer(frame, 5, 10, Spend())[-1]
    unpriced = format_offer(frame._replace(unpriced=("y:two",)), 12, 24, Spend())[-1]
    assert "the price of y:two is unknown" in unpriced
    assert unpriced.endswith("at most 9,600,000 tokens")


class PageText(HTMLParser):
    """The texts of a page's cells and paragraphs."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = [""]
        self.tags: list[str] = []
        self.feed(text)
        self.texts = [text.strip() for text in self.texts]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


def test_page_shows_the_figures_of_the_text() -> None:
    comparison = compare([True] * 8, [True] * 4 + [False] * 4, usd=0.125)
    page = PageText(render_comparison(comparison))
    for pair in list_comparison_figures(comparison):
        for figure in pair:
            assert page.texts[page.texts.index(figure.name) :][1:3] == [figure.value, figure.interval]
    for line in comparison.conclusions:
        assert line in page.texts
    assert (page.texts.count("S"), page.texts.count("D")) == (12, 4)
    assert "script" not in page.tags


def test_both_models_are_drawn_on_one_scale() -> None:
    comparison = compare([True] * 8, [True] * 8, usd=5.0)
    (cheap, dear) = list_comparison_figures(comparison)[1]
    assert cheap.scale == dear.scale == 6.25


def test_page_runs_no_text_of_the_repo() -> None:
    comparison = compare([True], [True])
    bug = comparison.bugs[0].model_copy(update={"subject": HOSTILE, "task": HOSTILE})
    page = render_comparison(comparison.model_copy(update={"bugs": (bug,), "repo": HOSTILE, "stopped": HOSTILE}))
    assert "<script" not in page
    assert "script-src 'none'" in page


def test_text_fits_a_terminal_of_80_columns_but_for_sentences() -> None:
    comparison = compare([True, False] * 6, [True] * 12, usd=0.0123456, seconds=61.234)
    table = format_model_comparison(comparison)[4:8]
    assert table[1] == "solved           6 of 12 [25, 75 %]          12 of 12 [76, 100 %]"
    assert max(map(len, table)) <= 80


def test_result_is_read_back_from_json() -> None:
    comparison = compare([True] * 7, [False] * 7, PlayReport(stopped="why"))
    assert ModelComparison.model_validate_json(comparison.model_dump_json()) == comparison
