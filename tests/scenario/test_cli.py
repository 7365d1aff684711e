"""The command line: exit codes, the JSON contract, and the show, stop, resume and fork commands."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redstart.core.run import Step
from support.scenarios import Scenario
from support.server import Reply, ScriptedServer, Wire

HERE = Path(__file__).parent
SCENARIO = Scenario.load(HERE / "repos" / "pager")


@pytest.fixture
def server():
    with ScriptedServer(SCENARIO.reply) as running:
        yield running


@pytest.fixture
def repo(user, repo_of, server) -> Path:
    user.uses(server, Wire.openai)
    return repo_of(SCENARIO.name)


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_already_green_is_0_and_asks_nobody(user, tmp_path, server):
    user.uses(server, Wire.openai)
    ran = user.redstart("fix", write(tmp_path / "green", test_a__py="def test_a():\n    assert True\n"))
    assert (ran.code, server.requests) == (0, [])
    assert "GREEN  all tests pass already" in ran.out


def test_tests_that_pass_while_pytest_breaks_are_not_called_green(user, tmp_path, server):
    user.uses(server, Wire.openai)
    hook = "def pytest_sessionfinish():\n    raise ValueError('a hook broke')\n"
    ran = user.redstart("fix", write(tmp_path / "odd", test_a__py="def test_a():\n    pass\n", conftest__py=hook))
    assert (ran.code, server.requests) == (3, []), ran.out + ran.err
    assert "The report lists no failing test, but the exit code is" in ran.out
    assert "GREEN" not in ran.out


def test_no_tests_is_5(user, tmp_path, server):
    user.uses(server, Wire.openai)
    ran = user.redstart("fix", write(tmp_path / "bare", main__py="print(1)\n"))
    assert (ran.code, server.requests) == (5, []), ran.out + ran.err


def test_not_solved_is_1(user, repo):
    ran = user.redstart("fix", repo, "--max-iters", "1")
    assert ran.code == 1
    assert "NOT SOLVED  3 newly failing tests after 1 attempt\n" in ran.out


def test_no_model_is_2_with_three_lines_to_copy(user, tmp_path):
    ran = user.redstart("fix", tmp_path)
    assert ran.code == 2
    assert [line.split()[0] for line in ran.err.splitlines()[-3:]] == ["export", "export", "redstart"]


def test_an_unknown_flag_step_or_setting_is_2(user, repo):
    assert user.redstart("fix", repo, "--no-such-flag").code == 2
    assert user.redstart("fix", repo, "--stop-after", "dance").code == 2
    user.environ["REDSTART_LIMITS__ITERATIONS"] = "many"
    ran = user.redstart("fix", repo)
    assert ran.code == 2
    assert "REDSTART_LIMITS__ITERATIONS" in ran.err


@pytest.mark.soak
def test_a_provider_that_is_down_is_3_and_the_run_can_go_on(user, repo, server):
    url = user.environ["REDSTART_MODELS__BASE_URL"]
    user.environ["REDSTART_MODELS__BASE_URL"] = "http://127.0.0.1:9/v1"
    ran = user.redstart("fix", repo)
    assert ran.code == 3
    assert "openai:scripted" in ran.err
    assert "redstart resume" in ran.err
    user.environ["REDSTART_MODELS__BASE_URL"] = url
    assert user.redstart("resume", "-m", "openai:scripted", cwd=repo).code == 0


def test_the_caps_are_4(user, repo, server):
    user.environ["REDSTART_LIMITS__TOKENS"] = "50"
    ran = user.redstart("fix", repo)
    assert (ran.code, server.requests) == (4, [])
    del user.environ["REDSTART_LIMITS__TOKENS"]
    ran = user.redstart("fix", repo, "--max-minutes", "0.0001")
    assert ran.code == 4
    assert "time limit" in ran.out


def test_a_question_that_is_open_at_the_time_cap_is_broken_off(user, repo_of):
    with ScriptedServer(lambda request: Reply(hang=True)) as server:
        user.uses(server, Wire.anthropic)
        ran = user.redstart("fix", repo_of(SCENARIO.name), "--max-minutes", "0.25")
    assert (ran.code, len(server.requests)) == (4, 1), ran.out
    assert "the time limit of 0.25 minutes is reached" in ran.out


def test_a_patch_of_the_test_is_6(user, repo_of):
    edit = "<<<<<<< SEARCH\nimport pytest\n=======\nimport pytest  # changed\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: Reply(f"WHY: x\n\ntests/test_pager.py\n{edit}")) as server:
        user.uses(server, Wire.anthropic)
        ran = user.redstart("fix", repo_of(SCENARIO.name), "--max-iters", "1")
    assert ran.code == 6, ran.out
    assert "it is a test" in ran.out


def stops() -> Iterator[Any]:
    """Yield the steps to stop after. Only `patch` runs by default; all of them take minutes."""
    for step in Step:
        yield pytest.param(step, id=step.value, marks=() if step is Step.patch else pytest.mark.soak)


@pytest.mark.parametrize("step", [*stops()])
def test_stop_after_is_130_and_resumes(user, repo, step):
    ran = user.redstart("fix", repo, "--stop-after", step.value)
    assert ran.code == 130, ran.out + ran.err
    assert f"paused after {step.value}; resume with: redstart resume " in ran.out
    ended = user.redstart("resume", cwd=repo)
    assert ended.code == 0
    assert "GREEN" in ended.out


def test_a_step_that_the_mode_lacks_is_refused_before_anything_is_done(user, server, tmp_path):
    user.uses(server, Wire.openai)
    ran = user.redstart("fix", write(tmp_path / "x", a__py=""), "--stop-after", "nothing")
    assert ran.code == 2


def test_json_is_one_event_a_line_with_its_version(user, repo):
    ran = user.redstart("fix", repo, "--json")
    assert {event["v"] for event in ran.events} == {1}
    assert [event["seq"] for event in ran.events] == list(range(len(ran.events)))
    ends = [event["name"] for event in ran.events if event["phase"] == "end" and event["name"] != "run"]
    starts = [event["name"] for event in ran.events if event["phase"] == "start" and event["name"] != "run"]
    assert starts == ends
    assert set(ends) == {step.value for step in Step}


def test_interrupted_saves_and_prints_the_resume_command(user, repo_of):
    asked, release = threading.Event(), threading.Event()

    def reply(request):
        asked.set()
        return Reply(SCENARIO.reply(request), wait=release)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        repo = repo_of(SCENARIO.name)
        running = subprocess.Popen(
            [sys.executable, "-m", "redstart.cli.main", "fix", str(repo)],
            env=user.environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert asked.wait(60)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=300)
        release.set()
        assert running.returncode == 130
        command = next(line for line in out.splitlines() if "redstart resume" in line).split("redstart ")[-1].split()
        assert user.redstart(*command, cwd=repo).code == 0


@pytest.mark.soak
def test_show_tells_of_every_attempt(user, repo):
    assert user.redstart("fix", repo).code == 0
    shown = user.redstart("show", cwd=repo)
    assert shown.code == 0
    assert "+    return max(1, -(-total // size))" in shown.out
    first = user.redstart("show", "--attempt", "1", cwd=repo)
    assert "+    return max(total // size, 1)" in first.out
    assert "assert 2 == 3" in first.out
    view = json.loads(user.redstart("show", "--attempt", "1", "--json", cwd=repo).out)
    (red,) = [case for case in view["cases"] if "assert 2 == 3" in case["message"]]
    assert (red["expected"], red["actual"]) == ("3", "2")
    assert [step["step"] for step in view["steps"]][-1] == "decide"
    assert all(step["seconds"] >= 0 for step in view["steps"])
    assert "failed" in view["output"]
    assert user.redstart("show", "--attempt", "9", cwd=repo).code == 2


def test_show_tells_of_a_refused_attempt(user, repo_of):
    edit = "conftest.py\n<<<<<<< SEARCH\n=======\nimport pager\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: Reply(f"WHY: x\n\n{edit}")) as server:
        user.uses(server, Wire.openai)
        repo = repo_of(SCENARIO.name)
        assert user.redstart("fix", repo, "--max-iters", "1").code == 6
    view = json.loads(user.redstart("show", "--attempt", "1", "--json", cwd=repo).out)
    assert view["rejects"] == ["conftest.py: it can change what the tests are or how they run"]
    assert "+import pager" in view["diff"]


@pytest.mark.soak
def test_runs_are_listed_found_by_prefix_and_forked(user, repo):
    ran = user.redstart("fix", repo, "--json")
    run_id = ran.events[0]["run"]
    listed = user.redstart("runs", "list", "--json")
    assert [json.loads(line)["run_id"] for line in listed.out.splitlines()] == [run_id]
    assert run_id in user.redstart("show", run_id[:6]).out
    forked = user.redstart("runs", "fork", run_id, "--attempt", "2", "--after", "retrieve")
    assert forked.code == 0, forked.err
    new = forked.out.split()[-1]
    assert user.redstart("resume", new).code == 0
    assert new != run_id
    assert user.redstart("show", "nowhere").code == 2
    assert user.redstart("runs", "fork", run_id, "--attempt", "7", "--after", "patch").code == 2


@pytest.mark.soak
def test_both_engines_end_the_same(user, repo):
    first = user.redstart("fix", repo, "--json", "--engine", "inline")
    user.home = user.home.with_name("other")
    user.environ["REDSTART_HOME"] = str(user.home)
    second = user.redstart("fix", repo, "--json", "--engine", "langgraph")
    assert [(event["attempt"], event["name"], event["phase"]) for event in first.events] == [
        (event["attempt"], event["name"], event["phase"]) for event in second.events
    ]


@pytest.mark.soak
def test_a_run_begun_under_one_engine_is_finished_under_the_other(user, repo):
    assert user.redstart("fix", repo, "--engine", "inline", "--stop-after", "check").code == 130
    assert user.redstart("resume", "--engine", "langgraph", cwd=repo).code == 0


@pytest.mark.soak
def test_tracing_variables_send_nothing_to_anybody(user, repo, server):
    user.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "canary",
        "LANGSMITH_ENDPOINT": server.anthropic_url + "/traces",
        "LANGCHAIN_ENDPOINT": server.anthropic_url + "/traces",
    }
    assert user.redstart("fix", repo).code == 0
    assert len(server.requests) == 3


def test_a_dry_run_says_what_would_happen_and_asks_nobody(user, repo, server):
    ran = user.redstart("fix", repo, "--dry-run", "--max-usd", "0.5")
    assert (ran.code, server.requests) == (0, [])
    for text in (
        "pytest",
        "sandbox bwrap",
        "openai:scripted",
        "limits 5 attempts, $0.5, 30 min",
        "no model was asked",
    ):
        assert text in ran.out
    assert user.redstart("resume", cwd=repo).code == 0


@pytest.mark.soak
def test_a_hint_and_the_projects_notes_reach_the_model(user, repo, server):
    (repo / "AGENTS.md").write_text("Rounding is done upwards here.\n")
    assert user.redstart("fix", repo, "--hint", "look at the empty page").code == 0
    asked = [request.text for request in server.requests if "question: patch" in request.system]
    assert all("look at the empty page" in text and "Rounding is done upwards here." in text for text in asked)
    assert user.redstart("fix", repo, "--hint", "x" * 2000).code == 2


@pytest.mark.soak
def test_until_green_lifts_the_limit_on_attempts_alone(user, repo_of):
    answers = iter(range(3, 100))

    def reply(request):
        if "question: patch" not in request.system:
            return '{"summary": "s", "root_cause": "r", "fix": "f"}'
        number = next(answers)
        return SCENARIO.right if number > 9 else SCENARIO.wrong.replace(", 1)", f", {number})")

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo_of(SCENARIO.name), "--until-green", "--json")
    assert (ran.code, ran.ending["attempts"]) == (0, 8)


@pytest.mark.parametrize("flag", ["--max-attempts", "--max-iters"])
def test_until_green_keeps_a_limit_on_attempts_that_is_given(user, repo_of, flag):
    answers = iter(range(3, 100))

    def reply(request):
        return SCENARIO.wrong.replace(", 1)", f", {next(answers)})")

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo_of(SCENARIO.name), "--until-green", flag, "2", "--json")
    assert (ran.code, ran.ending["attempts"]) == (1, 2), ran.err


def test_a_unittest_command_decides_the_runner(user, tmp_path, server):
    user.uses(server, Wire.openai)
    harness = "import unittest\n\n\nclass Case(unittest.TestCase):\n    pass\n"
    tests = "from harness import Case\n\n\nclass T(Case):\n    def test_a(self):\n        self.assertEqual(1, 2)\n"
    repo = write(tmp_path / "u", harness__py=harness, test_a__py=tests)
    command = ("--test-cmd", "python -m unittest", "--stop-after", "reproduce", "--json")
    ran = user.redstart("fix", repo, *command)
    assert ran.code == 130, ran.out + ran.err
    assert ran.events[-1]["data"]["targets"] == ["test_a.T.test_a"]
