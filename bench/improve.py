"""Cycle after cycle with a model that answers well, badly and with garbage, in a seeded mix: what remains of it?

The bench types 25 cycles of `redstart improve` on a tiny program as a user would, against a scripted server over real
HTTP. Each cycle is of one kind. Some end in an improvement, at once or after a mistake that is reported to the model.
The others must leave no trace: wrong code, a test that asserts nothing, a test that already passes, a change that
breaks another test, a change to the test itself, a correct change that takes more steps, or nonsense answers.

After every cycle, the last good version is checked out and its tests and its metric run outside of Redstart.
`cycles_green` counts the cycles after which all its tests pass. `worse` counts those after which a test of the start
fails or the metric is above that of the start. `kept_share` is the share of cycles correctly kept or dropped.

Without `--quick`, the command is killed with signal 9 at seeded moments and resumed each time, at the level standard;
`asked_twice` then counts the questions that were asked again although they had been answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import _paths  # noqa: F401
from _figures import expect_at_least, expect_at_most, expect_equal, print_figures
from redstart.app import settings as configuration
from redstart.app.improve import list_cycles
from redstart.app.runs import find_run
from redstart.app.wire import AppContext, open_app
from redstart.core.change import Snapshot
from redstart.core.run import RunState
from redstart.flow.child_runs import make_child_run_id
from support.scenarios import parse_question
from support.server import Request, ScriptedServer

CYCLES = 25
STATE_BYTES = 65536
TOTAL = "def total(numbers):\n    return sum(numbers)\n"
SLOW = "def total(numbers):\n    found = 0\n    for one in numbers:\n        found += one\n    return found\n"
FILES = {
    "bag.py": TOTAL,
    "tests/test_total.py": "from bag import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
    "conftest.py": "",
    "steps.py": (
        "import sys\n\nfrom bag import total\n\nsteps = 0\n\n\ndef count(frame, event, argument):\n"
        "    global steps\n    steps += event == 'line'\n    return count\n\n\n"
        "sys.settrace(count)\ntotal(list(range(50)))\nsys.settrace(None)\nprint('steps', steps)\n"
    ),
}
GARBAGE = ("I would rather talk about the weather.", '{"kind": ', "<<<<<<< SEARCH", "ok " * 400)
GOOD = ("good", "second_patch", "second_test", "second_plan")
BAD = ("wrong", "asserts_nothing", "green_already", "breaks_another", "slower", "changes_the_test")
LOST = ("garbage_plan", "garbage_test", "garbage_patch")


class Ran(NamedTuple):
    """The exit code of the command, its output, the number of kills and the seconds it took."""

    code: int
    kills: int
    seconds: float
    said: str


def mix(seed: int) -> list[str]:
    """Return every kind at least once, good kinds most often, in a seeded order."""
    chance = random.Random(seed)
    kinds = [*GOOD, *BAD, *LOST]
    kinds += [chance.choice(GOOD) for _ in range(6)] + [chance.choice(BAD) for _ in range(4)]
    kinds += [chance.choice(LOST) for _ in range(CYCLES - len(kinds))]
    chance.shuffle(kinds)
    return kinds


def block(path: str, search: str, text: str, head: str = "WHY: it is asked for") -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


class Model:
    """Answers a question according to its cycle, and to how often that cycle has asked it."""

    def __init__(self, kinds: list[str], seed: int) -> None:
        self._kinds, self._chance, self._lock = kinds, random.Random(seed), threading.Lock()
        self._asked: Counter[tuple[int, str]] = Counter()
        self._known: dict[str, str] = {}
        self.answered: Counter[str] = Counter()

    def __call__(self, request: Request) -> str:
        with self._lock:
            body = str(request.body)
            self.answered[body] += 1
            if body not in self._known:  # a question lost in a kill is asked again, unchanged
                self._known[body] = self._answer(request)
            return self._known[body]

    def _answer(self, request: Request) -> str:
        question_name = parse_question(request)
        number = _find_cycle(request, question_name)
        kind, name = self._kinds[number - 1], f"f{number}"
        self._asked[number, question_name] += 1
        is_first = self._asked[number, question_name] == 1
        if kind == f"garbage_{ {'reproduce': 'test'}.get(question_name, question_name) }":
            return self._chance.choice(GARBAGE)
        if kind == f"second_{ {'reproduce': 'test'}.get(question_name, question_name) }" and is_first:
            return self._chance.choice(GARBAGE)
        return {"plan": self._plan, "reproduce": self._test, "patch": self._patch}[question_name](kind, name, number)

    @staticmethod
    def _plan(kind: str, name: str, number: int) -> str:  # noqa: ARG004
        return json.dumps({"kind": "feature", "title": f"cycle {number}: add the function {name}", "criteria": []})

    @staticmethod
    def _test(kind: str, name: str, number: int) -> str:
        test = f"from bag import {name}\n\n\ndef test_{name}():\n    assert {name}() == {number}\n"
        if kind == "asserts_nothing":
            test = f"from bag import {name}\n\n\ndef test_{name}():\n    {name}()\n"
        if kind == "green_already":
            test = f"from bag import total\n\n\ndef test_{name}():\n    assert total([{number}]) == {number}\n"
        return block(f"tests/test_{name}.py", "", test, "SURE: high, it is plain")

    def _patch(self, kind: str, name: str, number: int) -> str:
        value = number + self._asked[number, "patch"] if kind == "wrong" else number
        function = f"def {name}():\n    return {value}\n"
        if kind == "changes_the_test":
            return block(f"tests/test_{name}.py", f"    assert {name}() == {number}\n", "    assert True\n")
        if kind == "breaks_another":
            return block("bag.py", "    return sum(numbers)\n", f"    return {number}\n\n\n{function}")
        if kind == "slower":
            return block("bag.py", TOTAL, f"{SLOW}\n\n{function}")
        return block("bag.py", TOTAL, f"{TOTAL}\n\n{function}")


def _find_cycle(request: Request, question_name: str) -> int:
    """Return the cycle of a question: its plan names it; before there is a plan, the last cycle's result does."""
    if question_name == "plan" and "You choose the next improvement" in request.text:
        numbers = re.findall(r"^cycle (\d+), (?:kept|dropped)", request.text, re.MULTILINE)
        return int(numbers[-1]) + 1 if numbers else 1
    return int(re.findall(r"cycle (\d+): add the function", request.text)[-1])


