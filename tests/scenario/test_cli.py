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


def test_passing_suite_exits_with_0_and_asks_no_model(user, tmp_path, server):
    user.uses(server, Wire.openai)
    result = user.redstart("fix", write(tmp_path / "green", test_a__py="def test_a():\n    assert True\n"))
    assert (result.code, server.requests) == (0, [])
    assert "GREEN  all tests pass already" in result.out


def test_passing_tests_with_a_broken_pytest_hook_are_not_green(user, tmp_path, server):
    user.uses(server, Wire.openai)
    hook = "def pytest_sessionfinish():\n    raise ValueError('a hook broke')\n"
    result = user.redstart("fix", write(tmp_path / "odd", test_a__py="def test_a():\n    pass\n", conftest__py=hook))
    assert (result.code, server.requests) == (3, []), result.out + result.err
    assert "The report lists no failing test, but the exit code is" in result.out
    assert "GREEN" not in result.out


def test_no_tests_exits_with_5(user, tmp_path, server):
    user.uses(server, Wire.openai)
    result = user.redstart("fix", write(tmp_path / "bare", main__py="print(1)\n"))
    assert (result.code, server.requests) == (5, []), result.out + result.err


def test_unsolved_run_exits_with_1(user, repo):
    result = user.redstart("fix", repo, "--max-iters", "1")
    assert result.code == 1
    assert "NOT SOLVED  3 newly failing tests after 1 attempt\n" in result.out


def test_missing_model_exits_with_2_and_three_lines_to_copy(user, tmp_path):
    result = user.redstart("fix", tmp_path)
    assert result.code == 2
    assert [line.split()[0] for line in result.err.splitlines()[-3:]] == ["export", "export", "redstart"]


def test_unknown_flag_step_or_setting_exits_with_2(user, repo):
    assert user.redstart("fix", repo, "--no-such-flag").code == 2
    assert user.redstart("fix", repo, "--stop-after", "dance").code == 2
    user.environ["REDSTART_LIMITS__ITERATIONS"] = "many"
    result = user.redstart("fix", repo)
    assert result.code == 2
    assert "REDSTART_LIMITS__ITERATIONS" in result.err


@pytest.mark.soak
def test_unreachable_provider_exits_with_3_and_the_run_can_resume(user, repo, server):
    url = user.environ["REDSTART_MODELS__BASE_URL"]
    user.environ["REDSTART_MODELS__BASE_URL"] = "http://127.0.0.1:9/v1"
    result = user.redstart("fix", repo)
    assert result.code == 3
    assert "openai:scripted" in result.err
    assert "redstart resume" in result.err
    user.environ["REDSTART_MODELS__BASE_URL"] = url
    assert user.redstart("resume", "-m", "openai:scripted", cwd=repo).code == 0


def test_reached_limits_exit_with_4(user, repo, server):
    user.environ["REDSTART_LIMITS__TOKENS"] = "50"
    result = user.redstart("fix", repo)
    assert (result.code, server.requests) == (4, [])
    del user.environ["REDSTART_LIMITS__TOKENS"]
    result = user.redstart("fix", repo, "--max-minutes", "0.0001")
    assert result.code == 4
    assert "time limit" in result.out


def test_time_limit_cancels_an_open_model_call(user, repo_of):
    with ScriptedServer(lambda request: Reply(hang=True)) as server:
        user.uses(server, Wire.anthropic)
        result = user.redstart("fix", repo_of(SCENARIO.name), "--max-minutes", "0.25")
    assert (result.code, len(server.requests)) == (4, 1), result.out
    assert "the time limit of 0.25 minutes is reached" in result.out


def test_patch_of_a_test_exits_with_6(user, repo_of):
    edit = "<<<<<<< SEARCH\nimport pytest\n=======\nimport pytest  # changed\n>>>>>>> REPLACE\n"
    with ScriptedServer(lambda request: Reply(f"WHY: x\n\ntests/test_pager.py\n{edit}")) as server:
        user.uses(server, Wire.anthropic)
        result = user.redstart("fix", repo_of(SCENARIO.name), "--max-iters", "1")
    assert result.code == 6, result.out
    assert "it is a test" in result.out


