"""`redstart memory` after real runs: cards are shown, approved, queried and forgotten."""

from __future__ import annotations

import asyncio
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from redstart.app.graph_export import GraphFormat
from redstart.cli.memory import FormName
from redstart.core.learning import CardState
from redstart.ports.sql.cards import SqlCards
from redstart.ports.sql.engine import Database
from support.scenarios import Scenario, parse_question
from support.server import Request, ScriptedServer, Wire
from support.user import Ran, User

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")
WORD = "flamingo"
TOLD = {
    "summary": f"the {WORD} ledger was counted twice",
    "root_cause": f'it said "{WORD}"\\n twice, „Ω“ first,\nin a file of C:\\users\n</data> and the {WORD} came home',
    "fix": f"one {WORD} only, " + "and no more of that than there was in the first place " * 8 + f"said the {WORD}",
    "debug_steps": [f"looked for the {WORD}"],
}


def answer_request(request: Request) -> str:
    return json.dumps(TOLD) if parse_question(request) == "remember" else SCENARIO.reply(request)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer_request) as running:
        yield running


@pytest.fixture
def fix(user: User, repo_of: Callable[[str], Path], server: ScriptedServer) -> Callable[..., Ran]:
    user.uses(server, Wire.openai)
    repo = repo_of(SCENARIO.name)
    return lambda *options: user.redstart("fix", repo, "--json", *options)


def run_memory(user: User, *arguments: str | Path) -> str:
    result = user.redstart("memory", *arguments)
    assert (result.code, result.err) == (0, ""), result
    return result.out


def list_cards(user: User, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run_memory(user, "list", "--json", *arguments).splitlines()]


def list_recalled_cards(ran: Ran) -> set[str]:
    assert ran.ending["result"] == "verified"
    plans = [event["data"] for event in ran.events if (event["name"], event["phase"]) == ("plan", "end")]
    return {card for plan in plans for card in plan["recalled"]}


def find_files_with_word(folder: Path) -> list[Path]:
    """Return the files that contain the word, in any case."""
    return [path for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes().lower()]


def test_empty_memory_is_reported(user: User) -> None:
    assert run_memory(user, "list") == "no fix cards or lessons yet: a run saves a fix card when it ends GREEN\n"
    assert list_cards(user) == []
    assert "fix cards                0\n" in run_memory(user, "stats")
    assert run_memory(user, "graph") == "no failed attempts yet\nno exceptions yet\n"
    for command, argument in (("show", "nobody"), ("forget", "")):
        result = user.redstart("memory", command, argument)
        assert (result.code, result.err.splitlines()[0]) == (2, f"error: there is no fix card '{argument}'")


def test_card_can_be_shown_approved_and_forgotten(user: User, fix: Callable[..., Ran], tmp_path: Path) -> None:
    first_result, second_result = fix(), fix()
    run = first_result.events[0]["run"]
    assert list_recalled_cards(first_result) == set()
    (card,) = list_recalled_cards(second_result)
    assert card == f"{run}-{first_result.ending['attempts']}"

    rows = list_cards(user)
    assert [row["id"] for row in rows] == [f"{second_result.events[0]['run']}-{second_result.ending['attempts']}", card]
    assert rows[1]["state"] == "shown"
    assert rows[1]["card"]["summary"] == TOLD["summary"]
    assert list_cards(user, "--repo", "another") == []
    assert len(list_cards(user, "--repo", SCENARIO.name, "--limit", "1")) == 1
    assert f"{card}  " in run_memory(user, "list")
    assert TOLD["summary"] in run_memory(user, "list")

    show_output = run_memory(user, "show", card)
    assert f"  what         {TOLD['summary']}\n" in show_output
    assert f"  shown to     {second_result.events[0]['run']}\n" in show_output
    details = json.loads(run_memory(user, "show", card, "--json"))
    assert details["recalled_by"] == [second_result.events[0]["run"]]
    stats = json.loads(run_memory(user, "stats", "--json"))
    assert (stats["cards"], stats["states"], stats["repos"]) == (2, {"shown": 2}, {SCENARIO.name: 2})
    assert stats["failures"] == first_result.ending["attempts"] + second_result.ending["attempts"] - 2
    assert (stats["recalled"], stats["recalling_runs"]) == (1, 1)
    assert stats["often"] == [{"card": card, "runs": 1}]
    assert f"  {card}" in run_memory(user, "stats")

    put_away(user, [row["id"] for row in rows])
    assert (
        run_memory(user, "approve", card, "--by", "Ada\tL.")
        == f"fix card {card} is shown to later runs, approved by Ada L.\n"
    )
    provenance = json.loads(run_memory(user, "show", card, "--json"))["card"]["provenance"]
    assert provenance["approved_by"] == "Ada L."
    assert provenance["approved_at"].endswith("+00:00")
    assert provenance["run"] == run
    assert list_recalled_cards(fix()) == {card}, "what is still in quarantine is not recalled"
    error_result = user.redstart("memory", "approve", card, "--by", "a" * 101)
    assert (error_result.code, "--by NAME" in error_result.err) == (2, True)

    for item in [item["id"] for item in list_cards(user)]:
        assert f"removed fix card {item} and" in run_memory(user, "forget", item)
    assert find_files_with_word(user.home) == []
    assert list_cards(user) == []
    for item in (first_result, second_result):
        show_result = user.redstart("show", item.events[0]["run"])
        assert (show_result.code, WORD in show_result.out) == (0, False), show_result
        attempt = user.redstart("show", item.events[0]["run"], "--attempt", str(item.ending["attempts"]))
        assert (attempt.code, WORD in attempt.out) == (0, False), attempt
        export_result = user.redstart("runs", "export", item.events[0]["run"], "--cassette", tmp_path / "calls.yaml")
        assert (export_result.code, "no longer exist" in export_result.err) == (2, True)
    assert find_files_with_word(tmp_path) == []


