"""What an iteration costs beyond its bare parts: the suite runs that it made, in bare bwrap, and one `git apply`.

The model answers at once. Both sides run alternately on the same small repo, whose suite of 10 tests takes about half
a second; the figure is the median of the rounds' ratios. The iteration is the second attempt of a run, from its first
step to the commit of its decision, driven by the default engine with the store on disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from redstart.app.runs import Asked, begin_fix, go_on
from redstart.app.settings import Models, Settings
from redstart.app.wire import engine_called, open_house
from redstart.core.events import Event, Phase
from redstart.core.run import Limits, Result
from redstart.testing.model import ScriptedModel

AIM = 1.5
CODE = "def double(number):\n    return number + number + 1\n"
TESTS = "import time\n\nimport pytest\n\nfrom calc import double\n\n\n@pytest.mark.parametrize('number', range(10))\n"
TESTS += "def test_double(number):\n    time.sleep(0.01)\n    assert double(number) == 2 * number\n"
CARD = '{"summary": "s", "root_cause": "r", "fix": "f", "debug_steps": []}'


def answer(line: str) -> str:
    search = "    return number + number + 1"
    return f"WHY: one too many\n\ncalc.py\n<<<<<<< SEARCH\n{search}\n=======\n{line}\n>>>>>>> REPLACE\n"


WRONG, RIGHT = answer("    return number + number + 2"), answer("    return number + number")


def iteration(folder: Path, repo: Path) -> tuple[float, dict[str, float], int]:
    """Seconds of one iteration, the seconds of each of its steps, and how many suite runs it made."""
    events: list[Event] = []
    model = "openai:instant"
    settings = Settings(home=folder / "home", models=Models(strong=model, fast=model))

    async def run() -> Result | None:
        with open_house(settings, listen=events.append) as opened:
            house = opened.with_sandbox().with_model(ScriptedModel([WRONG, RIGHT, CARD]))
            state = await begin_fix(house, repo, Asked(Limits(), own_python=True))
            return (await go_on(house, state.run_id, engine_called("langgraph"))).state.result

    assert asyncio.run(run()) is Result.verified
    second = [event for event in events if event.attempt == 2 and event.name != "run"]
    steps = {event.name: float(str(event.data["seconds"])) for event in second if event.phase is Phase.end}
    return second[-1].time - second[0].time, steps, 1


def bare_suite(repo: Path, scratch: Path) -> float:
    """Seconds of the same suite on a fresh copy, in bwrap without anything of ours around it."""
    work = scratch / "work"
    shutil.copytree(repo, work)
    began = time.perf_counter()
    command = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--bind", str(work), str(work), "--proc", "/proc"]
    command += ["--dev", "/dev", "--chdir", str(work), "--", sys.executable, "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", f"--junitxml={work}/junit.xml"]
    environ = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, env=environ, capture_output=True)
    seconds = time.perf_counter() - began
    shutil.rmtree(work)
    assert done.returncode == 1, done.stdout
    return seconds


def bare_apply(repo: Path, scratch: Path) -> float:
    work = scratch / "apply"
    shutil.copytree(repo, work)
    patch = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def double(number):\n"
    patch += "-    return number + number + 1\n+    return number + number\n"
    began = time.perf_counter()
    subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=work, check=True)
    seconds = time.perf_counter() - began
    shutil.rmtree(work)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 5 if parser.parse_args().quick else 20
    with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
        folder = Path(name)
        repo = folder / "repo"
        repo.mkdir()
        (repo / "calc.py").write_text(CODE)
        (repo / "test_calc.py").write_text(TESTS)
        iteration(folder, repo)  # loads what is loaded once
        ratios: list[float] = []
        profile: dict[str, list[float]] = defaultdict(list)
        for _ in range(rounds):
            mine, steps, runs = iteration(folder, repo)
            suites = sum(bare_suite(repo, folder) for _ in range(runs))
            parts = suites + bare_apply(repo, folder)
            ratios.append(mine / parts)
            for step, seconds in (*steps.items(), ("(bare suite)", suites), ("(whole iteration)", mine)):
                profile[step].append(seconds)
    for step, seconds in profile.items():
        print(f"{step:<18} {1000 * statistics.median(seconds):7.1f} ms")
    ratio = round(statistics.median(ratios), 3)
    print(f"rounds {rounds}, ratios {min(ratios):.2f} to {max(ratios):.2f}")
    figure = {"name": "iteration_ratio", "value": ratio, "aim": f"<= {AIM}", "holds": ratio <= AIM}
    print(json.dumps({"bench": "overhead", "figures": [figure]}))


if __name__ == "__main__":
    main()