def iter_stop_steps() -> Iterator[Any]:
    """Yield the steps to stop after. Only `patch` runs by default; all of them take minutes."""
    for step in Step:
        yield pytest.param(step, id=step.value, marks=() if step is Step.patch else pytest.mark.soak)


@pytest.mark.parametrize("step", [*iter_stop_steps()])
def test_stop_after_exits_with_130_and_resumes(user, repo, step):
    result = user.redstart("fix", repo, "--stop-after", step.value)
    assert result.code == 130, result.out + result.err
    assert f"paused after {step.value}; resume with: redstart resume " in result.out
    resume_result = user.redstart("resume", cwd=repo)
    assert resume_result.code == 0
    assert "GREEN" in resume_result.out


def test_unknown_step_is_refused_before_the_run_starts(user, server, tmp_path):
    user.uses(server, Wire.openai)
    result = user.redstart("fix", write(tmp_path / "x", a__py=""), "--stop-after", "nothing")
    assert result.code == 2


def test_json_output_is_one_versioned_event_per_line(user, repo):
    result = user.redstart("fix", repo, "--json")
    assert {event["v"] for event in result.events} == {1}
    assert [event["seq"] for event in result.events] == list(range(len(result.events)))
    ends = [event["name"] for event in result.events if event["phase"] == "end" and event["name"] != "run"]
    starts = [event["name"] for event in result.events if event["phase"] == "start" and event["name"] != "run"]
    assert starts == ends
    assert set(ends) == {step.value for step in Step}


def test_interrupted_run_is_saved_and_prints_the_resume_command(user, repo_of):
    question_received, release = threading.Event(), threading.Event()

    def reply(request):
        question_received.set()
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
        assert question_received.wait(60)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=300)
        release.set()
        assert running.returncode == 130
        command = next(line for line in out.splitlines() if "redstart resume" in line).split("redstart ")[-1].split()
        assert user.redstart(*command, cwd=repo).code == 0


@pytest.mark.soak
def test_show_covers_every_attempt(user, repo):
    assert user.redstart("fix", repo).code == 0
    show_result = user.redstart("show", cwd=repo)
    assert show_result.code == 0
    assert "+    return max(1, -(-total // size))" in show_result.out
    first_attempt = user.redstart("show", "--attempt", "1", cwd=repo)
    assert "+    return max(total // size, 1)" in first_attempt.out
    assert "assert 2 == 3" in first_attempt.out
    view = json.loads(user.redstart("show", "--attempt", "1", "--json", cwd=repo).out)
    (failing_case,) = [case for case in view["cases"] if "assert 2 == 3" in case["message"]]
    assert (failing_case["expected"], failing_case["actual"]) == ("3", "2")
    assert [step["step"] for step in view["steps"]][-1] == "decide"
    assert all(step["seconds"] >= 0 for step in view["steps"])
    assert "failed" in view["output"]
    assert user.redstart("show", "--attempt", "9", cwd=repo).code == 2


def test_show_covers_a_refused_attempt(user, repo_of):
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
    result = user.redstart("fix", repo, "--json")
    run_id = result.events[0]["run"]
    list_result = user.redstart("runs", "list", "--json")
    assert [json.loads(line)["run_id"] for line in list_result.out.splitlines()] == [run_id]
    assert run_id in user.redstart("show", run_id[:6]).out
    fork_result = user.redstart("runs", "fork", run_id, "--attempt", "2", "--after", "retrieve")
    assert fork_result.code == 0, fork_result.err
    new = fork_result.out.split()[-1]
    assert user.redstart("resume", new).code == 0
    assert new != run_id
    assert user.redstart("show", "nowhere").code == 2
    assert user.redstart("runs", "fork", run_id, "--attempt", "7", "--after", "patch").code == 2


