"""Cycles of `improve`: verified improvements are kept, all others leave the last good version unchanged."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from support.scenarios import parse_question
from support.server import Reply, Request, ScriptedServer, Wire

CODE = "def total(numbers):\n    return sum(numbers)\n"
TEST = "from bag import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
GARBAGE = "I would rather talk about the weather."


class Cycle(NamedTuple):
    """The answers of a model in one cycle; each may be garbage."""

    plan: str
    test: str
    patch: str

    def reply(self, request: Request) -> str:
        answers = {"plan": self.plan, "reproduce": self.test, "patch": self.patch, "reflect": "I do not know."}
        return answers[parse_question(request)]


def block(path: str, search: str, text: str, head: str = "WHY: it is asked for") -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


def format_plan(name: str) -> str:
    return json.dumps({"kind": "feature", "title": f"add the function {name}", "criteria": [f"{name}() is there"]})


def create_cycle(name: str, value: str = "1", returns: str | None = None) -> Cycle:
    """Return a cycle that adds a function. If its returned value is not `value`, its test fails."""
    test = f"from bag import {name}\n\n\ndef test_{name}():\n    assert {name}() == {value}\n"
    code = f"def total(numbers):\n    return sum(numbers)\n\n\ndef {name}():\n    return {returns or value}\n"
    return Cycle(
        format_plan(name),
        block(f"tests/test_{name}.py", "", test, "SURE: high, it is plain"),
        block("bag.py", "def total(numbers):\n    return sum(numbers)\n", code),
    )


class Model:
    """Answers with the script of each cycle; the first plan question of a cycle starts the next script."""

    def __init__(self, cycles: Sequence[Cycle]) -> None:
        self._cycles, self._now = list(cycles), -1
        self.asked: list[tuple[int, str]] = []

    def __call__(self, request: Request) -> str:
        question_name = parse_question(request)
        if question_name == "plan" and not self._is_repeated(request):
            self._now += 1
        self.asked.append((self._now + 1, question_name))
        return self._cycles[self._now].reply(request)

    @staticmethod
    def _is_repeated(request: Request) -> bool:
        """Return whether the request corrects an answer or asks for another plan of the same improvement."""
        return len(request.messages) > 1 or "went in circles" in request.text


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "projects" / "bag"
    (folder / "tests").mkdir(parents=True)
    (folder / "bag.py").write_text(CODE)
    (folder / "conftest.py").write_text("")
    (folder / "tests" / "test_total.py").write_text(TEST)
    return folder


def improve(user, repo: Path, count: int, *options: str):
    return user.redstart("improve", repo, "--no-cap", "--pause", "0", "--max-iters", str(count), *options)


def is_passing(repo: Path) -> bool:
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repo, capture_output=True, check=False
    )
    return completed.returncode == 0


def list_functions(repo: Path) -> list[str]:
    return re.findall(r"^def (\w+)", (repo / "bag.py").read_text(), re.MULTILINE)


def test_good_improvements_are_kept_and_others_leave_no_trace(user, repo):
    empty = block("tests/test_e.py", "", "def test_e():\n    pass\n")
    passing_edit = block("tests/test_g.py", "", "from bag import total\n\n\ndef test_g():\n    assert total([]) == 0\n")
    breaks = create_cycle("broken")._replace(
        patch=block("bag.py", "    return sum(numbers)\n", "    return 0\n\n\ndef broken():\n    return 1\n")
    )
    model = Model(
        [
            create_cycle("one"),
            Cycle(GARBAGE, GARBAGE, GARBAGE),
            create_cycle("wrong", "1", "2"),
            create_cycle("two"),
            Cycle(format_plan("e"), empty, GARBAGE),
            Cycle(format_plan("g"), passing_edit, GARBAGE),
            breaks,
            create_cycle("three"),
        ]
    )
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        result = improve(user, repo, 8)
        plans = [r.text for r in server.requests if parse_question(r) == "plan" and len(r.messages) == 1]
    assert result.code == 0, result.out + result.err
    assert "kept 3 improvements of 8 cycles" in result.out
    assert (list_functions(repo), (repo / "bag.py").read_text()) == (["total"], CODE), (
        "the folder itself is not touched"
    )
    assert "cycle 1, kept: feature: add the function one" in plans[1]
    assert "cycle 2, dropped (the model named no usable improvement" in plans[-1]
    assert "def one():" in plans[-1]
    show_result = user.redstart("show", cwd=repo)
    cycles = re.findall(r"^cycle +(\d+)  (\w+) +(.*)$", show_result.out, re.MULTILINE)
    assert [(number, outcome) for number, outcome, _ in cycles] == [
        (str(number), "kept" if number in (1, 4, 8) else "dropped") for number in range(1, 9)
    ]
    assert cycles[0][2] == "feature: add the function one"
    for reason in ("the model proposed the same patch", "asserts nothing", "passes on the code as it is"):
        assert reason in show_result.out
    assert user.redstart("apply", cwd=repo).code == 0
    assert sorted(list_functions(repo)) == ["one", "three", "total", "two"]
    assert is_passing(repo)
    assert not (repo / "tests" / "test_wrong.py").exists()
    run_id = re.findall(r"^run (\w+)  improve", show_result.out, re.MULTILINE)[0]
    assert "Verified: 1 test" in user.redstart("show", f"{run_id}.1", "--proof").out
    assert f"{run_id}.1 --proof" in user.redstart("show", run_id, "--proof").err


def test_worse_metric_drops_a_passing_improvement(user, repo):
    lines = "import pathlib; print('lines', len(pathlib.Path('bag.py').read_text().splitlines()))"
    model = Model([create_cycle("one"), create_cycle("two")])
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        result = improve(user, repo, 2, "--metric", f'python -c "{lines}"')
        second_result = improve(user, repo, 0, "--metric", "python nothing.py", "--max-minutes", "1")
    assert result.code == 1, result.out + result.err
    assert "the metric got worse: 6, before 2 (smaller is better)" in result.out
    assert "kept 0 improvements of 2 cycles" in result.out
    assert second_result.code == 2, "--no-limit contradicts"


@pytest.mark.soak
def test_better_metric_keeps_an_improvement_and_broken_metric_ends_run(user, repo):
    lines = "import pathlib; print('lines', len(pathlib.Path('bag.py').read_text().splitlines()))"
    with ScriptedServer(Model([create_cycle("one"), create_cycle("two"), create_cycle("three")])) as server:
        user.uses(server, Wire.openai)
        kept_result = improve(user, repo, 1, "--metric", f'python -c "{lines}"', "--better", "larger")
        unmeasured = improve(user, repo, 5, "--metric", "python nothing.py")
    assert kept_result.code == 0, kept_result.out + kept_result.err
    assert "the metric is 6, was 2" in kept_result.out
    assert unmeasured.code == 3, unmeasured.out
    assert "kept 0 improvements of 1 cycle; the metric could not be measured" in unmeasured.out


def test_failing_tests_come_first(user, repo):
    (repo / "bag.py").write_text(CODE.replace("sum(numbers)", "sum(numbers) + 1"))
    right_edit = block("bag.py", "    return sum(numbers) + 1\n", "    return sum(numbers)\n")
    with ScriptedServer(Model([Cycle(format_plan("one"), GARBAGE, right_edit)])) as server:
        user.uses(server, Wire.openai)
        result = improve(user, repo, 1)
        question_names = [parse_question(request) for request in server.requests]
    assert result.code == 0, result.out + result.err
    assert question_names == ["plan", "patch"]
    assert "bug: the tests that were red already" in user.redstart("show", cwd=repo).out


@pytest.mark.soak
def test_empty_directory_gets_the_program_first(user, tmp_path):
    folder = tmp_path / "projects" / "bag"
    folder.mkdir(parents=True)
    first_cycle = Cycle(
        json.dumps({"summary": "one function", "subtasks": []}),
        block("tests/test_total.py", "", TEST),
        block("bag.py", "", CODE, "WHY: it is asked for"),
    )
    model = Model([first_cycle, create_cycle("one")])
    created = []

    def reply(request: Request) -> str:
        # The questions of the program itself come before the first plan of an improvement.
        if "You choose the next improvement" in request.text and not created:
            created.append(True)
            model._now = 0
        if not created:
            return first_cycle.reply(request)
        return model(request)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        result = improve(user, folder, 2, "--goal", "a bag of numbers with a total")
    assert result.code == 0, result.out + result.err
    assert "kept 2 improvements of 2 cycles" in result.out
    assert list(folder.iterdir()) == []
    assert user.redstart("apply", cwd=folder).code == 0
    assert {"bag.py", "pyproject.toml", "README.md", "tests"} <= {path.name for path in folder.iterdir()}
    assert is_passing(folder)


def test_missing_goal_or_missing_limit_exits_with_2(user, repo, tmp_path):
    user.environ |= {"REDSTART_MODELS__STRONG": "openai:scripted", "REDSTART_MODELS__BASE_URL": "http://127.0.0.1:9/v1"}
    (tmp_path / "empty").mkdir()
    assert improve(user, tmp_path / "empty", 1).code == 2
    result = user.redstart("improve", repo)
    assert result.code == 2
    assert all(flag in result.err for flag in ("--max-usd", "--max-minutes", "--no-limit"))


@pytest.mark.soak
def test_unreachable_server_exits_with_3_and_the_run_resumes(user, repo):
    model = Model([create_cycle("one"), create_cycle("two"), create_cycle("three")])
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        url = user.environ["REDSTART_MODELS__BASE_URL"]
        assert improve(user, repo, 3, "--stop-after", "plan").code == 130
        user.environ |= {"REDSTART_MODELS__BASE_URL": "http://127.0.0.1:9/v1"}
        down_result = user.redstart("resume", "-m", "openai:scripted", cwd=repo)
        assert down_result.code == 3
        assert "redstart resume" in down_result.err
        user.environ["REDSTART_MODELS__BASE_URL"] = url
        result = user.redstart("resume", "-m", "openai:scripted", cwd=repo)
    assert result.code == 0, result.out + result.err
    assert "kept 3 improvements of 3 cycles" in result.out
    assert model.asked == [(n, q) for n in (1, 2, 3) for q in ("plan", "reproduce", "patch")]


@pytest.mark.soak
def test_limits_end_the_run_with_the_kept_improvements(user, repo):
    with ScriptedServer(Model([create_cycle(f"f{number}") for number in range(9)])) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("improve", repo, "--pause", "0", "--max-minutes", "0.001")
        user.environ["REDSTART_LIMITS__TOKENS"] = "9000"
        tokens = user.redstart("improve", repo, "--pause", "0", "--max-usd", "1", "--max-iters", "8")
    assert (result.code, tokens.code) == (0, 0), result.out + tokens.out + tokens.err
    assert "kept 1 improvement of 1 cycle; the time limit of" in result.out
    assert re.search(r"kept [1-7] improvements? of [2-7] cycles; the next model call could", tokens.out)


@pytest.mark.soak
def test_interrupted_run_keeps_improvements_and_resumes(user, repo):
    question_received, release = threading.Event(), threading.Event()
    model = Model([create_cycle("one"), create_cycle("two")])

    def reply(request: Request) -> Reply:
        answer = model(request)
        if model.asked[-1] == (2, "patch"):
            question_received.set()
            return Reply(answer, wait=release)
        return Reply(answer)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        command = ["improve", str(repo), "--no-cap", "--pause", "0", "--max-iters", "2"]
        running = subprocess.Popen(
            [sys.executable, "-m", "redstart.cli.main", *command], env=user.environ, stdout=subprocess.PIPE, text=True
        )
        assert question_received.wait(120)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=300)
        release.set()
        assert running.returncode == 130
        assert "1 improvement kept so far" in out
        assert user.redstart("apply", cwd=repo).code == 0
        assert list_functions(repo) == ["total", "one"]
        assert user.redstart("undo", cwd=repo).code == 0
        resume_result = user.redstart("resume", cwd=repo)
    assert resume_result.code == 0, resume_result.out + resume_result.err
    assert "kept 2 improvements of 2 cycles" in resume_result.out
