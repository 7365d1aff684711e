"""Tasks whose file no keyword search can find: only a model that makes tool calls solves them.

Each repo has forty rules that are loaded by file name; one of them is wrong. The scripted model gives the right edit
only if the conversation contains the wrong line, and only its own tool calls can bring it in.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from redstart.app.runs import RunRequest, create_fix_run, go_on
from redstart.app.settings import Models, Settings
from redstart.app.wire import open_app
from redstart.core.chat import ToolCall
from redstart.core.run import Level, Limits, Result, RunState
from redstart.engines.inline import run_inline
from redstart.ports.model.port import Profile
from support.sample import sample_parameters
from support.scenarios import CARD, parse_question
from support.server import Reply, Request, ScriptedServer, Wire

HERE = Path(__file__).parent
LOADER = '''"""Quotes: each rule may change the amount."""

from importlib import import_module
from pathlib import Path

RULES = Path(__file__).parent / "rules"


def quote(amount):
    for rule in sorted(RULES.glob("r*.py")):
        amount = import_module(f"desk.rules.{rule.stem}").change(amount)
    return amount
'''
TEST = "from desk.quotes import quote\n\n\ndef test_quote():\n    assert quote(100) == 100\n"
RULE = "def change(amount):\n    return amount\n"
WRONG_ANSWER = """WHY: the amount may be lost on the way.

desk/quotes.py
<<<<<<< SEARCH
    return amount
=======
    return amount + 0
