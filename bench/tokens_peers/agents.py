"""Three agents on one task: the shortest script that solves it drives each agent in its own protocol.

The scripted model knows the same for all agents. It gives the right edit when the conversation holds the failing test,
its message, the lines to change and, if the task requires it, the result of a first, wrong edit. Until then it gives
the wrong edit, or reads code.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from support.scenarios import Scenario
from support.server import Request, ScriptedServer, Wire
from support.user import User
from tokens_peers.environments import Environments

SECONDS = 300
TASK = "The tests of this project fail. Make them pass without changing them."
SUITE = "python -m pytest -q"
_BLOCK = re.compile(r"^(\S+)\n<<<<<<< SEARCH\n(.*?)=======\n(.*?)>>>>>>> REPLACE$", re.MULTILINE | re.DOTALL)


class Edit(NamedTuple):
    path: str
    old: str
    new: str


class Exchange(NamedTuple):
    """One request and its answer, as texts."""

    asked: str
    said: str


class Script:
    """A reply function that records its questions and answers."""

    def __init__(self, reply: Callable[[Request], str]) -> None:
        self._reply, self._lock = reply, threading.Lock()
        self.exchanges: list[Exchange] = []

    def __call__(self, request: Request) -> str:
        said = self._reply(request)
        offered = request.body.get("tools")
        with self._lock:
            self.exchanges.append(Exchange(request.text + (json.dumps(offered) if offered else ""), said))
        return said


class Place(NamedTuple):
    """The workspace of an agent: a folder of its own, with the project in it."""

    folder: Path
    repo: Path
    environments: Environments

    def environ(self, name: str) -> dict[str, str]:
        return self.environments.environ(name, self.folder)


def edits(answer: str) -> list[Edit]:
    return [Edit(*found) for found in _BLOCK.findall(answer)]


def known(scenario: Scenario, text: str) -> bool:
    """Return whether the conversation holds everything that the right edit needs. Agents name tests differently."""
    names = [re.split(r"::|\.", id_)[-1] if "::" in id_ or "/" not in id_ else id_ for id_ in scenario.needs.ids]
    wanted = (*names, *scenario.needs.assertion, *scenario.needs.lines, *scenario.tried, *scenario.failed)
    return all(item in text for item in wanted)


def _edited(files: Mapping[str, str], answer: str) -> dict[str, str]:
    made = dict(files)
    for edit in edits(answer):
        made[edit.path] = made[edit.path].replace(edit.old, edit.new)
    return made


def _blocks(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return the edits that lead from `old` to `new`: one for each place, with a line of context."""
    blocks: list[str] = []
    for path in old:
        before, after = old[path].splitlines(keepends=True), new[path].splitlines(keepends=True)
        for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(1):
            search = "".join(before[group[0][1] : group[-1][2]])
            instead = "".join(after[group[0][3] : group[-1][4]])
            blocks.append(f"{path}\n<<<<<<< SEARCH\n{search}=======\n{instead}>>>>>>> REPLACE\n")
    return "\n".join(blocks)


