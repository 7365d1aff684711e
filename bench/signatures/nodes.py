"""The same for a package of Node.js: its own tests, by node's runner and by Mocha, as our reporters leave them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from _environments import must
from redstart.core.report import Case
from redstart.core.shell import Completed, ExitCause
from redstart.toolkit.languages.node.runners import CASES, read_node
from redstart.toolkit.suites.request import inside

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


def seen_by_node(home: Path) -> Iterator[SeenByNode]:
    """Bugs in turn by either runner, each on two machines."""
    manifest = json.loads(MANIFEST.read_text())
    source = home / manifest["name"]
    if not source.exists():
        must(["git", "clone", "--quiet", "--branch", manifest["tag"], "--depth", "1", manifest["repo"], source], home)
    tools = home / "node"
    tools.mkdir(exist_ok=True)
    if not (tools / "node_modules" / "mocha").exists():
        must(["npm", "install", "--silent", "--prefix", tools, MOCHA], home)
    for name in _REPORTERS:
        (tools / name).write_text(inside(name))
    (tools / "load.cjs").write_text(_LOAD)
    for number, (old, new) in enumerate(manifest["bugs"]):
        text = (source / manifest["file"]).read_text()
        if old not in text:
            raise ValueError(f"{manifest['file']} does not hold {old!r}")
        machines = PAIRS[number % len(PAIRS)]
        broken = text.replace(old, new, 1)
        one, other = (_red(source, manifest["file"], broken, machine, home, tools) for machine in machines)
        place = f"{manifest['file']}:{text[: text.index(old)].count(chr(10))}"
        for case in one[:MOST_RED]:
            for again in other:
                if case.id == again.id:
                    yield SeenByNode(f"{manifest['name']}-{number}", place, case, again, machines)


def _red(source: Path, file: str, broken: str, machine: Runner, home: Path, tools: Path) -> list[Case]:
    repo = home / f"{source.name}-{machine.shift}"
    shutil.rmtree(repo, ignore_errors=True)
    shutil.copytree(source, repo, ignore=shutil.ignore_patterns(".git"))
    (repo / file).write_text(broken)
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
        [str(word) for word in command],
        cwd=repo,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    done = Completed(
        exit_code=1, cause=ExitCause.failed, output="", files={CASES: report.read_text() if report.exists() else ""}
    )
    found = read_node(done) or []
    return [
        case.model_copy(
            update={
                "message": case.message.replace(str(repo), machine.root),
                "detail": case.detail.replace(str(repo), machine.root).replace(str(tools), "/opt/node"),
            }
        )
        for case in found
        if case.red
    ]
