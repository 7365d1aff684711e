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
from support.scenarios import Scenario, question
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


def told(request: Request) -> str:
    return json.dumps(TOLD) if question(request) == "remember" else SCENARIO.reply(request)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(told) as running:
        yield running


@pytest.fixture
def fix(user: User, repo_of: Callable[[str], Path], server: ScriptedServer) -> Callable[..., Ran]:
    user.uses(server, Wire.openai)
    repo = repo_of(SCENARIO.name)
    return lambda *more: user.redstart("fix", repo, "--json", *more)


def done(user: User, *words: str | Path) -> str:
    ran = user.redstart("memory", *words)
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.out


def listed(user: User, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done(user, "list", "--json", *words).splitlines()]


def recalled(ran: Ran) -> set[str]:
    assert ran.ending["result"] == "verified"
    plans = [event["data"] for event in ran.events if (event["name"], event["phase"]) == ("plan", "end")]
    return {card for plan in plans for card in plan["recalled"]}


def holding(folder: Path) -> list[Path]:
    """Return the files that contain the word, in any case."""
    return [path for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes().lower()]


def test_nothing_was_learned_yet(user: User) -> None:
    assert done(user, "list") == "no fix cards or lessons yet: a run saves a fix card when it ends GREEN\n"
    assert listed(user) == []
    assert "fix cards                0\n" in done(user, "stats")
    assert done(user, "graph") == "no failed attempts yet\nno exceptions yet\n"
    for command, given in (("show", "nobody"), ("forget", "")):
        ran = user.redstart("memory", command, given)
        assert (ran.code, ran.err.splitlines()[0]) == (2, f"error: no fix card {given}".rstrip())


def test_a_card_is_seen_approved_and_forgotten(user: User, fix: Callable[..., Ran], tmp_path: Path) -> None:
    first, second = fix(), fix()
    run = first.events[0]["run"]
    assert recalled(first) == set()
    (card,) = recalled(second)
    assert card == f"{run}-{first.ending['attempts']}"

    rows = listed(user)
    assert [row["id"] for row in rows] == [f"{second.events[0]['run']}-{second.ending['attempts']}", card]
    assert rows[1]["state"] == "shown"
    assert rows[1]["card"]["summary"] == TOLD["summary"]
    assert listed(user, "--repo", "another") == []
    assert len(listed(user, "--repo", SCENARIO.name, "--limit", "1")) == 1
    assert f"{card}  " in done(user, "list")
    assert TOLD["summary"] in done(user, "list")

    shown = done(user, "show", card)
    assert f"  what         {TOLD['summary']}\n" in shown
    assert f"  shown to     {second.events[0]['run']}\n" in shown
    story = json.loads(done(user, "show", card, "--json"))
    assert story["recalled_by"] == [second.events[0]["run"]]
    counted = json.loads(done(user, "stats", "--json"))
    assert (counted["cards"], counted["states"], counted["repos"]) == (2, {"shown": 2}, {SCENARIO.name: 2})
    assert counted["failures"] == first.ending["attempts"] + second.ending["attempts"] - 2
    assert (counted["recalled"], counted["recalling_runs"]) == (1, 1)
    assert counted["often"] == [{"card": card, "runs": 1}]
    assert f"  {card}" in done(user, "stats")

    put_away(user, [row["id"] for row in rows])
    assert (
        done(user, "approve", card, "--by", "Ada\tL.")
        == f"fix card {card} is shown to later runs, approved by Ada L.\n"
    )
    said = json.loads(done(user, "show", card, "--json"))["card"]["provenance"]
    assert said["approved_by"] == "Ada L."
    assert said["approved_at"].endswith("+00:00")
    assert said["run"] == run
    assert recalled(fix()) == {card}, "what is still in quarantine is not recalled"
    wrong = user.redstart("memory", "approve", card, "--by", "a" * 101)
    assert (wrong.code, "--by NAME" in wrong.err) == (2, True)

    for item in [item["id"] for item in listed(user)]:
        assert f"removed fix card {item} and" in done(user, "forget", item)
    assert holding(user.home) == []
    assert listed(user) == []
    for item in (first, second):
        looked = user.redstart("show", item.events[0]["run"])
        assert (looked.code, WORD in looked.out) == (0, False), looked
        attempt = user.redstart("show", item.events[0]["run"], "--attempt", str(item.ending["attempts"]))
        assert (attempt.code, WORD in attempt.out) == (0, False), attempt
        exported = user.redstart("runs", "export", item.events[0]["run"], "--cassette", tmp_path / "calls.yaml")
        assert (exported.code, "no longer exist" in exported.err) == (2, True)
    assert holding(tmp_path) == []


