"""Whole runs with a user's program as the model."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.sample import sample_parameters
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
said = scenario.wrong if scenario.list_missing(text) else scenario.right
usage = {"input_tokens": 10, "output_tokens": 5, "usd": 0.01}
print(CARD if ask["question"] == "remember" else json.dumps({"text": said, "usage": usage}))
"""


@pytest.mark.parametrize("scenario", sample_parameters(SCENARIOS, 1), ids=lambda scenario: scenario.name)
def test_command_model_solves_a_whole_run(
    scenario: Scenario, user: User, repo_of: Callable[[str], Path], tmp_path: Path
) -> None:
    program = tmp_path / "my model.py"
    program.write_text(PROGRAM)
    command = shlex.join([sys.executable, str(program), str(HERE / "repos" / scenario.name), str(HERE.parent)])
    result = user.redstart("fix", repo_of(scenario.name), "-m", f"command:{command}", "--json")
    assert result.code == 0, result.out + result.err
    attempts = 2 if scenario.feedback else 1
    assert (result.ending["result"], result.ending["attempts"]) == ("verified", attempts)
    assert result.ending["usd"] == pytest.approx(0.01 * attempts)


def test_failing_command_ends_the_run_with_its_message(user: User, repo_of: Callable[[str], Path]) -> None:
    command = shlex.join([sys.executable, "-c", "import sys; sys.exit('the licence is over')"])
    result = user.redstart("fix", repo_of("pager"), "-m", f"command:{command}")
    assert result.code == 3
    assert "failed with exit code 1: the licence is over" in result.err
    assert "redstart resume" in result.err


def test_project_cannot_set_a_command_model(user: User, repo_of: Callable[[str], Path], tmp_path: Path) -> None:
    repo = repo_of("pager")
    (repo / "redstart.toml").write_text(f'[models]\nstrong = "command:touch {tmp_path / "owned"}"\n')
    result = user.redstart("fix", repo)
    assert result.code == 2
    assert not (tmp_path / "owned").exists()
