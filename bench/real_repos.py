"""Real projects with one seeded bug each: does `redstart fix` verify the true fix, see what the developer sees, and
leave the folder alone?

Each project of `projects.json` is an sdist of the package index, pinned by version and SHA-256. It is unpacked into a
temporary folder, committed, installed editable into an environment of its own, and its tests are run as a developer
would. One line is then changed on disk, uncommitted, so that some of them turn red. The real command runs against a
scripted model that knows the line: the figures measure everything around a model, not a model.

- verified: the command ended with 0 and a patch that restores the file exactly.
- agree: the baseline in the sandbox has the red tests, and as many green ones, as the run outside has.
- untouched: the folder, `.git` included, is the same before and after.

It needs git, uv and a package index; a project that cannot be had fails the bench.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.app.settings import Settings
from redstart.app.wire import open_house
from redstart.core.noun import Noun
from redstart.core.report import CaseList
from redstart.testing.scenarios import CARD, question
from redstart.testing.server import Request, ScriptedServer

MANIFEST = Path(__file__).with_name("projects.json")
WITHIN = 300.0
"""Seconds that any one command may take."""
PYTEST = "pytest==9.2.0"
IGNORED = ("__pycache__/", "*.egg-info/", ".pytest_cache/", ".venv/", "build/", "*.so", ".coverage")
"""What a project's .gitignore gets where its sdist does not carry one."""
FIXED: dict[str, str] = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2024-01-01T00:00:00+00:00")

# Asks pytest itself, through its own hooks, so that our reading of its report is measured and not repeated.
WATCH = """\
import json, os
ends = {}

def pytest_runtest_logreport(report):
    was = ends.get(report.nodeid, "passed")
    ends[report.nodeid] = max(was, report.outcome, key=["passed", "skipped", "failed"].index)

def pytest_collectreport(report):
    if report.failed:
        ends[report.nodeid] = "failed"

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        with open(os.environ["BENCH_ENDS"], "w") as file:
            json.dump(ends, file)
"""
# The same for unittest: `python -m unittest`, with a result that keeps its ids.
WATCH_UNITTEST = """\
import json, os, sys, unittest

sys.path[0] = os.getcwd()
ends = {}
class Watched(unittest.TextTestResult):
    def startTest(self, test):
        ends[test.id()] = "passed"
        super().startTest(test)
runner = unittest.TextTestRunner(resultclass=Watched)
result = unittest.main(module=None, argv=["python -m unittest", *sys.argv[1:]], testRunner=runner, exit=False).result
worse = {"skipped": "skipped", "expectedFailures": "skipped", "failures": "failed", "errors": "failed"}
for name, end in worse.items():
    for test, _ in getattr(result, name):
        ends[getattr(test, "test_case", test).id()] = end
ends.update((test.id(), "failed") for test in result.unexpectedSuccesses)
with open(os.environ["BENCH_ENDS"], "w") as file:
    json.dump(ends, file)
"""


class Mutation(Noun):
    """One change of one file: `old` stands in it once, and `new` once after the change."""

    file: str
    old: str
    new: str


class Project(Noun):
    name: str
    version: str
    sha256: str
    shape: tuple[str, ...]
    packages: tuple[str, ...] = ()
    """What its tests need besides itself and pytest."""
    extras: str = ""
    """Extras of its own to install, as in `[test]`."""
    command: str = ""
    """How its tests are run; empty for what redstart finds by looking."""
    unittest: bool = False
    """Whether its tests are run by unittest outside."""
    venv: str = "outside"
    """Whether its environment lies in its folder: `inside` or `outside`."""
    folder: str = ""
    """Where the project lies in the git repo, for one of several in it."""
    known_red: tuple[str, ...] = ()
    """Ids that are red without the mutation."""
    quick: bool = False
    mutation: Mutation


class Ends(NamedTuple):
    """How the tests of one run ended, by id."""

    red: frozenset[str]
    passed: int

    @classmethod
    def of(cls, ends: Mapping[str, str]) -> Ends:
        return cls(
            frozenset(id_ for id_, end in ends.items() if end in ("failed", "error")),
            sum(end == "passed" for end in ends.values()),
        )


class Outcome(NamedTuple):
    project: Project
    verified: bool
    agree: bool
    untouched: bool
    red: int
    passed: int
    seconds: float
    why: str


class BenchError(Exception):
    """A project cannot be had, or is not as the manifest says."""


