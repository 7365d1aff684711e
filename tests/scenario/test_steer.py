"""Messages to a run that continues or ended unsolved, and answers to a run that asks."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from support.alike import masked
from support.sample import short_form
from support.scenarios import Scenario, question
from support.server import Reply, Request, ScriptedServer, Wire
from support.user import Ran, User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")
WORDS = "the last page may be half full"
KILLED = [("patch", "heard"), ("patch", "during"), ("test", "after")]


def patches(server: ScriptedServer) -> list[str]:
    """Return the texts of the patch requests, in order."""
    return [request.text for request in server.requests if question(request) == "patch"]


def heeding(request: Request) -> str:
    """Answer with the right patch only if the request contains the message."""
    if question(request) != "patch":
        return SCENARIO.reply(request)
    return SCENARIO.right if WORDS in request.text else SCENARIO.wrong


def state_of(user: User, repo: Path) -> dict[str, Any]:
    shown = user.redstart("show", "--json", cwd=repo).out
    return masked(json.loads(shown), "runs")  # depends on the duration of the tests


def replayed(user: User, repo: Path) -> Ran:
    return user.redstart("runs", "replay", cwd=repo)


@pytest.fixture
def repo(repo_of) -> Path:
    return repo_of(SCENARIO.name)


def test_words_for_a_stopped_run_are_in_its_next_patch(user, repo):
    with ScriptedServer(heeding) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "decide", "--hint", "see pager.py").code == 130
        ended = user.redstart("resume", "--say", WORDS, cwd=repo)
        assert ended.code == 0, ended.out + ended.err
        first, second = patches(server)
    assert WORDS not in first
    assert "The user says" in second
    assert second.index("see pager.py") < second.index(WORDS) < second.index("## Failing tests")
    assert replayed(user, repo).code == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, project) -> tuple[dict[str, Any], int]:
    """Return the final state and the number of calls of a run that got a message and was not killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    user, repo = User(folder, project), folder / "projects" / SCENARIO.name
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    with ScriptedServer(heeding) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "plan").code == 130
        assert user.redstart("resume", "--say", WORDS, cwd=repo).code == 0
        return state_of(user, repo), len(server.requests)


@pytest.mark.soak
@pytest.mark.parametrize(("step", "moment"), short_form([pytest.param(*place) for place in KILLED], 1))
def test_killed_after_it_was_spoken_to_it_ends_the_same(user, repo, step, moment, undisturbed):
    with ScriptedServer(heeding) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "plan").code == 130
        killed = user.python(HERE / "drivers" / "crash.py", step, moment, "resume", "--say", WORDS, cwd=repo)
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        assert user.redstart("resume", cwd=repo).code == 0
        assert (state_of(user, repo), len(server.requests)) == undisturbed
    assert replayed(user, repo).code == 0


@pytest.mark.soak
def test_words_for_a_run_that_another_process_drives_reach_it(user, repo):
    asked, release = threading.Event(), threading.Event()

    def reply(request: Request) -> Reply:
        asked.set()
        return Reply(heeding(request), wait=release)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        command = [sys.executable, "-m", "redstart.cli.main", "fix", str(repo)]
        with subprocess.Popen(command, env=user.environ, stdout=subprocess.PIPE, text=True) as running:
            assert asked.wait(60)
            said = user.redstart("resume", "--say", WORDS, cwd=repo)
            release.set()
            out, _ = running.communicate(timeout=120)
        assert (said.code, f"Process {running.pid} drives run" in said.out) == (0, True), said.out + said.err
        assert running.returncode == 0, out
        assert [WORDS in text for text in patches(server)] == [False, True]
    assert replayed(user, repo).code == 0
    assert len(user.redstart("runs", "list", "--json").out.splitlines()) == 1


