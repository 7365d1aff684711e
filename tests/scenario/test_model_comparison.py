"""Two models compared on a repo's own past bugs: one solves them, the other does not."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from redstart.evals.model_comparison import ModelComparison
from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer, Wire
from support.user import User

DRIVER = Path(__file__).parent / "drivers" / "crash_after.py"
SOLVER, IDLER = "openai:solver", "openai:idler"
COMMAND = ("models", "compare", SOLVER, IDLER)
EXPECTED = Counter(
    {("solver", "reproduce"): 3, ("solver", "patch"): 3, ("solver", "remember"): 3, ("idler", "reproduce"): 9}
)
"""The questions of a comparison that is not killed."""
RATES = {"input": 1.0, "output": 2.0}
BUGS = {
    "first returns the second item": ("first([1, 2]) == 1", "    return items[1]\n", "    return items[0]\n"),
    "total is one too high": ("total([1, 2]) == 3", "    return sum(items) + 1\n", "    return sum(items)\n"),
    "shout is not loud": ('shout("a") == "A"', "    return text.lower()\n", "    return text.upper()\n"),
}
CODE = (
    "def first(items):\n    return items[1]\n\n\ndef total(items):\n    return sum(items) + 1\n\n\n"
    "def shout(text):\n    return text.lower()\n"
)


def git(*arguments: str, cwd: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


def commit(repo: Path, message: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    git("add", "-A", cwd=repo)
    git("commit", "-qm", message, cwd=repo)


def write_test(name: str, assertion: str) -> str:
    function = assertion.partition("(")[0]
    return f"from tools import {function}\n\n\ndef test_{name}():\n    assert {assertion}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Create a repo whose history holds one fix per bug, each with its test, and a change of words."""
    folder = tmp_path / "projects" / "tools"
    folder.mkdir(parents=True)
    git("init", "-q", cwd=folder)
    code = CODE
    commit(folder, "begin", {"tools.py": code, "conftest.py": "", "tests/test_any.py": "def test_any():\n    pass\n"})
    for number, (subject, (assertion, wrong, right)) in enumerate(BUGS.items()):
        code = code.replace(wrong, right)
        commit(folder, subject, {"tools.py": code, f"tests/test_{number}.py": write_test(f"past_{number}", assertion)})
    commit(folder, "words", {"tools.py": f'"""Tools."""\n{code}', "tests/test_any.py": "def test_all():\n    pass\n"})
    return folder


def reply(request: Request) -> str:
    question = parse_question(request)
    if request.model == "idler":
        return CARD if question == "remember" else "I do not know."
    if question == "remember":
        return CARD
    subject = next(subject for subject in BUGS if subject in request.text)
    assertion, wrong, right = BUGS[subject]
    if question == "reproduce":
        text = write_test("new", assertion)
        return f"SURE: high, as it says\n\ntests/test_new.py\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n"
    return f"WHY: it is wrong\n\ntools.py\n<<<<<<< SEARCH\n{wrong}=======\n{right}>>>>>>> REPLACE\n"


def use(user: User, server: ScriptedServer) -> None:
    user.uses(server, Wire.openai)
    profiles = {model: {"rates": RATES} for model in (SOLVER, IDLER)}
    user.environ["REDSTART_MODELS__PROFILES"] = json.dumps(profiles)


def read_order(server: ScriptedServer) -> list[str]:
    """Return the models in the order in which they were asked, each once per turn."""
    return [model for model, _ in groupby(request.model for request in server.requests)]


def test_killed_comparison_continues_in_pairs_and_pays_nothing_twice(user: User, repo: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with ScriptedServer(reply) as server:
        use(user, server)
        asked = user.redstart("models", "compare", SOLVER, IDLER, repo)
        assert (asked.code, server.requests) == (2, [])
        assert "3 past bugs of tools, 6 runs to play: at most $10.00 and 180 minutes" in asked.err
        assert "add --no-input" in asked.err
        killed = user.python(DRIVER, "14", "commit", *COMMAND, repo, "--no-input")
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        assert 0 < len(server.requests) < EXPECTED.total()
        result = user.redstart(*COMMAND, repo, "--no-input", "--json", "--html", str(page))
        assert result.code == 0, result.out + result.err
        assert Counter((request.model, parse_question(request)) for request in server.requests) == EXPECTED
        assert read_order(server) == ["solver", "idler"] * 3
        again = user.redstart(*COMMAND, repo)
        assert len(server.requests) == EXPECTED.total()
    comparison = ModelComparison.model_validate_json(result.out)
    assert (comparison.a.solved, comparison.b.solved, comparison.compared, comparison.better) == (3, 0, 3, "")
    assert [bug.subject for bug in comparison.bugs] == list(reversed(BUGS))
    assert "3 bugs are too few to tell the two apart" in comparison.conclusions[0]
    lines = again.out.splitlines()
    assert lines[:2] == ["A is openai:solver", "B is openai:idler"]
    assert [line[:3] for line in lines[-4:]] == ["S R", "S R", "S R", "S s"]
    assert "solved           3 of 3 [44, 100 %]          0 of 3 [0, 56 %]" in lines
    assert "3 of 3" in page.read_text()
    assert [line for line in lines if len(line) > 100] == []
