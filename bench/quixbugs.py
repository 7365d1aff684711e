"""A real model through the whole loop on the 40 programs of QuixBugs, each with a one-line bug.

    python bench/quixbugs.py --url http://127.0.0.1:8080 --way whole-text     # asks the model; continues after a stop
    python bench/quixbugs.py                                                  # counts, and tests every patch again

Each task is a repo of its own with the program, its public tests and their data (`REDSTART_DATA`, see
docs/benchmarks.md). The bench passes it to `redstart fix` as a user would, with at most five attempts, a home without
memory, and one form of edits: whole files or diffs, as text or constrained by a JSON schema. Each result is a row of
`results/quixbugs.jsonl` that includes the final patch. Without `--url` no model is asked: the bench counts the rows,
applies every patch reported as verified to its program, and tests it again. `--quick` does that for the first eight
patches of each form.

A test that computes for longer than a second fails: several of the bugs are endless loops.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _figures import Figure, at_least, exactly, print_figures

RESULTS = Path(__file__).parent / "results" / "quixbugs.jsonl"
PLAIN_LOOP = {1: 7, 5: 18}
"""Solved by the plain loop with the same model, by attempts; see docs/benchmarks.md."""
ATTEMPTS = 5
MINUTES = 30
QUICK = 8
WAYS: dict[str, dict[str, object]] = {
    "whole-text": {"edits": "whole", "shapes": False},
    "diff-text": {"edits": "diff", "shapes": False},
    "whole-json": {"edits": "whole", "shapes": True, "json_edits": True},
    "block-json": {"edits": "block", "shapes": True, "json_edits": True},
}

CONFTEST = '''"""The tests run on the program at hand, and a test that does not end is red."""

import signal

import pytest


def pytest_configure(config):
    pytest.use_correct = False
    pytest.run_slow = False


@pytest.fixture(autouse=True)
def ends():
    def too_long(number, frame):
        raise TimeoutError("the test did not end")

    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
'''


def tasks() -> dict[str, dict[str, Any]]:
    folder = os.environ.get("REDSTART_DATA")
    if not folder or not (file := Path(folder) / "quixbugs_py.jsonl").is_file():
        sys.exit("REDSTART_DATA is not a folder with quixbugs_py.jsonl: see docs/benchmarks.md")
    return {row["name"]: row for row in map(json.loads, file.read_text().splitlines())}


def lay_out(task: dict[str, Any], repo: Path) -> None:
    """Make a git repo with the program, its tests and their data."""
    name = task["name"]
    support = json.loads((Path(os.environ["REDSTART_DATA"]) / "quixbugs_support.json").read_text())
    files = {
        f"python_programs/{name}.py": task["buggy"].lstrip("\n"),
        f"python_testcases/test_{name}.py": task["test"],
        "python_testcases/load_testdata.py": support["load_testdata.py"],
        "python_testcases/node.py": support["node.py"],
        "conftest.py": CONFTEST,
        "pytest.ini": "[pytest]\npythonpath = . python_testcases\n",
    }
    if task["cases"]:
        files[f"json_testcases/{name}.json"] = task["cases"]
    for path, text in files.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "as it is")):
        subprocess.run(["git", *words], cwd=repo, check=True)


def settings(url: str, way: str) -> str:
    profile = {"context": 4096, "looks": 0, "brief": True} | WAYS[way]
    lines = [f"{name} = {json.dumps(value)}" for name, value in profile.items()]
    models = f'[models]\nstrong = "openai:local"\nbase_url = "{url}/v1"\ndeadline = 1800\npatience = 3600\n'
    options = '[models.options."openai:local"]\nmax_tokens = 500\n'
    return "\n".join([models, options, '[models.profiles."openai:local"]', *lines, ""])


def solve(task: dict[str, Any], url: str, way: str, attempts: int) -> dict[str, Any]:
    """Run one task to its end and return the result that `redstart fix --json` reports."""
    with tempfile.TemporaryDirectory() as folder:
        home, repo = Path(folder), Path(folder) / "repo"
        lay_out(task, repo)
        (home / "config" / "redstart").mkdir(parents=True)
        (home / "config" / "redstart" / "config.toml").write_text(settings(url, way))
        patch = home / "made.patch"
        command = [sys.executable, "-m", "redstart.cli.main", "fix", repo, "--json", "--verify", "quick"]
        limits = ["--max-iters", attempts, "--max-minutes", MINUTES, "--patch", patch]
        environ = {key: value for key, value in os.environ.items() if not key.startswith(("REDSTART_", "OPENAI_"))}
        environ |= {
            "REDSTART_HOME": str(home / "home"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "OPENAI_API_KEY": "none",
        }
        began = time.monotonic()
        done = subprocess.run(
            [str(limit) for limit in (*command, *limits)], env=environ, capture_output=True, text=True
        )
        events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        ending = _ending(events)
        return {
            "way": way,
            "of": attempts,
            "task": task["name"],
            "exit": done.returncode,
            **ending,
            "seconds": round(time.monotonic() - began, 1),
            # A finished run has a result. An exit code is not enough: Python's code for a crash is also one of ours.
            "error": "" if ending["result"] else done.stderr[-600:] or f"exit {done.returncode}",
            "causes": [_cause(attempt) for attempt in _attempts(events)],
            "patch": patch.read_text() if patch.is_file() else "",
        }


def _ending(events: list[dict[str, Any]]) -> dict[str, Any]:
    last = events[-1]["data"] if events and events[-1]["name"] == "run" else {}
    wanted = ("result", "reason", "attempts", "calls", "tokens")
    return {name: last.get(name) for name in wanted}


def _attempts(events: list[dict[str, Any]]) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield, for each attempt, the data that its steps reported at their end."""
    found: dict[int, dict[str, dict[str, Any]]] = {}
    for event in events:
        if event["phase"] == "end" and event["name"] != "run":
            found.setdefault(event["attempt"], {})[event["name"]] = event["data"]
    yield from found.values()


