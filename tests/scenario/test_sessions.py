"""Twenty tasks that need run, edit and run again: the right edit depends on what the code prints with an edit in place.

The scripted model knows no answer. It edits once to make the code print what its lock holds, runs that, and copies what
was printed into its next edit. An answer in one piece, with nothing tried, cannot hold the right value.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest

from redstart.app.runs import RunRequest, create_fix_run, get_result_snapshot, go_on, replay
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_app
from redstart.core.chat import ToolCall
from redstart.core.events import Phase
from redstart.core.run import Level, Limits, Result, RunState
from redstart.core.set_aside import SetAsidePolicy
from redstart.engines.inline import run_inline
from redstart.ports.model.port import Profile
from redstart.testing.contracts.fixtures import find_processes
from support.sample import sample_parameters
from support.scenarios import CARD, parse_question
from support.server import Reply, Request, ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent

LOCK = '''"""A lock that opens only to its own code, and tells it only to a caller with the first key."""

import hashlib

SALT = "{salt}"


def reveal(key):
    """Return the second key; a wrong first key gives nothing that is of use."""
    return hashlib.sha256((SALT + key).encode()).hexdigest()[:12]


def opens(key, code):
    return key == "{key}" and code == reveal(key)
'''
DOOR = '''"""The door passes both keys to the lock."""

from lab.lock import opens, reveal

FIRST = "unset"
SECOND = "unset"


def is_open():
    return opens(FIRST, SECOND)


def describe():
    return "the second key is <" + reveal(FIRST) + ">"
'''
TEST = """from lab.door import describe, is_open


def test_door():
    print(describe())
    assert is_open(), describe()
"""
PRINTED = re.compile(r"the second key is <(?P<key>[0-9a-f]{12})>")


class Task(NamedTuple):
    number: int

    @property
    def key(self) -> str:
        return f"key-{self.number * 7919 % 1000:03}"

    @property
    def with_snippet(self) -> bool:
        return self.number % 2 == 0

    @property
    def second_key(self) -> str:
        return hashlib.sha256(f"salt-{self.number}{self.key}".encode()).hexdigest()[:12]

    def write(self, repo: Path) -> Path:
        files = {
            "lab/__init__.py": "",
            "lab/lock.py": LOCK.format(salt=f"salt-{self.number}", key=self.key),
            "lab/door.py": DOOR,
            "tests/test_door.py": TEST,
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        }
        for path, text in files.items():
            (repo / path).parent.mkdir(parents=True, exist_ok=True)
            (repo / path).write_text(text)
        return repo

    def reply(self, request: Request) -> Reply | str:
        """Answer as the model that tries its edits: each turn depends only on the results that the request shows."""
        if parse_question(request) != "patch":
            return CARD
        if "submit" not in request.tools:
            return f"WHY: a guess.\n\n{_edit_block('SECOND', 'unset', 'guess')}"
        snippet = json.dumps({"snippet": "from lab.door import describe\nprint(describe())\n"})
        run = ("run", snippet) if self.with_snippet else ("run_tests", "{}")
        results = _list_results(request)
        match = PRINTED.search(results[-1]) if results else None
        turns = (
            ("run_tests", "{}"),
            ("edit", _edit_call("FIRST", "unset", self.key)),
            run,
            ("edit", _edit_call("SECOND", "unset", match["key"] if match else "unseen")),
            ("run_tests", "{}"),
            ("submit", '{"why": "the keys were not set"}'),
        )
        name, arguments = turns[len(results)]
        return Reply("", calls=(ToolCall(id=f"turn-{len(results)}", name=name, arguments=arguments),))


CALLS = 9
"""The recorded calls of a task's session: six answers and three runs."""


def _edit_call(name: str, old: str, new: str) -> str:
    return json.dumps({"path": "lab/door.py", "search": f'{name} = "{old}"', "replace": f'{name} = "{new}"'})


