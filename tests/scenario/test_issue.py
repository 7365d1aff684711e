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

from support.sample import short_form
from support.scenarios import CARD, question
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


def written(text: str, path: str = "tests/test_empty.py", sure: str = "high, the issue says so") -> str:
    """Return a model's answer with one new file."""
    return f"SURE: {sure}\n\n{path}\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n"


def script(*tests: str) -> Callable[[Request], str]:
    """Return a model that answers with these tests in turn, repeating the last, and with the right patch."""
    left = list(tests)

    def reply(request: Request) -> str:
        asked = question(request)
        if asked == "reproduce":
            return left.pop(0) if len(left) > 1 else left[0]
        return RIGHT if asked == "patch" else CARD

    return reply


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "stats"
    (folder / "tests").mkdir(parents=True)
    (folder / "stats.py").write_text(CODE)
    (folder / "tests" / "test_mean.py").write_text(OLD_TEST)
    (folder / "conftest.py").write_text("")
    return folder


def test_a_red_test_is_written_first_and_stays_in_the_patch(user, repo, tmp_path):
    patch = tmp_path / "it.patch"
    with ScriptedServer(script(written(GOOD))) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--issue", ISSUE, "--json", "--patch", patch)
        asked = [request.text for request in server.requests if question(request) == "reproduce"]
        changed = [request.text for request in server.requests if question(request) == "patch"]
    assert ran.code == 0, ran.out + ran.err
    for shown in (ISSUE, "def mean(numbers):", "tests/test_mean.py", "assert mean([1, 2, 3]) == 2"):
        assert shown in asked[0]
    assert ISSUE in changed[0]
    found = next(event["data"] for event in ran.events if (event["name"], event["phase"]) == ("reproduce", "end"))
    assert found["targets"] == ["tests/test_empty.py::test_an_empty_list_has_no_mean"]
    assert (found["sure"], found["sure_why"]) == ("high", "the issue says so")
    assert "tests/test_empty.py" in patch.read_text()
    assert not (repo / "tests" / "test_empty.py").exists()
    assert user.redstart("apply", cwd=repo).code == 0
    outside = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repo, check=False)
    assert outside.returncode == 0
    assert (repo / "tests" / "test_empty.py").read_text() == GOOD
    assert "high" in user.redstart("show", cwd=repo).out
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=repo).out)
    assert (proof["sure"], proof["written"]) == ("high: the issue says so", ["tests/test_empty.py"])


NO_USE = [
    pytest.param(written(OLD_TEST), "passes on the code as it is"),
    pytest.param(
        written(GOOD.replace("import mean", "import median")), "median, which is neither in the project nor in what"
    ),
    pytest.param(written(GOOD.replace("mean([])", "avg([])")), "the name avg, which it does not define"),
    pytest.param(
        written(GOOD.replace("has_no_mean()", "has_no_mean(numbers)")), "the fixture numbers, which is not there"
    ),
    pytest.param(written(GOOD.replace("is None", "is (None")), "does not parse"),
    pytest.param(written("def test_it():\n    pass\n"), "asserts nothing"),
    pytest.param(written(GOOD, "tests/test_mean.py"), "tests/test_mean.py is there already"),
    pytest.param(written(GOOD, "stats_new.py"), "stats_new.py is no new test file"),
    pytest.param(written("import stats\n\nstats.mean = None\n\n\n" + GOOD), "test_mean fails, which passed before"),
    pytest.param(written("import requests_of_nobody\n" + GOOD), "requests_of_nobody"),
    pytest.param("I would rather talk about the weather.", "no edit"),
]


@pytest.mark.parametrize(("bad", "reason"), short_form(NO_USE, 2))
def test_a_test_that_is_no_use_goes_back_with_the_reason(user, repo, bad, reason):
    with ScriptedServer(script(bad, written(GOOD))) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--issue", ISSUE, "--json")
        asked = [request.text for request in server.requests if question(request) == "reproduce"]
    assert ran.code == 0, ran.out + ran.err
    assert len(asked) == 2
    assert reason not in asked[0]
    assert reason in asked[1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("I do not know.", "no edit"), pytest.param(written(OLD_TEST), "all of it passes", marks=pytest.mark.soak)],
)
def test_a_model_that_writes_no_usable_test_has_not_solved_the_issue(user, repo, answer, reason):
    with ScriptedServer(script(answer)) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--issue", ISSUE)
        asked = [question(request) for request in server.requests]
    assert (ran.code, asked) == (1, ["reproduce"] * 3)
    screen = " ".join(ran.out.split())
    assert "NOT SOLVED the model wrote no usable test in 3 attempts" in screen
    assert reason in screen
    assert "NO TESTS" not in screen


def test_the_new_test_runs_beside_a_command_that_names_files(user, repo):
    with ScriptedServer(script(written(GOOD))) as server:
        user.uses(server, Wire.openai)
        how = ("--test-cmd", "python -m pytest -q tests/test_mean.py")
        ran = user.redstart("fix", repo, "--issue", ISSUE, "--json", *how)
        asked = [question(request) for request in server.requests]
    assert ran.code == 0, ran.out + ran.err
    assert asked.count("reproduce") == 1
    found = next(event["data"] for event in ran.events if (event["name"], event["phase"]) == ("reproduce", "end"))
    assert (found["targets"], found["passed"]) == (["tests/test_empty.py::test_an_empty_list_has_no_mean"], 1)


@pytest.mark.soak
def test_a_red_test_that_was_there_is_not_taken_for_the_issue(user, repo):
    (repo / "tests" / "test_mean.py").write_text(OLD_TEST.replace("== 2", "== 7"))
    with ScriptedServer(script(written(GOOD))) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--issue", ISSUE, "--json")
    assert ran.code == 0, ran.out + ran.err
    found = next(event["data"] for event in ran.events if (event["name"], event["phase"]) == ("reproduce", "end"))
    assert (found["target_count"], found["red"]) == (1, 2)


def test_the_new_test_is_not_the_patchs_to_change(user, repo):
    edit = "<<<<<<< SEARCH\n    assert mean([]) is None\n=======\n    assert True\n>>>>>>> REPLACE\n"
    cheat = f"WHY: x\n\ntests/test_empty.py\n{edit}"
    with ScriptedServer(lambda r: written(GOOD) if question(r) == "reproduce" else cheat) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--issue", ISSUE, "--max-iters", "1")
    assert ran.code == 6, ran.out
    assert "it is a test" in ran.out


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
def test_an_address_is_read_by_the_command(user, repo, pages, path, not_shown):
    with ScriptedServer(script(written(GOOD))) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("fix", repo, "--issue", pages + path, "--json")
        asked = server.requests[0].text
    assert ran.code == 0, ran.out + ran.err
    assert ISSUE in asked
    assert not_shown not in asked


def test_an_address_that_is_not_there_is_3_and_a_missing_file_2(user, repo, pages):
    user.environ |= {"REDSTART_MODELS__STRONG": "openai:scripted", "REDSTART_MODELS__BASE_URL": "http://127.0.0.1:9/v1"}
    gone = user.redstart("fix", repo, "--issue", pages + "/nothing")
    assert (gone.code, "no such page" in gone.err) == (3, True)
    assert user.redstart("fix", repo, "--issue", "http://127.0.0.1:9/x").code == 3
    missing = user.redstart("fix", repo, "--issue", "nowhere.md")
    assert (missing.code, "no such file: nowhere.md" in missing.err) == (2, True)
    assert user.redstart("fix", repo, "--issue", " ").code == 2
    assert user.redstart("fix", repo, "tests/test_mean.py", "--issue", ISSUE).code == 2
