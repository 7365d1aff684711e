"""From an issue to a patch: a failing test is written first and stays in the patch."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.sample import sample_parameters
from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer, Wire

ISSUE = "mean([]) raises ZeroDivisionError. It should return None for an empty list."
CODE = "def mean(numbers):\n    return sum(numbers) / len(numbers)\n"
OLD_TEST = "from stats import mean\n\n\ndef test_mean():\n    assert mean([1, 2, 3]) == 2\n"
RIGHT = """WHY: an empty list has no mean

stats.py
<<<<<<< SEARCH
    return sum(numbers) / len(numbers)
=======
    return sum(numbers) / len(numbers) if numbers else None
>>>>>>> REPLACE
"""
GOOD = "from stats import mean\n\n\ndef test_an_empty_list_has_no_mean():\n    assert mean([]) is None\n"


def format_answer(text: str, path: str = "tests/test_empty.py", confidence: str = "high, the issue says so") -> str:
    """Return a model's answer with one new file."""
    return f"SURE: {confidence}\n\n{path}\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n"


def create_model(*tests: str) -> Callable[[Request], str]:
    """Return a model that answers with these tests in turn, repeating the last, and with the right patch."""
    remaining_tests = list(tests)

    def reply(request: Request) -> str:
        question_name = parse_question(request)
        if question_name == "reproduce":
            return remaining_tests.pop(0) if len(remaining_tests) > 1 else remaining_tests[0]
        return RIGHT if question_name == "patch" else CARD

    return reply


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "stats"
    (folder / "tests").mkdir(parents=True)
    (folder / "stats.py").write_text(CODE)
    (folder / "tests" / "test_mean.py").write_text(OLD_TEST)
    (folder / "conftest.py").write_text("")
    return folder


def test_failing_test_is_written_first_and_stays_in_the_patch(user, repo, tmp_path):
    patch = tmp_path / "it.patch"
    with ScriptedServer(create_model(format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE, "--json", "--patch", patch)
        prompts = [request.text for request in server.requests if parse_question(request) == "reproduce"]
        changed = [request.text for request in server.requests if parse_question(request) == "patch"]
    assert result.code == 0, result.out + result.err
    for expected_text in (ISSUE, "def mean(numbers):", "tests/test_mean.py", "assert mean([1, 2, 3]) == 2"):
        assert expected_text in prompts[0]
    assert ISSUE in changed[0]
    reproduction = next(
        event["data"] for event in result.events if (event["name"], event["phase"]) == ("reproduce", "end")
    )
    assert reproduction["targets"] == ["tests/test_empty.py::test_an_empty_list_has_no_mean"]
    assert (reproduction["sure"], reproduction["sure_why"]) == ("high", "the issue says so")
    assert "tests/test_empty.py" in patch.read_text()
    assert not (repo / "tests" / "test_empty.py").exists()
    assert user.redstart("apply", cwd=repo).code == 0
    outside = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repo, check=False)
    assert outside.returncode == 0
    assert (repo / "tests" / "test_empty.py").read_text() == GOOD
    assert "high" in user.redstart("show", cwd=repo).out
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=repo).out)
    assert (proof["sure"], proof["written"]) == ("high: the issue says so", ["tests/test_empty.py"])


def call_tool(name: str, **arguments: str) -> str:
    """Write a tool call as text."""
    return f"```json\n{json.dumps({'tool': name, 'arguments': arguments})}\n```"


