"""The screen at common widths: wrapped at words in a terminal, one line per step in a log."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from redstart.cli.display import PACE, JsonLines, Terminal
from redstart.cli.event_text import LONGEST, describe_step
from redstart.cli.run_summary import HEADLINES, MOST_LINES, cost, print_diff, print_headline
from redstart.core.chat import Usage
from redstart.core.events import Event, Phase, Progress
from redstart.core.run import Result, Spend
from redstart.testing.states import make_event, make_state

WHY = "the price list holds None for what is not priced yet, and None cannot be multiplied by any count of items"
REPRODUCED: dict[str, Any] = {
    "red": 3,
    "passed": 9,
    "skipped": 0,
    "targets": ["t.py::test_only_unpriced_items", "t.py::test_unknown_items_are_not_charged", "t.py::test_c"],
    "target_count": 3,
    "trouble": "",
    "grounds": [],
    "flaky": [],
    "forecast": 0.0,
}
TESTED: dict[str, Any] = {
    "passed": 10,
    "red": 2,
    "skipped": 0,
    "fixed": 1,
    "still_red": 2,
    "newly_red": 0,
    "missing": 0,
    "skipped_now": 0,
    "flaky": 0,
    "green_without": 0,
    "repeats": 0,
    "shrunk": False,
    "honest_green": False,
    "probe": False,
}
PATCHED = {"files": ["a.py"], "why": WHY, "fault": "", "probe": False, "looks": 2}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make_end_event(name: str, run: str = "r", **data: Any) -> Event:
    return make_event(name=name, run=run, phase="end", data={"seconds": 3.25, **data})


def make_terminal(width: int, *, tty: bool = True, clock: Clock | None = None) -> tuple[Terminal, StringIO]:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=tty, color_system=None, highlight=False, soft_wrap=True)
    return Terminal(console=console, clock=clock or Clock()), out


def attempt() -> list[Event]:
    return [
        make_end_event("reproduce", **REPRODUCED),
        make_end_event("patch", **PATCHED),
        make_end_event("test", **TESTED),
        make_end_event(
            "decide", action="retry", reason="2 of 3 target tests still fail (was 3)", trend="improving", pattern=""
        ),
    ]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_step_lines_wrap_at_words_with_a_hanging_indent(width):
    screen, out = make_terminal(width)
    for step_event in attempt():
        screen(step_event)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.startswith(("  1  ", " " * 15)) for line in lines)
    assert WHY in " ".join(out.getvalue().split()), "no sentence is shortened"


def test_log_has_one_line_per_step():
    screen, out = make_terminal(80, tty=False)
    for step_event in attempt():
        screen(step_event)
    lines = out.getvalue().splitlines()
    assert lines[0] == (
        "  1  reproduce 12 tests: 3 fail, 9 pass; to fix: test_only_unpriced_items, "
        "test_unknown_items_are_not_charged and 1 more  3.2 s"
    )
    assert lines[1] == f"  1  patch     {WHY} (after 2 tool calls)  3.2 s"
    assert lines[2] == "  1  test      12 tests: 2 fail, 10 pass  3.2 s"
    assert lines[3] == "  1  decide    retrying: 2 of 3 target tests still fail (was 3)  3.2 s"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"fixed": 1, "passed": 1, "red": 0}, "fixed 1 test; 1 of 1 test passes"),
        (
            {"passed": 12, "red": 0, "fixed": 3, "repeats": 4},
            "fixed 3 tests; 12 of 12 tests pass; passed 4 of 4 reruns",
        ),
        (
            {"passed": 9, "red": 0, "repeats": 1, "shrunk": True, "dropped": 1},
            "fixed 1 test; 9 of 9 tests pass; passed 1 of 1 rerun; left 1 hunk out of the patch",
        ),
    ],
)
def test_green_verdict_uses_correct_plurals(data, text):
    assert describe_step(make_end_event("test", **{**TESTED, "honest_green": True, **data})) == text


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("remember", {"card": "c", "failure": False}, "saved a fix card"),
        ("remember", {"card": "c", "failure": False, "lesson": "l"}, "saved a fix card and a lesson"),
        ("remember", {"card": "", "failure": True}, "recorded the failed attempt"),
        ("patch", {**PATCHED, "probe": True, "looks": 1}, "the model asks to run a snippet (after 1 tool call)"),
        ("test", {**TESTED, "newly_red": 1, "missing": 2}, "12 tests: 2 fail, 10 pass; 1 newly failing; 2 missing"),
        (
            "reproduce",
            {**REPRODUCED, "sure": "high", "sure_why": "it names it", "targets": [], "target_count": 0},
            "12 tests: 3 fail, 9 pass; confidence that the test matches the issue: high (it names it)",
        ),
        (
            "plan",
            {"recalled": ["a", "b"], "sources": ["signature"], "summary": "", "fault": "", "withheld": ["l"]},
            "recalled 2 earlier fixes for this failure; 1 lesson withheld to measure its effect",
        ),
    ],
)
def test_step_lines_use_the_documented_words(name, data, text):
    assert describe_step(make_end_event(name, **data)) == text


def test_long_text_ends_with_a_whole_sentence():
    text = describe_step(make_end_event("reflect", what_failed="This is one sentence. " * 100))
    assert len(text) <= LONGEST
    assert text.endswith("sentence. …")


def test_retry_shows_its_reason_when_given():
    screen, out = make_terminal(140)
    for step_event in attempt()[:2]:
        screen(step_event)
    screen(make_end_event("decide", action="retry", reason="the edits did not apply", trend="", pattern=""))
    screen(make_end_event("decide", run="other", action="retry", reason="why", trend="", pattern=""))
    assert [line.split("decide    ")[1] for line in out.getvalue().splitlines()[-2:]] == [
        "retrying: the edits did not apply  3.2 s",
        "retrying: why  3.2 s",
    ]


def test_outcome_is_shown_only_by_the_headline():
    screen, out = make_terminal(80)
    screen(make_end_event("decide", action="stop", reason="no tests: No tests were collected.", result="no_tests"))
    assert out.getvalue() == ""
    screen(make_end_event("decide", run="r.1", action="accept", reason="the part is done", result="verified"))
    assert "1.1  decide    the part is done" in out.getvalue(), "a child run has no headline"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_headline_wraps_under_its_first_word(width):
    screen, out = make_terminal(width)
    print_headline(screen, "environment", "PostgreSQL is not reachable at 127.0.0.1:5432 (3 tests). " * 4)
    first_line, *remaining_lines = out.getvalue().strip().splitlines()
    assert first_line.startswith("ENVIRONMENT PROBLEM  PostgreSQL")
    assert all(len(line) <= width for line in (first_line, *remaining_lines))
    assert all(line.startswith(" " * 21) and line[21] != " " for line in remaining_lines)


def test_every_result_has_a_headline_and_a_newer_result_shows_its_name():
    assert {result.value for result in Result} <= set(HEADLINES)
    screen, out = make_terminal(80)
    print_headline(screen, "not_solved", "why")
    assert out.getvalue().strip() == "NOT SOLVED  why"


def test_estimated_tokens_are_marked_and_apply_to_no_limit():
    counted, guessed = Usage(input_tokens=900, output_tokens=100), Usage(estimated_tokens=500)
    spend = Spend().count(counted).add(Spend().count(guessed))
    assert spend.tokens == 1000
    assert " · about 1,500 tokens (estimated) · " in cost(make_state(spend=spend))
    assert " · 1,000 tokens · " in cost(make_state(spend=Spend().count(counted)))


def test_long_diff_is_cut_and_says_where_the_rest_is():
    screen, out = make_terminal(80)
    added_lines = "".join(f"+line {number}\n" for number in range(100))
    print_diff(screen, f"diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n{added_lines}", "r1")
    lines = [line.strip() for line in out.getvalue().splitlines() if line.strip()]
    assert lines[:3] == ["--- a/x", "+++ b/x", "@@ -1 +1 @@"]
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "… 43 more lines: redstart show r1"


def test_diff_is_colored_at_a_terminal_unless_no_color_is_set(monkeypatch):
    for variable, colored in (("COLORTERM", True), ("NO_COLOR", False)):
        monkeypatch.setenv(variable, "1")
        out = StringIO()
        console = Console(file=out, width=80, force_terminal=True, color_system="standard", highlight=False)
        print_diff(Terminal(console=console), "--- a/x\n+++ b/x\n-old\n+new\n", "r1")
        assert ("\x1b[32m    +new\x1b[0m" in out.getvalue()) is colored


def test_repo_text_cannot_control_the_terminal():
    screen, out = make_terminal(80)
    print_diff(screen, "+\x1b[2J\x1b]0;owned\x07\n", "r1")
    screen(make_end_event("patch", **{**PATCHED, "why": "\x1b[31mred"}))
    assert "\x1b" not in out.getvalue()


def test_progress_line_shows_how_far_a_step_is():
    clock = Clock()
    screen, out = make_terminal(80, clock=clock)
    screen(make_event(name="reproduce", phase="start"))
    screen.show_progress(Progress("r", 1, "reproduce", "baseline"))
    clock.now = 10.0
    screen.show_progress(Progress("r", 1, "reproduce", "baseline", done=12, total=1333))
    assert screen.moving == "reproduce baseline 12/1,333 · 10 s · attempt 1 · 10 s total"
    clock.now = 20.0
    screen.show_progress(Progress("r", 1, "reproduce", "baseline", done=412, total=1333))
    expected = "reproduce baseline 412/1,333 · 20 s · about 23 s left · attempt 1"
    assert screen.moving == expected, "the time before the first test does not count"
    assert out.getvalue() == ""


def test_progress_line_never_wraps():
    screen, _ = make_terminal(40)
    screen(make_event(name="patch", phase="start"))
    screen.show_progress(Progress("r", 1, "patch", "asking openai:gpt-x", tokens=3100))
    assert screen.moving == "patch     asking openai:gpt-x"


def test_pending_question_shows_model_tokens_and_seconds():
    clock = Clock()
    screen, _ = make_terminal(140, clock=clock)
    screen(make_event(name="patch", phase="start"))
    screen.show_progress(Progress("r", 1, "patch", "asking openai:gpt-x", tokens=3100))
    clock.now = 12.0
    assert screen.moving.startswith("patch     asking openai:gpt-x · 12 s · 3,100 tokens sent · attempt 1")


def test_time_left_comes_from_the_last_run_when_no_test_is_counted():
    clock = Clock()
    screen, _ = make_terminal(140, clock=clock)
    screen(make_event(name="test", phase="start"))
    screen.show_progress(Progress("r", 1, "test", "all tests", seconds=60.0))
    clock.now = 20.0
    assert screen.moving.startswith("test      all tests · 20 s · about 40 s left")


def test_log_gets_progress_lines_at_growing_intervals():
    clock = Clock()
    screen, out = make_terminal(100, tty=False, clock=clock)
    screen.refresh()
    screen(make_event(name="reproduce", phase="start"))
    screen.show_progress(Progress("r", 1, "reproduce", "baseline", done=10, total=40, seconds=120.0))
    for second in range(int(2 * PACE) + 10):
        clock.now = float(second)
        screen.refresh()
    assert out.getvalue().splitlines() == [
        "     reproduce: baseline 10/40, 5 s, about 2 min left",
        "     reproduce: baseline 10/40, 15 s, about 2 min left",
        "     reproduce: baseline 10/40, 35 s, about 85 s left",
        "     reproduce: baseline 10/40, 65 s, about 55 s left",
    ]
    screen(make_event(name="test", phase="start"))
    clock.now = 69.0
    screen.refresh()
    assert len(out.getvalue().splitlines()) == 4
    clock.now = 70.0
    screen.refresh()
    assert out.getvalue().splitlines()[4] == "     test: 1 s"


def test_last_json_event_has_exit_code_and_patch(capsys):
    printer = JsonLines()
    with printer:
        printer(make_event(name="run", phase="end", data={"result": "", "status": "paused"}))
        printer(make_event(name="decide", phase="start"))
        printer(make_event(name="run", phase="end", data={"result": "verified"}))
        printer.show_progress(Progress("r", 1, "test", "all tests"))
        printer.finish(exit_code=0, patch="/p/r.patch", applied=False)
    first_event, second_event, last_event = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first_event["data"], second_event["name"]) == ({"result": "", "status": "paused"}, "decide")
    assert last_event["data"] == {"result": "verified", "exit_code": 0, "patch": "/p/r.patch", "applied": False}


def test_pending_end_event_is_printed_on_exit(capsys):
    with JsonLines() as printer:
        printer(make_event(name="run", phase="end", data={"result": "stuck"}))
    assert json.loads(capsys.readouterr().out)["data"] == {"result": "stuck"}
    assert Phase.end.value == "end"
