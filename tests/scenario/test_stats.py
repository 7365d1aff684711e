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


def stats(user: User, *words: str) -> dict[str, Any]:
    ran = user.redstart("stats", "--json", *words)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def ends_of(runs: list[Ran], name: str) -> list[dict[str, Any]]:
    return [event["data"] for ran in runs for event in ran.events if (event["name"], event["phase"]) == (name, "end")]


def test_runs_are_counted_as_they_told_it(user: User, repo_of: Callable[[str], Path], server: ScriptedServer) -> None:
    user.uses(server, Wire.openai)
    repo = repo_of(SCENARIO.name)
    runs = [
        user.redstart("fix", repo, "--json", "--max-iters", "1"),
        user.redstart("fix", repo, "--json"),
        user.redstart("fix", repo, "--json"),
    ]
    endings = [ran.ending for ran in runs]
    assert [item["result"] for item in endings] == ["unsolved", "verified", "verified"]

    found = stats(user)
    assert (found["runs"], found["parts"]) == (3, 0)
    assert found["outcomes"] == {"fix": {"verified": 2, "unsolved": 1}}
    assert found["verified"]["value"] == pytest.approx(2 / 3)
    assert found["attempts"]["mean"] == pytest.approx(sum(item["attempts"] for item in endings) / 3)
    assert found["seconds_to_green"]["most"] == max(item["seconds"] for item in endings[1:])
    spent = found["spent"]
    assert spent["input_tokens"] + spent["output_tokens"] == sum(item["tokens"] for item in endings) > 0
    assert spent["calls"] == sum(item["calls"] for item in endings) == len(server.requests)
    assert spent["seconds"] == pytest.approx(sum(item["seconds"] for item in endings), abs=0.01)
    assert found["by_model"].keys() == {"openai:scripted"}
    assert found["by_step"]["patch"]["calls"] == len(ends_of(runs, "patch"))
    judged = ends_of(runs, "test")
    assert found["attempts_ended"]["green"] == sum(item["honest_green"] for item in judged) == 2
    assert sum(found["attempts_ended"].values()) == len(judged)
    assert found["errors"] == {"AssertionError": 3}
    assert found["reasons"] == {"3 newly failing tests after 1 attempt": 1}
    shown = [card for end in ends_of(runs, "plan") for card in end["recalled"]]
    (used,) = found["memory"]["often"]
    assert {used["card"]} == set(shown)
    assert (used["runs"], used["verified"], found["memory"]["runs"]) == (1, 1, 1)
    assert found["memory"]["cards_left"] == 2

    text = user.redstart("stats", "--since", "2h").out
    assert "verified 2, not solved 1" in text
    assert "3 runs; 95 % intervals" in text
    assert f"{spent['calls']} calls, {spent['input_tokens'] + spent['output_tokens']:,} tokens, price unknown" in text
    assert user.redstart("stats", "--since", "0h").out == "no runs in this period\n"
    wrong = user.redstart("stats", "--since", "soon")
    assert (wrong.code, "'soon' is not a time" in wrong.err) == (2, True)