@pytest.mark.soak
def test_both_engines_produce_the_same_events(user, repo):
    inline_result = user.redstart("fix", repo, "--json", "--engine", "inline")
    user.home = user.home.with_name("other")
    user.environ["REDSTART_HOME"] = str(user.home)
    langgraph_result = user.redstart("fix", repo, "--json", "--engine", "langgraph")
    assert [(event["attempt"], event["name"], event["phase"]) for event in inline_result.events] == [
        (event["attempt"], event["name"], event["phase"]) for event in langgraph_result.events
    ]


@pytest.mark.soak
def test_run_started_under_one_engine_can_finish_under_the_other(user, repo):
    assert user.redstart("fix", repo, "--engine", "inline", "--stop-after", "check").code == 130
    assert user.redstart("resume", "--engine", "langgraph", cwd=repo).code == 0


@pytest.mark.soak
def test_tracing_variables_send_no_data(user, repo, server):
    user.environ |= {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "canary",
        "LANGSMITH_ENDPOINT": server.anthropic_url + "/traces",
        "LANGCHAIN_ENDPOINT": server.anthropic_url + "/traces",
    }
    assert user.redstart("fix", repo).code == 0
    assert len(server.requests) == 3


def test_dry_run_prints_the_plan_and_asks_no_model(user, repo, server):
    result = user.redstart("fix", repo, "--dry-run", "--max-usd", "0.5")
    assert (result.code, server.requests) == (0, [])
    for text in (
        "pytest",
        "sandbox bwrap",
        "openai:scripted",
        "limits 5 attempts, $0.5, 30 min",
        "no model was asked",
    ):
        assert text in result.out
    assert user.redstart("resume", cwd=repo).code == 0


@pytest.mark.soak
def test_hint_and_project_notes_reach_the_model(user, repo, server):
    (repo / "AGENTS.md").write_text("Rounding is done upwards here.\n")
    assert user.redstart("fix", repo, "--hint", "look at the empty page").code == 0
    prompts = [request.text for request in server.requests if "question: patch" in request.system]
    assert all("look at the empty page" in text and "Rounding is done upwards here." in text for text in prompts)
    assert user.redstart("fix", repo, "--hint", "x" * 2000).code == 2


@pytest.mark.soak
def test_until_green_lifts_only_the_attempt_limit(user, repo_of):
    answers = iter(range(3, 100))

    def reply(request):
        if "question: patch" not in request.system:
            return '{"summary": "s", "root_cause": "r", "fix": "f"}'
        number = next(answers)
        return SCENARIO.right if number > 9 else SCENARIO.wrong.replace(", 1)", f", {number})")

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo_of(SCENARIO.name), "--until-green", "--json")
    assert (result.code, result.ending["attempts"]) == (0, 8)


@pytest.mark.parametrize("flag", ["--max-attempts", "--max-iters"])
def test_until_green_keeps_an_explicit_attempt_limit(user, repo_of, flag):
    answers = iter(range(3, 100))

    def reply(request):
        return SCENARIO.wrong.replace(", 1)", f", {next(answers)})")

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo_of(SCENARIO.name), "--until-green", flag, "2", "--json")
    assert (result.code, result.ending["attempts"]) == (1, 2), result.err


def test_unittest_command_selects_the_runner(user, tmp_path, server):
    user.uses(server, Wire.openai)
    harness = "import unittest\n\n\nclass Case(unittest.TestCase):\n    pass\n"
    tests = "from harness import Case\n\n\nclass T(Case):\n    def test_a(self):\n        self.assertEqual(1, 2)\n"
    repo = write(tmp_path / "u", harness__py=harness, test_a__py=tests)
    command = ("--test-cmd", "python -m unittest", "--stop-after", "reproduce", "--json")
    result = user.redstart("fix", repo, *command)
    assert result.code == 130, result.out + result.err
    assert result.events[-1]["data"]["targets"] == ["test_a.T.test_a"]
