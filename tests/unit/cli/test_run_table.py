"""The list of runs at several widths."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from redstart.app.run_status import RunView
from redstart.cli.run_table import RESULTS, format_age, format_run_table
from redstart.core.run import Result, Status

NOW = datetime(2030, 1, 2, 12, 0, tzinfo=UTC)


def make_view(**changes: object) -> RunView:
    defaults: dict[str, object] = {
        "run_id": "3f2a9c01b7de",
        "created": NOW - timedelta(minutes=3),
        "updated": NOW,
        "mode": "improve",
        "status": Status.needs_input,
        "result": "already_green",
        "reason": "",
        "model": "anthropic:claude-sonnet-5-5",
        "usd": 0.1234,
        "unpriced": 0,
        "repo": "grocer",
        "goal": "sum the prices\nof a basket that holds more than one of a kind",
        "folder": "/home/shop",
    }
    return RunView.model_validate({**defaults, **changes})


@pytest.mark.parametrize("width", [80, 100, 140])
def test_table_has_a_header_and_fits_the_width(width):
    head, *lines = format_run_table([make_view(), make_view(goal="", status=Status.failed, result="")], NOW, width)
    assert head.split() == ["ID", "AGE", "MODE", "STATE", "RESULT", "MODEL", "COST", "GOAL"]
    assert all(len(line) <= width for line in (head, *lines))
    for word in ("3f2a9c01b7de", "3 min", "improve", "needs_input", "already green", "$0.12"):
        assert word in lines[0]
    assert ("claude-sonnet-5-5" in lines[0]) == (width > 100)
    assert "failed" in lines[1]


def test_wide_terminal_shows_the_whole_row():
    (_, line) = format_run_table([make_view()], NOW, 300)
    assert line.endswith("$0.12  grocer: sum the prices of a basket that holds more than one of a kind")


def test_every_result_has_a_label():
    assert set(RESULTS) == {result.value for result in Result}


def test_unknown_price_is_marked():
    (_, line) = format_run_table([make_view(unpriced=2)], NOW, 200)
    assert "$0.12+?" in line


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (3 * 86_400, "3 d"), (90 * 86_400, "3 mo")],
)
def test_age_uses_the_largest_unit_that_fits(seconds, words):
    assert format_age(timedelta(seconds=seconds)) == words
