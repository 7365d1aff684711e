"""A run changes hands midway: to the fleet and back, from a worker that stops or dies, and across a pause."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.scenarios import Scenario, parse_question
from support.server import Reply, Request, ScriptedServer, Wire
from support.user import User

PAGER = Scenario.load(Path(__file__).parent.parent / "repos" / "pager")
CALLS = 3
"""Two patches and a card."""
SECONDS = 120


class Held:
    """A model that withholds its second patch until `go` is set. When asked for it again, it answers at once."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()
        self._patches: list[str] = []

    def __call__(self, request: Request) -> Reply:
        if parse_question(request) == "patch":
            self._patches.append(request.text)
            if len(self._patches) == 2:
                self.asked.set()
                return Reply(PAGER.reply(request), wait=self.go)
        return Reply(PAGER.reply(request))


@pytest.fixture
def held(user: User):
    model = Held()
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        model.server = server
        yield model
        model.go.set()


def detach(user: User, repo: Path) -> str:
    detach_result = user.redstart("fix", "--detach", repo)
    match = re.search(r"run (\w+) is with the fleet", detach_result.out)
    assert match, detach_result.out + detach_result.err
    return match[1]


def start_local(user: User, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "redstart.cli.main", *map(str, arguments)]
    return subprocess.Popen(
        command, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def find_newest_run(user: User) -> str:
    return json.loads(user.redstart("runs", "list", "--json").out.splitlines()[0])["run_id"]


def assert_run_passes(user: User, run_id: str) -> None:
    watch_result = user.redstart("runs", "watch", run_id)
    assert watch_result.code == 0, watch_result.out + watch_result.err
    replay_result = user.redstart("runs", "replay", run_id)
    assert replay_result.code == 0, replay_result.out + replay_result.err


@pytest.mark.soak
def test_local_run_is_handed_to_the_fleet_midway(user, repo_of, started, held):
    started("both")
    laptop = start_local(user, "fix", repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    run_id = find_newest_run(user)
    resume_result = user.redstart("resume", run_id, "--engine", "temporal")
    assert (resume_result.code, f"run {run_id} is with the fleet" in resume_result.out) == (0, True), (
        resume_result.out + resume_result.err
    )
    assert_run_passes(user, run_id)
    held.go.set()
    output, _ = laptop.communicate(timeout=SECONDS)
    assert laptop.returncode == 3
    assert "taken this run over" in output


@pytest.mark.soak
def test_fleet_run_is_taken_back_midway(user, repo_of, started, held):
    started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    resume_result = user.redstart("resume", run_id, "--engine", "inline")
    assert resume_result.code == 0, resume_result.out + resume_result.err
    assert "GREEN" in resume_result.out
    held.go.set()
    assert user.redstart("runs", "replay", run_id).code == 0
    second_result = user.redstart("resume", run_id)
    assert (second_result.code, "is with the fleet" in second_result.out) == (0, False), (
        second_result.out + second_result.err
    )


@pytest.mark.soak
def test_terminated_worker_finishes_its_step_and_another_continues(user, repo_of, started, held):
    first_worker = started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    first_worker.process.send_signal(signal.SIGTERM)
    started("both")
    held.go.set()
    assert first_worker.process.wait(SECONDS) == 0, first_worker.log.read_text()
    assert_run_passes(user, run_id)
    assert len(held.server.requests) == CALLS


def test_killed_worker_is_replaced_by_another(user, repo_of, started, held):
    first_worker = started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    assert first_worker.end(signal.SIGKILL) == -signal.SIGKILL
    started("both")
    assert_run_passes(user, run_id)
    assert len(held.server.requests) == CALLS + 1


@pytest.mark.soak
def test_paused_run_resumes_where_it_stopped(user, repo_of, started, held):
    started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    assert user.redstart("runs", "pause", run_id).code == 0
    held.go.set()
    watch_result = user.redstart("runs", "watch", run_id)
    assert (watch_result.code, f"run {run_id} waits" in watch_result.out) == (130, True), (
        watch_result.out + watch_result.err
    )
    resume_result = user.redstart("resume", run_id)
    assert (resume_result.code, f"run {run_id} is with the fleet" in resume_result.out) == (0, True), (
        resume_result.out + resume_result.err
    )
    assert_run_passes(user, run_id)
    assert len(held.server.requests) == CALLS


@pytest.mark.soak
def test_local_run_pauses_after_the_current_step(user, repo_of, held):
    laptop = start_local(user, "fix", repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    run_id = find_newest_run(user)
    assert user.redstart("runs", "pause", run_id).code == 0
    held.go.set()
    output, _ = laptop.communicate(timeout=SECONDS)
    assert (laptop.returncode, "paused after patch" in output) == (130, True), output
    assert f"run {run_id} is paused" in user.redstart("runs", "watch", run_id).out
    assert user.redstart("resume", run_id).code == 0
    assert len(held.server.requests) == CALLS
