"""Real packages with their own tests, in Python and Node: are their results the same inside the sandbox and outside?

Each is a package from the index, pinned by version and hash, unpacked, committed and installed. Its own runner runs its
tests unchanged, once on the machine and once in the sandbox that Redstart uses, which knows only what it detects.
`same` is the share of packages for which every test, by ID, has the same outcome.

It needs git, node with npm, a sandbox and the package indexes; a package that is unavailable fails the bench.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import shlex
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from _environments import BenchError, must, run
from _figures import at_least, exactly, print_figures, told
from real.outside import NOT_ROOT, WATCH, WATCH_UNITTEST, Ends, difference, outside
from real.prepare import FIXED, Project, prepare, projects
from redstart.app.ground import RunGround, take_ground
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_house
from redstart.core.shell import IN, OUT, Execution

PYTHON = ("iniconfig", "cachetools", "python-slugify", "itsdangerous")
QUICK_PYTHON, QUICK_NODE = "iniconfig", "safe-regex2"
TOLD = "ends.json"
REPORT = "report.xml"
MODULES = "node_modules"
NODE_TEST = ("node", "--test", "--test-reporter=junit")


class NodePackage(NamedTuple):
    name: str
    version: str
    sha512: str
    """The hash from the index, in base64."""


NODE = (
    NodePackage(
        "safe-regex2",
        "5.1.2",
        "tAtCGFPPP02VroDVzp4daGi6bC7jWG+41D47GKf18FeH/ubvKQHT9VmhAkvtjNOmJwqtApzWeUpEhkyEYULvmw==",
    ),
    NodePackage(
        "@fastify/error",
        "4.2.1",
        "MYBumuIwP+5MIpXSyKm6/o1Eigcoij186lWUssX3LH5U8KWqU0ktZhzC4CErIX9EJeQeRGI+zJZQWakBlFbUcg==",
    ),
    NodePackage(
        "process-warning",
        "5.1.1",
        "oCkNVj4OKnKEcocVBcDfiIugN1/cE6rgfT3nCtzeqZPA8+rIxMaQ0xXzIkGP8Gj2qUaP1UR7uhJ1VD8lUCpzCg==",
    ),
)


class Compared(NamedTuple):
    name: str
    kind: str
    tests: int
    tier: str
    differs: str
    """How the two runs differ, in words; empty if they agree."""
    seconds: float


def compared_python(project: Project, into: Path) -> Compared:
    began = time.monotonic()
    into.mkdir()
    ready = prepare(project, into, into / "tools")
    there = outside(project, ready, into)
    words = shlex.split(project.command) or (["python", "-m", "unittest"] if project.unittest else ["pytest"])
    python, options = str(ready.python), "-p bench_watch --rootdir=. --continue-on-collection-errors --maxfail=0"
    argv = (python, f"{IN}/bench_unittest.py", *words[3:]) if project.unittest else (python, "-m", *words)
    variables = {"BENCH_ENDS": f"{OUT}/{TOLD}"}
    variables |= {} if project.unittest else {"PYTHONPATH": IN, "PYTEST_ADDOPTS": options}
    with open_house(Settings(home=into / "home")) as house:
        house = house.with_sandbox()
        ground = take_ground(house, ready.root, python=python, command=tuple(words))
        request = _request(ground, argv).model_copy(
            update={
                "variables": variables,
                "files_in": {"bench_watch.py": WATCH, "bench_unittest.py": WATCH_UNITTEST},
                "collect": (TOLD,),
            }
        )
        text, tier = _told(house, request, TOLD)
    inside = Ends.of(json.loads(text))
    return Compared(project.name, "python", _count(there), tier, difference(inside, there), time.monotonic() - began)


def compared_node(package: NodePackage, into: Path) -> Compared:
    began = time.monotonic()
    into.mkdir()
    root = unpacked(package, into)
    report = into / REPORT
    not_root = NOT_ROOT if os.geteuid() == 0 else ()
    done = run([*not_root, *NODE_TEST, f"--test-reporter-destination={report}"], root)
    if not report.exists():
        raise BenchError(f"node wrote no report:\n{(done.stdout + done.stderr)[-1500:]}")
    there = Ends.of(node_ends(report.read_text()))
    with open_house(Settings(home=into / "home")) as house:
        house = house.with_sandbox()
        ground = take_ground(house, root, own_python=True, command=NODE_TEST)
        modules = (*ground.environment.read_only, str(root / MODULES))
        environment = ground.environment.model_copy(update={"read_only": tuple(dict.fromkeys(modules))})
        request = _request(ground, (*NODE_TEST, f"--test-reporter-destination={OUT}/{REPORT}"))
        text, tier = _told(house, request.model_copy(update={"environment": environment, "collect": (REPORT,)}), REPORT)
    inside = Ends.of(node_ends(text))
    return Compared(package.name, "node", _count(there), tier, difference(inside, there), time.monotonic() - began)


def unpacked(package: NodePackage, into: Path) -> Path:
    """Unpack the package as a git repo and install its dependencies, without running its scripts."""
    told = must(["npm", "pack", "--json", f"{package.name}@{package.version}"], into)
    archive = into / json.loads(told)[0]["filename"]
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != package.sha512:
        raise BenchError(f"{archive.name} does not match the pinned hash")
    with tarfile.open(archive) as content:
        content.extractall(into, filter="data")
    root = (into / "package").rename(into / "repo")
    (root / MODULES).mkdir()
    (root / ".gitignore").write_text(f"{MODULES}/\n")
    quietly = ("--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--omit=dev")
    must(["npm", "install", *quietly], root)
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    must(["git", "init", "-q", "-b", "main"], root)
    must(["git", "add", "-A"], root)
    must(["git", *identity, "commit", "-q", "-m", f"{package.name} {package.version}"], root, FIXED)
    return root.resolve()


def node_ends(report: str) -> dict[str, str]:
    """Return the outcome of each test by its path of names; tests with the same path are numbered in order."""
    ends: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for path, case in _cases(ElementTree.fromstring(report), ()):
        name = " > ".join((*path, case.get("name", "")))
        seen[name] += 1
        red = any(case.find(kind) is not None for kind in ("failure", "error"))
        ends[f"{name} #{seen[name]}"] = "failed" if red else "skipped" if case.find("skipped") is not None else "passed"
    return ends


def _cases(
    element: ElementTree.Element, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ElementTree.Element]]:
    for each in element:
        if each.tag == "testcase":
            yield path, each
        elif each.tag == "testsuite":
            yield from _cases(each, (*path, each.get("name", "")))


def _request(ground: RunGround, argv: tuple[str, ...]) -> Execution:
    return Execution(
        argv=argv,
        snapshot=ground.base,
        environment=ground.environment,
        limits=ground.limits,
        cwd=ground.folder,
    )


def _told(house: AppContext, request: Execution, name: str) -> tuple[str, str]:
    """Return the file that the runner left, and the sandbox's tier. Raises `BenchError` if it left none."""
    sandbox = house.adapters.sandbox
    assert sandbox is not None
    done = asyncio.run(sandbox.run(request))
    if name not in done.files:
        raise BenchError(f"the runner left no file in the sandbox ({done.cause}):\n{done.output[-1500:]}")
    return done.files[name], sandbox.tier


