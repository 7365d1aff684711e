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

from redstart.app.ground import take_ground
from redstart.app.runs import RunRequest, begin_fix, go_on, replay
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_house
from redstart.core.change import Probe
from redstart.core.run import Level, Limits, Result, RunState, Suite
from redstart.engines.inline import inline
from redstart.toolkit.looking.probes import execution
from support.sample import short_form
from support.scenarios import CARD, question
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
    print("the sensor sent", __import__("lab.sensor").sensor.raw())
    assert len(parts()) == 4
"""
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
        packed = zlib.compress(self.mark.join("1234").encode())
        files = {
            f"{self.folder}lab/__init__.py": "",
            f"{self.folder}lab/sensor.py": HIDDEN.format(packed=f"PACKED = {packed!r}"),
            self.reader: READER.format(guess="@"),
            "tests/test_reader.py": TEST,
            "pyproject.toml": f'[tool.pytest.ini_options]\npythonpath = ["{self.folder or "."}"]\n',
        }
        for path, text in files.items():
            (repo / path).parent.mkdir(parents=True, exist_ok=True)
            (repo / path).write_text(text)
        return repo

    def reply(self, request: Request) -> str:
        if question(request) != "patch":
            return CARD
        seen = FACT.search(request.messages[0][1].partition("What was run to find out more")[2])
        if seen is None:
            return IDS_ANSWER if self.by_ids else SNIPPET_ANSWER
        search, text = 'split("@")', f'split("{seen["mark"]}")'
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


def run(task: Task, folder: Path, *, looks: int, iterations: int = 2) -> tuple[RunState, list[Request], RunState]:
    """Run a task. Return its state, the patch requests, and the state replayed from the journal alone."""
    with ScriptedServer(task.reply) as server:
        models = Models(strong="openai:scripted", fast="openai:scripted", base_url=server.openai_url)
        settings = Settings(home=folder / "home", models=models)

        async def go() -> tuple[RunState, RunState]:
            with open_house(settings) as bare:
                house = bare.with_sandbox().with_model()
                asked = RunRequest(Limits(attempts=iterations), verify=Level.quick, own_python=True)
                begun = await begin_fix(house, task.write(folder / "repo"), asked)
                spec = begun.spec.model_copy(update={"looks": looks})
                state = begun.model_copy(update={"run_id": "probing", "spec": spec})
                await house.adapters.store.create(state, folder=str(folder / "repo"), created=house.moment)
                done = (await go_on(house, "probing", inline)).state
                return done, (await replay(house, "probing")).state

        done, again = asyncio.run(go())
        return done, [request for request in server.requests if question(request) == "patch"], again


def test_there_are_ten_tasks():
    assert len({task.mark for task in TASKS}) == len({task.name for task in TASKS}) == len(TASKS) == 10


@pytest.mark.parametrize("task", short_form([pytest.param(task, id=task.name) for task in TASKS], 1))
def test_solved_after_a_probe(task: Task, tmp_path: Path):
    state, patches, again = run(task, tmp_path, looks=2)
    told = [FACT.search(request.text) is not None for request in patches]
    assert (state.result, told) == (Result.verified, [False, True]), state.reason
    assert (state.now.number, state.probes, state.tries) == (2, 1, 1)
    assert again == state


def test_not_solved_where_no_probe_is_offered(tmp_path: Path):
    state, patches, _ = run(TASKS[0], tmp_path, looks=0)
    assert (state.result, state.probes, len(patches)) == (Result.unsolved, 0, 4), (
        "each attempt asks once more for edits"
    )
    assert "PROBE" not in patches[0].text


@pytest.mark.soak
def test_a_probe_has_no_network_no_home_and_little_time(tmp_path: Path):
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
            return f"PROBE:\n```python\n{snippet}```\n" if question(request) == "patch" else CARD

    (tmp_path / "secret").write_text("the-prize")
    state, patches, _ = run(Hostile("hostile", ";"), tmp_path, looks=1, iterations=2)
    assert state.result in (Result.unsolved, Result.stuck)
    told = patches[1].text.partition("What was run to find out more")[2]
    assert "REFUSED connect" in told
    assert "REFUSED home" in told
    assert "the-prize" not in patches[1].text
    assert re.search(r"ended: (cpu|timeout)", told)
    assert (tmp_path / "repo" / "lab" / "reader.py").read_text() == READER.format(guess="@")


def test_a_probe_in_javascript_finds_the_projects_files(tmp_path: Path):
    repo = tmp_path / "cart"
    repo.mkdir()
    (repo / "package.json").write_text('{"type": "module", "scripts": {"test": "node --test"}}')
    (repo / "cart.js").write_text("export const total = () => 42;\n")
    (repo / "cart.test.js").write_text("import { test } from 'node:test';\ntest('adds', () => {});\n")
    probe = Probe(snippet="import { total } from './cart.js';\nconsole.log(total());\n")

    async def go() -> str:
        with open_house(Settings(home=tmp_path / "home")) as bare:
            house = bare.with_sandbox()
            ground = take_ground(house, repo)
            asked = execution(probe, ground.base, ground.environment, Suite(runner=ground.runner), ["cart.js"])
            assert house.adapters.sandbox
            return (await house.adapters.sandbox.run(asked)).output

    assert asyncio.run(go()).strip() == "42"
