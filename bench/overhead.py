"""The cost of a run beyond its bare parts: an iteration, the proof of a fix at each `--verify` level, and `verify`.

`iteration_ratio`: the time of an iteration divided by that of its suite run in bare bwrap plus one `git apply`. The
model answers at once. Both sides alternate on the same small repo, whose suite of 10 tests takes about half a second;
the figure is the median of the rounds' ratios. The iteration is the second attempt of a run at the level `quick`, from
its first step to the commit of its decision, driven by the default engine with the store on disk.

`LEVEL_short`, `LEVEL_long`: the time of a complete run, from the snapshot to the proven patch, divided by that of one
plain run of the suite in bare bwrap, on a suite of 2 seconds and on one of 5 minutes (`--long SECONDS` for another
length). Both suites only sleep. Two tests fail, and the patch has two hunks, one of which is needed. The runs on the
long suite are parallel, because a sleeping suite takes no processor time; those on the short suite are sequential, and
the figure is the median of the rounds.

`verify_short`, `verify_long`: the time of `redstart verify` on a change of one file that fixes two tests, at the level
`standard` with `--mutants 0`, divided by that of a plain run of the suite. The results of the base are kept. The suites
sleep for 2 and for 60 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from _figures import expect_at_most, print_figures, report_value
from redstart.app.runs import RunRequest, create_fix_run, go_on
from redstart.app.settings import Models, Settings
from redstart.app.verify.verify import VerifyRequest, verify
from redstart.app.wire import load_engine, open_app
from redstart.core.events import Event, Phase
from redstart.core.run import Level, Limits, Result, RunState
from redstart.core.verification import Verification, VerificationEnd
from redstart.testing.model import ScriptedModel

AIMS = {
    "iteration_ratio": 1.5,
    "standard_short": 8,
    "strict_short": 14,
    "standard_long": 2.5,
    "verify_short": 6,
    "verify_long": 2.5,
}
CODE = "def double(number):\n    return number + number + 1\n"
TESTS = "import time\n\nimport pytest\n\nfrom calc import double\n\n\n@pytest.mark.parametrize('number', range(10))\n"
TESTS += "def test_double(number):\n    time.sleep(0.01)\n    assert double(number) == 2 * number\n"
CARD = '{"summary": "s", "root_cause": "r", "fix": "f", "debug_steps": []}'


def answer(line: str) -> str:
    search = "    return number + number + 1"
    return f"WHY: one too many\n\ncalc.py\n<<<<<<< SEARCH\n{search}\n=======\n{line}\n>>>>>>> REPLACE\n"


WRONG, RIGHT = answer("    return number + number + 2"), answer("    return number + number")


class Slow(NamedTuple):
    """A suite that sleeps. Its first file imports the code with the bug; two tests of that file fail."""

    files: int
    tests: int
    """Number of tests in each file."""
    pause: float
    """Seconds that each test sleeps."""

    def write(self, repo: Path) -> Path:
        repo.mkdir()
        (repo / "calc.py").write_text(PADDED_CODE)
        for number in range(self.files):
            name = "calc" if number == 0 else f"other_{number}"
            if number:
                (repo / f"{name}.py").write_text("def double(number):\n    return number + number\n")
            (repo / f"test_{name}.py").write_text(
                f"import time\n\nimport pytest\n\nfrom {name} import double\n\n\n"
                f"@pytest.mark.parametrize('number', range({self.tests}))\ndef test_double(number):\n"
                f"    time.sleep({self.pause})\n    assert double(number) == 2 * number\n"
            )
        return repo


SHORT = Slow(5, 8, 0.04)
LONG_FILES, LONG_TESTS, LONG_SECONDS = 40, 8, 300.0
VERIFY_SECONDS = 60.0
PADDED_CODE = (
    "def double(number):\n    return number + number if number < 6 else number + number + 1\n\n\n"
    "def half(number):\n    return number / 2\n\n\ndef name():\n    return 'calc'\n"
)
NEEDED = "    return number + number if number < 6 else number + number + 1", "    return number + number"
NOT_NEEDED = "    return 'calc'", "    return 'calculator'"


def build_padded_answer() -> str:
    edits = (f"calc.py\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n" for old, new in (NEEDED, NOT_NEEDED))
    return "\n".join(("WHY: one too many\n", *edits))


def run_fix(home: Path, repo: Path, level: Level, answers: list[str]) -> tuple[RunState, list[Event]]:
    """Run the fix on the repo; return its final state and its events."""
    events: list[Event] = []
    model = "openai:instant"
    settings = Settings(home=home, models=Models(strong=model, fast=model))

    async def run() -> RunState:
        with open_app(settings, listen=events.append) as base_app:
            app = base_app.with_sandbox().with_model(ScriptedModel(answers))
            state = await create_fix_run(app, repo, RunRequest(Limits(minutes=None), own_python=True, verify=level))
            return (await go_on(app, state.run_id, load_engine("langgraph"))).state

    state = asyncio.run(run())
    assert state.result is Result.verified, state.reason
    return state, events


def measure_iteration(folder: Path, repo: Path) -> tuple[float, dict[str, float], int]:
    """Return the seconds of one iteration, the seconds of each of its steps, and the number of its suite runs."""
    state, events = run_fix(folder / "home", repo, Level.quick, [WRONG, RIGHT, CARD])
    second_attempt = [event for event in events if event.attempt == 2 and event.name != "run"]
    steps = {event.name: float(str(event.data["seconds"])) for event in second_attempt if event.phase is Phase.end}
    assert state.now.test is not None
    return second_attempt[-1].time - second_attempt[0].time, steps, state.now.test.runs


def measure_run(home: Path, repo: Path, level: Level) -> float:
    began = time.perf_counter()
    run_fix(home, repo, level, [build_padded_answer(), CARD])
    return time.perf_counter() - began


def measure_bare_suite(repo: Path, scratch: Path) -> float:
    """Return the seconds of the same suite on a fresh copy, in bwrap without any of our code."""
    work = scratch / "work"
    shutil.copytree(repo, work)
    began = time.perf_counter()
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--bind", str(work), str(work), "--proc", "/proc"]
    command += ["--dev", "/dev", "--chdir", str(work), "--", sys.executable, "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", f"--junitxml={work}/junit.xml"]
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    completed = subprocess.run(command, env=environ, capture_output=True)
    seconds = time.perf_counter() - began
    shutil.rmtree(work)
    assert completed.returncode == 1, completed.stdout
    return seconds


def measure_bare_apply(repo: Path, scratch: Path) -> float:
    work = scratch / "apply"
    shutil.copytree(repo, work)
    patch = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def double(number):\n"
    patch += "-    return number + number + 1\n+    return number + number\n"
    began = time.perf_counter()
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=work, check=True)
    seconds = time.perf_counter() - began
    shutil.rmtree(work)
    return seconds


def compute_iteration_ratio(folder: Path, rounds: int) -> float:
    """Return the median of the rounds' ratios; print where the time goes."""
    repo = folder / "repo"
    repo.mkdir()
    (repo / "calc.py").write_text(CODE)
    (repo / "test_calc.py").write_text(TESTS)
    measure_iteration(folder, repo)  # warm-up: loads modules
    ratios: list[float] = []
    profile: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        iteration_seconds, steps, runs = measure_iteration(folder, repo)
        suites = sum(measure_bare_suite(repo, folder) for _ in range(runs))
        ratios.append(iteration_seconds / (suites + measure_bare_apply(repo, folder)))
        for step, seconds in (*steps.items(), ("(bare suite)", suites), ("(whole iteration)", iteration_seconds)):
            profile[step].append(seconds)
    for step, seconds in profile.items():
        print(f"{step:<18} {1000 * statistics.median(seconds):7.1f} ms")
    print(f"rounds {rounds}, ratios {min(ratios):.2f} to {max(ratios):.2f}", flush=True)
    return statistics.median(ratios)