def improve(repo: Path, environ: dict[str, str], model: Model, kill_after: list[int]) -> Ran:
    """Run the command, kill it at each of the given numbers of questions, and resume it after each kill."""
    metric = f"{sys.executable} steps.py"
    flags = ["--no-cap", "--pause", "0", "--max-iters", str(CYCLES), "--metric", metric]
    arguments, kills, began = ["improve", str(repo), *flags], 0, time.monotonic()
    while True:
        running = subprocess.Popen(
            [sys.executable, "-m", "redstart.cli.main", *arguments],
            env=environ, cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        output = _read_until_exit(running, model, kill_after)
        if running.returncode != -signal.SIGKILL:
            return Ran(running.returncode, kills, time.monotonic() - began, output)
        kills += 1
        arguments = ["resume"]


def _read_until_exit(running: subprocess.Popen[str], model: Model, kill_after: list[int]) -> str:
    output = ""
    assert running.stdout is not None
    for line in running.stdout:
        output += line
        if kill_after and sum(model.answered.values()) >= kill_after[0]:
            kill_after.pop(0)
            running.kill()
    running.wait()
    return output


class Outside(NamedTuple):
    """The results of tests and metric on one version, without Redstart."""

    green: bool
    kept_tests: bool
    """Whether the tests of the start pass."""
    steps: int


def check_version(house: AppContext, version: Snapshot) -> Outside:
    with house.trees.checkout(version) as folder:
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, *arguments]
            return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)

        pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
        steps = run("steps.py").stdout.split()
        start = run(*pytest, "tests/test_total.py").returncode == 0
        return Outside(run(*pytest).returncode == 0, start, int(steps[-1]) if steps else sys.maxsize)