>>>>>>> REPLACE
"""

Look = tuple[str, dict[str, Any]]


class Task(NamedTuple):
    """A wrong rule, and the tool calls by turn with which a model can find it."""

    name: str
    number: int
    """The number of the rule."""
    wrong: str
    """The expression that it returns instead of the amount."""
    turns: tuple[tuple[Look, ...], ...]
    extra: str = ""
    """Code above the rule in the file."""

    @property
    def path(self) -> str:
        return f"desk/rules/r{self.number:02}.py"

    @property
    def needle(self) -> str:
        return f"return {self.wrong}"

    @property
    def right(self) -> str:
        edit = f"<<<<<<< SEARCH\n    {self.needle}\n=======\n    return amount\n>>>>>>> REPLACE\n"
        return f"WHY: this rule changes the amount.\n\n{self.path}\n{edit}"

    def write(self, repo: Path) -> Path:
        files = {"desk/__init__.py": "", "desk/rules/__init__.py": "", "desk/quotes.py": LOADER, "test_quotes.py": TEST}
        files |= {f"desk/rules/r{number:02}.py": RULE for number in range(40)}
        files[self.path] = f"{self.extra}def change(amount):\n    {self.needle}\n"
        for path, text in files.items():
            (repo / path).parent.mkdir(parents=True, exist_ok=True)
            (repo / path).write_text(text)
        return repo


def build_call(name: str, /, **arguments: Any) -> tuple[Look, ...]:
    return ((name, arguments),)


SURCHARGE = "def surcharge(amount):\n    return amount + 4\n\n\n"
TASKS = (
    Task("text", 15, "amount + 1", (build_call("search", text="amount + 1"),)),
    Task("text_in_folder", 16, "amount - 2", (build_call("search", text="amount -", path="desk/rules"),)),
    Task("text_any_case", 17, "amount + 7", (build_call("search", text="AMOUNT + 7", ignore_case=True),)),
    Task(
        "text_then_read",
        18,
        "amount * 2",
        (build_call("search", text="amount *"), build_call("read", path="desk/rules/r18.py")),
    ),
    Task("pattern", 19, "amount + 12", (build_call("search", text=r"amount \+ \d+", regex=True),)),
    Task(
        "pattern_any_case", 20, "abs(amount) - 3", (build_call("search", text=r"ABS\(", regex=True, ignore_case=True),)
    ),
    Task("pattern_of_ends", 21, "amount // 3", (build_call("search", text=r"return amount.+$", regex=True),)),
    Task("guess", 22, "amount + 22", (build_call("read", path="desk/rules/r22.py"),)),
    Task("lines", 23, "amount + 23", (build_call("read", path="desk/rules/r23.py", start=1, end=2),)),
    Task("lines_behind_path", 24, "amount + 24", (build_call("read", path="desk/rules/r24.py:1-2"),)),
    Task(
        "wrong_guess",
        25,
        "amount + 25",
        (build_call("read", path="rules/r25.py"), build_call("read", path="desk/rules/r25.py")),
    ),
    Task(
        "outline",
        26,
        "amount + LOST",
        (build_call("outline"), build_call("read", path="desk/rules/r26.py")),
        "LOST = 3\n\n\n",
    ),
    Task(
        "outline_of_folder",
        27,
        "late(amount)",
        (
            build_call("outline", path="desk/rules"),
            build_call("read", symbol="late"),
            build_call("read", path="desk/rules/r27.py"),
        ),
        "def late(amount):\n    return amount - 1\n\n\n",
    ),
    Task(
        "symbol",
        28,
        "surcharge(amount)",
        (build_call("read", symbol="surcharge"), build_call("search", text="surcharge")),
        SURCHARGE,
    ),
    Task(
        "symbol_of_file",
        29,
        "surcharge(amount)",
        (build_call("read", path="desk/rules/r29.py", symbol="change"),),
        SURCHARGE,
    ),
    Task("references", 30, "amount - FEE", (build_call("references", name="FEE"),), "FEE = 5\n\n\n"),
    Task(
        "references_then_lines",
        31,
        "amount - TOLL",
        (build_call("references", name="TOLL"), build_call("read", path="desk/rules/r31.py", start=4)),
        "TOLL = 6\n\n\n",
    ),
    Task("history_first", 32, "amount + 32", (build_call("history"), build_call("search", text="amount + 3"))),
    Task("two_at_once", 33, "amount + 33", ((*build_call("outline"), *build_call("search", text="+ 33")),)),
    Task(
        "refused_first",
        34,
        "amount + 34",
        (build_call("read", path="../r34.py"), build_call("search", text="amount + 34")),
    ),
)

WRITTEN: tuple[Callable[[Look], str], ...] = (
    lambda call: f"```json\n{json.dumps({'name': call[0], 'arguments': call[1]})}\n```",
    lambda call: f"<tool_call>\n{json.dumps({'name': call[0], 'arguments': call[1]})}\n</tool_call>",
    lambda call: json.dumps({"tool": call[0], "args": call[1]}, indent=1),
    lambda call: f"I need to see more.\n```\n{json.dumps({'name': call[0], 'parameters': call[1]})}\n```\n",
)
"""Ways in which small models write their calls."""


class Looker:
    """The scripted model of a task. `native` selects native tool calls instead of calls as text."""

    def __init__(self, task: Task, *, native: bool) -> None:
        self._task, self._native = task, native

    def __call__(self, request: Request) -> str | Reply:
        if parse_question(request) != "patch":
            return CARD
        tools_offered = bool(request.tools) if self._native else "```json" in request.system
        turn = sum(role == "assistant" for role, _ in request.messages)
        if tools_offered and turn < len(self._task.turns):
            return self._request_calls(turn)
        return self._task.right if self._task.needle in request.text else WRONG_ANSWER

    def _request_calls(self, turn: int) -> str | Reply:
        tool_calls = self._task.turns[turn]
        if not self._native:
            return "\n\n".join(WRITTEN[self._task.number % len(WRITTEN)](tool_call) for tool_call in tool_calls)
        calls = (
            ToolCall(id=f"call_{turn}_{index}", name=name, arguments=json.dumps(arguments))
            for index, (name, arguments) in enumerate(tool_calls)
        )
        return Reply(calls=tuple(calls))


class Ended(NamedTuple):
    state: RunState
    patches: list[Request]


def solve(task: Task, wire: Wire, folder: Path, *, native: bool, max_calls: int) -> Ended:
    """Run the task with a limit of `max_calls` tool calls."""
    name = f"{wire.value}:scripted"
    with ScriptedServer(Looker(task, native=native)) as server:
        url = server.openai_url if wire is Wire.openai else server.anthropic_url
        models = Models(strong=name, fast=name, base_url=url, profiles={name: Profile(tools=native)})
        settings = Settings(home=folder / "home", models=models)

        async def go() -> RunState:
            with open_app(settings) as base_app:
                app = base_app.with_sandbox().with_model()
                run_request = RunRequest(Limits(attempts=1), verify=Level.quick, own_python=True)
                initial_state = await create_fix_run(app, task.write(folder / "repo"), run_request)
                spec = initial_state.spec.model_copy(update={"looks": max_calls})
                state = initial_state.model_copy(update={"run_id": "looking", "spec": spec})
                await app.adapters.store.create(state, folder=str(folder / "repo"), created=app.moment)
                return (await go_on(app, "looking", run_inline)).state

        state = asyncio.run(go())
        return Ended(state, [request for request in server.requests if parse_question(request) == "patch"])


MODES = {"openai": (Wire.openai, True), "anthropic": (Wire.anthropic, True), "text": (Wire.openai, False)}
ALL = [pytest.param(task, mode, id=f"{task.name}-{mode}") for task in TASKS for mode in MODES]


def test_there_are_twenty_tasks():
    assert len({task.number for task in TASKS}) == len({task.name for task in TASKS}) == len(TASKS) == 20


@pytest.mark.parametrize(("task", "mode"), sample_parameters(ALL, 2))
def test_task_is_solved_with_tool_calls(task: Task, mode: str, tmp_path: Path):
    wire, native = MODES[mode]
    state, patches = solve(task, wire, tmp_path, native=native, max_calls=6)
    assert task.needle not in patches[0].text, "retrieval guessed it: the task shows nothing"
    assert (state.result, state.now.number) == (Result.verified, 1), state.reason
    assert len(patches) == len(task.turns) + 1
    assert state.now.patch is not None
    assert state.now.patch.looks == sum(len(turn) for turn in task.turns)
    assert all(bool(request.tools) is native for request in patches)
    assert state.spend.calls == len(patches) + 1


@pytest.mark.parametrize("task", sample_parameters([pytest.param(task, id=task.name) for task in TASKS], 1))
def test_task_is_not_solved_without_tool_calls(task: Task, tmp_path: Path):
    state, patches = solve(task, Wire.openai, tmp_path, native=True, max_calls=0)
    assert (state.result, len(patches)) == (Result.unsolved, 1)
    assert patches[0].tools == ()
    assert "look" not in patches[0].text


TALK = next(task for task in TASKS if task.name == "outline_of_folder")


@pytest.mark.parametrize("ordinal", sample_parameters(range(len(TALK.turns) + 1), 1))
def test_run_killed_during_a_conversation_asks_nothing_twice(ordinal: int, user, tmp_path: Path):
    """Check that no recorded answer is asked for again."""
    repo = TALK.write(tmp_path / "projects" / "quotes")
    with ScriptedServer(Looker(TALK, native=False)) as server:
        user.uses(server, Wire.openai)
        killed = user.python(HERE / "drivers" / "crash_in_talk.py", str(ordinal), "fix", repo, "--max-iters", "1")
        assert killed.code == -signal.SIGKILL, killed.out + killed.err
        assert len(server.requests) == ordinal + 1
        resume_result = user.redstart("resume", cwd=repo)
        assert resume_result.code == 0, resume_result.out + resume_result.err
        bodies = [str(request.body) for request in server.requests]
    assert len(bodies) == len(set(bodies)) == len(TALK.turns) + 2
