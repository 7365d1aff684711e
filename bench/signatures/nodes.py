"""The same for a package of Node.js: its own tests, by node's runner and by Mocha, as our reporters leave them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from _environments import run_checked
from redstart.core.report import Case
from redstart.core.shell import Completed, ExitCause
from redstart.toolkit.languages.node.runners import CASES, read_node
from redstart.toolkit.suites.request import read_sandbox_file

MANIFEST = Path(__file__).parent / "node.json"
MOST_RED = 5
MOCHA = "mocha@11.7.4"
_LOAD = "const t = require('node:test'); Object.assign(globalThis, { describe: t.describe, it: t.it });\n"
"""What Mocha's tests find in node's runner."""
_REPORTERS = ("redstart_cases.cjs", "redstart_node.mjs", "redstart_mocha.cjs", "redstart_mocha_load.cjs")


class Runner(NamedTuple):
    name: str
    root: str
    """Where the repo is said to lie."""
    shift: int


class SeenByNode(NamedTuple):
    """One test that one bug made red, on two machines."""

    bug: str
    place: str
    one: Case
    other: Case
    machines: tuple[Runner, Runner]


PAIRS = tuple(
    (Runner(name, "/home/dev/src/bytes", 0), Runner(name, "/builds/tools/bytes", 12)) for name in ("node", "mocha")
)


def run_node_bugs(home: Path) -> Iterator[SeenByNode]:
    """Bugs in turn by either runner, each on two machines."""
    manifest = json.loads(MANIFEST.read_text())
    source = home / manifest["name"]
    if not source.exists():
        run_checked(
            ["git", "clone", "--quiet", "--branch", manifest["tag"], "--depth", "1", manifest["repo"], source], home
        )
    tools = home / "node"
    tools.mkdir(exist_ok=True)
    if not (tools / "node_modules" / "mocha").exists():
        run_checked(["npm", "install", "--silent", "--prefix", tools, MOCHA], home)
    for name in _REPORTERS:
        (tools / name).write_text(read_sandbox_file(name))
    (tools / "load.cjs").write_text(_LOAD)
    for number, (old, new) in enumerate(manifest["bugs"]):
        text = (source / manifest["file"]).read_text()
        if old not in text:
            raise ValueError(f"{manifest['file']} does not hold {old!r}")
        machines = PAIRS[number % len(PAIRS)]
        broken_text = text.replace(old, new, 1)
        first_cases, second_cases = (
            _find_red_cases(source, manifest["file"], broken_text, machine, home, tools) for machine in machines
        )
        place = f"{manifest['file']}:{text[: text.index(old)].count(chr(10))}"
        for case in first_cases[:MOST_RED]:
            for other_case in second_cases:
                if case.id == other_case.id:
                    yield SeenByNode(f"{manifest['name']}-{number}", place, case, other_case, machines)


def _find_red_cases(source: Path, file: str, broken_text: str, machine: Runner, home: Path, tools: Path) -> list[Case]:
    repo = home / f"{source.name}-{machine.shift}"
    shutil.rmtree(repo, ignore_errors=True)
    shutil.copytree(source, repo, ignore=shutil.ignore_patterns(".git"))
    (repo / file).write_text(broken_text)
    for path in (repo / file, *(repo / "test").glob("*.js")):
        path.write_text("// a line that was not there\n" * machine.shift + path.read_text())
    report = tools / CASES
    report.unlink(missing_ok=True)
    if machine.name == "node":
        command = ["node", "--require", tools / "load.cjs", f"--test-reporter={tools / 'redstart_node.mjs'}"]
        command += [f"--test-reporter-destination={report}", "--test", *sorted((repo / "test").glob("*.js"))]
    else:
        command = ["node", tools / "node_modules" / "mocha" / "bin" / "mocha.js", "--no-parallel"]
        command += [f"--require={tools / 'redstart_mocha_load.cjs'}", f"--reporter={tools / 'redstart_mocha.cjs'}"]
    environ = {**os.environ, "REDSTART_CASES": str(report), "NO_COLOR": "1", "FORCE_COLOR": "0"}
    subprocess.run(
        [str(argument) for argument in command],
        cwd=repo,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    completed = Completed(
        exit_code=1, cause=ExitCause.failed, output="", files={CASES: report.read_text() if report.exists() else ""}
    )
    cases = read_node(completed) or []
    return [
        case.model_copy(
            update={
                "message": case.message.replace(str(repo), machine.root),
                "detail": case.detail.replace(str(repo), machine.root).replace(str(tools), "/opt/node"),
            }
        )
        for case in cases
        if case.is_red
    ]
