"""A bug that no word of its test points to: the rule is found because only the failing test runs it.

Twenty-six rules are loaded by file name, more code than a prompt can hold. The test compares texts with their expected
results.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from redstart.app.settings import Settings
from redstart.app.wire import open_app
from redstart.core.report import ReproductionResult
from support.server import Reply, Request, ScriptedServer, Wire

RULES, WRONG = 26, 21
LOADER = '''"""Texts, each changed by the rule that its first letter calls for."""

from importlib import import_module


def changed(text):
    return import_module(f"desk.rules.r{ord(text[0]) - 64:02}").change(text)
'''
RULE = '''"""One of the rules, with notes on what it is for and why it is as it is.

{filling}
"""


def change(text):
    return text.{word}()
'''
TESTS = """\
import pytest

from desk import changed

CASES = [(chr(64 + number) + "B c", chr(64 + number) + "B C") for number in range(1, {rules} + 1)]


@pytest.mark.parametrize(("text", "wanted"), CASES)
def test_texts(text, wanted):
    assert changed(text) == wanted
"""
FIX = """WHY: the rule changes to small letters

desk/rules/r{wrong}.py
<<<<<<< SEARCH
    return text.lower()
=======
    return text.upper()
>>>>>>> REPLACE
"""


def write_project(root: Path, notes: int) -> Path:
    """Write the project, with this number of lines of notes in each rule."""
    (root / "desk" / "rules").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    (root / "desk" / "__init__.py").write_text(LOADER)
    (root / "desk" / "rules" / "__init__.py").write_text("")
    filling = "\n".join(f"Note {note} of this rule is about a detail that nobody asks for." for note in range(notes))
    for number in range(1, RULES + 1):
        text = RULE.format(filling=filling, word="lower" if number == WRONG else "upper")
        (root / "desk" / "rules" / f"r{number:02}.py").write_text(text)
    (root / "tests" / "test_desk.py").write_text(TESTS.format(rules=RULES))
    return root


def answer(request: Request) -> Reply:
    """Answer with the fix if the prompt contains the wrong line."""
    return Reply(FIX.format(wrong=WRONG) if "text.lower()" in request.text else "WHY: I cannot see the rule")


def load_reproduction(user) -> ReproductionResult:
    """Load the reproduction result of this user's only run."""
    with open_app(Settings(home=user.home)) as app:
        (row,) = asyncio.run(app.adapters.store.list_runs())
        reproduction = asyncio.run(app.adapters.store.load(row.run_id)).now.reproduce
    assert reproduction is not None
    return reproduction


def test_code_run_only_by_the_failing_test_is_shown(user, tmp_path):
    repo = write_project(tmp_path / "projects" / "desk", notes=30)
    with ScriptedServer(answer) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--json", "--max-iters", "1")
    assert result.code == 0, result.out + result.err
    (retrieval,) = [event["data"] for event in result.events if (event["name"], event["phase"]) == ("retrieve", "end")]
    assert [path for path in retrieval["files"] if "rules/r" in path] == [f"desk/rules/r{WRONG}.py"]
    assert load_reproduction(user).spectrum


def test_lines_are_not_traced_when_all_code_fits(user, tmp_path):
    repo = write_project(tmp_path / "projects" / "desk", notes=1)
    with ScriptedServer(answer) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--stop-after", "retrieve")
    assert "test_texts" in result.out, result.out + result.err
    assert load_reproduction(user).targets.count == 1
    assert not load_reproduction(user).spectrum