def _edit_block(name: str, old: str, new: str) -> str:
    return f'lab/door.py\n<<<<<<< SEARCH\n{name} = "{old}"\n=======\n{name} = "{new}"\n>>>>>>> REPLACE\n'


def _list_results(request: Request) -> list[str]:
    """List the tool results that a request shows, on either wire."""
    return re.findall(
        r'<data from="(?:edited|snippet run|\d+ tests? run|submitted)">.*?</data>', request.text, re.DOTALL
    )


TASKS = tuple(Task(number) for number in range(1, 21))


class Outcome(NamedTuple):
    state: RunState
    requests: list[Request]
    diff: str
    replayed: RunState
    tool_calls: list[tuple[str, bool]]


class Repo(Protocol):
    def write(self, repo: Path) -> Path: ...

    def reply(self, request: Request) -> Reply | str: ...


def play(
    task: Repo,
    folder: Path,
    wire: Wire,
    *,
    session: bool = True,
    reply: Callable[[Request], Reply | str] | None = None,
    attempts: int = 1,
    has_tools: bool = True,
    set_aside: SetAsidePolicy = SetAsidePolicy.never,
) -> Outcome:
    with ScriptedServer(reply or task.reply) as server:
        name, url = ("openai", server.openai_url) if wire is Wire.openai else ("anthropic", server.anthropic_url)
        profiles = {"*": Profile(tools=has_tools)}
        models = Models(strong=f"{name}:scripted", fast=f"{name}:scripted", base_url=url, profiles=profiles)
        settings = Settings(home=folder / "home", models=models)
        limits = Limits(attempts=attempts)
        request = RunRequest(limits, verify=Level.quick, own_python=True, session=session, set_aside=set_aside)
        state, diff, tool_calls = asyncio.run(_go(settings, task.write(folder / "repo"), request))
        requests = list(server.requests)
    replayed = asyncio.run(_replay(settings, state.run_id))
    return Outcome(state, requests, diff, replayed, tool_calls)


async def _go(settings: Settings, repo: Path, request: RunRequest) -> tuple[RunState, str, list[tuple[str, bool]]]:
    with open_app(settings) as base_app:
        app = base_app.with_sandbox().with_model()
        run_id = (await create_fix_run(app, repo, request)).run_id
        state = (await go_on(app, run_id, run_inline)).state
        snapshot = get_result_snapshot(state)
        diff = app.trees.diff(state.spec.base, snapshot).decode() if snapshot else ""
        notes = (event.data for event in await app.adapters.store.list_events(run_id) if event.phase is Phase.note)
        return state, diff, [(str(data["look"]), bool(data["served"])) for data in notes if "look" in data]


async def _replay(settings: Settings, run_id: str) -> RunState:
    """Replay the run when its model's server is down."""
    with open_app(settings) as base_app:
        return (await replay(base_app.with_sandbox().with_model(), run_id)).state


@pytest.mark.parametrize("wire", Wire)
@pytest.mark.parametrize("task", sample_parameters([pytest.param(task, id=str(task.number)) for task in TASKS], 2))
def test_task_is_solved_by_running_edits(task: Task, wire: Wire, tmp_path: Path):
    outcome = play(task, tmp_path, wire)
    assert outcome.state.result is Result.verified, outcome.state.reason
    assert f'+SECOND = "{task.second_key}"' in outcome.diff
    assert outcome.state.tries == 1
    assert outcome.replayed == outcome.state


def test_task_is_not_solved_in_one_answer(tmp_path: Path):
    outcome = play(TASKS[0], tmp_path, Wire.openai, session=False)
    assert outcome.state.result is Result.unsolved


def list_kill_points() -> list[str]:
    """List the moments around each recorded call of a session, and around the step."""
    return ["before", *(f"{moment}:{number}" for number in range(CALLS) for moment in ("making", "made")), "after"]


