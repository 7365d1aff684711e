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

from support.scenarios import Scenario, question
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
        if question(request) == "patch":
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
    detached = user.redstart("fix", "--detach", repo)
    found = re.search(r"run (\w+) is with the fleet", detached.out)
    assert found, detached.out + detached.err
    return found[1]


def at_home(user: User, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "redstart.cli.main", *map(str, arguments)]
    return subprocess.Popen(
        command, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def newest(user: User) -> str:
    return json.loads(user.redstart("runs", "list", "--json").out.splitlines()[0])["run_id"]


def ends_green(user: User, run_id: str) -> None:
    watched = user.redstart("runs", "watch", run_id)
    assert watched.code == 0, watched.out + watched.err
    replayed = user.redstart("runs", "replay", run_id)
    assert replayed.code == 0, replayed.out + replayed.err


@pytest.mark.soak
def test_a_laptops_run_is_handed_to_the_fleet_in_the_middle(user, repo_of, started, held):
    started("both")
    laptop = at_home(user, "fix", repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    run_id = newest(user)
    handed = user.redstart("resume", run_id, "--engine", "temporal")
    assert (handed.code, f"run {run_id} is with the fleet" in handed.out) == (0, True), handed.out + handed.err
    ends_green(user, run_id)
    held.go.set()
    said, _ = laptop.communicate(timeout=SECONDS)
    assert laptop.returncode == 3
    assert "taken this run over" in said


@pytest.mark.soak
def test_a_run_of_the_fleet_is_taken_back_in_the_middle(user, repo_of, started, held):
    started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    taken = user.redstart("resume", run_id, "--engine", "inline")
    assert taken.code == 0, taken.out + taken.err
    assert "GREEN" in taken.out
    held.go.set()
    assert user.redstart("runs", "replay", run_id).code == 0
    again = user.redstart("resume", run_id)
    assert (again.code, "is with the fleet" in again.out) == (0, False), again.out + again.err


@pytest.mark.soak
def test_a_worker_that_is_told_to_go_ends_its_step_and_another_goes_on(user, repo_of, started, held):
    first = started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    first.process.send_signal(signal.SIGTERM)
    started("both")
    held.go.set()
    assert first.process.wait(SECONDS) == 0, first.log.read_text()
    ends_green(user, run_id)
    assert len(held.server.requests) == CALLS


def test_a_worker_that_is_killed_is_missed_and_another_goes_on(user, repo_of, started, held):
    first = started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    started("both")
    ends_green(user, run_id)
    assert len(held.server.requests) == CALLS + 1


@pytest.mark.soak
def test_a_run_is_paused_and_goes_on_where_it_was(user, repo_of, started, held):
    started("both")
    run_id = detach(user, repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    assert user.redstart("runs", "pause", run_id).code == 0
    held.go.set()
    stands = user.redstart("runs", "watch", run_id)
    assert (stands.code, f"run {run_id} waits" in stands.out) == (130, True), stands.out + stands.err
    resumed = user.redstart("resume", run_id)
    assert (resumed.code, f"run {run_id} is with the fleet" in resumed.out) == (0, True), resumed.out + resumed.err
    ends_green(user, run_id)
    assert len(held.server.requests) == CALLS


@pytest.mark.soak
def test_at_home_a_run_pauses_after_the_step_at_hand(user, repo_of, held):
    laptop = at_home(user, "fix", repo_of(PAGER.name))
    assert held.asked.wait(SECONDS)
    run_id = newest(user)
    assert user.redstart("runs", "pause", run_id).code == 0
    held.go.set()
    said, _ = laptop.communicate(timeout=SECONDS)
    assert (laptop.returncode, "paused after patch" in said) == (130, True), said
    assert f"run {run_id} is paused" in user.redstart("runs", "watch", run_id).out
    assert user.redstart("resume", run_id).code == 0
    assert len(held.server.requests) == CALLS
