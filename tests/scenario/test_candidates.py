"""Candidates over the real wire: kill -9 of the parent asks nothing twice, and a person chooses between patches."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.app.runs import CandidateRequest, RunRequest, create_fix_run, go_on, plan_candidates
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_app
from redstart.core.errors import ConfigError
from redstart.core.run import Level, Limits
from redstart.engines.inline import run_inline
from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer, Wire

HERE = Path(__file__).parent
CODE = "def clamp(n, low, high):\n    if n < low:\n        return low\n    return n\n"
TEST = """from limits import clamp


def test_low():
    assert clamp(1, 2, 8) == 2


def test_high():
    assert clamp(9, 2, 8) == 8
"""
SEARCH = "limits.py\n<<<<<<< SEARCH\n    return n\n=======\n"
RIGHT = f"WHY: the upper limit is ignored.\n\n{SEARCH}    return min(n, high)\n>>>>>>> REPLACE\n"
LONGER = f"WHY: the limit is ignored.\n\n{SEARCH}    if n > high:\n        return high\n    return n\n>>>>>>> REPLACE\n"
SKEWED = f"WHY: too large.\n\n{SEARCH}    return n if n < 8 else high - (n > 15)\n>>>>>>> REPLACE\n"
"""Right for the tests' inputs, wrong for larger ones."""
WRONG = f"WHY: a guess.\n\n{SEARCH}    return high - low\n>>>>>>> REPLACE\n"


def make_repo(folder: Path) -> Path:
    repo = folder / "projects" / "limits"
    repo.mkdir(parents=True)
    (repo / "limits.py").write_text(CODE)
    (repo / "test_limits.py").write_text(TEST)
    return repo


def is_first(request: Request) -> bool:
    """Return whether the request comes from the first candidate, whose temperature is 0."""
    return not request.body["temperature"]


def list_patch_questions(server: ScriptedServer) -> list[str]:
    bodies = [json.dumps(request.body) for request in server.requests if parse_question(request) == "patch"]
    return sorted(bodies)


class Place(NamedTuple):
    writes: int
    kind: str


@pytest.mark.parametrize(
    "place",
    [
        Place(4, "commit"),
        pytest.param(Place(2, "create"), marks=pytest.mark.soak),
        pytest.param(Place(3, "commit"), marks=pytest.mark.soak),
        pytest.param(Place(6, "record"), marks=pytest.mark.soak),
    ],
    ids=lambda place: f"{place.kind}-{place.writes}",
)
def test_repeatedly_killed_parent_asks_nothing_twice(user, tmp_path, place):
    repo = make_repo(tmp_path)

    def reply(request: Request) -> str:
        if parse_question(request) != "patch":
            return CARD
        return RIGHT if is_first(request) else WRONG

    command = ["fix", str(repo), "--no-input", "--max-attempts", "1", "--candidates", "2", "--choose"]
    deaths = 0
    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        crash = (HERE / "drivers" / "crash_after.py", str(place.writes), place.kind)
        result = user.python(*crash, *command, cwd=repo)
        while result.code == -signal.SIGKILL:
            deaths += 1
            result = user.python(*crash, "resume", cwd=repo)
        questions = list_patch_questions(server)
    assert deaths >= 1
    assert result.code == 0, result.out + result.err
    assert len(questions) == 2
    assert "candidate 1 of 2" in result.out
    assert "0 tokens spent" in user.redstart("runs", "replay", cwd=repo).out
    shown = user.redstart("show", cwd=repo).out
    assert [line.split()[:3] for line in shown.splitlines() if line.startswith("candidate ")] == [
        ["candidate", "1", "kept"],
        ["candidate", "2", "dropped"],
    ]
    assert (
        "Verified: 1 test that failed without this patch passes with it"
        in user.redstart("show", "--proof", cwd=repo).out
    )
    assert user.redstart("apply", cwd=repo).code == 0
    assert "min(n, high)" in (repo / "limits.py").read_text()


def test_person_chooses_between_patches_that_behave_differently(user, tmp_path):
    repo = make_repo(tmp_path)

    def reply(request: Request) -> str:
        if parse_question(request) != "patch":
            return CARD
        return SKEWED if is_first(request) else LONGER

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        asked = user.redstart(
            "fix", repo, "--no-input", "--max-attempts", "1", "--candidates", "2", "--choose", cwd=repo
        )
        assert asked.code == 7, asked.out + asked.err
        text = " ".join(asked.out.split())
        assert "the candidates differ at an input that no test checks: clamp(" in text
        assert "high - (n > 15)" in asked.out
        assert "if n > high:" in asked.out
        rejected = user.redstart("resume", "--reject", "--say", "wrong above the limit", cwd=repo)
        assert rejected.code == 7, rejected.out + rejected.err
        accepted = user.redstart("resume", "--accept", cwd=repo)
        assert accepted.code == 0, accepted.out + accepted.err
        assert len(list_patch_questions(server)) == 2
    assert user.redstart("apply", cwd=repo).code == 0
    assert "if n > high:" in (repo / "limits.py").read_text()
    assert "0 tokens spent" in user.redstart("runs", "replay", cwd=repo).out


async def test_fast_model_tries_before_the_strong_one(tmp_path):
    repo = make_repo(tmp_path)

    def reply(request: Request) -> str:
        if parse_question(request) != "patch":
            return CARD
        return WRONG if request.model == "small" else RIGHT

    with ScriptedServer(reply) as server:
        models = Models(strong="openai:large", fast="openai:small", base_url=server.openai_url)
        with open_app(Settings(home=tmp_path / "home", models=models)) as base_app:
            app = base_app.with_sandbox().with_model()
            request = RunRequest(
                Limits(attempts=1),
                verify=Level.quick,
                own_python=True,
                max_tool_calls=0,
                candidates=CandidateRequest(3, escalate=True),
            )
            run = await create_fix_run(app, repo, request)
            state = (await go_on(app, run.run_id, run_inline)).state
            asked = [item.model for item in server.requests if parse_question(item) == "patch"]
            assert state.work.chosen == 3
            assert asked == ["small", "small", "large"]


@pytest.mark.parametrize("options", [CandidateRequest(3, escalate=True), CandidateRequest(choose=True)])
def test_options_that_cannot_work_are_refused(tmp_path, options):
    models = Models(strong="openai:large", fast="openai:large")
    with (
        open_app(Settings(home=tmp_path / "home", models=models)) as app,
        pytest.raises(ConfigError, match=r"--escalate needs a fast model|--choose needs several candidates"),
    ):
        plan_candidates(app, RunRequest(Limits(), candidates=options))
