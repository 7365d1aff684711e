"""Two pools serve one run: one asks models and starts no process, the other runs tests and has no key."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.scenarios import Program, Scenario, parse_question
from support.server import Request, ScriptedServer, Wire
from support.user import User

SCENARIOS = Path(__file__).parent.parent
PAGER = Scenario.load(SCENARIOS / "repos" / "pager")
CANARY = "sk-canary-4711"
PLAN = json.dumps({"kind": "feature", "title": "add the function once", "criteria": ["once() is there"]})
TEST = "from bag import once\n\n\ndef test_once():\n    assert once() == 1\n"
DANGER = "import pickle\n\n\ndef load(data):\n    return pickle.loads(data)\n"


def parse_run_id(output: str) -> str:
    match = re.search(r"run (\w+) is with the fleet", output)
    assert match, output
    return match[1]


def block(head: str, path: str, search: str, text: str) -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


@pytest.fixture
def pools(user: User, started: Callable[..., object]):
    """Return a function that starts a `think` worker with a key and an `act` worker without keys and models."""

    def start(server: ScriptedServer) -> tuple[object, object]:
        user.uses(server, Wire.openai)
        thinker = started("think", OPENAI_API_KEY=CANARY)
        no_models = {name: "" for name in user.environ if name.startswith("REDSTART_MODELS")}
        return thinker, started("act", **no_models)

    return start


def drive(user: User, *command: str | Path) -> tuple[str, int]:
    detach_result = user.redstart(*command, "--detach")
    assert detach_result.code == 0, detach_result.out + detach_result.err
    run_id = parse_run_id(detach_result.out)
    watch_result = user.redstart("runs", "watch", run_id)
    replay_result = user.redstart("runs", "replay", run_id)
    assert replay_result.code == 0, replay_result.out + replay_result.err
    return run_id, watch_result.code


def test_act_worker_holds_no_key_and_think_worker_starts_no_process(user, repo_of, pools):
    repo = repo_of(PAGER.name)
    with ScriptedServer(PAGER.reply) as server:
        thinker, actor = pools(server)
        assert drive(user, "fix", repo)[1] == 0
        keys = [request.headers.get("authorization", "") for request in server.requests]
        environ = Path(f"/proc/{actor.pid}/environ").read_bytes()
        started_by_thinker = Path(f"/proc/{thinker.pid}/task/{thinker.pid}/children").read_text().split()
    assert keys
    assert all(CANARY in key for key in keys)
    assert CANARY.encode() not in environ
    assert started_by_thinker == []
    assert all(CANARY.encode() not in file.read_bytes() for file in user.home.rglob("*") if file.is_file())
    assert CANARY not in actor.log.read_text() + thinker.log.read_text()


@pytest.mark.soak
def test_two_pools_create_a_program_of_several_parts(user, tmp_path, pools):
    program = Program.load(SCENARIOS / "pair.script")
    out = tmp_path / program.package
    with ScriptedServer(program.reply) as server:
        pools(server)
        run_id, code = drive(user, "create", program.goal, "-o", out)
        request_bodies = [str(request.body) for request in server.requests]
    assert code == 0
    assert len(request_bodies) == len(set(request_bodies)) == 7
    assert (out / "pair" / "total.py").exists()
    rows = [json.loads(line) for line in user.redstart("runs", "list", "--all", "--json").out.splitlines()]
    assert sorted(row["run_id"] for row in rows) == [run_id, *(f"{run_id}.{number}" for number in (1, 2, 3))]
    assert {row["result"] for row in rows} == {"verified"}


@pytest.mark.soak
def test_two_pools_make_an_improvement(user, tmp_path, pools):
    repo = tmp_path / "projects" / "bag"
    (repo / "tests").mkdir(parents=True)
    (repo / "bag.py").write_text("def total(numbers):\n    return sum(numbers)\n")
    (repo / "conftest.py").write_text("")
    (repo / "tests" / "test_total.py").write_text(
        "from bag import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
    )
    old = "def total(numbers):\n    return sum(numbers)\n"
    answers = {
        "plan": PLAN,
        "reproduce": block("SURE: high, it is plain", "tests/test_once.py", "", TEST),
        "patch": block("WHY: asked for", "bag.py", old, f"{old}\n\ndef once():\n    return 1\n"),
    }

    def reply(request: Request) -> str:
        return answers[parse_question(request)]

    with ScriptedServer(reply) as server:
        pools(server)
        run_id, _ = drive(user, "improve", repo, "--no-cap", "--pause", "0", "--max-iters", "1")
    state = json.loads(user.redstart("show", run_id, "--json").out)
    assert (state["status"], state["work"]["kept"]) == ("finished", 1)


@pytest.mark.soak
def test_fleet_performs_an_audit(user, tmp_path, pools):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "store.py").write_text(DANGER)

    def reply(request: Request) -> str:
        assert parse_question(request) in ("plan", "audit")
        return json.dumps({"summary": "all of it", "reviews": [], "files": [], "findings": []})

    with ScriptedServer(reply) as server:
        pools(server)
        run_id, _ = drive(user, "audit", folder, "--no-llm")
    state = json.loads(user.redstart("show", run_id, "--json").out)
    assert (state["status"], state["result"]) == ("finished", "reported")
    assert state["now"]["audit"]["count"] == 1
