"""`redstart show --proof`: what a reviewer sees of a run, whatever its result."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from redstart.app.proof.schema import Proof
from support.rig import block
from support.scenarios import Scenario
from support.server import ScriptedServer, Wire

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")


@pytest.fixture
def fixed(user, repo_of):
    """Return a function that runs `redstart fix` on the scenario's repo with a script and returns the repo."""

    def run(reply, *flags: str, code: int) -> Path:
        with ScriptedServer(reply) as server:
            user.uses(server, Wire.openai)
            user.wants_proof()
            repo = repo_of(SCENARIO.name)
            result = user.redstart("fix", repo, *flags)
        assert result.code == code, result.out + result.err
        return repo

    return run


def test_proof_of_a_verified_run_is_shown_in_three_formats(user, fixed):
    repo = fixed(SCENARIO.reply, code=0)
    proof = Proof.model_validate_json(user.redstart("show", "--proof", "--json", cwd=repo).out)
    assert (proof.v, proof.verified, proof.result.value, proof.level.value) == (1, True, "verified", "standard")
    assert {check.mark.value for check in proof.checks} == {"passed"}, proof.checks
    assert {case.id for case in proof.cases if case.target} == set(SCENARIO.red)
    assert {(case.before, case.after) for case in proof.cases} == {("failed", "passed")}
    assert [file.path for file in proof.files] == ["pager.py"]
    assert [model.name for model in proof.models] == ["openai:scripted"]
    assert len(proof.attempts) == 2
    text = user.redstart("show", "--proof", cwd=repo)
    assert text.code == 0
    assert text.out.splitlines()[0] == proof.sentence
    assert "+    return max(1, -(-total // size))" in text.out
    assert user.redstart("show", "--proof", "--format", "text", cwd=repo).out == text.out
    markdown = user.redstart("show", proof.run[:6], "--proof", "--format", "markdown").out
    assert markdown.startswith(f"**{proof.sentence}**\n\n| What was checked | Result | |\n|---|---|---|\n")
    assert "\n```diff\ndiff --git a/pager.py b/pager.py\n" in markdown
    assert f"SHA-256 {proof.journal.sha256}" in markdown
    replay_result = user.redstart("runs", "replay", proof.run)
    assert f"and {proof.journal.records} calls as recorded" in replay_result.out


@pytest.mark.soak
def test_unsolved_run_lists_what_is_missing(user, fixed):
    repo = fixed(SCENARIO.reply, "--max-iters", "1", code=1)
    show_result = user.redstart("show", "--proof", cwd=repo)
    assert show_result.code == 0
    assert show_result.out.startswith("Not verified: no patch passed every check in 1 attempt.\n")
    assert re.search(r"the run ended: \d+ newly failing tests? after 1 attempt", " ".join(show_result.out.split()))
    proof = json.loads(user.redstart("show", "--proof", "--format", "json", cwd=repo).out)
    assert proof["verified"] is False
    assert any(line.startswith("newly failing: ") for line in proof["lacking"])


@pytest.mark.soak
def test_refused_run_names_the_test_it_tried_to_change(user, fixed):
    bad_edit = block("import pytest", "import pytest  # changed", "tests/test_pager.py")
    repo = fixed(lambda request: bad_edit, "--max-iters", "1", code=6)
    show_result = user.redstart("show", "--proof", "--format", "markdown", cwd=repo)
    assert show_result.code == 0
    assert show_result.out.startswith("**Not verified: the last patch was refused.**\n")
    assert "| Tests and test configuration are unchanged | NO | " in show_result.out
    assert "not applied: tests/test_pager.py: it is a test" in show_result.out


@pytest.mark.soak
def test_run_without_a_proof_is_reported_and_exits_with_2(user, fixed, tmp_path):
    repo = fixed(SCENARIO.reply, "--stop-after", "patch", code=130)
    running = user.redstart("show", "--proof", cwd=repo)
    assert running.code == 2
    assert "has not ended" in running.err
    assert "redstart resume" in running.err
    passing_repo = tmp_path / "green"
    passing_repo.mkdir()
    (passing_repo / "test_a.py").write_text("def test_a():\n    assert True\n")
    assert user.redstart("fix", passing_repo).code == 0
    error_result = user.redstart("show", "--proof", cwd=passing_repo)
    assert error_result.code == 2
    assert "nothing to prove" in error_result.err


@pytest.mark.parametrize(
    "flags", [("--format", "markdown"), ("--proof", "--attempt", "1"), ("--proof", "--format", "x")]
)
def test_conflicting_flags_exit_with_2(user, flags):
    assert user.redstart("show", *flags).code == 2