def run(
    command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Without what is set for redstart's own environment, so that the project's decides."""
    dropped = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    environ = {name: value for name, value in os.environ.items() if name not in dropped}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN,
        check=False,
    )


def must(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    done = run(command, folder, variables)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise BenchError(f"{shlex.join(str(word) for word in command)} ended with {done.returncode}:\n{tail}")
    return done.stdout


def download(project: Project, into: Path) -> Path:
    """The sdist, whose hash pip checks before it looks into it."""
    pin = into / f"{project.name}.txt"
    pin.write_text(f"{project.name}=={project.version} --hash=sha256:{project.sha256}\n")
    folder = into / f"sdist-{project.name}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", project.name]
    must([*command, "--dest", folder, "--require-hashes", "--requirement", pin], into)
    (found,) = folder.iterdir()
    return found


def unpack(project: Project, sdist: Path, into: Path) -> tuple[Path, Path]:
    """The git repo with one commit that holds the project, and the project's folder in it."""
    if hashlib.sha256(sdist.read_bytes()).hexdigest() != project.sha256:
        raise BenchError(f"{sdist.name} is not the file that the manifest names")
    with tarfile.open(sdist) as archive:
        archive.extractall(into / "unpacked", filter="data")
    (top,) = (into / "unpacked").iterdir()
    repo = into / "repo"
    root = repo / project.folder
    root.parent.mkdir(parents=True, exist_ok=True)
    top.rename(root)
    if not (repo / ".gitignore").exists():
        (repo / ".gitignore").write_text("".join(f"{line}\n" for line in IGNORED))
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    must(["git", "init", "-q", "-b", "main"], repo)
    must(["git", "add", "-A"], repo)
    must(["git", *identity, "commit", "-q", "-m", f"{project.name} {project.version}"], repo, FIXED)
    must(["git", "tag", f"v{project.version}"], repo)
    return repo, root


def install(project: Project, root: Path, into: Path) -> Path:
    """The project's environment, with the project editable in it."""
    uv = shutil.which("uv")
    if uv is None:
        raise BenchError("uv is not on the PATH")
    venv = root / ".venv" if project.venv == "inside" else into / "environment"
    must([uv, "venv", "--quiet", "--python", sys.executable, venv], root)
    wanted = [PYTEST, *project.packages] if not project.unittest else list(project.packages)
    command = [uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python"]
    must([*command, *wanted, "--editable", f".{project.extras}"], root)
    return venv


def outside(project: Project, root: Path, venv: Path, into: Path) -> Ends:
    """The project's tests as its developer runs them."""
    watch, told = into / "watch", into / "ends.json"
    watch.mkdir(exist_ok=True)
    (watch / "bench_watch.py").write_text(WATCH)
    (watch / "bench_unittest.py").write_text(WATCH_UNITTEST)
    told.unlink(missing_ok=True)
    python = venv / "bin" / "python"
    variables = {"VIRTUAL_ENV": str(venv), "PATH": f"{venv / 'bin'}:{os.environ['PATH']}", "BENCH_ENDS": str(told)}
    if project.unittest:
        words = shlex.split(project.command) or ["python", "-m", "unittest"]
        done = run([python, watch / "bench_unittest.py", *words[3:]], root, variables)
    else:
        added = "-p bench_watch --rootdir=. --continue-on-collection-errors --maxfail=0"
        variables |= {"PYTHONPATH": str(watch), "PYTEST_ADDOPTS": added}
        words = shlex.split(project.command) or ["pytest"]
        done = run([python, "-m", *words] if words[0] == "pytest" else words, root, variables)
    if not told.exists():
        raise BenchError(f"{shlex.join(words)} told nothing:\n{(done.stdout + done.stderr)[-1500:]}")
    return Ends.of(json.loads(told.read_text()))


def fingerprint(folder: Path) -> str:
    """Of every file in a folder: its path, kind, mode and content."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        digest.update(f"{path.relative_to(folder)}\0{state.st_mode}\0".encode("utf-8", "surrogateescape"))
        if path.is_symlink():
            digest.update(os.fsencode(path.readlink()))
        elif path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def mutate(mutation: Mutation, root: Path) -> str:
    """Makes the bug; returns the answer that undoes it."""
    path = root / mutation.file
    text = path.read_bytes().decode()
    changed = text.replace(mutation.old, mutation.new)
    if text.count(mutation.old) != 1 or changed.count(mutation.new) != 1:
        raise BenchError(f"the mutation of {mutation.file} does not stand for one place")
    path.write_bytes(changed.encode())
    begins = changed.rindex("\n", 0, changed.index(mutation.new)) + 1
    ends = changed.index("\n", begins + changed[begins:].index(mutation.new) + len(mutation.new))
    bad = changed[begins:ends]
    # The neighbours make it unique where the line alone is not.
    while changed.count(bad) > 1:
        begins = changed.rindex("\n", 0, begins - 1) + 1
        bad = changed[begins:ends]
    good = bad.replace(mutation.new, mutation.old)
    return f"WHY: seeded\n\n{mutation.file}\n<<<<<<< SEARCH\n{bad}\n=======\n{good}\n>>>>>>> REPLACE\n"


class Fixed(NamedTuple):
    code: int
    result: str
    told: str
    baseline: Ends | None


def fix(project: Project, root: Path, venv: Path, answer: str, into: Path) -> Fixed:
    """The real command against the scripted model, and what its baseline saw."""

    def reply(request: Request) -> str:
        asked = question(request)
        return answer if asked == "patch" else '{"summary": "s", "subtasks": []}' if asked == "plan" else CARD

    home = into / "home"
    with ScriptedServer(reply) as server:
        variables = {
            "REDSTART_HOME": str(home),
            "REDSTART_MODELS__STRONG": "openai:scripted",
            "REDSTART_MODELS__BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "scripted",
            "VIRTUAL_ENV": str(venv),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        }
        words = [sys.executable, "-m", "redstart.cli.main", "fix", root, "--json", "--patch", into / "fix.patch"]
        command = ["--test-cmd", project.command] if project.command else []
        done = run([*words, "--max-iters", "2", *command], into, variables)
        shown = run([*words[:3], "show", "--json"], root, variables)
        baseline = run([*words[:3], "show", "--attempt", "1", "--json"], root, variables)
    if shown.returncode:
        return Fixed(done.returncode, "", (done.stdout + done.stderr).strip()[-1500:], None)
    state = json.loads(shown.stdout)
    told = f"{state.get('reason', '')} {done.stderr.strip()[-1500:]}".strip()
    return Fixed(done.returncode, state.get("result") or "", told, _baseline(baseline.stdout, home))


def _baseline(view: str, home: Path) -> Ends | None:
    try:
        steps = {step["step"]: step["artifact"] for step in json.loads(view)["steps"]}
        full = steps["reproduce"]["report"]["full"]
    except (ValueError, KeyError):
        return None
    with open_house(Settings(home=home)) as house:
        cases = CaseList.model_validate_json(house.adapters.blobs.get(full)).cases
    return Ends.of({case.id: case.outcome.value for case in cases})


def difference(seen: Ends | None, wanted: Ends) -> str:
    if seen is None or seen == wanted:
        return "" if seen else "there is no baseline"
    more, fewer = sorted(seen.red - wanted.red)[:3], sorted(wanted.red - seen.red)[:3]
    return f"red inside only {more}, outside only {fewer}; green {seen.passed} inside, {wanted.passed} outside"


def check(project: Project, into: Path) -> Outcome:
    """One project from its download to its figures. Raises `BenchError` where it is not as the manifest says."""
    repo, root = unpack(project, download(project, into), into)
    venv = install(project, root, into)
    green = outside(project, root, venv, into)
    if green.red != set(project.known_red) or not green.passed:
        raise BenchError(f"without the mutation {sorted(green.red)[:5]} are red, {green.passed} green")
    original = (root / project.mutation.file).read_bytes()
    answer = mutate(project.mutation, root)
    red = outside(project, root, venv, into)
    if not red.red - green.red:
        raise BenchError("the mutation makes no test red")
    before, began = fingerprint(repo), time.monotonic()
    fixed = fix(project, root, venv, answer, into)
    seconds = time.monotonic() - began
    untouched = fingerprint(repo) == before
    why = [f"exit {fixed.code}, {fixed.result or 'no result'}: {fixed.told}"] if fixed.result != "verified" else []
    differs = difference(fixed.baseline, red)
    why += [differs] if differs else []
    verified = fixed.code == 0 and fixed.result == "verified"
    if verified:
        applied = run(["git", "apply", into / "fix.patch"], root)
        verified = applied.returncode == 0 and (root / project.mutation.file).read_bytes() == original
        why += [] if verified else [f"the patch does not restore the file: {applied.stderr.strip()}"]
    return Outcome(project, verified, not differs, untouched, len(red.red), red.passed, seconds, "; ".join(why))


def choose(only: str | None, quick: bool) -> list[Project]:
    projects = [Project.model_validate(one) for one in json.loads(MANIFEST.read_text())["projects"]]
    chosen = [one for one in projects if (one.name == only if only else one.quick or not quick)]
    if not chosen:
        raise SystemExit(f"no project {only} in {MANIFEST.name}")
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the fastest three alone")
    parser.add_argument("--only", metavar="NAME", help="one project alone")
    asked = parser.parse_args()
    outcomes: list[Outcome] = []
    unfit: list[str] = []
    print(f"{'project':<24} {'red':>4} {'green':>6} {'fix s':>6}  verified agree untouched  shape")
    for project in choose(asked.only, asked.quick):
        with tempfile.TemporaryDirectory(prefix="redstart-bench-") as name:
            try:
                one = check(project, Path(name).resolve())
            except (BenchError, subprocess.TimeoutExpired) as error:
                unfit.append(project.name)
                print(f"{project.name:<24} cannot be measured: {error}", flush=True)
                continue
        outcomes.append(one)
        marks = "  ".join(f"{'yes' if held else 'NO':<7}" for held in (one.verified, one.agree, one.untouched))
        print(
            f"{project.name:<24} {one.red:>4} {one.passed:>6} {one.seconds:>6.1f}  {marks} {', '.join(project.shape)}"
        )
        if one.why:
            print(f"    {one.why}")
        sys.stdout.flush()
    if unfit:
        raise SystemExit(f"these projects could not be measured, so there are no figures: {', '.join(unfit)}")
    figures: list[dict[str, object]] = []
    for name in ("verified", "agree", "untouched"):
        share = round(sum(getattr(one, name) for one in outcomes) / len(outcomes), 4)
        figures.append({"name": name, "value": share, "aim": "= 1", "holds": share == 1})
    print(json.dumps({"bench": "real_repos", "projects": len(outcomes), "figures": figures}))


if __name__ == "__main__":
    main()