def redstart(scenario: Scenario, place: Place) -> list[Exchange]:
    script = Script(scenario.reply)
    with ScriptedServer(script) as server:
        user = User(place.folder, place.environments.python("project").parent.parent)
        user.environ |= {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
        user.uses(server, Wire.openai)
        patch = place.folder / "fix.patch"
        user.redstart("fix", place.repo, "--patch", patch)
        if patch.exists():
            subprocess.run(["git", "apply", str(patch)], cwd=place.repo, check=True)
    return script.exchanges


def aider(scenario: Scenario, place: Place) -> list[Exchange]:
    files = {path: (place.repo / path).read_text() for path in scenario.files}
    # aider keeps its edits even if they are wrong: the next edit starts from them.
    tried, wanted = _edited(files, scenario.wrong), _edited(files, scenario.right)
    corrected = scenario.right.partition("\n")[0] + "\n\n" + _blocks(tried, wanted)
    first = edits(scenario.wrong)[0].new

    def reply(request: Request) -> str:
        was_wrong = any(role == "assistant" and first in text for role, text in request.messages)
        right = corrected if was_wrong else scenario.right
        said = right if known(scenario, request.text) else scenario.wrong
        return _BLOCK.sub(lambda found: f"{found[1]}\n```python\n{found[0].partition(chr(10))[2]}\n```", said)

    script = Script(reply)
    with ScriptedServer(script) as server:
        python = place.environments.python("aider")
        flags = (
            "--edit-format diff --no-stream --map-tokens 0 --yes-always --no-auto-commits --no-gitignore --no-pretty"
        )
        quiet = "--no-analytics --no-check-update --no-show-model-warnings --no-show-release-notes"
        # A conversation of a few turns is not worth a summarizing call.
        quiet += " --max-chat-history-tokens 100000"
        # A person would pass the failing output to aider: its own `--test` only runs the tests.
        failed = subprocess.run(
            SUITE.split(), cwd=place.repo, env=place.environ("aider"), capture_output=True, text=True, check=False
        )
        words = [*flags.split(), *quiet.split(), "--auto-test", "--test-cmd", SUITE, *scenario.files]
        told = ["--message", f"{TASK}\n\n{failed.stdout}"]
        reach = {"OPENAI_API_BASE": server.openai_url, "OPENAI_API_KEY": "scripted"}
        _started([str(python), "-m", "aider", "--model", "openai/scripted", *words, *told], place, "aider", reach)
    return script.exchanges


def mini(scenario: Scenario, place: Place) -> list[Exchange]:
    def reply(request: Request) -> str:
        turns = [text for role, text in request.messages if role == "assistant"]
        last = request.messages[-1][1]
        if not turns:
            return _said("Run the tests and see the code.", f"{SUITE}; cat {' '.join(scenario.files)}")
        if len(turns) > 1 and "<returncode>0</returncode>" in last:
            return _said("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
        answer = scenario.right if known(scenario, request.text) else scenario.wrong
        undo = "git checkout -q . && " if len(turns) > 1 else ""
        return _said(answer.partition("\n")[0], f"{undo}{_replacing(answer)}")

    script = Script(reply)
    with ScriptedServer(script) as server:
        python = place.environments.python("mini")
        reach = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1"}
        settings = [
            *("-c", "mini_textbased.yaml", "-c", f"model.model_kwargs.api_base={server.openai_url}"),
            *("-c", "model.model_kwargs.api_key=scripted", "-c", "agent.step_limit=15"),
        ]
        words = ["--model-class", "litellm_textbased", "-m", "openai/scripted", "-y", "--exit-immediately", "-t", TASK]
        output = ["-o", str(place.folder / "trajectory.json")]
        _started([str(python.parent / "mini"), *settings, *words, *output], place, "mini", reach)
    return script.exchanges


def _said(thought: str, command: str) -> str:
    return f"THOUGHT: {thought}\n\n```mswea_bash_command\n{command}\n```"


def _replacing(answer: str) -> str:
    """Return the edits as one command that ends with the tests."""
    lines = ["python - <<'EOF' && " + SUITE]
    for edit in edits(answer):
        lines += [
            f"p = {edit.path!r}",
            "s = open(p, encoding='utf-8').read()",
            f"open(p, 'w', encoding='utf-8').write(s.replace({edit.old!r}, {edit.new!r}))",
        ]
    return "\n".join([*lines, "EOF"])


def _started(command: list[str], place: Place, name: str, more: Mapping[str, str]) -> None:
    """Run the agent until it ends or its time is up: only the files that it leaves count."""
    with (place.folder / "log").open("w") as log, suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command,
            cwd=place.repo,
            env={**place.environ(name), **more},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )


AGENTS = {"redstart": redstart, "aider": aider, "mini": mini}
