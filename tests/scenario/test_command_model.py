"""Whole runs with a user's program as the model."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.sample import short_form
from support.scenarios import Scenario
from support.user import User

HERE = Path(__file__).parent
SCENARIOS = [Scenario.load(folder) for folder in sorted((HERE / "repos").iterdir())][:10]

PROGRAM = """
import json, sys
from pathlib import Path
sys.path.append(sys.argv[2])
from support.scenarios import CARD, Scenario
ask, scenario = json.load(sys.stdin), Scenario.load(Path(sys.argv[1]))
text = "\\n".join(message["text"] for message in ask["messages"])
said = scenario.wrong if scenario.missing(text) else scenario.right
usage = {"input_tokens": 10, "output_tokens": 5, "usd": 0.01}
print(CARD if ask["question"] == "remember" else json.dumps({"text": said, "usage": usage}))
"""


@pytest.mark.parametrize("scenario", short_form(SCENARIOS, 1), ids=lambda scenario: scenario.name)
def test_by_a_command(scenario: Scenario, user: User, repo_of: Callable[[str], Path], tmp_path: Path) -> None:
    program = tmp_path / "my model.py"
    program.write_text(PROGRAM)
    words = shlex.join([sys.executable, str(program), str(HERE / "repos" / scenario.name), str(HERE.parent)])
    ran = user.redstart("fix", repo_of(scenario.name), "-m", f"command:{words}", "--json")
    assert ran.code == 0, ran.out + ran.err
    attempts = 2 if scenario.feedback else 1
    assert (ran.ending["result"], ran.ending["attempts"]) == ("verified", attempts)
    assert ran.ending["usd"] == pytest.approx(0.01 * attempts)


def test_one_that_fails_ends_the_run_with_its_words(user: User, repo_of: Callable[[str], Path]) -> None:
    failing = shlex.join([sys.executable, "-c", "import sys; sys.exit('the licence is over')"])
    ran = user.redstart("fix", repo_of("pager"), "-m", f"command:{failing}")
    assert ran.code == 3
    assert "failed with exit code 1: the licence is over" in ran.err
    assert "redstart resume" in ran.err


def test_a_project_cannot_name_a_command(user: User, repo_of: Callable[[str], Path], tmp_path: Path) -> None:
    repo = repo_of("pager")
    (repo / "redstart.toml").write_text(f'[models]\nstrong = "command:touch {tmp_path / "owned"}"\n')
    ran = user.redstart("fix", repo)
    assert ran.code == 2
    assert not (tmp_path / "owned").exists()