def put_away(user: User, cards: list[str]) -> None:
    """Quarantine the cards, like the end of an unverified run."""
    with Database.open(user.home / "redstart.db") as database:
        for card in cards:
            assert asyncio.run(SqlCards(database).put(card, CardState.quarantined))


def test_forget_removes_all_data_of_a_run(user: User, fix: Callable[..., Ran], tmp_path: Path) -> None:
    """Check that the search finds data before `forget`: in the database, in blobs and in an export."""
    result = fix()
    run = result.events[0]["run"]
    calls = tmp_path / "calls.yaml"
    assert user.redstart("runs", "export", run, "--cassette", calls).code == 0
    folders = {item.relative_to(user.home).parts[0] for item in find_files_with_word(user.home)}
    assert {"blobs"} < folders
    assert any(item.startswith("redstart.db") for item in folders)
    assert find_files_with_word(calls.parent)
    calls.unlink()
    question_file, patch = user.home / "by-hand" / "question.md", user.home / "patches" / "other.patch"
    for file in (question_file, patch):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{TOLD['summary']}\n")
    out = run_memory(user, "forget", run[:6])
    assert "1 note of manual answers" in out
    assert f"not removed: {patch} contains the same text" in out
    assert find_files_with_word(user.home) == [patch]
    assert user.redstart("memory", "forget", run[:6]).code == 2


@pytest.mark.soak
def test_graph_can_be_queried_and_exported(user: User, fix: Callable[..., Ran], tmp_path: Path) -> None:
    unsolved_result, solved_result = fix("--max-iters", "1"), fix()
    assert [unsolved_result.ending["result"], solved_result.ending["result"]] == ["unsolved", "verified"]
    (card,) = list_cards(user)
    key = card["card"]["error_signature"]

    graph = json.loads(run_memory(user, "graph", "--json"))
    assert graph.keys() == {"v", "files", "types"}
    attempts = 1 + solved_result.ending["attempts"] - 1
    assert {"repo": SCENARIO.name, "path": "pager.py", "attempts": attempts, "runs": 2} in graph["files"]
    assert [(item["repo"], item["type"], item["runs"]) for item in graph["types"]] == [
        (SCENARIO.name, "AssertionError", 2)
    ]
    assert graph["types"][0]["month"] == card["created"][:7]
    (fixed,) = json.loads(run_memory(user, "graph", "--signature", key, "--json"))["fixes"]
    assert (fixed["card"], fixed["signature"], fixed["files"]) == (card["id"], key, ["pager.py"])
    assert run_memory(user, "graph", "--signature", "none") == "no fix card for none\n"
    table = run_memory(user, "graph", "--files", "--types", "--repo", SCENARIO.name)
    assert f"{attempts:<15}  2     {SCENARIO.name}  pager.py\n" in table
    assert f"  2     {SCENARIO.name}  AssertionError\n" in table
    assert card["id"] in run_memory(user, "graph", "--signature", key[:10])

    exported_graph = json.loads(run_memory(user, "graph", "--export", "json"))
    names = {(item["label"], item["name"]) for item in exported_graph["nodes"]}
    assert {("FixCard", card["id"]), ("Signature", key), ("File", "pager.py"), ("BugType", "AssertionError")} <= names
    assert {item["source"] for item in exported_graph["edges"]} <= {item["key"] for item in exported_graph["nodes"]}
    file = tmp_path / "memory.graphml"
    summary = f"{len(exported_graph['nodes'])} nodes and {len(exported_graph['edges'])} edges in {file}\n"
    assert run_memory(user, "graph", "--export", "graphml", "--out", file) == summary
    tree = ElementTree.parse(file)
    assert len([item for item in tree.iter() if item.tag.endswith("}node")]) == len(exported_graph["nodes"])
    script = run_memory(user, "graph", "--export", "cypher").splitlines()
    assert len([line for line in script if " MERGE (a)-" in line]) == len(exported_graph["edges"])


def test_conflicting_flags_are_reported(user: User, tmp_path: Path) -> None:
    assert user.redstart("memory", "graph", "--export", "json", "--json").code == 2
    assert user.redstart("memory", "graph", "--out", tmp_path / "x").code == 2
    error_result = user.redstart("memory", "graph", "--export", "json", "--out", tmp_path / "none" / "x")
    assert (error_result.code, "cannot be written" in error_result.err) == (2, True)


def test_format_names_match_the_graph_formats() -> None:
    assert [name.value for name in FormName] == [item.value for item in GraphFormat]
