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
        answer = self._reply(request)
        tools = request.body.get("tools")
        with self._lock:
            self.exchanges.append(Exchange(request.text + (json.dumps(tools) if tools else ""), answer))
        return answer


class Place(NamedTuple):
    """The workspace of an agent: a folder of its own, with the project in it."""

    folder: Path
    repo: Path
    environments: Environments

    def build_environ(self, name: str) -> dict[str, str]:
        return self.environments.build_environ(name, self.folder)


def parse_edits(answer: str) -> list[Edit]:
    return [Edit(*match) for match in _BLOCK.findall(answer)]


def has_needed_context(scenario: Scenario, text: str) -> bool:
    """Return whether the conversation holds everything that the right edit needs. Agents name tests differently."""
    names = [re.split(r"::|\.", id_)[-1] if "::" in id_ or "/" not in id_ else id_ for id_ in scenario.needs.ids]
    needed = (*names, *scenario.needs.assertion, *scenario.needs.lines, *scenario.tried, *scenario.failed)
    return all(item in text for item in needed)


def _apply_edits(files: Mapping[str, str], answer: str) -> dict[str, str]:
    result = dict(files)
    for edit in parse_edits(answer):
        result[edit.path] = result[edit.path].replace(edit.old, edit.new)
    return result


def _format_blocks(old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """Return the edits that lead from `old` to `new`: one for each place, with a line of context."""
    blocks: list[str] = []
    for path in old:
        before, after = old[path].splitlines(keepends=True), new[path].splitlines(keepends=True)
        for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(1):
            search = "".join(before[group[0][1] : group[-1][2]])
            replacement = "".join(after[group[0][3] : group[-1][4]])
            blocks.append(f"{path}\n<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n")
    return "\n".join(blocks)


def run_redstart(scenario: Scenario, place: Place) -> list[Exchange]:
    script = Script(scenario.reply)
    with ScriptedServer(script) as server:
        user = User(place.folder, place.environments.get_python("project").parent.parent)
        user.environ |= {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
        user.uses(server, Wire.openai)
        patch = place.folder / "fix.patch"
        user.redstart("fix", place.repo, "--patch", patch)
        if patch.exists():
            subprocess.run(["git", "apply", str(patch)], cwd=place.repo, check=True)
    return script.exchanges


def run_aider(scenario: Scenario, place: Place) -> list[Exchange]:
    files = {path: (place.repo / path).read_text() for path in scenario.files}
    # aider keeps its edits even if they are wrong: the next edit starts from them.
    wrong_files, right_files = _apply_edits(files, scenario.wrong), _apply_edits(files, scenario.right)
    corrected = scenario.right.partition("\n")[0] + "\n\n" + _format_blocks(wrong_files, right_files)
    wrong_text = parse_edits(scenario.wrong)[0].new

    def reply(request: Request) -> str:
        was_wrong = any(role == "assistant" and wrong_text in text for role, text in request.messages)
        right_answer = corrected if was_wrong else scenario.right
        answer = right_answer if has_needed_context(scenario, request.text) else scenario.wrong
        return _BLOCK.sub(lambda match: f"{match[1]}\n```python\n{match[0].partition(chr(10))[2]}\n```", answer)

    script = Script(reply)
    with ScriptedServer(script) as server:
        python = place.environments.get_python("aider")
        flags = (
            "--edit-format diff --no-stream --map-tokens 0 --yes-always --no-auto-commits --no-gitignore --no-pretty"
        )
        quiet_flags = "--no-analytics --no-check-update --no-show-model-warnings --no-show-release-notes"
        # A conversation of a few turns is not worth a summarizing call.
        quiet_flags += " --max-chat-history-tokens 100000"
        # A person would pass the failing output to aider: its own `--test` only runs the tests.
        failed = subprocess.run(
            SUITE.split(), cwd=place.repo, env=place.build_environ("aider"), capture_output=True, text=True, check=False
        )
        arguments = [*flags.split(), *quiet_flags.split(), "--auto-test", "--test-cmd", SUITE, *scenario.files]
        message_arguments = ["--message", f"{TASK}\n\n{failed.stdout}"]
        api_environ = {"OPENAI_API_BASE": server.openai_url, "OPENAI_API_KEY": "scripted"}
        _run_agent(
            [str(python), "-m", "aider", "--model", "openai/scripted", *arguments, *message_arguments],
            place,
            "aider",
            api_environ,
        )
    return script.exchanges


def run_mini(scenario: Scenario, place: Place) -> list[Exchange]:
    def reply(request: Request) -> str:
        turns = [text for role, text in request.messages if role == "assistant"]
        last_text = request.messages[-1][1]
        if not turns:
            return _format_answer("Run the tests and see the code.", f"{SUITE}; cat {' '.join(scenario.files)}")
        if len(turns) > 1 and "<returncode>0</returncode>" in last_text:
            return _format_answer("Done.", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
        answer = scenario.right if has_needed_context(scenario, request.text) else scenario.wrong
        undo = "git checkout -q . && " if len(turns) > 1 else ""
        return _format_answer(answer.partition("\n")[0], f"{undo}{_format_replacement(answer)}")

    script = Script(reply)
    with ScriptedServer(script) as server:
        python = place.environments.get_python("mini")
        api_environ = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_SILENT_STARTUP": "1"}
        settings = [
            *("-c", "mini_textbased.yaml", "-c", f"model.model_kwargs.api_base={server.openai_url}"),
            *("-c", "model.model_kwargs.api_key=scripted", "-c", "agent.step_limit=15"),
        ]
        arguments = [
            "--model-class",
            "litellm_textbased",
            "-m",
            "openai/scripted",
            "-y",
            "--exit-immediately",
            "-t",
            TASK,
        ]
        output = ["-o", str(place.folder / "trajectory.json")]
        _run_agent([str(python.parent / "mini"), *settings, *arguments, *output], place, "mini", api_environ)
    return script.exchanges


def _format_answer(thought: str, command: str) -> str:
    return f"THOUGHT: {thought}\n\n```mswea_bash_command\n{command}\n```"


def _format_replacement(answer: str) -> str:
    """Return the edits as one command that ends with the tests."""
    lines = ["python - <<'EOF' && " + SUITE]
    for edit in parse_edits(answer):
        lines += [
            f"p = {edit.path!r}",
            "s = open(p, encoding='utf-8').read()",
            f"open(p, 'w', encoding='utf-8').write(s.replace({edit.old!r}, {edit.new!r}))",
        ]
    return "\n".join([*lines, "EOF"])


def _run_agent(command: list[str], place: Place, name: str, extra_environ: Mapping[str, str]) -> None:
    """Run the agent until it ends or its time is up: only the files that it leaves count."""
    with (place.folder / "log").open("w") as log, suppress(subprocess.TimeoutExpired):
        subprocess.run(
            command,
            cwd=place.repo,
            env={**place.build_environ(name), **extra_environ},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )


AGENTS = {"redstart": run_redstart, "aider": run_aider, "mini": run_mini}
