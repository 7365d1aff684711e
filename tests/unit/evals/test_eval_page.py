"""The page of an evaluation shows the figures of the text, draws the results, loads nothing and runs no name."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from typer.testing import CliRunner

from redstart.app.settings import Settings
from redstart.cli.main import app
from redstart.core.errors import ConfigError
from redstart.evals.app import open_trials
from redstart.evals.intervals import Estimate
from redstart.evals.metrics import EvaluationFigures, compute_figures
from redstart.evals.outcome import EndPoint, EvaluationPlan, Results, RunKey, RunOutcome
from redstart.evals.page import SIGNS, encode_script_json, render_html_page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-headless-shell", "google-chrome"))), None)
PLAN = EvaluationPlan(name="sample", source="made", tasks="x", model="made:up", runs=3)
HOSTILE = [
    "</script><img src=x onerror=\"document.title='taken'\">",
    '"><svg onload="document.title=\'taken\'">',
    "' onmouseover='document.title=1",
    "<!--<script>",
    "--></style><script>document.title='taken'</script>",
    "]]>&lt;b&gt;\u2028\u2029</title><base href=https://example.org/>",
]


class Page(HTMLParser):
    """A parsed page: its elements with their attributes and the text with which each begins."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._in_last = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}, []))
        self._in_last = True

    def handle_endtag(self, tag: str) -> None:
        self._in_last = False

    def handle_data(self, data: str) -> None:
        if self._in_last:
            self.elements[-1][2].append(data)

    def texts(self, tag: str) -> list[str]:
        return ["".join(text) for name, _, text in self.elements if name == tag]

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(attributes)) for tag, attributes, _ in self.elements]

    @property
    def drawn(self) -> dict[str, Any]:
        return next(
            json.loads("".join(text)) for _, attributes, text in self.elements if attributes.get("id") == "drawn"
        )


def make_rows(names: list[str], trouble: str = "the sandbox did not start") -> list[RunOutcome]:
    """Make three runs per task that end in every place in turn, and leave out the last run of the last task."""
    places = list(EndPoint)
    rows: list[RunOutcome] = []
    for number, name in enumerate(names):
        for run in range(1, 4):
            place = places[(3 * number + run * run) % len(places)]
            rows.append(
                RunOutcome(
                    key=RunKey(task=name, run=run),
                    result="ended so",
                    solved=place is EndPoint.solved,
                    claimed=place in (EndPoint.solved, EndPoint.false_green),
                    place=place,
                    attempts=run,
                    seconds=1.5 * run + number,
                    input_tokens=100 * (number + 1) * run,
                    output_tokens=7,
                    rungs={"exact": run},
                    recall=1.0,
                    trouble=trouble if place is EndPoint.broken else "",
                )
            )
    return sorted(rows, key=lambda row: (row.key.run, row.key.task))[:-1]


def render_page(rows: list[RunOutcome]) -> str:
    return render_html_page(PLAN, rows, compute_figures(rows), 3 * len({row.key.task for row in rows}))


@pytest.fixture
def rows() -> list[RunOutcome]:
    return make_rows([f"set/task{number:02}" for number in range(40)])


