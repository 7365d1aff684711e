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

from _environments import BenchError, run, run_checked
from _figures import expect_at_least, expect_equal, print_figures, report_value
from real.outside import NOT_ROOT, WATCH, WATCH_UNITTEST, Ends, describe_difference, run_outside
from real.prepare import FIXED, Project, load_projects, prepare
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.app.workspace import RunGround, prepare_run_setup
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


def compare_python(project: Project, directory: Path) -> Compared:
    began = time.monotonic()
    directory.mkdir()
    ready = prepare(project, directory, directory / "tools")
    outside_ends = run_outside(project, ready, directory)
    arguments = shlex.split(project.command) or (["python", "-m", "unittest"] if project.unittest else ["pytest"])
    python, options = str(ready.python), "-p bench_watch --rootdir=. --continue-on-collection-errors --maxfail=0"
    argv = (python, f"{IN}/bench_unittest.py", *arguments[3:]) if project.unittest else (python, "-m", *arguments)
    variables = {"BENCH_ENDS": f"{OUT}/{TOLD}"}
    variables |= {} if project.unittest else {"PYTHONPATH": IN, "PYTEST_ADDOPTS": options}
    with open_app(Settings(home=directory / "home")) as app:
        app = app.with_sandbox()
        workspace = prepare_run_setup(app, ready.root, python=python, command=tuple(arguments))
        request = _request(workspace, argv).model_copy(
            update={
                "variables": variables,
                "files_in": {"bench_watch.py": WATCH, "bench_unittest.py": WATCH_UNITTEST},
                "collect": (TOLD,),
            }
        )
        text, tier = _run_in_sandbox(app, request, TOLD)
    inside = Ends.from_mapping(json.loads(text))
    return Compared(
        project.name,
        "python",
        _count(outside_ends),
        tier,
        describe_difference(inside, outside_ends),
        time.monotonic() - began,
    )


def compare_node(package: NodePackage, directory: Path) -> Compared:
    began = time.monotonic()
    directory.mkdir()
    root = unpack_package(package, directory)
    report = directory / REPORT
    not_root = NOT_ROOT if os.geteuid() == 0 else ()
    completed = run([*not_root, *NODE_TEST, f"--test-reporter-destination={report}"], root)
    if not report.exists():
        raise BenchError(f"node wrote no report:\n{(completed.stdout + completed.stderr)[-1500:]}")
    outside_ends = Ends.from_mapping(parse_node_report(report.read_text()))
    with open_app(Settings(home=directory / "home")) as app:
        app = app.with_sandbox()
        workspace = prepare_run_setup(app, root, own_python=True, command=NODE_TEST)
        modules = (*workspace.environment.read_only, str(root / MODULES))
        environment = workspace.environment.model_copy(update={"read_only": tuple(dict.fromkeys(modules))})
        request = _request(workspace, (*NODE_TEST, f"--test-reporter-destination={OUT}/{REPORT}"))
        text, tier = _run_in_sandbox(
            app, request.model_copy(update={"environment": environment, "collect": (REPORT,)}), REPORT
        )
    inside = Ends.from_mapping(parse_node_report(text))
    return Compared(
        package.name,
        "node",
        _count(outside_ends),
        tier,
        describe_difference(inside, outside_ends),
        time.monotonic() - began,
    )


def unpack_package(package: NodePackage, directory: Path) -> Path:
    """Unpack the package as a git repo and install its dependencies, without running its scripts."""
    output = run_checked(["npm", "pack", "--json", f"{package.name}@{package.version}"], directory)
    archive = directory / json.loads(output)[0]["filename"]
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if digest != package.sha512:
        raise BenchError(f"{archive.name} does not match the pinned hash")
    with tarfile.open(archive) as content:
        content.extractall(directory, filter="data")
    root = (directory / "package").rename(directory / "repo")
    (root / MODULES).mkdir()
    (root / ".gitignore").write_text(f"{MODULES}/\n")
    quietly = ("--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--omit=dev")
    run_checked(["npm", "install", *quietly], root)
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    run_checked(["git", "init", "-q", "-b", "main"], root)
    run_checked(["git", "add", "-A"], root)
    run_checked(["git", *identity, "commit", "-q", "-m", f"{package.name} {package.version}"], root, FIXED)
    return root.resolve()


def parse_node_report(report: str) -> dict[str, str]:
    """Return the outcome of each test by its path of names; tests with the same path are numbered in order."""
    ends: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for path, case in _iter_cases(ElementTree.fromstring(report), ()):
        name = " > ".join((*path, case.get("name", "")))
        counts[name] += 1
        has_failed = any(case.find(kind) is not None for kind in ("failure", "error"))
        ends[f"{name} #{counts[name]}"] = (
            "failed" if has_failed else "skipped" if case.find("skipped") is not None else "passed"
        )
    return ends


def _iter_cases(
    element: ElementTree.Element, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ElementTree.Element]]:
    for child in element:
        if child.tag == "testcase":
            yield path, child
        elif child.tag == "testsuite":
            yield from _iter_cases(child, (*path, child.get("name", "")))


def _request(ground: RunGround, argv: tuple[str, ...]) -> Execution:
    return Execution(
        argv=argv,
        snapshot=ground.base,
        environment=ground.environment,
        limits=ground.limits,
        cwd=ground.folder,
    )


def _run_in_sandbox(house: AppContext, request: Execution, name: str) -> tuple[str, str]:
    """Return the file that the runner left, and the sandbox's tier. Raises `BenchError` if it left none."""
    sandbox = house.adapters.sandbox
    assert sandbox is not None
    completed = asyncio.run(sandbox.run(request))
    if name not in completed.files:
        raise BenchError(f"the runner left no file in the sandbox ({completed.cause}):\n{completed.output[-1500:]}")
    return completed.files[name], sandbox.tier


def _count(ends: Ends) -> int:
    return sum(map(len, ends))


def measure(quick: bool) -> list[Compared]:
    """Compare the packages and print a line for each. Exits without figures if one cannot be measured."""
    projects_by_name = {package.name: package for package in load_projects()}
    python = [projects_by_name[name] for name in PYTHON if name == QUICK_PYTHON or not quick]
    node = [package for package in NODE if package.name == QUICK_NODE or not quick]
    results: list[Compared] = []
    with tempfile.TemporaryDirectory(prefix="redstart-suites-") as folder:
        place = Path(folder).resolve()
        for number, package in enumerate((*python, *node)):
            directory = place / str(number)
            try:
                result = (
                    compare_node(package, directory)
                    if isinstance(package, NodePackage)
                    else compare_python(package, directory)
                )
            except BenchError as error:
                sys.exit(f"{package.name} cannot be measured: {error}")
            results.append(result)
            summary = result.differs or "same"
            print(
                f"{result.name:<18} {result.kind:<7} {result.tests:>5} tests  {result.seconds:>5.1f} s  {summary}",
                flush=True,
            )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one package of each kind")
    args = parser.parse_args()
    results = measure(args.quick)
    figures = [
        expect_equal("same", sum(not item.differs for item in results) / len(results), 1),
        expect_at_least("packages", len(results), 2 if args.quick else 5),
        report_value("tests", sum(item.tests for item in results)),
    ]
    print_figures("real_suites", figures, tier=results[0].tier)


if __name__ == "__main__":
    main()