def test_model_with_sessions_looks_and_runs_a_snippet_before_it_writes_the_test(user, repo):
    snippet = "from stats import mean\n\nprint('the mean is', mean([4, 6]))"
    looks = [call_tool("read", path="stats.py"), call_tool("run", snippet=snippet)]
    with ScriptedServer(create_model(*looks, format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE, "--json", "--session")
        prompts = [request.text for request in server.requests if parse_question(request) == "reproduce"]
    assert result.code == 0, result.out + result.err
    assert "At most 40 tool calls are possible." in prompts[0]
    assert "the mean is 5.0" not in prompts[1]
    assert "exit code 0; it printed:\nthe mean is 5.0" in prompts[2]
    assert "(38 more looks are possible.)" in prompts[2]
    served = [event["data"]["served"] for event in result.events if "look" in event["data"]]
    assert served[:2] == [True, True]
    replayed = user.redstart("runs", "replay", result.events[0]["run"])
    assert replayed.code == 0, replayed.out + replayed.err


def test_model_that_answers_at_once_is_offered_no_tool(user, repo):
    with ScriptedServer(create_model(call_tool("read", path="stats.py"), format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE, "--single", "--max-tool-calls", 3)
        prompts = [request.text for request in server.requests if parse_question(request) == "reproduce"]
    assert result.code == 0, result.out + result.err
    assert "tool calls" not in prompts[0]
    assert "could not be used" in prompts[1]


NO_USE = [
    pytest.param(format_answer(OLD_TEST), "passes on the code as it is"),
    pytest.param(
        format_answer(GOOD.replace("import mean", "import median")),
        "median, which is neither in the project nor in what",
    ),
    pytest.param(format_answer(GOOD.replace("mean([])", "avg([])")), "the name avg, which it does not define"),
    pytest.param(
        format_answer(GOOD.replace("has_no_mean()", "has_no_mean(numbers)")), "the fixture numbers, which is not there"
    ),
    pytest.param(format_answer(GOOD.replace("is None", "is (None")), "does not parse"),
    pytest.param(format_answer("def test_it():\n    pass\n"), "asserts nothing"),
    pytest.param(format_answer(GOOD, "tests/test_mean.py"), "tests/test_mean.py is there already"),
    pytest.param(format_answer(GOOD, "stats_new.py"), "stats_new.py is no new test file"),
    pytest.param(
        format_answer("import stats\n\nstats.mean = None\n\n\n" + GOOD), "test_mean fails, which passed before"
    ),
    pytest.param(format_answer("import requests_of_nobody\n" + GOOD), "requests_of_nobody"),
    pytest.param("I would rather talk about the weather.", "no edit"),
]


@pytest.mark.parametrize(("bad", "reason"), sample_parameters(NO_USE, 2))
def test_unusable_test_goes_back_with_the_reason(user, repo, bad, reason):
    with ScriptedServer(create_model(bad, format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE, "--json")
        prompts = [request.text for request in server.requests if parse_question(request) == "reproduce"]
    assert result.code == 0, result.out + result.err
    assert len(prompts) == 2
    assert reason not in prompts[0]
    assert reason in prompts[1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("I do not know.", "no edit"), pytest.param(format_answer(OLD_TEST), "all of it passes", marks=pytest.mark.soak)],
)
def test_model_without_a_usable_test_does_not_solve_the_issue(user, repo, answer, reason):
    with ScriptedServer(create_model(answer)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE)
        question_names = [parse_question(request) for request in server.requests]
    assert (result.code, question_names) == (1, ["reproduce"] * 3)
    screen = " ".join(result.out.split())
    assert "NOT SOLVED the model wrote no usable test in 3 attempts" in screen
    assert reason in screen
    assert "NO TESTS" not in screen


def test_new_test_runs_with_a_command_that_names_files(user, repo):
    with ScriptedServer(create_model(format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        options = ("--test-cmd", "python -m pytest -q tests/test_mean.py")
        result = user.redstart("fix", repo, "--issue", ISSUE, "--json", *options)
        question_names = [parse_question(request) for request in server.requests]
    assert result.code == 0, result.out + result.err
    assert question_names.count("reproduce") == 1
    reproduction = next(
        event["data"] for event in result.events if (event["name"], event["phase"]) == ("reproduce", "end")
    )
    assert (reproduction["targets"], reproduction["passed"]) == (
        ["tests/test_empty.py::test_an_empty_list_has_no_mean"],
        1,
    )


@pytest.mark.soak
def test_existing_failing_test_is_not_a_target_of_the_issue(user, repo):
    (repo / "tests" / "test_mean.py").write_text(OLD_TEST.replace("== 2", "== 7"))
    with ScriptedServer(create_model(format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE, "--json")
    assert result.code == 0, result.out + result.err
    reproduction = next(
        event["data"] for event in result.events if (event["name"], event["phase"]) == ("reproduce", "end")
    )
    assert (reproduction["target_count"], reproduction["red"]) == (1, 2)


def test_patch_must_not_change_the_new_test(user, repo):
    edit = "<<<<<<< SEARCH\n    assert mean([]) is None\n=======\n    assert True\n>>>>>>> REPLACE\n"
    cheat = f"WHY: x\n\ntests/test_empty.py\n{edit}"
    with ScriptedServer(lambda r: format_answer(GOOD) if parse_question(r) == "reproduce" else cheat) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", ISSUE, "--max-iters", "1")
    assert result.code == 6, result.out
    assert "it is a test" in result.out


class _Pages(BaseHTTPRequestHandler):
    """Serves an issue as a page and as the API of a forge."""

    def do_GET(self) -> None:
        body, kind = {
            "/page": (
                f"<html><head><title>x</title></head><body><script>no()</script><p>{ISSUE}</p></body>",
                "text/html",
            ),
            "/api/v3/repos/me/stats/issues/7": (json.dumps({"title": "Mean", "body": ISSUE}), "application/json"),
            "/me/stats/issues/7": ("<p>a page that is made for eyes</p>", "text/html"),
        }.get(self.path, ("", ""))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture
def pages() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Pages) as server:
        running = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        running.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        running.join()


@pytest.mark.soak
@pytest.mark.parametrize(("path", "not_shown"), [("/page", "no()"), ("/me/stats/issues/7", "made for eyes")])
def test_issue_is_read_from_a_url(user, repo, pages, path, not_shown):
    with ScriptedServer(create_model(format_answer(GOOD))) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--issue", pages + path, "--json")
        prompt = server.requests[0].text
    assert result.code == 0, result.out + result.err
    assert ISSUE in prompt
    assert not_shown not in prompt


def test_missing_issue_page_exits_with_3_and_missing_file_with_2(user, repo, pages):
    user.environ |= {"REDSTART_MODELS__STRONG": "openai:scripted", "REDSTART_MODELS__BASE_URL": "http://127.0.0.1:9/v1"}
    missing_result = user.redstart("fix", repo, "--issue", pages + "/nothing")
    assert (missing_result.code, "no such page" in missing_result.err) == (3, True)
    assert user.redstart("fix", repo, "--issue", "http://127.0.0.1:9/x").code == 3
    missing = user.redstart("fix", repo, "--issue", "nowhere.md")
    assert (missing.code, "no such file: nowhere.md" in missing.err) == (2, True)
    assert user.redstart("fix", repo, "--issue", " ").code == 2
    assert user.redstart("fix", repo, "tests/test_mean.py", "--issue", ISSUE).code == 2
