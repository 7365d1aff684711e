"""Runs on a fleet: handed over, watched, and with the same outcome as a local run."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

SCENARIOS = Path(__file__).parent.parent
PAGER = Scenario.load(SCENARIOS / "repos" / "pager")


def handed_over(said: str) -> str:
    found = re.search(r"run (\w+) is with the fleet", said)
    assert found, said
    return found[1]


def test_a_fix_is_handed_over_watched_and_ends_as_at_home(user, repo_of, started):
    repo = repo_of(PAGER.name)
    with ScriptedServer(PAGER.reply) as server:
        user.uses(server, Wire.openai)
        started("both")
        detached = user.redstart("fix", "--detach", repo)
        assert detached.code == 0, detached.out + detached.err
        run_id = handed_over(detached.out)
        watched = user.redstart("runs", "watch", run_id)
    assert watched.code == 0, watched.out + watched.err
    assert "GREEN" in watched.out
    assert "patch:" in watched.out
    (row,) = [json.loads(line) for line in user.redstart("runs", "list", "--json").out.splitlines()]
    assert (row["run_id"], row["result"]) == (run_id, "verified")
    assert user.redstart("runs", "replay", run_id).code == 0
