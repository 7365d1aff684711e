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

from support.scenarios import question
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
        return answers[question(request)]


def block(path: str, search: str, text: str, head: str = "WHY: it is asked for") -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


def planned(name: str) -> str:
    return json.dumps({"kind": "feature", "title": f"add the function {name}", "criteria": [f"{name}() is there"]})


def adds(name: str, value: str = "1", returns: str | None = None) -> Cycle:
    """Return a cycle that adds a function. If its returned value is not `value`, its test fails."""
    test = f"from bag import {name}\n\n\ndef test_{name}():\n    assert {name}() == {value}\n"
    code = f"def total(numbers):\n    return sum(numbers)\n\n\ndef {name}():\n    return {returns or value}\n"
    return Cycle(
        planned(name),
        block(f"tests/test_{name}.py", "", test, "SURE: high, it is plain"),
        block("bag.py", "def total(numbers):\n    return sum(numbers)\n", code),
    )


class Model:
    """Answers with the script of each cycle; the first plan question of a cycle starts the next script."""

    def __init__(self, cycles: Sequence[Cycle]) -> None:
        self._cycles, self._now = list(cycles), -1
        self.asked: list[tuple[int, str]] = []

    def __call__(self, request: Request) -> str:
        asked = question(request)
        if asked == "plan" and not self._is_again(request):
            self._now += 1
        self.asked.append((self._now + 1, asked))
        return self._cycles[self._now].reply(request)

    @staticmethod
    def _is_again(request: Request) -> bool:
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


def improve(user, repo: Path, count: int, *more: str):
    return user.redstart("improve", repo, "--no-cap", "--pause", "0", "--max-iters", str(count), *more)


def is_green(repo: Path) -> bool:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], cwd=repo, capture_output=True, check=False
    )
    return done.returncode == 0


def functions(repo: Path) -> list[str]:
    return re.findall(r"^def (\w+)", (repo / "bag.py").read_text(), re.MULTILINE)


def test_good_ones_are_kept_and_all_others_leave_no_trace(user, repo):
    empty = block("tests/test_e.py", "", "def test_e():\n    pass\n")
    green = block("tests/test_g.py", "", "from bag import total\n\n\ndef test_g():\n    assert total([]) == 0\n")
    breaks = adds("broken")._replace(
        patch=block("bag.py", "    return sum(numbers)\n", "    return 0\n\n\ndef broken():\n    return 1\n")
    )
    model = Model(
        [
            adds("one"),
            Cycle(GARBAGE, GARBAGE, GARBAGE),
            adds("wrong", "1", "2"),
            adds("two"),
            Cycle(planned("e"), empty, GARBAGE),
            Cycle(planned("g"), green, GARBAGE),
            breaks,
            adds("three"),
        ]
    )
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        ran = improve(user, repo, 8)
        plans = [r.text for r in server.requests if question(r) == "plan" and len(r.messages) == 1]
    assert ran.code == 0, ran.out + ran.err
    assert "kept 3 improvements of 8 cycles" in ran.out
    assert (functions(repo), (repo / "bag.py").read_text()) == (["total"], CODE), "the folder itself is not touched"
    assert "cycle 1, kept: feature: add the function one" in plans[1]
    assert "cycle 2, dropped (the model named no usable improvement" in plans[-1]
    assert "def one():" in plans[-1]
    shown = user.redstart("show", cwd=repo)
    came_to = re.findall(r"^cycle +(\d+)  (\w+) +(.*)$", shown.out, re.MULTILINE)
    assert [(number, what) for number, what, _ in came_to] == [
        (str(number), "kept" if number in (1, 4, 8) else "dropped") for number in range(1, 9)
    ]
    assert came_to[0][2] == "feature: add the function one"
    for reason in ("the model proposed the same patch", "asserts nothing", "passes on the code as it is"):
        assert reason in shown.out
    assert user.redstart("apply", cwd=repo).code == 0
    assert sorted(functions(repo)) == ["one", "three", "total", "two"]
    assert is_green(repo)
    assert not (repo / "tests" / "test_wrong.py").exists()
    run_id = re.findall(r"^run (\w+)  improve", shown.out, re.MULTILINE)[0]
    assert "Verified: 1 test" in user.redstart("show", f"{run_id}.1", "--proof").out
    assert f"{run_id}.1 --proof" in user.redstart("show", run_id, "--proof").err


def test_a_metric_that_gets_worse_drops_what_is_green(user, repo):
    lines = "import pathlib; print('lines', len(pathlib.Path('bag.py').read_text().splitlines()))"
    model = Model([adds("one"), adds("two")])
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        ran = improve(user, repo, 2, "--metric", f'python -c "{lines}"')
        longer = improve(user, repo, 0, "--metric", "python nothing.py", "--max-minutes", "1")
    assert ran.code == 1, ran.out + ran.err
    assert "the metric got worse: 6, before 2 (smaller is better)" in ran.out
    assert "kept 0 improvements of 2 cycles" in ran.out
    assert longer.code == 2, "--no-limit contradicts"


@pytest.mark.soak
def test_a_metric_that_holds_keeps_it_and_one_that_cannot_be_measured_ends(user, repo):
    lines = "import pathlib; print('lines', len(pathlib.Path('bag.py').read_text().splitlines()))"
    with ScriptedServer(Model([adds("one"), adds("two"), adds("three")])) as server:
        user.uses(server, Wire.openai)
        kept = improve(user, repo, 1, "--metric", f'python -c "{lines}"', "--better", "larger")
        unmeasured = improve(user, repo, 5, "--metric", "python nothing.py")
    assert kept.code == 0, kept.out + kept.err
    assert "the metric is 6, was 2" in kept.out
    assert unmeasured.code == 3, unmeasured.out
    assert "kept 0 improvements of 1 cycle; the metric could not be measured" in unmeasured.out