async def list_versions(house: AppContext, state: RunState) -> list[Snapshot]:
    """Return the last good version after each cycle, in order."""
    rows = await house.adapters.store.list_steps(state.run_id)
    # The first decision only starts a cycle; each later one knows how a cycle ended.
    return [row.state.draft or row.state.spec.base for row in rows][1:]


async def count_answers(house: AppContext, state: RunState) -> int:
    """Return the number of model answers that all runs have recorded."""
    runs = [state.run_id, *(make_child_run_id(state.run_id, number) for number in range(1, state.work.begun + 1))]
    records = [record for run in runs for record in await house.adapters.journal.list_records(run)]
    return sum(record.kind == "model" for record in records)


def judge(home: Path, repo: Path, kinds: list[str]) -> dict[str, float]:
    os.environ["REDSTART_HOME"] = str(home)
    with open_app(configuration.load()) as app:

        async def gather() -> tuple[RunState, list[Snapshot], list[bool]]:
            state = await app.adapters.store.load(await find_run(app, None, repo))
            return state, await list_versions(app, state), [cycle.kept for cycle in await list_cycles(app, state)]

        state, versions, kept_flags = asyncio.run(gather())
        recorded = asyncio.run(count_answers(app, state))
        results = {
            tree: check_version(app, item)
            for tree, item in {version.tree: version for version in (state.spec.base, *versions)}.items()
        }
    start = results[state.spec.base.tree]
    rightly = [was_kept is (kind in GOOD) for kind, was_kept in zip(kinds, kept_flags, strict=False)]
    for number, (kind, was_kept) in enumerate(zip(kinds, kept_flags, strict=False), 1):
        print(f"{number:>3}  {kind:<18}{'kept' if was_kept else 'dropped':<9}{'' if rightly[number - 1] else 'WRONG'}")
    cycle_results = [results[version.tree] for version in versions]
    return {
        "cycles_green": sum(item.green for item in cycle_results),
        "kept_share": round(sum(rightly) / CYCLES, 3),
        "worse": sum(not item.kept_tests or item.steps > start.steps for item in cycle_results),
        "state_bytes": len(state.model_dump_json().encode()),
        "recorded": recorded,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="all 25 cycles at the level quick, without kills")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--keep", type=Path, help="work in this new folder, and keep it")
    args = parser.parse_args()
    kinds = mix(args.seed)
    model = Model(kinds, args.seed)
    kills = [] if args.quick else sorted(random.Random(args.seed).sample(range(2, 70), 12))
    with tempfile.TemporaryDirectory() as temporary_folder, ScriptedServer(model) as server:
        folder = str(args.keep.absolute()) if args.keep else temporary_folder
        repo, home = Path(folder) / "bag", Path(folder) / "home"
        for path, text in FILES.items():
            (repo / path).parent.mkdir(parents=True, exist_ok=True)
            (repo / path).write_text(text)
        environ = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": folder,
            "REDSTART_HOME": str(home),
            "REDSTART_VERIFY": "quick" if args.quick else "standard",
            "REDSTART_LIMITS__ITERATIONS": "2",
            "REDSTART_MODELS__STRONG": "openai:scripted",
            "REDSTART_MODELS__BASE_URL": server.openai_url,
            "LC_ALL": "C.UTF-8",
        }
        result = improve(repo, environ, model, kills)
        print("\n".join(result.said.splitlines()[-4:]))
        values = judge(home, repo, kinds)
    # A question in flight at the moment of a kill had no answer yet.
    repeated = sum(model.answered.values()) - values["recorded"] - result.kills
    figures = [
        expect_at_least("cycles_green", values["cycles_green"], CYCLES),
        expect_at_least("kept_share", values["kept_share"], 1),
        expect_at_most("worse", values["worse"], 0),
        expect_at_most("state_bytes", values["state_bytes"], STATE_BYTES),
        expect_equal("asked_twice", max(repeated, 0), 0),
        expect_at_least("kills", result.kills, 0 if args.quick else 5),
    ]
    aims_hold = print_figures("improve", figures, seconds=round(result.seconds, 1), exit=result.code)
    return 0 if aims_hold and result.code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