@pytest.mark.parametrize("moment", sample_parameters(list_kill_points(), 3))
def test_killed_session_asks_and_runs_nothing_twice(moment: str, user: User, tmp_path: Path):
    task, repo = TASKS[0], TASKS[0].write(tmp_path / "projects" / "lab")
    with ScriptedServer(task.reply) as server:
        user.uses(server, Wire.openai)
        user.environ["REDSTART_MODELS__PROFILES"] = '{"*": {"tools": true}}'
        killed = user.python(HERE / "drivers" / "crash.py", "patch", moment, "fix", repo, "--session")
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        resume_result = user.redstart("resume", cwd=repo)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        bodies = [str(request.body) for request in server.requests]
    assert len(bodies) == len(set(bodies)) == 7, "six turns of the session, and a card"
    with contextlib.closing(sqlite3.connect(user.home / "redstart.db")) as database:
        query = "SELECT ordinal, kind FROM journal WHERE step = 'patch' AND ordinal >= 0 ORDER BY position"
        kinds = database.execute(query).fetchall()
    assert [ordinal for ordinal, _ in kinds] == list(range(CALLS))
    assert [ordinal for ordinal, kind in kinds if kind == "sandbox"] == [1, 4, 7]


SECRET = "the-prize-of-the-vault"
TOKEN = "redstart-left-behind"
PROTECTED = (
    "tests/test_door.py",
    "conftest.py",
    "pytest.ini",
    "tests/conftest.py",
    ".git/hooks/pre-commit",
    ".github/ci.yml",
)


def list_hostile_calls(folder: Path) -> list[tuple[str, str]]:
    """List forty calls that reach for what a session must not give, each with its arguments."""
    outside = [
        str(folder / "secret"),
        "../secret",
        "~/.ssh/id_rsa",
        ".git/config",
        "GIT~1/config",
        ".env",
        "lab/../../secret",
    ]
    calls = [("read", {"path": path}) for path in outside]
    calls += [("search", {"text": "prize", "path": path}) for path in ("..", ".git")]
    calls += [("outline", {"path": path}) for path in ("..", ".git")]
    calls += [("history", {"path": "../secret"}), ("references", {"name": "x; cat /etc/passwd"})]
    calls += [
        ("edit", {"path": path, "text": f"# {TOKEN}\n"}) for path in (*PROTECTED, "../out.py", str(folder / "out.py"))
    ]
    calls += [
        ("edit", {"path": "tests/test_door.py", "delete": True}),
        ("edit", {"path": "tests/test_door.py", "search": "    assert is_open(), describe()", "replace": "    pass"}),
        ("edit", {"path": "lab/door.py", "text": "x = 1\n" * 17_000}),
        ("edit", {"path": "lab/\0door.py", "text": "x"}),
        ("submit", {"why": "nothing was done"}),
        ("undo", {}),
        ("bash", {"command": f"cat {folder / 'secret'}"}),
        ("run_tests", {"ids": "--co\n-p evil\ntests/../../secret"}),
        ("run_tests", {"ids": f"tests/test_door.py; cat {folder / 'secret'}"}),
        ("run_tests", {"ids": ["x" * 5000, "a\0b", 7]}),
    ]
    snippets = (
        f"print(open({str(folder / 'secret')!r}).read())",
        "import os; print(dict(os.environ)); print(os.listdir(os.path.expanduser('~')))",
        "import socket; socket.create_connection(('192.0.2.1', 80), 2)",
        "import socket; socket.create_connection(('127.0.0.1', PORT), 2); print('CONN' + 'ECTED')",
        "while True: print('x' * 1000)",
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', '{TOKEN}'])",
        "open('tests/test_door.py', 'w').write('def test_door(): pass')",
        "import os; os.makedirs('left'); open('left/behind.py', 'w').write('x')",
        "x = bytearray(1 << 40)",
    )
    calls += [("run", {"snippet": snippet}) for snippet in snippets]
    return [(name, json.dumps(arguments)) for name, arguments in calls]


