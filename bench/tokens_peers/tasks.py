"""The tasks: the repos of the scenario tests, and the larger ones of `tasks.json`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from support.scenarios import Scenario

REPOS = Path(__file__).parents[2] / "tests" / "scenario" / "repos"
MORE = Path(__file__).with_name("tasks.json")


class Task(NamedTuple):
    scenario: Scenario
    source: Path | dict[str, str]
    """A folder, or the texts of its files."""

    def lay_out(self, to: Path) -> None:
        """Lay out the project in this folder, committed."""
        if isinstance(self.source, Path):
            shutil.copytree(self.source, to)
        else:
            for path, text in self.source.items():
                (to / path).parent.mkdir(parents=True, exist_ok=True)
                (to / path).write_text(text)
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "As it is")):
            subprocess.run(["git", *arguments], cwd=to, check=True, capture_output=True)


def load_tasks() -> list[Task]:
    folders = sorted(REPOS.iterdir())
    scenario_tasks = [Task(Scenario.load(folder), folder / "repo") for folder in folders]
    extra_tasks = json.loads(MORE.read_text())
    return scenario_tasks + [Task(Scenario.model_validate(item["scenario"]), item["files"]) for item in extra_tasks]
