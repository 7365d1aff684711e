"""Three agents as their users start them, on a folder with failing tests, with one small model and little time.

Each agent has four minutes, and up to five attempts in that time: Redstart counts its own attempts, aider corrects its
edit three times after the first, mini has fifteen steps and needs three for an attempt. Redstart ends by itself: it may
take longer for its last answer and its records, but a fix counts only if it was proven within the four minutes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from quixbugs import format_settings
from tokens_peers.environments import Environments

SECONDS = 240
ATTEMPTS = 5
STEPS = 15
GRACE = 30
"""Extra seconds for an agent that enforces its own time limit."""
AIDER = (
    "--edit-format whole --no-stream --map-tokens 0 --yes-always --no-auto-commits --no-gitignore --no-pretty "
    "--no-analytics --no-check-update --no-show-model-warnings --no-show-release-notes --auto-test"
)
SUITE = "timeout 10 python -m pytest -q -x"
TASK = "The tests of this project fail. Find the bug in {file} and fix it, so that they pass. Do not change the tests."


class Place(NamedTuple):
    """The workspace of an agent: a folder of its own, with the task in it."""

    folder: Path
    repo: Path
    file: str
    """The program: all three agents receive its name."""
    url: str
    environments: Environments

    @property
    def task(self) -> str:
        return TASK.format(file=self.file)

    def build_environ(self, name: str) -> dict[str, str]:
        return self.environments.build_environ(name, self.folder)


class Ended(NamedTuple):
    seconds: float
    claims: bool
    """Whether it claims that the task is done; for aider, which claims nothing, whether its last test run passed."""
    crash: str = ""
    """The last line of an agent that crashed; empty if it ended by itself or ran out of time."""


def run_redstart(place: Place) -> Ended:
    config = place.folder / "config" / "redstart" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(format_settings(place.url, "whole-code"))
    patch = place.folder / "made.patch"
    limits = ["--max-iters", str(ATTEMPTS), "--max-minutes", str(SECONDS / 60), "--patch", str(patch)]
    command = [
        sys.executable,
        "-m",
        "redstart.cli.main",
        "fix",
        str(place.repo),
        "--json",
        "--hint",
        place.task,
        *limits,
    ]
    inherited = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    agent_environ = {
        "REDSTART_HOME": str(place.folder / "home"),
        "XDG_CONFIG_HOME": str(place.folder / "config"),
        "OPENAI_API_KEY": "none",
        "VIRTUAL_ENV": str(place.environments.get_python("project").parent.parent),
    }
    latest = time.time() + SECONDS
    result = _run_agent(command, place, {**place.build_environ("project"), **inherited, **agent_environ})
    events = [json.loads(line) for line in result.lines if line.startswith("{")]
    in_time = any(_is_green(event) and event["time"] <= latest for event in events)
    if patch.is_file() and in_time:
        subprocess.run(["git", "apply", str(patch)], cwd=place.repo, check=True)
    return Ended(result.seconds, result.code == 0 and in_time, "" if result.code in (0, 1, 4, 6, None) else result.last)


def _is_green(event: Mapping[str, Any]) -> bool:
    """Return whether the event reports a proven fix; everything after it only records lessons."""
    return event["name"] == "test" and bool(event["data"].get("honest_green"))


def run_aider(place: Place) -> Ended:
    python = place.environments.get_python("aider")
    # A person would pass the failing output to aider: its own `--test` only runs the tests.
    before = subprocess.run(
        SUITE.split(), cwd=place.repo, env=place.build_environ("aider"), capture_output=True, text=True, check=False
    )
    task_arguments = ["--test-cmd", SUITE, "--message", f"{place.task}\n\n{before.stdout[-3000:]}", place.file]
    command = [str(python), "-m", "aider", "--model", "openai/local", *AIDER.split(), *task_arguments]
    api_environ = {"OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_API_KEY": "none"}
    result = _run_agent(command, place, {**place.build_environ("aider"), **api_environ})
    after = subprocess.run(
        SUITE.split(), cwd=place.repo, env=place.build_environ("aider"), capture_output=True, check=False
    )
    return Ended(result.seconds, after.returncode == 0, "" if result.code in (0, None) else result.last)


def run_mini(place: Place) -> Ended:
    python, trajectory = place.environments.get_python("mini"), place.folder / "trajectory.json"
    config = [
        *("-c", "mini_textbased.yaml", "-c", f"model.model_kwargs.api_base={place.url}/v1"),
        *("-c", "model.model_kwargs.api_key=none", "-c", f"agent.step_limit={STEPS}"),
        *("-c", "model.model_kwargs.max_tokens=500"),
    ]
    arguments = [
        "--model-class",
        "litellm_textbased",
        "-m",
        "openai/local",
        "-y",
        "--exit-immediately",
        "-t",
        place.task,
    ]
    api_environ = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1"}
    command = [str(python.parent / "mini"), *config, *arguments, "-o", str(trajectory)]
    result = _run_agent(command, place, {**place.build_environ("mini"), **api_environ})
    try:
        status = json.loads(trajectory.read_text())["info"]["exit_status"]
    except (OSError, ValueError, KeyError):
        status = ""
    return Ended(result.seconds, status == "Submitted", "" if result.code in (0, None) else result.last)


AGENTS = {"redstart": run_redstart, "aider": run_aider, "mini": run_mini}


class _Ran(NamedTuple):
    seconds: float
    code: int | None
    """None if it ran out of time."""
    lines: Sequence[str]
    """Its output."""

    @property
    def last(self) -> str:
        return self.lines[-1][-300:] if self.lines else f"exit {self.code}"


def _run_agent(command: list[str], place: Place, environ: Mapping[str, str]) -> _Ran:
    """Run the agent until it ends; when its time is up, kill it with all its children."""
    log = place.folder / "log"
    began = time.monotonic()
    own_time = command[0] == sys.executable
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            cwd=place.repo,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS + (GRACE if own_time else 0))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    lines = log.read_text(errors="replace").strip().splitlines()
    return _Ran(round(time.monotonic() - began, 1), code, lines)
