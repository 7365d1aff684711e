"""Ten tasks that need a fact that only running code can tell: a probe prints it, the next attempt uses it.

The scripted model knows no fact: it copies what the probe printed into its edit.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.app.runs import RunRequest, create_fix_run, go_on, replay
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_app
from redstart.app.workspace import prepare_run_setup
from redstart.core.change import Probe
from redstart.core.run import Level, Limits, Result, RunState, Suite
from redstart.engines.inline import run_inline
from redstart.toolkit.model_tools.probes import build_execution
from support.sample import sample_parameters
from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer

HIDDEN = '''"""What the sensor sends: packed, so that nobody reads it from here."""

import zlib

{packed}


def raw():
    return zlib.decompress(PACKED).decode()
'''
READER = '''"""Reads what the sensor sends."""

from lab.sensor import raw


def parts():
    return raw().split("{guess}")
'''
TEST = """from lab.reader import parts


def test_parts():
    print("." * 1500, "the sensor sent", __import__("lab.sensor").sensor.raw(), "." * 1500)
    assert len(parts()) == 4
"""
"""The question shows the beginning and the end of what the test prints, a probe all of it."""
SNIPPET = "from lab.sensor import raw\nprint('FACT', repr(raw()))\n"
SNIPPET_ANSWER = f"WHY: I do not know what the sensor sends.\n\nPROBE:\n```python\n{SNIPPET}```\n"
IDS_ANSWER = "PROBE: tests/test_reader.py::test_parts\n"
FACT = re.compile(r"(?:FACT '|the sensor sent )1(?P<mark>.+?)2(?P=mark)3(?P=mark)4")


class Task(NamedTuple):
    """A separator that cannot be guessed, and the kind of probe that shows it."""

    name: str
    mark: str
    by_ids: bool = False
    folder: str = ""
    """The parent folder of the package: a snippet must be able to import from `src` too."""

    @property
    def reader(self) -> str:
        return f"{self.folder}lab/reader.py"

    def write(self, repo: Path) -> Path:
        packed_data = zlib.compress(self.mark.join("1234").encode())
        files = {
            f"{self.folder}lab/__init__.py": "",
            f"{self.folder}lab/sensor.py": HIDDEN.format(packed=f"PACKED = {packed_data!r}"),
            self.reader: READER.format(guess="@"),
            "tests/test_reader.py": TEST,
            "pyproject.toml": f'[tool.pytest.ini_options]\npythonpath = ["{self.folder or "."}"]\n',
        }
        for path, text in files.items():
            (repo / path).parent.mkdir(parents=True, exist_ok=True)
            (repo / path).write_text(text)
        return repo

    def reply(self, request: Request) -> str:
        if parse_question(request) != "patch":
            return CARD
        match = FACT.search(request.messages[0][1].partition("What was run to find out more")[2])
        if match is None:
            return IDS_ANSWER if self.by_ids else SNIPPET_ANSWER
        search, text = 'split("@")', f'split("{match["mark"]}")'
        edit = f"<<<<<<< SEARCH\n    return raw().{search}\n=======\n    return raw().{text}\n>>>>>>> REPLACE\n"
        return f"WHY: the parts are separated otherwise.\n\n{self.reader}\n{edit}"


TASKS = (
    Task("semicolon", ";"),
    Task("bar", "|", by_ids=True),
    Task("arrow", "=>"),
    Task("tilde", "~", by_ids=True),
    Task("words", " and "),
    Task("hash", "#", folder="src/"),
    Task("colons", "::", by_ids=True, folder="src/"),
    Task("percent", "%"),
    Task("plus", "+"),
    Task("dots", "..."),
)


def run(task: Task, folder: Path, *, max_calls: int, iterations: int = 2) -> tuple[RunState, list[Request], RunState]:
    """Run a task. Return its state, the patch requests, and the state replayed from the journal alone."""
    with ScriptedServer(task.reply) as server:
        models = Models(strong="openai:scripted", fast="openai:scripted", base_url=server.openai_url)
        settings = Settings(home=folder / "home", models=models)

        async def go() -> tuple[RunState, RunState]:
            with open_app(settings) as base_app:
                app = base_app.with_sandbox().with_model()
                run_request = RunRequest(Limits(attempts=iterations), verify=Level.quick, own_python=True)
                initial_state = await create_fix_run(app, task.write(folder / "repo"), run_request)
                spec = initial_state.spec.model_copy(update={"looks": max_calls})
                state = initial_state.model_copy(update={"run_id": "probing", "spec": spec})
                await app.adapters.store.create(state, folder=str(folder / "repo"), created=app.moment)
                final_state = (await go_on(app, "probing", run_inline)).state
                return final_state, (await replay(app, "probing")).state

        final_state, replayed_state = asyncio.run(go())
        return (
            final_state,
            [request for request in server.requests if parse_question(request) == "patch"],
            replayed_state,
        )


def test_there_are_ten_tasks():
    assert len({task.mark for task in TASKS}) == len({task.name for task in TASKS}) == len(TASKS) == 10


@pytest.mark.parametrize("task", sample_parameters([pytest.param(task, id=task.name) for task in TASKS], 1))
def test_task_is_solved_after_a_probe(task: Task, tmp_path: Path):
    state, patches, replayed_state = run(task, tmp_path, max_calls=2)
    has_facts = [FACT.search(request.text) is not None for request in patches]
    assert (state.result, has_facts) == (Result.verified, [False, True]), state.reason
    assert (state.now.number, state.probes, state.tries) == (2, 1, 1)
    assert replayed_state == state


def test_task_is_not_solved_without_probes(tmp_path: Path):
    state, patches, _ = run(TASKS[0], tmp_path, max_calls=0)
    assert (state.result, state.probes, len(patches)) == (Result.unsolved, 0, 4), (
        "each attempt asks once more for edits"
    )
    assert "PROBE" not in patches[0].text


@pytest.mark.soak
def test_probe_has_no_network_no_home_and_little_time(tmp_path: Path):
    """Check that the sandbox limits what a snippet can do."""

    class Hostile(Task):
        def reply(self, request: Request) -> str:
            snippet = (
                "import os, socket, pathlib\n"
                "for name in ('connect', 'home', 'write', 'spin'):\n"
                "    try:\n"
                "        if name == 'connect': socket.create_connection(('192.0.2.1', 80), 2)\n"
                f"        if name == 'home': print(pathlib.Path({str(tmp_path / 'secret')!r}).read_text())\n"
                "        if name == 'write': pathlib.Path('lab/reader.py').write_text('')\n"
                "        print('DID', name, flush=True)\n"
                "    except OSError as error: print('REFUSED', name, flush=True)\n"
                "while True: pass\n"
            )
            return f"PROBE:\n```python\n{snippet}```\n" if parse_question(request) == "patch" else CARD

    (tmp_path / "secret").write_text("the-prize")
    state, patches, _ = run(Hostile("hostile", ";"), tmp_path, max_calls=1, iterations=2)
    assert state.result in (Result.unsolved, Result.stuck)
    probe_text = patches[1].text.partition("What was run to find out more")[2]
    assert "REFUSED connect" in probe_text
    assert "REFUSED home" in probe_text
    assert "the-prize" not in patches[1].text
    assert re.search(r"ended: (cpu|timeout)", probe_text)
    assert (tmp_path / "repo" / "lab" / "reader.py").read_text() == READER.format(guess="@")


async def test_javascript_probe_finds_the_project_files(tmp_path: Path):
    repo = tmp_path / "cart"
    repo.mkdir()
    (repo / "package.json").write_text('{"type": "module", "scripts": {"test": "node --test"}}')
    (repo / "cart.js").write_text("export const total = () => 42;\n")
    (repo / "cart.test.js").write_text("import { test } from 'node:test';\ntest('adds', () => {});\n")
    probe = Probe(snippet="import { total } from './cart.js';\nconsole.log(total());\n")

    async def go() -> str:
        with open_app(Settings(home=tmp_path / "home")) as base_app:
            app = base_app.with_sandbox()
            workspace = prepare_run_setup(app, repo)
            probe_execution = build_execution(
                probe, workspace.base, workspace.environment, Suite(runner=workspace.runner), ["cart.js"]
            )
            assert app.adapters.sandbox
            return (await app.adapters.sandbox.run(probe_execution)).output

    assert (await go()).strip() == "42"
