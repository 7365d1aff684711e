"""`--reflect` on the command line: requested, printed, shown and part of the proof."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from support.scenarios import Recorded, Scenario
from support.server import ScriptedServer, Wire
from support.user import User

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")
LINES = ("root cause: not known", "what failed: the last edit", "try next: another one")


def test_reflection_is_requested_printed_shown_and_part_of_the_proof(
    user: User, repo_of: Callable[[str], Path]
) -> None:
    script = Recorded(SCENARIO.reply)
    with ScriptedServer(script) as server:
        user.uses(server, Wire.openai)
        repo = repo_of(SCENARIO.name)
        result = user.redstart("fix", repo, "--reflect", "always", "--max-iters", "3")
        assert result.code == 0, result.out + result.err
        assert script.questions.count("reflect") == script.questions.count("patch") - 1 > 0
        screen = " ".join(result.out.split())
        show_result = user.redstart("show", cwd=repo)
        proof = json.loads(user.redstart("show", "--proof", "--json", cwd=repo).out)
        script.questions.clear()
        never_result = user.redstart("fix", repo, "--reflect", "never", "--max-iters", "3")
    for line in LINES:
        assert line in screen
        assert line in show_result.out
    assert proof["attempts"][0]["reflection"] == {
        "root_cause": "not known",
        "what_failed": "the last edit",
        "try_next": "another one",
    }
    assert proof["attempts"][-1]["reflection"] is None
    assert never_result.code == 0
    assert "reflect" not in script.questions
