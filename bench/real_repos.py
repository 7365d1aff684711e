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
from _figures import expect_at_least, expect_equal, print_figures
from real.outside import Ends, describe_difference, run_outside
from real.prepare import Mutation, Project, Ready, load_projects, prepare
from redstart.app.settings import Settings
from redstart.app.wire import open_app
from redstart.core.report import CaseList, CheckEvidence
from redstart.core.run import RunState
from redstart.core.shell import Environment
from support.scenarios import CARD, parse_question
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

    def count_covered(self, check: str) -> tuple[int, int]:
        """Return how many targets a check of the fix covered, and the number of targets."""
        matches = [item for item in self.evidence if item.check == check]
        return sum(item.covered for item in matches), sum(item.targets for item in matches) or self.red


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


def mutate(mutation: Mutation, root: Path, shown_path: str) -> str:
    """Plant the bug and return the answer that undoes it. `shown_path` is the path that the model sees."""
    path = root / mutation.file
    text = path.read_bytes().decode()
    changed = text.replace(mutation.old, mutation.new)
    if text.count(mutation.old) != 1 or changed.count(mutation.new) != 1:
        raise BenchError(f"the mutation of {mutation.file} does not match exactly one place")
    path.write_bytes(changed.encode())
    start = changed.rindex("\n", 0, changed.index(mutation.new)) + 1
    ends = changed.index("\n", start + changed[start:].index(mutation.new) + len(mutation.new))
    broken_text = changed[start:ends]
    # The preceding lines make it unique if the line alone is not.
    while changed.count(broken_text) > 1:
        start = changed.rindex("\n", 0, start - 1) + 1
        broken_text = changed[start:ends]
    fixed_text = broken_text.replace(mutation.new, mutation.old)
    return f"WHY: seeded\n\n{shown_path}\n<<<<<<< SEARCH\n{broken_text}\n=======\n{fixed_text}\n>>>>>>> REPLACE\n"


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

    def __init__(self, project: Project, ready: Ready, directory: Path) -> None:
        """Plant the bug."""
        self._project, self._ready = project, ready
        self._file = (ready.root / project.mutation.file).relative_to(ready.repo).as_posix()
        self._answer = mutate(project.mutation, ready.root, self._file)
        self.patch = directory / "fix.patch"
        self._home = directory / "home"
        self._before = self._read_status()
        shutil.rmtree(self._home, ignore_errors=True)
        self.patch.unlink(missing_ok=True)

    def fix(self) -> Fixed:
        """Run the command, and read its baseline."""

        def reply(request: Request) -> str:
            question_name = parse_question(request)
            return (
                self._answer
                if question_name == "patch"
                else '{"summary": "s", "subtasks": []}'
                if question_name == "plan"
                else CARD
            )

        with ScriptedServer(reply) as server:
            model = {
                "REDSTART_MODELS__STRONG": "openai:scripted",
                "REDSTART_MODELS__BASE_URL": server.openai_url,
                "OPENAI_API_KEY": "scripted",
            }
            command = ("--test-cmd", self._project.command) if self._project.command else ()
            options = ("--json", "--patch", str(self.patch), "--max-iters", "2")
            completed = self._call("fix", str(self._ready.root), *options, *command, variables=model)
        show_result = self._call("show", "--json")
        if show_result.returncode:
            return Fixed(completed.returncode, "", (completed.stdout + completed.stderr).strip()[-1500:])
        state = RunState.model_validate_json(show_result.stdout)
        message = f"{state.reason} {completed.stderr.strip()[-1500:]}".strip()
        result = state.result.value if state.result else ""
        evidence = state.now.test.evidence if state.now.test else ()
        return Fixed(
            completed.returncode, result, message, self._read_baseline(), self._read_interpreter_source(state), evidence
        )

    def apply(self) -> str:
        """Apply the patch as a user would. Return what is wrong; empty if only the file with the bug was restored."""
        could = run(["git", "apply", "--check", self.patch], self._ready.repo)
        completed = self._call("apply")
        if could.returncode or completed.returncode:
            return could.stderr.strip() or completed.stderr.strip()
        changed = self._read_status() ^ self._before
        expected = {f" M {self._file}"}
        return "" if changed == expected else f"git status differs by {sorted(changed)}"

    def _read_status(self) -> set[str]:
        """Return the lines of git status, one for each changed file."""
        return set(run(["git", "status", "--porcelain"], self._ready.repo).stdout.splitlines())

    def _call(self, *arguments: str, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        environ = {"REDSTART_HOME": str(self._home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        command = [sys.executable, "-m", "redstart.cli.main", *arguments]
        return run(command, self._ready.root, {**environ, **self._ready.variables, **(variables or {})})

    def _read_baseline(self) -> Ends | None:
        try:
            view = json.loads(self._call("show", "--attempt", "1", "--json").stdout)
            full = {step["step"]: step["artifact"] for step in view["steps"]}["reproduce"]["report"]["full"]
        except (ValueError, KeyError):
            return None
        with open_app(Settings(home=self._home)) as app:
            cases = CaseList.model_validate_json(app.adapters.blobs.get(full)).cases
        return Ends.from_mapping({case.id: case.outcome.value for case in cases})

    def _read_interpreter_source(self, state: RunState) -> str:
        with open_app(Settings(home=self._home)) as app:
            content = app.adapters.blobs.get(state.spec.suite.environment)
        return Environment.model_validate_json(content).chosen


class Kept(NamedTuple):
    """A prepared project, and the outcomes of its tests without the bug."""

    ready: Ready
    green: Ends


def prepare_project(project: Project, directory: Path, tools: Path) -> Kept:
    """Prepare the project in `directory`, or reuse it from an earlier run with the same manifest entry."""
    note = directory / "prepared.json"
    entry = project.model_dump_json()
    if note.exists() and (saved := json.loads(note.read_text()))["entry"] == entry:
        repo, root, venv = map(Path, saved["places"])
        ready = Ready(repo, root, venv, saved["variables"])
        completed = run(["git", "checkout", "--quiet", "--", "."], repo)
        if completed.returncode:
            raise BenchError(f"{repo} cannot be restored: {completed.stderr}")
        return Kept(ready, Ends(*map(frozenset, saved["green"])))
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    ready = prepare(project, directory, tools)
    clean_ends = run_outside(project, ready, directory)
    if clean_ends.red != set(project.known_red) or not clean_ends.green:
        raise BenchError(f"without the mutation {sorted(clean_ends.red)[:5]} fail and {len(clean_ends.green)} pass")
    data = {
        "entry": entry,
        "places": [str(path) for path in ready[:3]],
        "variables": ready.variables,
        "green": [sorted(ids) for ids in clean_ends],
    }
    note.write_text(json.dumps(data))
    return Kept(ready, clean_ends)


def check(project: Project, directory: Path, tools: Path) -> Outcome:
    """Check one project, from its download to its figures. Raises `BenchError` if it differs from the manifest."""
    ready, clean_ends = prepare_project(project, directory, tools)
    command = Command(project, ready, directory)
    broken_ends = run_outside(project, ready, directory)
    if not broken_ends.red - clean_ends.red:
        raise BenchError("the mutation makes no test fail")
    before, began = fingerprint(ready.repo), time.monotonic()
    fixed = command.fix()
    seconds = time.monotonic() - began
    is_untouched = fingerprint(ready.repo) == before
    reasons: list[str] = []
    if fixed.code or fixed.result != "verified":
        reasons.append(f"exit {fixed.code}, {fixed.result or 'no result'}: {fixed.told}")
    elif project.manager and fixed.chosen != project.manager:
        reasons.append(f"the interpreter comes from {fixed.chosen}, not from {project.manager}")
    elif problem := command.apply():
        reasons.append(f"the patch is not exact: {problem}")
    verified = not reasons
    mismatch = describe_difference(fixed.baseline, broken_ends)
    reasons += [mismatch] if mismatch else []
    reasons += [] if is_untouched else ["the folder changed before `redstart apply`"]
    counts = (len(broken_ends.red), len(broken_ends.green))
    return Outcome(project, verified, not mismatch, is_untouched, *counts, seconds, "; ".join(reasons), fixed.evidence)


def choose(names: list[str], quick: bool) -> list[Project]:
    all_projects = load_projects()
    if missing := set(names) - {item.name for item in all_projects}:
        raise SystemExit(f"no such project in the manifest: {', '.join(sorted(missing))}")
    return [item for item in all_projects if (item.name in names if names else item.quick or not quick)]


def measure(selected: list[Project], keep: Path | None, jobs: int) -> list[Outcome]:
    """Measure the projects and print a line for each. Exits without figures if one cannot be measured."""
    outcomes: list[Outcome] = []
    failed: list[str] = []

    def check_project(project: Project) -> Outcome | str:
        try:
            with _open_folder(keep) as name:
                return check(project, Path(name).resolve() / project.name, Path(tools).resolve())
        except (BenchError, subprocess.TimeoutExpired) as error:
            return f"{project.name:<24} cannot be measured: {error}"

    print(f"{'project':<24} {'red':>4} {'green':>6} {'fix s':>6}  verified agree untouched  shape")
    with _open_folder(keep) as tools, ThreadPoolExecutor(jobs) as pool:
        for project, result in zip(selected, pool.map(check_project, selected), strict=True):
            if isinstance(result, str):
                failed.append(project.name)
                print(result, flush=True)
            else:
                outcomes.append(result)
                print(_format_line(result), flush=True)
    if failed:
        raise SystemExit(f"these projects could not be measured, so there are no figures: {', '.join(failed)}")
    return outcomes


def _format_line(outcome: Outcome) -> str:
    marks = "  ".join(f"{'yes' if flag else 'NO':<7}" for flag in (outcome.verified, outcome.agree, outcome.untouched))
    shape = ", ".join(outcome.project.shape)
    line = f"{outcome.project.name:<24} {outcome.red:>4} {outcome.green:>6} {outcome.seconds:>6.1f}  {marks} {shape}"
    notes = [f"    {item.check}: {note}" for item in outcome.evidence if item.check in SHARES for note in item.notes]
    return "\n".join([line, *([f"    {outcome.why}"] if outcome.why else []), *notes])


def share(outcomes: list[Outcome], check: str) -> float:
    """Return the share of the targets of all projects that a check covered."""
    covered, targets = map(sum, zip(*(outcome.count_covered(check) for outcome in outcomes), strict=True))
    return covered / targets


def _open_folder(keep: Path | None) -> AbstractContextManager[str]:
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
    args = parser.parse_args()
    jobs = args.jobs or (3 if args.quick else 1)
    outcomes = measure(choose(args.only, args.quick), args.keep, jobs)
    figures = [
        expect_equal(name, sum(getattr(outcome, name) for outcome in outcomes) / len(outcomes), 1)
        for name in ("verified", "agree", "untouched")
    ]
    figures += [expect_at_least(f"{check}_share", share(outcomes, check), minimum) for check, minimum in SHARES.items()]
    print_figures("real_repos", figures, projects=len(outcomes))


if __name__ == "__main__":
    main()
