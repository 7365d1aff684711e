"""Whole runs by hand: questions are files, and a person (here: the reader of the screen) writes answer files."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.sample import sample_parameters
from support.scenarios import CARD, Scenario
from support.user import SECONDS, User

HERE = Path(__file__).parent
SCENARIOS = [Scenario.load(folder) for folder in sorted((HERE / "repos").iterdir())][:10]
SIMPLE = next(scenario for scenario in SCENARIOS if not scenario.feedback)

INTO = re.compile(r"^ +(/.+\.answer\.md) *$", re.MULTILINE)


def answer_to(scenario: Scenario, question: str) -> str:
    """Return what a model in a browser answers to the question page."""
    match = re.search(r"^redstart question: (\w+)$", question, re.MULTILINE)
    assert match, question
    if match[1] == "remember":
        return CARD
    if match[1] == "plan":
        return json.dumps({"summary": "look again", "subtasks": []})
    return scenario.wrong if scenario.list_missing(question) else scenario.right


def write_answer(scenario: Scenario, answer: Path) -> None:
    question = answer.with_name(answer.name.replace(".answer.", ".question.")).read_text()
    answer.write_text(f"{answer_to(scenario, question)}\nEND\n")


@contextmanager
def start_redstart(user: User, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start `redstart` with these arguments; its standard error can be read line by line."""
    command = [sys.executable, "-m", "redstart.cli.main", *(str(argument) for argument in arguments)]
    with subprocess.Popen(
        command, env=user.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_ending(process: subprocess.Popen[str]) -> dict[str, object]:
    """Return the data of the last event of `--json`, the only standard output."""
    out, _ = process.communicate(timeout=SECONDS)
    events = [json.loads(line) for line in out.splitlines()]
    assert events, process.returncode
    assert (events[-1]["name"], events[-1]["phase"]) == ("run", "end"), out
    return events[-1]["data"]


def serve(process: subprocess.Popen[str], scenario: Scenario) -> int:
    """Answer every question on the screen and return their number. The output is echoed for failed test runs."""
    assert process.stderr is not None
    count = 0
    for line in process.stderr:
        sys.stdout.write(line)
        if match := INTO.search(line):
            write_answer(scenario, Path(match[1]))
            count += 1
    return count


@pytest.mark.parametrize("scenario", sample_parameters(SCENARIOS, 1), ids=lambda scenario: scenario.name)
def test_run_is_answered_by_files(
    scenario: Scenario, user: User, repo_of: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "a folder"  # with a space: the screen shows the path unchanged
    with start_redstart(user, "fix", repo_of(scenario.name), "-m", f"manual:{folder}", "--json") as process:
        question_count = serve(process, scenario)
        final_data = read_ending(process)
    assert final_data["result"] == "verified"
    assert final_data["attempts"] == (2 if scenario.feedback else 1)
    assert (final_data["calls"], final_data["tokens"], final_data["usd"]) == (question_count, 0, 0.0)


@pytest.mark.soak
def test_interrupted_run_resumes_with_the_answer_given_meanwhile(user: User, repo_of: Callable[[str], Path]) -> None:
    with start_redstart(user, "fix", repo_of(SIMPLE.name), "-m", "manual") as process:
        assert process.stderr is not None
        (answer_path,) = (match[1] for line in process.stderr if (match := INTO.search(line)) and _stop(process))
        out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 130, out
    resume = re.search(r"redstart resume (\w+)", out)
    assert resume, out
    write_answer(SIMPLE, Path(answer_path))
    with start_redstart(user, "resume", resume[1], "-m", "manual", "--json") as process:
        serve(process, SIMPLE)
        final_data = read_ending(process)
    assert (final_data["result"], final_data["attempts"]) == ("verified", 1)


def _stop(process: subprocess.Popen[str]) -> bool:
    process.send_signal(signal.SIGINT)
    return True


class Screen:
    """A terminal in tmux, with its own server."""

    def __init__(self, socket: Path, environ: dict[str, str], folder: Path) -> None:
        self._socket, self._environ = socket, environ
        settings = [part for name, value in environ.items() for part in ("-e", f"{name}={value}")]
        self.run_tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "50", "-c", str(folder), *settings, "bash"
        )

    def run_tmux(self, *arguments: str) -> str:
        completed = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        return completed.stdout

    def type(self, line: str, window: str) -> None:
        self.run_tmux("send-keys", "-t", f":{window}", "-l", line)
        self.run_tmux("send-keys", "-t", f":{window}", "Enter")

    def wait_for_pattern(self, pattern: str, count: int = 1) -> list[str]:
        """Wait until the first window shows the pattern `count` times and return the matches."""
        deadline = time.monotonic() + SECONDS
        while True:
            screen = self.run_tmux("capture-pane", "-t", ":0", "-p", "-J", "-S", "-")
            matches: list[str] = re.findall(pattern, screen, re.MULTILINE)
            if len(matches) >= count:
                return matches
            assert time.monotonic() < deadline, f"{pattern!r} was not shown {count} times:\n{screen}"


@pytest.fixture
def screen(user: User, tmp_path: Path, repo_of: Callable[[str], Path]) -> Iterator[Screen]:
    user.environ |= {"PS1": "> ", "TERM": "screen-256color"}
    new_screen = Screen(tmp_path / "tmux", user.environ, repo_of(SIMPLE.name))
    try:
        yield new_screen
    finally:
        new_screen.run_tmux("kill-server")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_person_answers_in_a_terminal(screen: Screen, tmp_path: Path) -> None:
    screen.run_tmux("new-window", "-d", "-t", ":1")
    screen.type(f"{shlex.quote(sys.executable)} -m redstart.cli.main fix -m manual", "0")
    for number in (1, 2):
        answer_path = Path(screen.wait_for_pattern(INTO.pattern, number)[-1])
        question = answer_path.with_name(answer_path.name.replace(".answer.", ".question.")).read_text()
        answer_file = tmp_path / "said"
        answer_file.write_text(f"{answer_to(SIMPLE, question)}\nEND\n")
        # A second window creates the file by pasting.
        screen.type(f"cat >{shlex.quote(str(answer_path))}", "1")
        screen.run_tmux("load-buffer", str(answer_file))
        screen.run_tmux("paste-buffer", "-t", ":1")
        screen.run_tmux("send-keys", "-t", ":1", "C-d")
        screen.wait_for_pattern("^read the answer", number)
    screen.wait_for_pattern(r"^GREEN  ")
