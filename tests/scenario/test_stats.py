"""`redstart stats` after real runs: its figures match the final events of the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.scenarios import Scenario
from support.server import ScriptedServer, Wire
from support.user import Ran, User

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(SCENARIO.reply) as running:
        yield running


def load_stats(user: User, *arguments: str) -> dict[str, Any]:
    result = user.redstart("stats", "--json", *arguments)
    assert result.code == 0, result.err
    return json.loads(result.out)


def list_end_data(runs: list[Ran], name: str) -> list[dict[str, Any]]:
    return [
        event["data"] for result in runs for event in result.events if (event["name"], event["phase"]) == (name, "end")
    ]


def test_stats_match_the_results_of_the_runs(
    user: User, repo_of: Callable[[str], Path], server: ScriptedServer
) -> None:
    user.uses(server, Wire.openai)
    repo = repo_of(SCENARIO.name)
    runs = [
        user.redstart("fix", repo, "--json", "--max-iters", "1"),
        user.redstart("fix", repo, "--json"),
        user.redstart("fix", repo, "--json"),
    ]
    endings = [result.ending for result in runs]
    assert [item["result"] for item in endings] == ["unsolved", "verified", "verified"]

    summary = load_stats(user)
    assert (summary["runs"], summary["parts"]) == (3, 0)
    assert summary["outcomes"] == {"fix": {"verified": 2, "unsolved": 1}}
    assert summary["verified"]["value"] == pytest.approx(2 / 3)
    assert summary["attempts"]["mean"] == pytest.approx(sum(item["attempts"] for item in endings) / 3)
    assert summary["seconds_to_green"]["most"] == max(item["seconds"] for item in endings[1:])
    spending = summary["spent"]
    assert spending["input_tokens"] + spending["output_tokens"] == sum(item["tokens"] for item in endings) > 0
    assert spending["calls"] == sum(item["calls"] for item in endings) == len(server.requests)
    assert spending["seconds"] == pytest.approx(sum(item["seconds"] for item in endings), abs=0.01)
    assert summary["by_model"].keys() == {"openai:scripted"}
    precision = summary["memory"]["precision"]
    assert (precision["value"], precision["count"]) == (1.0, 1), "the third run was shown the card of the second"
    assert summary["by_step"]["patch"]["calls"] == len(list_end_data(runs, "patch"))
    test_data = list_end_data(runs, "test")
    assert summary["attempts_ended"]["green"] == sum(item["honest_green"] for item in test_data) == 2
    assert sum(summary["attempts_ended"].values()) == len(test_data)
    assert summary["errors"] == {"AssertionError": 3}
    assert summary["reasons"] == {"3 newly failing tests after 1 attempt": 1}
    recalled_cards = [card for end in list_end_data(runs, "plan") for card in end["recalled"]]
    (used,) = summary["memory"]["often"]
    assert {used["card"]} == set(recalled_cards)
    assert (used["runs"], used["verified"], summary["memory"]["runs"]) == (1, 1, 1)
    assert summary["memory"]["cards_left"] == 2

    text = user.redstart("stats", "--since", "2h").out
    assert "verified 2, not solved 1" in text
    assert "3 runs; 95 % intervals" in text
    assert (
        f"{spending['calls']} calls, {spending['input_tokens'] + spending['output_tokens']:,} tokens, price unknown"
        in text
    )
    assert user.redstart("stats", "--since", "0h").out == "no run was started in this period\n"
    error_result = user.redstart("stats", "--since", "soon")
    assert (error_result.code, "'soon' is not a time" in error_result.err) == (2, True)