def measure_short_levels(folder: Path, rounds: int) -> dict[str, float]:
    repo = SHORT.write(folder / "short")
    ratios: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        bare_seconds = measure_bare_suite(repo, folder)
        for level in Level:
            seconds = measure_run(folder / "home", repo, level)
            ratios[f"{level.value}_short"].append(seconds / bare_seconds)
            print(f"short {level.value:<9} {seconds:7.1f} s, a plain run {bare_seconds:.1f} s", flush=True)
    return {name: statistics.median(samples) for name, samples in ratios.items()}


def measure_verify(folder: Path, suite: Slow, rounds: int) -> float:
    """Return the median of the rounds' ratios. The first verification, which keeps the results of the base, is none."""
    folder.mkdir()
    repo = suite.write(folder / "repo")
    for command in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-qm", "start")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *command], cwd=repo, check=True)
    old_line, new_line = NEEDED
    code = repo / "calc.py"
    code.write_text(code.read_text().replace(old_line, new_line))
    bare_repo = suite.write(folder / "bare")
    ratios: list[float] = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        run_verify(folder / "home", repo)
        seconds = time.perf_counter() - began
        if number:
            bare_seconds = measure_bare_suite(bare_repo, folder)
            ratios.append(seconds / bare_seconds)
            print(f"verify {seconds:12.1f} s, a plain run {bare_seconds:.1f} s", flush=True)
    return statistics.median(ratios)


