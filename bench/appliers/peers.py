"""Other appliers on one case: each gets the file in a folder of its own and the answer as it is."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from _environments import make_environment

AIDER = "aider-chat==0.86.2"
COMMANDS = {
    "git": ("git", "apply", "-"),
    "git_recount": ("git", "apply", "--recount", "-C1", "--whitespace=fix", "-"),
    "patch": ("patch", "-p1", "-F3", "-f", "-N", "--no-backup-if-mismatch", "-r", "-"),
}


class Command(NamedTuple):
    """A program that reads a diff. An answer without a hunk it cannot read, so it is not started for one."""

    arguments: tuple[str, ...]

    def __call__(self, path: str, old: str, answer: str) -> str:
        if "@@" not in answer:
            return old
        with tempfile.TemporaryDirectory(prefix="redstart-peer-") as folder:
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(old.encode())
            environ = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(Path(folder).parent), "LC_ALL": "C"}
            subprocess.run(
                self.arguments, cwd=folder, input=answer.encode(), env=environ, capture_output=True, check=False
            )
            return file.read_bytes().decode(errors="replace") if file.exists() else ""


class Aider:
    """aider's appliers, in one process with an environment that is made here and thrown away."""

    def __init__(self, folder: Path) -> None:
        python = make_environment(folder / "venv", AIDER)
        self._log = (folder / "aider.log").open("w")
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("aider_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "AIDER_ANALYTICS": "false"},
        )

    def __call__(self, path: str, old: str, answer: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"path": path, "old": old, "answer": answer}).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
        self._log.close()