def test_hostile_calls_get_nothing_beyond_their_bounds(tmp_path: Path):
    """Make forty hostile calls in one session, then look at everything that came back or stayed."""
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".env").write_text(f"KEY={SECRET}\n")
    calls = list_hostile_calls(tmp_path)
    assert len(calls) == 40
    results: dict[str, str] = {}

    def reply(request: Request) -> Reply | str:
        if parse_question(request) != "patch":
            return CARD
        port = request.headers["host"].rpartition(":")[2]
        results.update(
            {turn["tool_call_id"]: turn["content"] for turn in request.body["messages"] if turn["role"] == "tool"}
        )
        done = len(results)
        batch = calls[done : done + 8]
        if not batch:
            final = ToolCall(id="last", name="edit", arguments=_edit_call("FIRST", "unset", "tried"))
            return Reply("", calls=(final, ToolCall(id="end", name="submit", arguments="{}")))
        named = enumerate(batch, done)
        return Reply(
            "",
            calls=tuple(
                ToolCall(id=f"h{number}", name=name, arguments=arguments.replace("PORT", port))
                for number, (name, arguments) in named
            ),
        )

    outcome = play(TASKS[0], tmp_path, Wire.openai, reply=reply)
    assert list(results) == [f"h{number}" for number in range(40)]
    leaks = (SECRET, "CONNECTED", "root:x:0:0:root:/root")
    assert [number for number, text in results.items() if any(leak in text for leak in leaks)] == []
    assert max(map(len, results.values())) < 9000
    executed = ("run", "run_tests")
    served = {calls[index][0] for index, text in enumerate(results.values()) if "refused:" not in text}
    assert served <= {*executed, "search", "outline", "history"}
    assert find_processes(TOKEN) == []
    assert outcome.state.result is Result.unsolved
    changed = outcome.state.now.patch.files if outcome.state.now.patch else ()
    assert changed == ("lab/door.py",)
    assert not (tmp_path / "out.py").exists()
    assert (tmp_path / "repo" / "tests" / "test_door.py").read_text() == TEST