def run_verify(home: Path, repo: Path) -> None:
    async def run() -> Verification:
        with open_app(Settings(home=home)) as base_app:
            request = VerifyRequest(python=sys.executable, mutants=0)
            return await verify(base_app.with_sandbox(), repo, request, report=lambda _: None)

    result = asyncio.run(run())
    assert result.end is VerificationEnd.verified, result.reason


def measure_long_levels(folder: Path, seconds: float) -> dict[str, float]:
    """Measure all levels in parallel, each with a repo and a home of its own."""
    slow_suite = Slow(LONG_FILES, LONG_TESTS, seconds / (LONG_FILES * LONG_TESTS))
    repos = {level: slow_suite.write(folder / f"long-{level.value}") for level in Level}
    with ThreadPoolExecutor(len(repos) + 1) as pool:
        bare_future = pool.submit(measure_bare_suite, slow_suite.write(folder / "long"), folder)
        runs = {
            level: pool.submit(measure_run, folder / f"home-{level.value}", repo, level)
            for level, repo in repos.items()
        }
        bare_seconds = bare_future.result()
        durations = {level: run.result() for level, run in runs.items()}
    for level, elapsed in durations.items():
        print(f"long  {level.value:<9} {elapsed:7.1f} s, a plain run {bare_seconds:.1f} s", flush=True)
    return {f"{level.value}_long": elapsed / bare_seconds for level, elapsed in durations.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no suite of 5 minutes")
    parser.add_argument("--long", type=float, default=LONG_SECONDS, help="seconds of the long suite (300)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        folder = Path(name)
        values = {"iteration_ratio": compute_iteration_ratio(folder, 2 if args.quick else 20)}
        values |= measure_short_levels(folder, 1 if args.quick else 3)
        values["verify_short"] = measure_verify(folder / "verify-short", SHORT, 1 if args.quick else 3)
        long_suite = Slow(LONG_FILES, LONG_TESTS, VERIFY_SECONDS / (LONG_FILES * LONG_TESTS))
        values["verify_long"] = measure_verify(folder / "verify-long", long_suite, 1)
        if not args.quick:
            values |= measure_long_levels(folder, args.long)
    figures = [
        expect_at_most(name, value, AIMS[name]) if name in AIMS else report_value(name, value)
        for name, value in values.items()
    ]
    long = {} if args.quick else {"long_suite_seconds": args.long}
    print_figures("overhead", figures, **long)


if __name__ == "__main__":
    main()
