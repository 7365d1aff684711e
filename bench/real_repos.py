"""Real projects with one seeded bug each: does `redstart fix` verify the true fix, see what the developer sees, and
leave the folder alone?

Each project of `projects.json` is an sdist of the package index, pinned by version and SHA-256. The bench unpacks it
into a temporary folder, commits it, installs it editable into an environment of its own, and runs its tests as a
developer would. Then it changes one line on disk, uncommitted, so that some tests fail. The real command runs against a
scripted model that knows the line: the figures measure everything around a model, not a model.

- verified: the command exited with 0 and a patch that git can apply, and after `redstart apply` the repo is exactly as
  it was committed.
- agree: each test, by ID, has the same outcome in the sandbox baseline as in the run outside.
- untouched: the folder, `.git` included, is the same before and after.
- control_share, neutral_share: the shares of all targets that were altered so that they must fail, and that were rerun
  in an environment that looks like production. The reasons for missing targets are printed below their project.

The bench needs git, bubblewrap and a package index, from which it also installs the package managers. A project that is
unavailable fails the bench.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import _paths  # noqa: F401
from _environments import BenchError, run
from _figures import at_least, exactly, print_figures
from real.outside import Ends, difference, outside
from real.prepare import Mutation, Project, Ready, prepare, projects
from redstart.app.settings import Settings
from redstart.app.wire import open_house
from redstart.core.report import CaseList, CheckEvidence
from redstart.core.run import RunState
from redstart.core.shell import Environment
from support.scenarios import CARD, question
from support.server import Request, ScriptedServer

SHARES = {"control": 0.9, "neutral": 0.7}
"""The minimum share of all targets that each check of a verified fix must cover."""


class Outcome(NamedTuple):
    project: Project
    verified: bool
    agree: bool
    untouched: bool
    red: int
    green: int
    seconds: float
    why: str
    evidence: tuple[CheckEvidence, ...] = ()

    def covered(self, check: str) -> tuple[int, int]:
        """Return how many targets a check of the fix covered, and the number of targets."""
        found = [item for item in self.evidence if item.check == check]
        return sum(item.covered for item in found), sum(item.targets for item in found) or self.red


def fingerprint(folder: Path) -> str:
    """Hash the path, kind, mode and content of every file in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        digest.update(f"{path.relative_to(folder)}\0{state.st_mode}\0".encode("utf-8", "surrogateescape"))
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        elif path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def mutate(mutation: Mutation, root: Path, named: str) -> str:
    """Plant the bug and return the answer that undoes it. `named` is the path that the model sees."""
    path = root / mutation.file
    text = path.read_bytes().decode()
    changed = text.replace(mutation.old, mutation.new)
    if text.count(mutation.old) != 1 or changed.count(mutation.new) != 1:
        raise BenchError(f"the mutation of {mutation.file} does not match exactly one place")
    path.write_bytes(changed.encode())
    begins = changed.rindex("\n", 0, changed.index(mutation.new)) + 1
    ends = changed.index("\n", begins + changed[begins:].index(mutation.new) + len(mutation.new))
    bad = changed[begins:ends]
    # The preceding lines make it unique if the line alone is not.
    while changed.count(bad) > 1:
        begins = changed.rindex("\n", 0, begins - 1) + 1
        bad = changed[begins:ends]
    good = bad.replace(mutation.new, mutation.old)
    return f"WHY: seeded\n\n{named}\n<<<<<<< SEARCH\n{bad}\n=======\n{good}\n>>>>>>> REPLACE\n"


class Fixed(NamedTuple):
    code: int
    result: str
    told: str
    baseline: Ends | None = None
    chosen: str = ""
    """The source of the interpreter."""
    evidence: tuple[CheckEvidence, ...] = ()


