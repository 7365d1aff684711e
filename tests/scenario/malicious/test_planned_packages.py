"""The plan of a new program asks for a package: a person or a flag approves it before any test is written."""

from __future__ import annotations

import json
import re

from support.scenarios import parse_question
from support.server import Request, ScriptedServer, Wire

TESTS = """tests/test_twice.py
<<<<<<< SEARCH
=======
from acme_good import answer

from twice import twice


def test_twice():
    assert twice() == 2 * answer()
    assert twice(1) == 43
    assert twice(2) == 44
>>>>>>> REPLACE
"""
CODE = """WHY: it is new

twice/__init__.py
<<<<<<< SEARCH
=======
from acme_good import answer


def twice(more=None):
    return answer() + (answer() if more is None else more)
>>>>>>> REPLACE
"""


def plan_with(*packages: str) -> str:
    package_requests = [{"name": name, "reason": "it knows the answer"} for name in packages]
    task = {"title": "twice", "criteria": ["twice() is 84"]}
    return json.dumps({"summary": "the answer twice", "packages": package_requests, "subtasks": [task]})


class Script:
    """Answers with the plans in turn, repeating the last, and with the same tests and program each time."""

    def __init__(self, *plans: str) -> None:
        self.plans = list(plans)
        self.asked: list[tuple[str, str]] = []

    def __call__(self, request: Request) -> str:
        question_name = parse_question(request)
        self.asked.append((question_name, request.text))
        if question_name == "plan":
            return self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
        return TESTS if question_name == "reproduce" else CODE

    def list_texts(self, name: str) -> list[str]:
        return [text for question_name, text in self.asked if question_name == name]


def test_planned_package_waits_for_approval_and_serves_tests_and_program(somebody, tmp_path):
    out = tmp_path / "twice"
    script = Script(plan_with("acme-good"))
    with ScriptedServer(script) as server:
        somebody.uses(server, Wire.openai)
        waits = somebody.redstart("create", "the answer twice", "-o", out, "--no-input", "--max-iters", "1")
        assert waits.code == 7, waits.out + waits.err
        assert "acme-good (it knows the answer)" in waits.out
        assert "--approve" in waits.out
        assert "dependencies.allow" in waits.out
        assert [question_name for question_name, _ in script.asked] == ["plan"]
        assert not out.exists()
        (run_id,) = set(re.findall(r"redstart resume (\w+) --accept", waits.out))
        as_json = somebody.redstart("create", "the answer twice", "-o", out, "--json", "--max-iters", "1")
        assert as_json.code == 7, as_json.out + as_json.err
        assert f"hint: to approve, run: redstart resume {as_json.events[0]['run']} --accept\n" in as_json.err
        script.asked.pop()
        result = somebody.redstart("resume", run_id, "--accept", "--json")
    assert result.code == 0, result.out + result.err
    assert [question_name for question_name, _ in script.asked] == ["plan", "reproduce", "patch"]
    assert "acme-good" in script.list_texts("reproduce")[0]
    assert "and these packages, which are installed: acme-good" in script.list_texts("patch")[0]
    assert 'dependencies = ["acme-good"]' in (out / "pyproject.toml").read_text()
    assert "acme-good==1.0" in (out / "requirements.lock").read_text()
