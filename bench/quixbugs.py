"""A real model through the whole loop on the 40 programs of QuixBugs, each with a one-line bug.

    python bench/quixbugs.py --url http://127.0.0.1:8080 --way whole-code     # asks the model; continues after a stop
    python bench/quixbugs.py                                                  # counts, and tests every patch again

Each task is a repo of its own with the program, its public tests and their data (`REDSTART_DATA`, see
docs/benchmarks.md). The bench passes it to `redstart fix` as a user would, with at most five attempts, a home without
memory, and one form of edits: whole files or diffs, as text or constrained by a JSON schema. Whole files are requested
without documentation (`whole-code`); the rows of `whole-text` are older than this rule. Each result is a row of
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

from _figures import Figure, expect_at_least, expect_equal, print_figures

RESULTS = Path(__file__).parent / "results" / "quixbugs.jsonl"
PLAIN_LOOP = {1: 7, 5: 18}
"""Solved by the plain loop with the same model, by attempts; see docs/benchmarks.md."""
AIMS = {"whole-code": {1: 17, 5: 24}}
"""What a form must solve, by attempts; without an aim, more than the plain loop."""
ATTEMPTS = 5
MINUTES = 30
QUICK = 8
WAYS: dict[str, dict[str, object]] = {
    "whole-code": {"edits": "whole", "shapes": False},
    "diff-text": {"edits": "diff", "shapes": False},
    "whole-json": {"edits": "whole", "shapes": True, "json_edits": True},
    "block-json": {"edits": "block", "shapes": True, "json_edits": True},
}
OLD_WAY = "whole-text"
"""Whole files with all their documentation, as they were requested before. No new run can ask for them."""

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


def load_tasks() -> dict[str, dict[str, Any]]:
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
    for arguments in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "as it is")):
        subprocess.run(["git", *arguments], cwd=repo, check=True)


def format_settings(url: str, edit_form: str) -> str:
    profile = {"context": 4096, "looks": 0, "brief": True} | WAYS[edit_form]
    lines = [f"{name} = {json.dumps(value)}" for name, value in profile.items()]
    models = f'[models]\nstrong = "openai:local"\nbase_url = "{url}/v1"\ndeadline = 1800\npatience = 3600\n'
    options = '[models.options."openai:local"]\nmax_tokens = 500\n'
    return "\n".join([models, options, '[models.profiles."openai:local"]', *lines, ""])


def solve(task: dict[str, Any], url: str, edit_form: str, attempts: int) -> dict[str, Any]:
    """Run one task to its end and return the result that `redstart fix --json` reports."""
    with tempfile.TemporaryDirectory() as folder:
        home, repo = Path(folder), Path(folder) / "repo"
        lay_out(task, repo)
        (home / "config" / "redstart").mkdir(parents=True)
        (home / "config" / "redstart" / "config.toml").write_text(format_settings(url, edit_form))
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
        completed = subprocess.run(
            [str(limit) for limit in (*command, *limits)], env=environ, capture_output=True, text=True
        )
        events = [json.loads(line) for line in completed.stdout.splitlines() if line.startswith("{")]
        ending = _read_ending(events)
        return {
            "way": edit_form,
            "of": attempts,
            "task": task["name"],
            "exit": completed.returncode,
            **ending,
            "seconds": round(time.monotonic() - began, 1),
            # A finished run has a result. An exit code is not enough: Python's code for a crash is also one of ours.
            "error": "" if ending["result"] else completed.stderr[-600:] or f"exit {completed.returncode}",
            "causes": [_find_cause(attempt) for attempt in _iter_attempts(events)],
            "patch": patch.read_text() if patch.is_file() else "",
        }


def _read_ending(events: list[dict[str, Any]]) -> dict[str, Any]:
    last = events[-1]["data"] if events and events[-1]["name"] == "run" else {}
    fields = ("result", "reason", "attempts", "calls", "tokens")
    return {name: last.get(name) for name in fields}


def _iter_attempts(events: list[dict[str, Any]]) -> Iterator[dict[str, dict[str, Any]]]:
    """Yield, for each attempt, the data that its steps reported at their end."""
    attempts: dict[int, dict[str, dict[str, Any]]] = {}
    for event in events:
        if event["phase"] == "end" and event["name"] != "run":
            attempts.setdefault(event["attempt"], {})[event["name"]] = event["data"]
    yield from attempts.values()


def _find_cause(steps: dict[str, dict[str, Any]]) -> str:
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


def load_rows() -> list[dict[str, Any]]:
    """Return the rows; for a task that crashed and ran again, only the last one."""
    rows = map(json.loads, RESULTS.read_text().splitlines() if RESULTS.is_file() else [])
    return list({(row["way"], row["of"], row["task"]): row for row in rows}.values())


def ask_all(url: str, edit_form: str, attempts: int) -> None:
    existing = {
        row["task"] for row in load_rows() if row["way"] == edit_form and row["of"] >= attempts and not row["error"]
    }
    RESULTS.parent.mkdir(exist_ok=True)
    for name, task in load_tasks().items():
        if name in existing:
            continue
        row = solve(task, url, edit_form, attempts)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            edit_form,
            name,
            row["result"],
            row["attempts"],
            row["causes"],
            f"{row['seconds']} s",
            row["error"],
            flush=True,
        )


def count(*, quick: bool) -> list[Figure]:
    all_tasks, rows = load_tasks(), load_rows()
    figures: list[Figure] = []
    dishonest = crashes = 0
    for edit_form in (*WAYS, OLD_WAY):
        form_rows = [row for row in rows if row["way"] == edit_form]
        full_rows = [row for row in form_rows if row["of"] == ATTEMPTS]
        row_by_task = {row["task"]: row for row in (*form_rows, *full_rows)}
        solved_once = sum(row["result"] == "verified" and row["attempts"] == 1 for row in row_by_task.values())
        solved_count = sum(row["result"] == "verified" for row in full_rows)
        print(
            f"{edit_form}: {solved_once} of {len(row_by_task)} tasks solved in one attempt, {solved_count} of "
            f"{len(full_rows)} in {ATTEMPTS}"
        )
        claimed = [row for row in form_rows if row["result"] == "verified"]
        dishonest += sum(
            not is_green(all_tasks[row["task"]], row["patch"]) for row in (claimed[:QUICK] if quick else claimed)
        )
        crashes += sum(bool(row["error"]) for row in form_rows)
        aim = AIMS.get(edit_form) or {attempts: solved + 1 for attempts, solved in PLAIN_LOOP.items()}
        if len(row_by_task) == len(all_tasks):
            figures.append(expect_at_least(f"{edit_form}_solved_1", solved_once, aim[1]))
        if len(full_rows) == len(all_tasks):
            figures.append(expect_at_least(f"{edit_form}_solved_5", solved_count, aim[ATTEMPTS]))
    return [*figures, expect_equal("dishonest", dishonest, 0), expect_equal("crashes", crashes, 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an OpenAI-compatible endpoint, without /v1; without it only counts")
    parser.add_argument("--way", choices=sorted(WAYS), default="whole-code")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    if args.url:
        ask_all(args.url, args.way, args.attempts)
    print_figures("quixbugs", count(quick=args.quick))


if __name__ == "__main__":
    main()