def _count(ends: Ends) -> int:
    return sum(map(len, ends))


def measure(quick: bool) -> list[Compared]:
    """Compare the packages and print a line for each. Exits without figures if one cannot be measured."""
    known = {each.name: each for each in projects()}
    python = [known[name] for name in PYTHON if name == QUICK_PYTHON or not quick]
    node = [each for each in NODE if each.name == QUICK_NODE or not quick]
    found: list[Compared] = []
    with tempfile.TemporaryDirectory(prefix="redstart-suites-") as folder:
        place = Path(folder).resolve()
        for number, each in enumerate((*python, *node)):
            into = place / str(number)
            try:
                one = compared_node(each, into) if isinstance(each, NodePackage) else compared_python(each, into)
            except BenchError as error:
                sys.exit(f"{each.name} cannot be measured: {error}")
            found.append(one)
            said = one.differs or "same"
            print(f"{one.name:<18} {one.kind:<7} {one.tests:>5} tests  {one.seconds:>5.1f} s  {said}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one package of each kind")
    asked = parser.parse_args()
    found = measure(asked.quick)
    figures = [
        exactly("same", sum(not item.differs for item in found) / len(found), 1),
        at_least("packages", len(found), 2 if asked.quick else 5),
        told("tests", sum(item.tests for item in found)),
    ]
    print_figures("real_suites", figures, tier=found[0].tier)


if __name__ == "__main__":
    main()