def report(home: Path, rows: list[RunOutcome], *arguments: str) -> str:
    with open_trials(Settings(home=home)) as trials:
        results = Results.open(trials, PLAN)
        for row in rows:
            results.add(row)
    result = CliRunner().invoke(app, ["eval", "report", PLAN.name, *arguments], env={"REDSTART_HOME": str(home)})
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_command_writes_the_figures_it_prints(rows: list[RunOutcome], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    printed = report(tmp_path / "home", rows, "--html", str(file)).splitlines()
    assert f"wrote {file}" in printed[-2]
    page = Page(file.read_text())
    assert page.texts("h1") == ["sample"]
    assert page.texts("title") == [printed[0]]
    assert printed[1] in page.texts("p")
    table = page.elements[next(n for n, element in enumerate(page.elements) if element[1].get("class") == "figures") :]
    table = table[: next(n for n, item in enumerate(table) if item[0] == "section")]
    cells = [
        ("".join(text), tag)
        for tag, attributes, text in table
        if tag in ("th", "td") and attributes.get("scope") != "col" and attributes.get("class") != "drawn"
    ]
    report_text = " ".join(text.strip() if tag == "td" else f"\n{text.strip()}" for text, tag in cells).strip()
    shown_lines = [" ".join(line.split()) for line in report_text.splitlines()]
    assert shown_lines == [" ".join(line.split()) for line in printed[2:-3]]
    assert any(line.startswith("solved (pass@1) ") for line in shown_lines)


def test_standard_output_holds_only_json(rows: list[RunOutcome], tmp_path: Path) -> None:
    printed = report(tmp_path / "home", rows, "--json", "--html", str(tmp_path / "page.html"))
    assert EvaluationFigures.model_validate_json(printed) == compute_figures(rows)
    assert (tmp_path / "page.html").stat().st_size > 50_000


def test_unwritable_page_is_reported(rows: list[RunOutcome], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        report(tmp_path / "home", rows, "--html", str(tmp_path / "none" / "page.html"))


def test_plotted_data_match_the_figures(rows: list[RunOutcome]) -> None:
    expected_figures, drawn_data = compute_figures(rows), Page(render_page(rows)).drawn
    assert drawn_data["costs"].keys() == {"attempts", "seconds", "tokens"}, "usd was never spent"
    assert expected_figures.pass_at_1 is not None
    assert Estimate.model_validate(drawn_data["solved"]) == expected_figures.pass_at_1
    for name, plot in drawn_data["costs"].items():
        figure = getattr(expected_figures, name)
        assert fmean(point[0] for point in plot["points"]) == pytest.approx(figure.value)
        assert fmean(point[1] for point in plot["points"]) == pytest.approx(expected_figures.pass_at_1.value)
        assert len(plot["points"]) == expected_figures.tasks
        assert plot["points"] == sorted(plot["points"])
        costs, shares = zip(*plot["curve"], strict=True)
        assert shares[-1] == pytest.approx(expected_figures.pass_at_1.value)
        assert list(costs) == sorted(set(costs))
        assert list(shares) == sorted(shares)


def test_curve_shows_what_each_budget_would_have_solved() -> None:
    a, b = (
        [
            RunOutcome(
                key=RunKey(task=task, run=run),
                solved=is_solved,
                place=EndPoint.solved if is_solved else EndPoint.budget,
                input_tokens=t,
            )
            for run, (is_solved, t) in enumerate(runs, 1)
        ]
        for task, runs in (("a", [(True, 10), (False, 40)]), ("b", [(True, 30)]))
    )
    plot = Page(render_page([*a, *b])).drawn["costs"]["tokens"]
    assert plot["curve"] == [[0, 0], [10, 0.25], [30, 0.75], [40, 0.75]]
    assert plot["points"] == [[25, 0.5, "a"], [30, 1, "b"]]


def test_intervals_are_drawn_at_their_positions(rows: list[RunOutcome]) -> None:
    interval = compute_figures(rows).pass_at_1
    assert interval is not None
    page = Page(render_page(rows))
    start = next(n for n, element in enumerate(page.elements) if element[1].get("class") == "track")
    _, bar, dot = (element[1].get("style", "") for element in page.elements[start : start + 3])
    assert bar == f"left:{100 * interval.low:.2f}%;width:{100 * (interval.high - interval.low):.2f}%"
    assert dot == f"left:{100 * interval.value:.2f}%"


def test_every_run_is_a_lettered_cell_with_its_cause(rows: list[RunOutcome]) -> None:
    page = Page(render_page(rows))
    cells = [
        element
        for element in page.elements
        if element[1].get("class", "").startswith("cell ") and "title" in element[1]
    ]
    assert len(cells) == 120
    assert len({sign.letter for sign in SIGNS.values()}) == len(EndPoint)
    by_title = {attributes["title"]: "".join(text) for _, attributes, text in cells}
    for row in rows:
        start = f"{row.key.task}, seed 0 run {row.key.run}: {row.place.value}"
        (title,) = [item for item in by_title if item.startswith(start)]
        assert by_title[title] == SIGNS[row.place].letter
        assert row.trouble in title
    assert by_title["set/task39, seed 0 run 3: not run"] == "·"


def test_end_points_are_counted(rows: list[RunOutcome]) -> None:
    text = render_page(rows)
    table = text[text.index('class="places"') : text.index("Cost against success")]
    counts = dict(re.findall(r'<th scope="row">([^<]+)<small>.*?<td class="value">(\d+)</td>', table))
    assert {name: int(count) for name, count in counts.items()} == Counter(row.place.value for row in rows)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_messages_are_rendered_as_text(text: str) -> None:
    names = [f"task{number}" for number in range(5)]
    plain_page = Page(render_page(make_rows(names)))
    hostile = Page(render_page(make_rows([f"{text}{name}" for name in names], trouble=text)))
    assert hostile.shape == plain_page.shape
    assert {point[2] for point in hostile.drawn["costs"]["tokens"]["points"]} == {f"{text}{name}" for name in names}
    assert any(text in element[1].get("title", "") for element in hostile.elements)


@pytest.mark.parametrize("text", HOSTILE)
def test_json_in_a_script_closes_no_element(text: str) -> None:
    script_text = encode_script_json({"name": text})
    assert json.loads(script_text) == {"name": text}
    assert not set("<>&\u2028\u2029") & set(script_text)


def test_hostile_plan_is_rendered_as_text(rows: list[RunOutcome]) -> None:
    plan = PLAN.model_copy(update={"source": HOSTILE[0], "model": HOSTILE[4], "name": HOSTILE[1]})
    shape = Page(render_html_page(plan, rows, compute_figures(rows), 120)).shape
    assert shape == Page(render_page(rows)).shape


def test_page_loads_no_external_resource(rows: list[RunOutcome]) -> None:
    text = render_page(rows)
    page = Page(text)
    loads = {"src", "href", "srcset", "data", "poster", "action", "background", "ping", "xlink:href", "formaction"}
    assert [element for element in page.elements if loads & element[1].keys()] == []
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.shape}
    styles = "".join(page.texts("style"))
    assert "url(" not in styles
    assert "@import" not in styles
    own_script = files("redstart.evals.page").joinpath("page.js").read_text()
    assert (
        re.findall(r"fetch|XMLHttp|WebSocket|EventSource|sendBeacon|import\(|innerHTML|eval\(|https?:", own_script)
        == []
    )


def test_content_security_policy_allows_only_the_page_scripts(rows: list[RunOutcome]) -> None:
    page = Page(render_page(rows))
    (policy,) = [
        element[1]["content"] for element in page.elements if element[1].get("http-equiv") == "Content-Security-Policy"
    ]
    scripts = ["".join(text) for tag, attributes, text in page.elements if tag == "script" and not attributes]
    assert len(scripts) == 2
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed_hashes = " ".join(f"'sha256-{item}'" for item in hashes)
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed_hashes};" in policy


def test_evaluation_without_rows_has_a_page() -> None:
    page = Page(render_page([]))
    assert page.drawn == {"costs": {}, "solved": None}


def test_vendored_library_matches_its_readme() -> None:
    folder = files("redstart.evals.page") / "uplot"
    script = (folder / "uPlot.iife.min.js").read_bytes()
    version = re.match(rb"/\*! .*uPlot \(v([\d.]+)\) \*/", script)
    assert version is not None
    assert f"uPlot {version[1].decode()} " in (folder / "README.md").read_text()
    assert (folder / "LICENSE").read_text().startswith("The MIT License")
    assert b"</script" not in script
    assert len(script) < 60_000


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason="no browser here; .ci/run installs one")
def test_browser_draws_the_page_and_runs_no_hostile_name(tmp_path: Path) -> None:
    assert BROWSER is not None
    file = tmp_path / "page.html"
    file.write_text(render_page(make_rows(HOSTILE, trouble=HOSTILE[0])))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    completed = subprocess.run([*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120)
    page = Page(completed.stdout)
    assert page.texts("title") == ["sample: made with made:up"]
    assert Counter(tag for tag, _ in page.shape)["canvas"] == 2
    assert not {"img", "svg", "base"} & {tag for tag, _ in page.shape}