class TwoBugs:
    """A model that fixes one bug, submits, and fixes the other when it is told what is still red."""

    edits = (("n * 3", "n * 2"), ("n // 3", "n // 2"))

    def write(self, repo: Path) -> Path:
        (repo / "tests").mkdir(parents=True)
        (repo / "halves.py").write_text("def double(n):\n    return n * 3\n\n\ndef half(n):\n    return n // 3\n")
        (repo / "tests" / "test_halves.py").write_text(
            "from halves import double, half\n\n\ndef test_double():\n    assert double(4) == 8\n\n\n"
            "def test_half():\n    assert half(8) == 4\n"
        )
        (repo / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
        return repo

    def reply(self, request: Request) -> Reply | str:
        if parse_question(request) != "patch":
            return CARD
        done = request.text.count("is checked and tested in full now")
        search, replace = self.edits[done]
        arguments = json.dumps({"path": "halves.py", "search": f"return {search}", "replace": f"return {replace}"})
        calls = (("edit", arguments), ("submit", '{"why": "it was wrong"}'))
        return Reply("", calls=tuple(ToolCall(id=f"{name}-{done}", name=name, arguments=text) for name, text in calls))


@pytest.mark.parametrize("wire", Wire)
def test_next_attempt_goes_on_with_conversation_and_edits(wire: Wire, tmp_path: Path):
    task = TwoBugs()
    outcome = play(task, tmp_path, wire, attempts=2)
    assert outcome.state.result is Result.verified, outcome.state.reason
    assert outcome.state.now.number == 2
    first, second = (request for request in outcome.requests if parse_question(request) == "patch")
    assert second.messages[: len(first.messages)] == first.messages
    told = second.messages[-1][1].partition("What became of it")[2]
    assert "Your edits stay: go on from them." in told
    assert "test_half" in told
    assert "test_double" not in told
    assert outcome.replayed == outcome.state


def test_model_without_tools_in_its_api_calls_them_in_its_text(tmp_path: Path):
    task = TwoBugs()

    def reply(request: Request) -> Reply | str:
        answer = task.reply(request)
        if isinstance(answer, str):
            return answer
        blocks = (f'```json\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n```' for call in answer.calls)
        return "\n\n".join(blocks)

    outcome = play(task, tmp_path, Wire.openai, attempts=2, reply=reply, has_tools=False)
    assert outcome.state.result is Result.verified, outcome.state.reason
    assert outcome.requests[0].tools == ()


class OneForeignFailure(TwoBugs):
    """A model that fixes the first bug, and says that the other failure is not this code's."""

    def reply(self, request: Request) -> Reply | str:
        if parse_question(request) != "patch":
            return CARD
        search, replace = self.edits[0]
        edit = json.dumps({"path": "halves.py", "search": f"return {search}", "replace": f"return {replace}"})
        claim = json.dumps({"ids": "tests/test_halves.py::test_half", "reason": "It needs another version of halves."})
        calls = (("edit", edit), ("not_this_code", claim), ("submit", '{"why": "double was wrong"}'))
        return Reply("", calls=tuple(ToolCall(id=name, name=name, arguments=text) for name, text in calls))


def test_failure_that_a_session_sets_aside_leaves_a_partial_result(tmp_path: Path):
    outcome = play(OneForeignFailure(), tmp_path, Wire.openai, set_aside=SetAsidePolicy.alone)
    assert outcome.state.result is Result.partial, outcome.state.reason
    assert "It needs another version of halves." in outcome.state.reason
    assert "+    return n * 2" in outcome.diff
    assert "-    return n // 3" not in outcome.diff
    assert outcome.replayed == outcome.state


def test_failure_is_not_set_aside_in_a_run_that_must_fix_all(tmp_path: Path):
    outcome = play(OneForeignFailure(), tmp_path, Wire.openai, set_aside=SetAsidePolicy.all_red)
    assert outcome.state.result is Result.unsolved
    assert ("not_this_code" in outcome.requests[0].tools, "submit" in outcome.requests[0].tools) == (False, True)


class QuietFailure:
    """A failure with an empty message: only what the test prints with an edit in place tells the name."""

    name = "blue-heron"

    def write(self, repo: Path) -> Path:
        (repo / "tests").mkdir(parents=True)
        (repo / "bird.py").write_text('NAME = "unset"\n')
        (repo / "tests" / "test_bird.py").write_text(
            "import sys\n\nfrom bird import NAME\n\n\ndef test_bird():\n    wanted = '-'.join(('blue', 'heron'))\n"
            "    is_right = NAME == wanted\n    if NAME != 'unset':\n        print('the bird is', wanted)\n"
            "        print('noise ' * 5000)\n        print('for the log', file=sys.stderr)\n    assert is_right\n"
            "\n\ndef test_passing():\n    print('what a passing test prints')\n"
        )
        (repo / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
        return repo

    def reply(self, request: Request) -> Reply | str:
        if parse_question(request) != "patch":
            return CARD
        results = _list_results(request)
        match = re.search(r"the bird is (\S+)", results[-1]) if results else None
        name = match[1] if match else "tried"
        text = json.dumps({"path": "bird.py", "text": f'NAME = "{name}"\n'})
        follow = ("submit", "{}") if match else ("run_tests", '{"all": true}')
        calls = (("edit", text), follow)
        return Reply("", calls=tuple(ToolCall(id=f"{tool}-{name}", name=tool, arguments=args) for tool, args in calls))


def test_run_shows_what_a_failing_test_printed(tmp_path: Path):
    outcome = play(QuietFailure(), tmp_path, Wire.openai)
    assert outcome.state.result is Result.verified, outcome.state.reason
    assert f'+NAME = "{QuietFailure.name}"' in outcome.diff
    results = _list_results([request for request in outcome.requests if parse_question(request) == "patch"][-1])
    assert "stdout:\nthe bird is blue-heron\n" in results[-1]
    assert "stderr:\nfor the log\n" in results[-1]
    assert "what a passing test prints" not in results[-1]
    assert results[-1].count("noise") < 200