def _cause(steps: dict[str, dict[str, Any]]) -> str:
    """Return why an attempt did not end green, in at most three words."""
    if steps.get("patch", {}).get("fault"):
        return "no edit"
    if "apply" in steps and not steps["apply"].get("ok"):
        return "edit refused" if steps["apply"].get("refused") else "edit not applied"
    if steps.get("check", {}).get("fault") or steps.get("check", {}).get("count"):
        return "findings"
    if "test" not in steps:
        return "not tested"
    return "green" if steps["test"].get("honest_green") else "still red"


def is_green(task: dict[str, Any], patch: str) -> bool:
    """Return whether the public tests pass with this patch, independently of Redstart's own verdict."""
    with tempfile.TemporaryDirectory() as folder:
        repo = Path(folder)
        lay_out(task, repo)
        applied = subprocess.run(["git", "apply", "-"], cwd=repo, input=patch, text=True, check=False)
        tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x"]
        return (
            applied.returncode == 0
            and subprocess.run(tests, cwd=repo, capture_output=True, check=False).returncode == 0
        )


def known() -> list[dict[str, Any]]:
    """Return the rows; for a task that crashed and ran again, only the last one."""
    rows = map(json.loads, RESULTS.read_text().splitlines() if RESULTS.is_file() else [])
    return list({(row["way"], row["of"], row["task"]): row for row in rows}.values())


def ask_all(url: str, way: str, attempts: int) -> None:
    there = {row["task"] for row in known() if row["way"] == way and row["of"] >= attempts and not row["error"]}
    RESULTS.parent.mkdir(exist_ok=True)
    for name, task in tasks().items():
        if name in there:
            continue
        row = solve(task, url, way, attempts)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(way, name, row["result"], row["attempts"], row["causes"], f"{row['seconds']} s", row["error"], flush=True)


def count(*, quick: bool) -> list[Figure]:
    every, rows = tasks(), known()
    figures: list[Figure] = []
    dishonest = crashes = 0
    for way in WAYS:
        own = [row for row in rows if row["way"] == way]
        most = [row for row in own if row["of"] == ATTEMPTS]
        first = {row["task"]: row for row in (*own, *most)}
        once = sum(row["result"] == "verified" and row["attempts"] == 1 for row in first.values())
        green = sum(row["result"] == "verified" for row in most)
        print(f"{way}: {once} of {len(first)} tasks solved in one attempt, {green} of {len(most)} in {ATTEMPTS}")
        said = [row for row in own if row["result"] == "verified"]
        dishonest += sum(not is_green(every[row["task"]], row["patch"]) for row in (said[:QUICK] if quick else said))
        crashes += sum(bool(row["error"]) for row in own)
        if len(first) == len(every):
            figures.append(at_least(f"{way}_solved_1", once, PLAIN_LOOP[1] + 1))
        if len(most) == len(every):
            figures.append(at_least(f"{way}_solved_5", green, PLAIN_LOOP[5] + 1))
    return [*figures, exactly("dishonest", dishonest, 0), exactly("crashes", crashes, 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an OpenAI-compatible endpoint, without /v1; without it only counts")
    parser.add_argument("--way", choices=sorted(WAYS), default="whole-text")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    if given.url:
        ask_all(given.url, given.way, given.attempts)
    print_figures("quixbugs", count(quick=given.quick))


if __name__ == "__main__":
    main()