@pytest.mark.soak
def test_a_run_whose_process_was_killed_is_taken_up(user, repo):
    with ScriptedServer(heeding) as server:
        user.uses(server, Wire.openai)
        assert user.python(HERE / "drivers" / "crash.py", "plan", "after", "fix", repo).code == -signal.SIGKILL
        ended = user.redstart("resume", "--say", WORDS, cwd=repo)
        assert (ended.code, len(patches(server))) == (0, 1), ended.out + ended.err


@pytest.mark.soak
def test_a_run_that_ended_red_goes_on_as_another(user, repo):
    with ScriptedServer(heeding) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--max-iters", "1", "--json")
        assert ran.code == 1
        old = ran.events[0]["run"]
        assert user.redstart("resume", cwd=repo).code == 1, "without a word it stays as it ended"
        on = user.redstart("resume", "--say", WORDS, "--max-iters", "2", "--max-usd", "1", cwd=repo)
        assert on.code == 0, on.out + on.err
        assert f"run {old} has finished; it continues as run " in on.out
        assert "with attempts 2 to 3" in on.out
        assert "attempt 1" in patches(server)[-1]
        assert replayed(user, repo).code == 0
        green = user.redstart("resume", "--say", "more", cwd=repo)
        assert (green.code, "its tests pass" in green.err) == (2, True)
    listed = [json.loads(line) for line in user.redstart("runs", "list", "--json").out.splitlines()]
    assert [row["result"] for row in listed] == ["verified", "unsolved"]
    shown = json.loads(user.redstart("show", listed[0]["run_id"], "--json").out)
    assert WORDS not in json.dumps(shown), "the state does not carry it"


def test_what_cannot_be_meant_is_exit_2(user, repo):
    with ScriptedServer(heeding) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "reproduce").code == 130
        for flags in (["--accept"], ["--reject"], ["--accept", "--reject"], ["--say", " "], ["--say", "x" * 1001]):
            refused = user.redstart("resume", *flags, cwd=repo)
            assert refused.code == 2, (flags, refused.out, refused.err)
        assert server.requests == []


@pytest.fixture
def asks(user, repo):
    """Start a run that waits for a person, and yield its provider, which stays up."""
    with ScriptedServer(SCENARIO.reply) as server:
        user.uses(server, Wire.openai)
        ran = ask(user, repo, "fix", repo)
        assert ran.code == 7, ran.out + ran.err
        assert "NEEDS INPUT  is that what you want?" in ran.out
        yield server


def ask(user: User, repo: Path, *arguments: str | Path) -> Ran:
    """Run `redstart` with these arguments and a `decide` that asks."""
    return user.python(HERE / "drivers" / "ask.py", *arguments, cwd=repo)


def test_an_accepted_patch_is_verified_and_replayed_across_the_pause(user, repo, asks):
    again = ask(user, repo, "resume")
    assert (again.code, "is that what you want?" in again.out) == (7, True)
    assert ask(user, repo, "runs", "replay").code == 0, "a run that waits can be replayed so far"
    killed = ask(user, repo, "--die", "resume", "--accept")
    assert killed.code == -signal.SIGKILL, killed.out + killed.err
    taken = ask(user, repo, "resume")
    assert taken.code == 0, taken.out + taken.err
    assert "you accepted the patch: is that what you want?" in taken.out
    assert "redstart apply" in taken.out
    assert ask(user, repo, "runs", "replay").code == 0
    assert ask(user, repo, "resume", "--reject").code == 2


@pytest.mark.soak
def test_a_rejected_patch_is_tried_again_with_the_reason(user, repo, asks):
    before = len(asks.requests)
    again = ask(user, repo, "resume", "--reject", "--say", WORDS)
    assert again.code == 7, again.out + again.err
    assert f"you rejected the patch: {WORDS}" in again.out
    (patch,) = [request.text for request in asks.requests[before:] if question(request) == "patch"]
    assert patch.count(WORDS) == 2, "as the user's words, and as why the last attempt was not taken"
    assert ask(user, repo, "resume", "--accept").code == 0
    assert ask(user, repo, "runs", "replay").code == 0
