"""Runs on a fleet: handed over, watched, and with the same outcome as a local run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

SCENARIOS = Path(__file__).parent.parent
PAGER = Scenario.load(SCENARIOS / "repos" / "pager")


def parse_run_id(output: str) -> str:
    match = re.search(r"run (\w+) is with the fleet", output)
    assert match, output
    return match[1]


def test_detached_fix_can_be_watched_and_ends_like_a_local_run(user, repo_of, started):
    repo = repo_of(PAGER.name)
    with ScriptedServer(PAGER.reply) as server:
        user.uses(server, Wire.openai)
        started("both")
        detach_result = user.redstart("fix", "--detach", repo)
        assert detach_result.code == 0, detach_result.out + detach_result.err
        run_id = parse_run_id(detach_result.out)
        watch_result = user.redstart("runs", "watch", run_id)
    assert watch_result.code == 0, watch_result.out + watch_result.err
    assert "GREEN" in watch_result.out
    assert "patch:" in watch_result.out
    (row,) = [json.loads(line) for line in user.redstart("runs", "list", "--json").out.splitlines()]
    assert (row["run_id"], row["result"]) == (run_id, "verified")
    assert user.redstart("runs", "replay", run_id).code == 0
