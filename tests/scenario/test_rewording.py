"""No behavior of Redstart depends on wording: with every text for people reworded, runs go the same way."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.scenarios import CARD, Goal, Program, Scenario, question
from support.server import Request, ScriptedServer, Wire
from support.user import User

HERE = Path(__file__).parent
REWORDING = HERE.parent / "support" / "rewording"
PAGER = Scenario.load(HERE / "repos" / "pager")
EVERY = sorted(folder.name for folder in (HERE / "repos").iterdir())
OUTCOMES = {
    *("status", "result", "action", "next", "last", "entry", "trouble", "pattern", "strategy", "pool", "lack", "lacks"),
    *("ok", "refused", "rung", "rungs", "kind", "already", "limited", "unchanged", "form", "why_not", "problem"),
    *("red", "green", "passed", "failed", "count", "added", "removed", "patched", "attempts", "tries", "calls"),
    *("killed", "sampled", "written", "cause", "exit_code", "begun", "kept", "files", "findings", "failing"),
}
"""Fields that record what was done; the others hold texts, times and names of texts."""


class Play(NamedTuple):
    """A scenario: its repo, the model's answers, and the user's commands, each run in the repo."""

    name: str
    files: Path | dict[str, str]
    reply: Callable[[], Callable[[Request], str]]
    commands: Sequence[Sequence[str]]
    environ: dict[str, str] = {}
    soak: bool = False


class Played(NamedTuple):
    codes: list[int]
    steps: list[tuple[Any, ...]]
    questions: list[str]
    reasons: list[str]
    """The only field with texts for people."""


def block(path: str, search: str, text: str, head: str = "WHY: it is asked for") -> str:
    return f"{head}\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


OF_A_TEST = block("tests/test_pager.py", "import pytest\n", "import pytest  # changed\n")
BUG = {"bag.py": "def total(numbers):\n    return sum(numbers) + 1\n"}
BUG |= {"test_bag.py": "from bag import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"}
REPAIRED = "def total(numbers):\n    return sum(numbers)\n"
WRONG_TEST = BUG | {"bag.py": REPAIRED, "test_bag.py": BUG["test_bag.py"].replace("== 3", "== 4")}
PROPOSED = block(
    "test_bag.py", "    assert total([1, 2]) == 4\n", "    assert total([1, 2]) == 3\n", "TEST CHANGE: it is wrong"
)
SOUND = BUG | {"bag.py": REPAIRED}
GIVEN_BACK = f"bag.py\n```python\n{BUG['bag.py']}```\n"
STILL_WRONG = GIVEN_BACK.replace("+ 1", "+ 2")
BRIEF = {"REDSTART_MODELS__STRONG": "openai:qwen2.5-coder-1.5b"}
EMPTY_TEST = block("tests/test_e.py", "", "def test_e():\n    pass\n")
GREEN_TEST = block("tests/test_g.py", "", "from bag import total\n\n\ndef test_g():\n    assert total([]) == 0\n")


def always(text: str) -> Callable[[], Callable[[Request], str]]:
    return lambda: lambda request: text if question(request) in ("patch", "reproduce", "plan") else CARD


def in_turn(**answers: str) -> Callable[[], Callable[[Request], str]]:
    """Return a model that answers by the name of the question."""
    return lambda: lambda request: answers.get(question(request), CARD)


def once_told(wrong: str, right: str, told: str) -> Callable[[], Callable[[Request], str]]:
    """Return a model that gives the right answer once the request contains the trigger."""

    def reply(request: Request) -> str:
        if question(request) != "patch":
            return CARD
        return right if told.casefold() in request.text.casefold() else wrong

    return lambda: reply


def fix_of(name: str) -> Play:
    scenario = Scenario.load(HERE / "repos" / name)
    return Play(name, HERE / "repos" / name / "repo", lambda: scenario.reply, [("fix", ".")], soak=True)


def program_of(path: Path) -> Play:
    program = Program.load(path)
    lang = ("--lang", program.lang) if program.lang != "python" else ()
    command = ("create", program.goal, "-o", "out", *lang, *program.options)
    return Play(program.name, {}, lambda: Program.load(path).reply, [command], soak=True)


def goal_of(folder: Path) -> Play:
    goal = Goal.load(folder)
    return Play(goal.name, {}, lambda: goal.reply, [("create", goal.goal, "-o", "out")], soak=True)


REPAIR = block("bag.py", BUG["bag.py"], REPAIRED)
ONCE, TWICE = (("fix", ".", "--max-attempts", count) for count in "12")
REPO = HERE / "repos" / "pager" / "repo"
PLAN = json.dumps({"kind": "feature", "title": "add a function", "criteria": ["it is there"]})
IMPROVE = ("improve", ".", "--no-cap", "--pause", "0", "--max-iters", "1")
PLAYS = [
    Play("fixed", BUG, always(REPAIR), [("fix", "."), ("fix", ".")], soak=True),
    Play("green already", SOUND, always(""), [("fix", ".")], soak=True),
    Play("no tests", {"main.py": "print(1)\n"}, always(""), [("fix", ".")], soak=True),
    Play("a test patched", REPO, always(OF_A_TEST), [ONCE], soak=True),
    Play("a test proposed", WRONG_TEST, always(PROPOSED), [ONCE]),
    Play("answered", WRONG_TEST, always(PROPOSED), [ONCE, ("resume", "--reject"), ("resume", "--accept")], soak=True),
    Play("over budget", BUG, always(""), [ONCE], {"REDSTART_LIMITS__TOKENS": "50"}),
    Play("given back", BUG, once_told(GIVEN_BACK, STILL_WRONG, "file back as it was"), [TWICE], BRIEF),
    Play("no edits", BUG, always("I like the weather."), [TWICE], soak=True),
    Play("stopped", BUG, always(REPAIR), [("fix", ".", "--stop-after", "plan"), ("resume",)], soak=True),
    Play("issue", SOUND, in_turn(reproduce=GREEN_TEST), [("fix", ".", "--issue", "total of none is 0")], soak=True),
    Play("asserts nothing", SOUND, in_turn(plan=PLAN, reproduce=EMPTY_TEST), [IMPROVE], soak=True),
    Play("green at once", SOUND, in_turn(plan=PLAN, reproduce=GREEN_TEST), [IMPROVE], soak=True),
    Play("audit", BUG, always(""), [("audit", ".", "--no-model")], soak=True),
    *map(fix_of, EVERY),
    *map(goal_of, sorted((HERE / "goals").iterdir())),
    *map(program_of, sorted((HERE / "programs").glob("*.script"))),
]


def put(files: Path | dict[str, str], folder: Path) -> Path:
    if isinstance(files, Path):
        return Path(shutil.copytree(files, folder))
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def outcomes(value: Any) -> Any:
    """Return what a stored value records as done, without its texts."""
    if isinstance(value, dict):
        return {
            key: inner if key in OUTCOMES and not isinstance(inner, dict | list) else outcomes(inner)
            for key, inner in value.items()
            if key in OUTCOMES or isinstance(inner, dict | list)
        }
    if isinstance(value, list):
        return [outcomes(inner) for inner in value if isinstance(inner, dict | list)]
    return None


def rows(home: Path, query: str) -> Iterator[tuple[Any, ...]]:
    for file in sorted(home.glob("*.db")):
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as store:
            yield from store.execute(query)


def played(play: Play, folder: Path, project: Path, *, reword: bool) -> Played:
    user = User(folder, project)
    if reword:
        user.environ["PYTHONPATH"] = str(REWORDING)
    repo = put(play.files, folder / "projects" / "repo")
    questions: list[str] = []
    answer = play.reply()

    def reply(request: Request) -> str:
        questions.append(question(request))
        return answer(request)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        user.environ |= play.environ
        codes = [user.redstart(*command, cwd=repo).code for command in play.commands]
    told = "SELECT attempt, step, artifact FROM steps ORDER BY run_id, version"
    steps = [(attempt, step, outcomes(json.loads(artifact))) for attempt, step, artifact in rows(user.home, told)]
    ends = "SELECT status, result, state FROM runs ORDER BY id"
    states = [(status, result, json.loads(state)) for status, result, state in rows(user.home, ends)]
    steps += [(status, result, outcomes(state)) for status, result, state in states]
    return Played(codes, steps, questions, [state["reason"] for _, _, state in states])


def each() -> Iterator[Any]:
    for play in PLAYS:
        yield pytest.param(play, id=play.name.replace(" ", "-"), marks=[pytest.mark.soak] if play.soak else [])


@pytest.mark.parametrize("play", [*each()])
def test_other_words_change_nothing_but_the_words(play, project, tmp_path):
    plain = played(play, tmp_path / "plain", project, reword=False)
    other = played(play, tmp_path / "other", project, reword=True)
    assert plain.steps, "no step was recorded, so there is nothing to compare"
    assert other._replace(reasons=plain.reasons) == plain
    assert [reason for reason in other.reasons if reason in plain.reasons and reason] == [], "no text was reworded"