def put_away(user: User, cards: list[str]) -> None:
    """Quarantine the cards, like the end of an unverified run."""
    with Database.open(user.home / "redstart.db") as database:
        for card in cards:
            assert asyncio.run(SqlCards(database).put(card, CardState.quarantined))


def test_what_is_kept_of_a_run_is_all_seen_before_it_is_forgotten(
    user: User, fix: Callable[..., Ran], tmp_path: Path
) -> None:
    """Check that the search finds data before `forget`: in the database, in blobs and in an export."""
    ran = fix()
    run = ran.events[0]["run"]
    calls = tmp_path / "calls.yaml"
    assert user.redstart("runs", "export", run, "--cassette", calls).code == 0
    seen = {item.relative_to(user.home).parts[0] for item in holding(user.home)}
    assert {"blobs"} < seen
    assert any(item.startswith("redstart.db") for item in seen)
    assert holding(calls.parent)
    calls.unlink()
    by_hand, patch = user.home / "by-hand" / "question.md", user.home / "patches" / "other.patch"
    for file in (by_hand, patch):
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{TOLD['summary']}\n")
    out = done(user, "forget", run[:6])
    assert "1 note of manual answers" in out
    assert f"not removed: {patch} contains the same text" in out
    assert holding(user.home) == [patch]
    assert user.redstart("memory", "forget", run[:6]).code == 2


@pytest.mark.soak
def test_the_graph_is_asked_and_exported(user: User, fix: Callable[..., Ran], tmp_path: Path) -> None:
    unsolved, green = fix("--max-iters", "1"), fix()
    assert [unsolved.ending["result"], green.ending["result"]] == ["unsolved", "verified"]
    (card,) = listed(user)
    key = card["card"]["error_signature"]

    found = json.loads(done(user, "graph", "--json"))
    assert found.keys() == {"v", "files", "types"}
    attempts = 1 + green.ending["attempts"] - 1
    assert {"repo": SCENARIO.name, "path": "pager.py", "attempts": attempts, "runs": 2} in found["files"]
    assert [(item["repo"], item["type"], item["runs"]) for item in found["types"]] == [
        (SCENARIO.name, "AssertionError", 2)
    ]
    assert found["types"][0]["month"] == card["created"][:7]
    (fixed,) = json.loads(done(user, "graph", "--signature", key, "--json"))["fixes"]
    assert (fixed["card"], fixed["signature"], fixed["files"]) == (card["id"], key, ["pager.py"])
    assert done(user, "graph", "--signature", "none") == "no fix card for none\n"
    table = done(user, "graph", "--files", "--types", "--repo", SCENARIO.name)
    assert f"{attempts:<15}  2     {SCENARIO.name}  pager.py\n" in table
    assert f"  2     {SCENARIO.name}  AssertionError\n" in table
    assert card["id"] in done(user, "graph", "--signature", key[:10])

    drawn = json.loads(done(user, "graph", "--export", "json"))
    names = {(item["label"], item["name"]) for item in drawn["nodes"]}
    assert {("FixCard", card["id"]), ("Signature", key), ("File", "pager.py"), ("BugType", "AssertionError")} <= names
    assert {item["source"] for item in drawn["edges"]} <= {item["key"] for item in drawn["nodes"]}
    file = tmp_path / "memory.graphml"
    counts = f"{len(drawn['nodes'])} nodes and {len(drawn['edges'])} edges in {file}\n"
    assert done(user, "graph", "--export", "graphml", "--out", file) == counts
    tree = ElementTree.parse(file)
    assert len([item for item in tree.iter() if item.tag.endswith("}node")]) == len(drawn["nodes"])
    script = done(user, "graph", "--export", "cypher").splitlines()
    assert len([line for line in script if " MERGE (a)-" in line]) == len(drawn["edges"])


def test_what_does_not_go_together_is_said(user: User, tmp_path: Path) -> None:
    assert user.redstart("memory", "graph", "--export", "json", "--json").code == 2
    assert user.redstart("memory", "graph", "--out", tmp_path / "x").code == 2
    there = user.redstart("memory", "graph", "--export", "json", "--out", tmp_path / "none" / "x")
    assert (there.code, "cannot be written" in there.err) == (2, True)


def test_the_formats_are_those_that_are_written() -> None:
    assert [name.value for name in FormName] == [item.value for item in GraphFormat]
