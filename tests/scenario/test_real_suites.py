"""Test suites end the same inside the sandbox and outside, by test ID: one in Python, one in Node.

They do what suites of real packages do: start processes, listen on loopback, write to temporary folders and next to
the tests, read the clock and the machine. `bench/real_suites.py` compares real packages.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from redstart.core.shell import OUT, Environment, Execution
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.testing.sandbox import FolderWorkspaces

REPORT = "report.xml"
PYTHON_SUITE = {
    "shop.py": "def price(count):\n    return 3 * count\n",
    "test_shop.py": """
import multiprocessing, os, pathlib, socket, sqlite3, subprocess, sys, tempfile, threading
import pytest
from shop import price

@pytest.mark.parametrize("count", [1, 2])
def test_price(count):
    assert price(count) == 3 * count

def test_is_red():
    assert price(1) == 4

@pytest.mark.skip(reason="later")
def test_is_skipped():
    raise AssertionError

def test_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(b"x")
            assert server.accept()[0].recv(1) == b"x"

def test_child():
    said = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, check=True)
    assert said.stdout == "42\\n"

def test_pool():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(abs, [-1, -2]) == [1, 2]

def test_threads():
    done = []
    threads = [threading.Thread(target=done.append, args=(each,)) for each in range(20)]
    [each.start() for each in threads], [each.join() for each in threads]
    assert sorted(done) == list(range(20))

def test_files(tmp_path):
    with tempfile.NamedTemporaryFile() as file, sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("create table t (n)")
        assert os.path.exists(file.name)
    beside = pathlib.Path(__file__).with_name("written")
    beside.write_text("x")
    beside.unlink()

def test_home_and_name():
    assert pathlib.Path.home().is_dir()
    assert socket.gethostbyname("localhost") == "127.0.0.1"
""",
}
NODE_SUITE = {
    "package.json": '{"name": "shop", "version": "1.0.0"}\n',
    "node_modules/adds/index.js": "exports.add = (a, b) => a + b\n",
    "test/shop.test.js": """
const assert = require('node:assert')
const { test, describe, it } = require('node:test')
const { execFileSync } = require('node:child_process')
const { Worker } = require('node:worker_threads')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')

describe('adds', () => {
  it('two', () => assert.strictEqual(require('adds').add(1, 2), 3))
  it('is red', () => assert.strictEqual(require('adds').add(1, 2), 4))
})
test('is skipped', { skip: true }, () => assert.fail())
test('serves on loopback', async () => {
  const server = http.createServer((request, response) => response.end('hello')).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/`)
  assert.strictEqual(await answer.text(), 'hello')
  server.closeAllConnections()
  server.close()
})
test('starts a child', () => {
  assert.strictEqual(execFileSync(process.execPath, ['-p', '6 * 7']).toString(), '42\\n')
})
test('has workers', async () => {
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage(7)", { eval: true })
  assert.strictEqual(await new Promise((resolve) => worker.once('message', resolve)), 7)
})
test('writes files', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'shop-'))
  fs.writeFileSync(path.join(folder, 'x'), 'x')
  fs.rmSync(folder, { recursive: true })
})
""",
}
SUITES = {
    "python": (
        PYTHON_SUITE,
        (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={OUT}/{REPORT}"),
    ),
    "node": (
        NODE_SUITE,
        ("node", "--test", "--test-reporter=junit", f"--test-reporter-destination={OUT}/{REPORT}"),
    ),
}
REDS = {"python": {"test_shop.test_is_red"}, "node": {"adds > is red"}}


def parse_outcomes(report: str) -> dict[str, str]:
    """Return the outcome of each test, by its path of names."""
    outcomes: dict[str, str] = {}

    def read(element: ElementTree.Element, path: tuple[str, ...]) -> None:
        for child in element:
            name = child.get("name", "")
            if child.tag == "testsuite":
                read(child, (*path, name) if name != "pytest" else path)
            elif child.tag == "testcase":
                kinds = [kind for kind in ("failure", "error", "skipped") if child.find(kind) is not None]
                qualified_name = f"{child.get('classname')}.{name}" if element.get("name") == "pytest" else name
                outcomes[" > ".join((*path, qualified_name))] = kinds[0] if kinds else "passed"

    read(ElementTree.fromstring(report), ())
    return outcomes


def run_outside(folder: Path, argv: tuple[str, ...], output_folder: Path) -> dict[str, str]:
    command = [argument.replace(OUT, str(output_folder)) for argument in argv]
    subprocess.run(command, cwd=folder, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": ""})
    return parse_outcomes((output_folder / REPORT).read_text())


async def run_in_sandbox(
    folder: Path, files: dict[str, str], argv: tuple[str, ...], output_folder: Path
) -> dict[str, str]:
    modules = folder / "node_modules"
    source_files = {name: text for name, text in files.items() if not name.startswith("node_modules/")}
    workspaces = FolderWorkspaces(output_folder / "snapshots")
    execution = Execution(
        argv=argv,
        snapshot=workspaces.create_snapshot("shop", source_files),
        environment=Environment(
            mount=str(folder),
            python=sys.executable,
            read_only=(sys.prefix, sys.base_prefix, *([str(modules)] if modules.is_dir() else [])),
        ),
        collect=(REPORT,),
    )
    completed = await Bubblewrap(workspaces, output_folder / "scratch").run(execution)
    assert REPORT in completed.files, completed.output
    return parse_outcomes(completed.files[REPORT])


@pytest.mark.parametrize("kind", SUITES)
async def test_results_match_inside_and_outside_the_sandbox(kind: str, tmp_path: Path) -> None:
    files, argv = SUITES[kind]
    if kind == "node" and not shutil.which("node"):
        pytest.skip("there is no node here")
    folder, outside_folder, sandbox_folder = tmp_path / "shop", tmp_path / "there", tmp_path / "here"
    for path in (outside_folder, sandbox_folder):
        path.mkdir()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    expected = run_outside(folder, argv, outside_folder)
    assert {name for name, end in expected.items() if end == "failure"} == REDS[kind]
    assert sum(end == "skipped" for end in expected.values()) == 1
    assert len(expected) >= 7
    assert await run_in_sandbox(folder, files, argv, sandbox_folder) == expected
