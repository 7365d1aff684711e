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

from support.alike import mask_fields
from support.sample import sample_parameters
from support.scenarios import Scenario, parse_question
from support.server import Reply, Request, ScriptedServer, Wire
from support.user import Ran, User

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")
WORDS = "the last page may be half full"
KILLED = [("patch", "heard"), ("patch", "during"), ("test", "after")]


def list_patch_prompts(server: ScriptedServer) -> list[str]:
    """Return the texts of the patch requests, in order."""
    return [request.text for request in server.requests if parse_question(request) == "patch"]


def answer_with_message(request: Request) -> str:
    """Answer with the right patch only if the request contains the message."""
    if parse_question(request) != "patch":
        return SCENARIO.reply(request)
    return SCENARIO.right if WORDS in request.text else SCENARIO.wrong


def load_state(user: User, repo: Path) -> dict[str, Any]:
    output = user.redstart("show", "--json", cwd=repo).out
    return mask_fields(json.loads(output), "runs")  # depends on the duration of the tests


def replay_run(user: User, repo: Path) -> Ran:
    return user.redstart("runs", "replay", cwd=repo)


@pytest.fixture
def repo(repo_of) -> Path:
    return repo_of(SCENARIO.name)


def test_message_to_stopped_run_appears_in_its_next_patch_prompt(user, repo):
    with ScriptedServer(answer_with_message) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "decide", "--hint", "see pager.py").code == 130
        resume_result = user.redstart("resume", "--say", WORDS, cwd=repo)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        first_prompt, second_prompt = list_patch_prompts(server)
    assert WORDS not in first_prompt
    assert "The user says" in second_prompt
    assert second_prompt.index("see pager.py") < second_prompt.index(WORDS) < second_prompt.index("## Failing tests")
    assert replay_run(user, repo).code == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, project) -> tuple[dict[str, Any], int]:
    """Return the final state and the number of calls of a run that got a message and was not killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    user, repo = User(folder, project), folder / "projects" / SCENARIO.name
    shutil.copytree(HERE / "repos" / SCENARIO.name / "repo", repo)
    with ScriptedServer(answer_with_message) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "plan").code == 130
        assert user.redstart("resume", "--say", WORDS, cwd=repo).code == 0
        return load_state(user, repo), len(server.requests)


@pytest.mark.soak
@pytest.mark.parametrize(("step", "moment"), sample_parameters([pytest.param(*place) for place in KILLED], 1))
def test_run_killed_after_a_message_ends_the_same(user, repo, step, moment, undisturbed):
    with ScriptedServer(answer_with_message) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", repo, "--stop-after", "plan").code == 130
        killed = user.python(HERE / "drivers" / "crash.py", step, moment, "resume", "--say", WORDS, cwd=repo)
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        assert user.redstart("resume", cwd=repo).code == 0
        assert (load_state(user, repo), len(server.requests)) == undisturbed
    assert replay_run(user, repo).code == 0


@pytest.mark.soak
def test_message_reaches_a_run_that_another_process_drives(user, repo):
    question_received, release = threading.Event(), threading.Event()

    def reply(request: Request) -> Reply:
        question_received.set()
        return Reply(answer_with_message(request), wait=release)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        command = [sys.executable, "-m", "redstart.cli.main", "fix", str(repo)]
        with subprocess.Popen(command, env=user.environ, stdout=subprocess.PIPE, text=True) as running:
            assert question_received.wait(60)
            say_result = user.redstart("resume", "--say", WORDS, cwd=repo)
            release.set()
            out, _ = running.communicate(timeout=120)
        assert (say_result.code, f"Process {running.pid} drives run" in say_result.out) == (0, True), (
            say_result.out + say_result.err
        )
        assert running.returncode == 0, out
        assert [WORDS in text for text in list_patch_prompts(server)] == [False, True]
    assert replay_run(user, repo).code == 0
    assert len(user.redstart("runs", "list", "--json").out.splitlines()) == 1


@pytest.mark.soak
def test_run_of_killed_process_is_resumed(user, repo):
    with ScriptedServer(answer_with_message) as server:
        user.uses(server, Wire.openai)
        assert user.python(HERE / "drivers" / "crash.py", "plan", "after", "fix", repo).code == -signal.SIGKILL
        resume_result = user.redstart("resume", "--say", WORDS, cwd=repo)
        assert (resume_result.code, len(list_patch_prompts(server))) == (0, 1), resume_result.out + resume_result.err


@pytest.mark.soak
def test_unsolved_run_continues_as_a_new_run(user, repo):
    with ScriptedServer(answer_with_message) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--max-iters", "1", "--json")
        assert result.code == 1
        old = result.events[0]["run"]
        assert user.redstart("resume", cwd=repo).code == 1, "without a word it stays as it ended"
        resume_result = user.redstart("resume", "--say", WORDS, "--max-iters", "2", "--max-usd", "1", cwd=repo)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        assert f"run {old} has finished; it continues as run " in resume_result.out
        assert "with attempts 2 to 3" in resume_result.out
        assert "attempt 1" in list_patch_prompts(server)[-1]
        assert replay_run(user, repo).code == 0
        second_result = user.redstart("resume", "--say", "more", cwd=repo)
        assert (second_result.code, "its tests pass" in second_result.err) == (2, True)
    runs = [json.loads(line) for line in user.redstart("runs", "list", "--json").out.splitlines()]
    assert [row["result"] for row in runs] == ["verified", "unsolved"]
    run_data = json.loads(user.redstart("show", runs[0]["run_id"], "--json").out)
    assert WORDS not in json.dumps(run_data), "the state does not carry it"


def test_invalid_resume_flags_exit_with_2(user, repo):
    with ScriptedServer(answer_with_message) as server:
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
        result = ask(user, repo, "fix", repo)
        assert result.code == 7, result.out + result.err
        assert "NEEDS INPUT  is that what you want?" in result.out
        yield server


def ask(user: User, repo: Path, *arguments: str | Path) -> Ran:
    """Run `redstart` with these arguments and a `decide` that asks."""
    return user.python(HERE / "drivers" / "ask.py", *arguments, cwd=repo)


def test_accepted_patch_is_verified_and_replayed_across_the_pause(user, repo, asks):
    second_result = ask(user, repo, "resume")
    assert (second_result.code, "is that what you want?" in second_result.out) == (7, True)
    assert ask(user, repo, "runs", "replay").code == 0, "a run that waits can be replayed so far"
    killed = ask(user, repo, "--die", "resume", "--accept")
    assert killed.code == -signal.SIGKILL, killed.out + killed.err
    third_result = ask(user, repo, "resume")
    assert third_result.code == 0, third_result.out + third_result.err
    assert "you accepted the patch: is that what you want?" in third_result.out
    assert "redstart apply" in third_result.out
    assert ask(user, repo, "runs", "replay").code == 0
    assert ask(user, repo, "resume", "--reject").code == 2


@pytest.mark.soak
def test_rejected_patch_is_retried_with_the_reason(user, repo, asks):
    request_count = len(asks.requests)
    second_result = ask(user, repo, "resume", "--reject", "--say", WORDS)
    assert second_result.code == 7, second_result.out + second_result.err
    assert f"you rejected the patch: {WORDS}" in second_result.out
    (patch,) = [request.text for request in asks.requests[request_count:] if parse_question(request) == "patch"]
    assert patch.count(WORDS) == 2, "as the user's words, and as why the last attempt was not taken"
    assert ask(user, repo, "resume", "--accept").code == 0
    assert ask(user, repo, "runs", "replay").code == 0
