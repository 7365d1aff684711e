"""A created program uses a package: it is approved, installed from a local index and locked; a trap is rejected."""

from __future__ import annotations

import subprocess

import pytest

from support.scenarios import parse_question
from support.server import Request, ScriptedServer, Wire

PLAN = '{"summary": "a function", "subtasks": [{"title": "answer", "criteria": ["it gives the answer twice"]}]}'
TESTS = """tests/test_twice.py
<<<<<<< SEARCH
=======
from twice import twice


def test_twice():
    assert twice() == 84
    assert twice(1) == 43
    assert twice(2) == 44
>>>>>>> REPLACE
"""
CODE = """twice.py
<<<<<<< SEARCH
=======
from acme_good import answer


def twice(more=None):
    return answer() + (answer() if more is None else more)
>>>>>>> REPLACE
"""


def build_edits(package: str) -> str:
    """Return edits that create the program and add a package to its pyproject.toml."""
    change = f'<<<<<<< SEARCH\ndependencies = []\n=======\ndependencies = ["{package}"]\n>>>>>>> REPLACE\n'
    return f"WHY: it is new\n\npyproject.toml\n{change}\n{CODE}"


class Script:
    def __init__(self, *packages: str) -> None:
        self.packages = list(packages)
        self.texts: list[str] = []

    def __call__(self, request: Request) -> str:
        question_name = parse_question(request)
        if question_name == "patch":
            self.texts.append(request.text)
            package = self.packages.pop(0) if len(self.packages) > 1 else self.packages[0]
            return build_edits(package)
        return PLAN if question_name == "plan" else TESTS


def format_step_data(ran) -> str:
    """Format the data that each step reports at its end."""
    return "\n".join(f"{event['name']}: {event['data']}" for event in ran.events if event["phase"] == "end")


@pytest.mark.soak
def test_unlisted_package_waits_for_approval_then_is_installed_and_locked(somebody, tmp_path):
    out = tmp_path / "twice"
    with ScriptedServer(Script("acme-good")) as server:
        somebody.uses(server, Wire.openai)
        first_result = somebody.redstart("create", "the answer twice", "-o", out, "--json")
        assert first_result.code == 7, format_step_data(first_result)
        assert "acme-good" in first_result.ending["reason"]
        assert not out.exists()
        resume_result = somebody.redstart("resume", first_result.events[0]["run"], "--accept", "--json")
    assert resume_result.code == 0, format_step_data(resume_result)
    reasons = [event["data"]["reason"] for event in resume_result.events if event["name"] == "decide" and event["data"]]
    assert reasons[0] == "you approved acme-good"
    checks = [
        event["data"]
        for event in (*first_result.events, *resume_result.events)
        if event["name"] == "check" and event["data"]
    ]
    assert checks[0]["packages"] == ["python:acme-good"]
    assert checks[1]["installed"] == ["requirements.lock"]
    lock = (out / "requirements.lock").read_text()
    assert "acme-good==1.0" in lock
    assert "--hash=sha256:" in lock
    assert "127.0.0.1" not in lock
    assert 'dependencies = ["acme-good"]' in (out / "pyproject.toml").read_text()
    logged = subprocess.run(["git", "show", "--stat", "HEAD"], cwd=out, capture_output=True, text=True, check=True)
    assert "requirements.lock" in logged.stdout
    assert somebody.redstart("runs", "replay", first_result.events[0]["run"]).code == 0


@pytest.mark.soak
def test_rejected_package_goes_back_to_the_model(somebody, tmp_path):
    script = Script("acme-good")
    with ScriptedServer(script) as server:
        somebody.uses(server, Wire.openai)
        result = somebody.redstart("create", "the answer twice", "-o", tmp_path / "twice", "--json", "--max-iters", "2")
        assert result.code == 7
        somebody.redstart("resume", result.events[0]["run"], "--reject", "--say", "only the standard library", "--json")
    assert "you rejected these packages: acme-good. only the standard library" in script.texts[-1]


def test_typosquatted_package_is_refused_without_asking_a_person(somebody, tmp_path, fake_index):
    script = Script("reqeusts", "acme-good")
    with ScriptedServer(script) as server:
        somebody.uses(server, Wire.openai)
        result = somebody.redstart("create", "the answer twice", "-o", tmp_path / "twice", "--json", "--approve")
    assert result.code == 0, format_step_data(result)
    assert "reqeusts" in script.texts[1]
    assert "requests" in script.texts[1]
    assert not {"reqeusts"} & fake_index.seen()