def test_red_tests_come_first(user, repo):
    (repo / "bag.py").write_text(CODE.replace("sum(numbers)", "sum(numbers) + 1"))
    right = block("bag.py", "    return sum(numbers) + 1\n", "    return sum(numbers)\n")
    with ScriptedServer(Model([Cycle(planned("one"), GARBAGE, right)])) as server:
        user.uses(server, Wire.openai)
        ran = improve(user, repo, 1)
        asked = [question(request) for request in server.requests]
    assert ran.code == 0, ran.out + ran.err
    assert asked == ["plan", "patch"]
    assert "bug: the tests that were red already" in user.redstart("show", cwd=repo).out


@pytest.mark.soak
def test_an_empty_folder_gets_the_program_first(user, tmp_path):
    folder = tmp_path / "projects" / "bag"
    folder.mkdir(parents=True)
    first = Cycle(
        json.dumps({"summary": "one function", "subtasks": []}),
        block("tests/test_total.py", "", TEST),
        block("bag.py", "", CODE, "WHY: it is asked for"),
    )
    model = Model([first, adds("one")])
    made = []

    def reply(request: Request) -> str:
        # The questions of the program itself come before the first plan of an improvement.
        if "You choose the next improvement" in request.text and not made:
            made.append(True)
            model._now = 0
        if not made:
            return first.reply(request)
        return model(request)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        ran = improve(user, folder, 2, "--goal", "a bag of numbers with a total")
    assert ran.code == 0, ran.out + ran.err
    assert "kept 2 improvements of 2 cycles" in ran.out
    assert list(folder.iterdir()) == []
    assert user.redstart("apply", cwd=folder).code == 0
    assert {"bag.py", "pyproject.toml", "README.md", "tests"} <= {path.name for path in folder.iterdir()}
    assert is_green(folder)


def test_neither_a_program_nor_a_goal_is_2_and_so_is_no_cap(user, repo, tmp_path):
    user.environ |= {"REDSTART_MODELS__STRONG": "openai:scripted", "REDSTART_MODELS__BASE_URL": "http://127.0.0.1:9/v1"}
    (tmp_path / "empty").mkdir()
    assert improve(user, tmp_path / "empty", 1).code == 2
    ran = user.redstart("improve", repo)
    assert ran.code == 2
    assert all(flag in ran.err for flag in ("--max-usd", "--max-minutes", "--no-limit"))


@pytest.mark.soak
def test_a_server_that_is_down_is_3_and_the_run_goes_on_where_it_was(user, repo):
    model = Model([adds("one"), adds("two"), adds("three")])
    with ScriptedServer(model) as server:
        user.uses(server, Wire.openai)
        url = user.environ["REDSTART_MODELS__BASE_URL"]
        assert improve(user, repo, 3, "--stop-after", "plan").code == 130
        user.environ |= {"REDSTART_MODELS__BASE_URL": "http://127.0.0.1:9/v1"}
        down = user.redstart("resume", "-m", "openai:scripted", cwd=repo)
        assert down.code == 3
        assert "redstart resume" in down.err
        user.environ["REDSTART_MODELS__BASE_URL"] = url
        ran = user.redstart("resume", "-m", "openai:scripted", cwd=repo)
    assert ran.code == 0, ran.out + ran.err
    assert "kept 3 improvements of 3 cycles" in ran.out
    assert model.asked == [(n, q) for n in (1, 2, 3) for q in ("plan", "reproduce", "patch")]


@pytest.mark.soak
def test_the_caps_end_it_with_what_was_kept(user, repo):
    with ScriptedServer(Model([adds(f"f{number}") for number in range(9)])) as server:
        user.uses(server, Wire.openai)
        ran = user.redstart("improve", repo, "--pause", "0", "--max-minutes", "0.001")
        user.environ["REDSTART_LIMITS__TOKENS"] = "9000"
        tokens = user.redstart("improve", repo, "--pause", "0", "--max-usd", "1", "--max-iters", "8")
    assert (ran.code, tokens.code) == (0, 0), ran.out + tokens.out + tokens.err
    assert "kept 1 improvement of 1 cycle; the time limit of" in ran.out
    assert re.search(r"kept [1-7] improvements? of [2-7] cycles; the next model call could", tokens.out)


@pytest.mark.soak
def test_interrupted_it_keeps_what_is_good_and_goes_on(user, repo):
    asked, release = threading.Event(), threading.Event()
    model = Model([adds("one"), adds("two")])

    def reply(request: Request) -> Reply:
        said = model(request)
        if model.asked[-1] == (2, "patch"):
            asked.set()
            return Reply(said, wait=release)
        return Reply(said)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        command = ["improve", str(repo), "--no-cap", "--pause", "0", "--max-iters", "2"]
        running = subprocess.Popen(
            [sys.executable, "-m", "redstart.cli.main", *command], env=user.environ, stdout=subprocess.PIPE, text=True
        )
        assert asked.wait(120)
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=300)
        release.set()
        assert running.returncode == 130
        assert "1 improvement kept so far" in out
        assert user.redstart("apply", cwd=repo).code == 0
        assert functions(repo) == ["total", "one"]
        assert user.redstart("undo", cwd=repo).code == 0
        ended = user.redstart("resume", cwd=repo)
    assert ended.code == 0, ended.out + ended.err
    assert "kept 2 improvements of 2 cycles" in ended.out