class Command:
    """The real command on a project with its bug, with a scripted model that knows the fix and a home of its own."""

    def __init__(self, project: Project, ready: Ready, into: Path) -> None:
        """Plant the bug."""
        self._project, self._ready = project, ready
        self._file = (ready.root / project.mutation.file).relative_to(ready.repo).as_posix()
        self._answer = mutate(project.mutation, ready.root, self._file)
        self.patch = into / "fix.patch"
        self._home = into / "home"
        self._before = self._status()
        shutil.rmtree(self._home, ignore_errors=True)
        self.patch.unlink(missing_ok=True)

    def fix(self) -> Fixed:
        """Run the command, and read its baseline."""

        def reply(request: Request) -> str:
            asked = question(request)
            return self._answer if asked == "patch" else '{"summary": "s", "subtasks": []}' if asked == "plan" else CARD

        with ScriptedServer(reply) as server:
            model = {
                "REDSTART_MODELS__STRONG": "openai:scripted",
                "REDSTART_MODELS__BASE_URL": server.openai_url,
                "OPENAI_API_KEY": "scripted",
            }
            command = ("--test-cmd", self._project.command) if self._project.command else ()
            options = ("--json", "--patch", str(self.patch), "--max-iters", "2")
            done = self._call("fix", str(self._ready.root), *options, *command, variables=model)
        shown = self._call("show", "--json")
        if shown.returncode:
            return Fixed(done.returncode, "", (done.stdout + done.stderr).strip()[-1500:])
        state = RunState.model_validate_json(shown.stdout)
        told = f"{state.reason} {done.stderr.strip()[-1500:]}".strip()
        result = state.result.value if state.result else ""
        evidence = state.now.test.evidence if state.now.test else ()
        return Fixed(done.returncode, result, told, self._baseline(), self._chosen(state), evidence)

    def apply(self) -> str:
        """Apply the patch as a user would. Return what is wrong; empty if only the file with the bug was restored."""
        could = run(["git", "apply", "--check", self.patch], self._ready.repo)
        done = self._call("apply")
        if could.returncode or done.returncode:
            return could.stderr.strip() or done.stderr.strip()
        changed = self._status() ^ self._before
        wanted = {f" M {self._file}"}
        return "" if changed == wanted else f"git status differs by {sorted(changed)}"

    def _status(self) -> set[str]:
        """Return the lines of git status, one for each changed file."""
        return set(run(["git", "status", "--porcelain"], self._ready.repo).stdout.splitlines())

    def _call(self, *words: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        known = {"REDSTART_HOME": str(self._home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        command = [sys.executable, "-m", "redstart.cli.main", *words]
        return run(command, self._ready.root, {**known, **self._ready.variables, **(variables or {})})

    def _baseline(self) -> Ends | None:
        try:
            view = json.loads(self._call("show", "--attempt", "1", "--json").stdout)
            full = {step["step"]: step["artifact"] for step in view["steps"]}["reproduce"]["report"]["full"]
        except (ValueError, KeyError):
            return None
        with open_house(Settings(home=self._home)) as house:
            cases = CaseList.model_validate_json(house.adapters.blobs.get(full)).cases
        return Ends.of({case.id: case.outcome.value for case in cases})

    def _chosen(self, state: RunState) -> str:
        with open_house(Settings(home=self._home)) as house:
            found = house.adapters.blobs.get(state.spec.suite.environment)
        return Environment.model_validate_json(found).chosen


class Kept(NamedTuple):
    """A prepared project, and the outcomes of its tests without the bug."""

    ready: Ready
    green: Ends


def ready_to_break(project: Project, into: Path, tools: Path) -> Kept:
    """Prepare the project in `into`, or reuse it from an earlier run with the same manifest entry."""
    note = into / "prepared.json"
    entry = project.model_dump_json()
    if note.exists() and (kept := json.loads(note.read_text()))["entry"] == entry:
        repo, root, venv = map(Path, kept["places"])
        ready = Ready(repo, root, venv, kept["variables"])
        done = run(["git", "checkout", "--quiet", "--", "."], repo)
        if done.returncode:
            raise BenchError(f"{repo} cannot be restored: {done.stderr}")
        return Kept(ready, Ends(*map(frozenset, kept["green"])))
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    ready = prepare(project, into, tools)
    green = outside(project, ready, into)
    if green.red != set(project.known_red) or not green.green:
        raise BenchError(f"without the mutation {sorted(green.red)[:5]} fail and {len(green.green)} pass")
    told = {
        "entry": entry,
        "places": [str(path) for path in ready[:3]],
        "variables": ready.variables,
        "green": [sorted(ids) for ids in green],
    }
    note.write_text(json.dumps(told))
    return Kept(ready, green)


def check(project: Project, into: Path, tools: Path) -> Outcome:
    """Check one project, from its download to its figures. Raises `BenchError` if it differs from the manifest."""
    ready, green = ready_to_break(project, into, tools)
    command = Command(project, ready, into)
    red = outside(project, ready, into)
    if not red.red - green.red:
        raise BenchError("the mutation makes no test fail")
    before, began = fingerprint(ready.repo), time.monotonic()
    fixed = command.fix()
    seconds = time.monotonic() - began
    untouched = fingerprint(ready.repo) == before
    why: list[str] = []
    if fixed.code or fixed.result != "verified":
        why.append(f"exit {fixed.code}, {fixed.result or 'no result'}: {fixed.told}")
    elif project.manager and fixed.chosen != project.manager:
        why.append(f"the interpreter comes from {fixed.chosen}, not from {project.manager}")
    elif left := command.apply():
        why.append(f"the patch is not exact: {left}")
    verified = not why
    differs = difference(fixed.baseline, red)
    why += [differs] if differs else []
    why += [] if untouched else ["the folder changed before `redstart apply`"]
    counts = (len(red.red), len(red.green))
    return Outcome(project, verified, not differs, untouched, *counts, seconds, "; ".join(why), fixed.evidence)


def choose(only: list[str], quick: bool) -> list[Project]:
    known = projects()
    if missing := set(only) - {item.name for item in known}:
        raise SystemExit(f"no such project in the manifest: {', '.join(sorted(missing))}")
    return [item for item in known if (item.name in only if only else item.quick or not quick)]


def measure(chosen: list[Project], keep: Path | None, jobs: int) -> list[Outcome]:
    """Measure the projects and print a line for each. Exits without figures if one cannot be measured."""
    outcomes: list[Outcome] = []
    unfit: list[str] = []

    def one(project: Project) -> Outcome | str:
        try:
            with _folder(keep) as name:
                return check(project, Path(name).resolve() / project.name, Path(tools).resolve())
        except (BenchError, subprocess.TimeoutExpired) as error:
            return f"{project.name:<24} cannot be measured: {error}"

    print(f"{'project':<24} {'red':>4} {'green':>6} {'fix s':>6}  verified agree untouched  shape")
    with _folder(keep) as tools, ThreadPoolExecutor(jobs) as pool:
        for project, found in zip(chosen, pool.map(one, chosen), strict=True):
            if isinstance(found, str):
                unfit.append(project.name)
                print(found, flush=True)
            else:
                outcomes.append(found)
                print(_line(found), flush=True)
    if unfit:
        raise SystemExit(f"these projects could not be measured, so there are no figures: {', '.join(unfit)}")
    return outcomes


def _line(one: Outcome) -> str:
    marks = "  ".join(f"{'yes' if held else 'NO':<7}" for held in (one.verified, one.agree, one.untouched))
    shape = ", ".join(one.project.shape)
    line = f"{one.project.name:<24} {one.red:>4} {one.green:>6} {one.seconds:>6.1f}  {marks} {shape}"
    notes = [f"    {found.check}: {note}" for found in one.evidence if found.check in SHARES for note in found.notes]
    return "\n".join([line, *([f"    {one.why}"] if one.why else []), *notes])


def share(outcomes: list[Outcome], check: str) -> float:
    """Return the share of the targets of all projects that a check covered."""
    covered, targets = map(sum, zip(*(outcome.covered(check) for outcome in outcomes), strict=True))
    return covered / targets


def _folder(keep: Path | None) -> AbstractContextManager[str]:
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="redstart-bench-")
    keep.mkdir(parents=True, exist_ok=True)
    return nullcontext(str(keep))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the fastest three")
    parser.add_argument(
        "--only", metavar="NAME", action="append", default=[], help="only this project; may be repeated"
    )
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep installed projects there for the next run")
    parser.add_argument("--jobs", type=int, help="number of parallel projects (1; 3 with --quick)")
    asked = parser.parse_args()
    jobs = asked.jobs or (3 if asked.quick else 1)
    outcomes = measure(choose(asked.only, asked.quick), asked.keep, jobs)
    figures = [
        exactly(name, sum(getattr(outcome, name) for outcome in outcomes) / len(outcomes), 1)
        for name in ("verified", "agree", "untouched")
    ]
    figures += [at_least(f"{check}_share", share(outcomes, check), least) for check, least in SHARES.items()]
    print_figures("real_repos", figures, projects=len(outcomes))


if __name__ == "__main__":
    main()
