"""The environments of the peers and of the tasks' projects: made if they are missing, kept in the user's cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from _environments import make_environment

WANTED = {
    "aider": ("aider-chat==0.86.2",),
    # litellm, on which it depends, does not declare all its dependencies.
    "mini": ("mini-swe-agent==2.4.6", "mcp"),
    "project": (f"pytest=={version('pytest')}",),
}


class Environments:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get_python(self, name: str) -> Path:
        """Return the interpreter of an environment; make the environment if it is missing or incomplete."""
        folder = self._folder / name
        mark = folder / "made.json"
        if not mark.exists() or json.loads(mark.read_text()) != [sys.version, *WANTED[name]]:
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_environment(folder, *WANTED[name])
            mark.write_text(json.dumps([sys.version, *WANTED[name]]))
        return folder / "bin" / "python"

    def build_environ(self, name: str, home: Path) -> dict[str, str]:
        """Return an agent's variables: the project's interpreter is first on PATH, and nothing comes from the user."""
        program_folders = [self.get_python("project").parent, self.get_python(name).parent]
        return {
            "PATH": os.pathsep.join([*(str(item) for item in program_folders), "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(home),
            "LC_ALL": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

    def count(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, with one tokenizer for all."""
        counter = Path(__file__).with_name("count.py")
        completed = subprocess.run(
            [str(self.get_python("aider")), str(counter)],
            input=json.dumps(list(texts)) + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(completed.stdout)
