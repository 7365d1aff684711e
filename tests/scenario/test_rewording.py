"""No behavior of Redstart depends on wording: with every text for people reworded, runs go the same way."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.scenarios import CARD, Goal, Program, Scenario, parse_question
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


def make_constant_model(text: str) -> Callable[[], Callable[[Request], str]]:
    return lambda: lambda request: text if parse_question(request) in ("patch", "reproduce", "plan") else CARD


def in_turn(**answers: str) -> Callable[[], Callable[[Request], str]]:
    """Return a model that answers by the name of the question."""
    return lambda: lambda request: answers.get(parse_question(request), CARD)


def make_triggered_model(wrong_answer: str, right_answer: str, trigger: str) -> Callable[[], Callable[[Request], str]]:
    """Return a model that gives the right answer once the request contains the trigger."""

    def reply(request: Request) -> str:
        if parse_question(request) != "patch":
            return CARD
        return right_answer if trigger.casefold() in request.text.casefold() else wrong_answer

    return lambda: reply


def make_fix_play(name: str) -> Play:
    scenario = Scenario.load(HERE / "repos" / name)
    return Play(name, HERE / "repos" / name / "repo", lambda: scenario.reply, [("fix", ".")], soak=True)


def make_program_play(path: Path) -> Play:
    program = Program.load(path)
    lang = ("--lang", program.lang) if program.lang != "python" else ()
    command = ("create", program.goal, "-o", "out", *lang, *program.options)
    return Play(program.name, {}, lambda: Program.load(path).reply, [command], soak=True)


def make_goal_play(folder: Path) -> Play:
    goal = Goal.load(folder)
    return Play(goal.name, {}, lambda: goal.reply, [("create", goal.goal, "-o", "out")], soak=True)


REPAIR = block("bag.py", BUG["bag.py"], REPAIRED)
ONCE, TWICE = (("fix", ".", "--max-attempts", count) for count in "12")
REPO = HERE / "repos" / "pager" / "repo"
PLAN = json.dumps({"kind": "feature", "title": "add a function", "criteria": ["it is there"]})
IMPROVE = ("improve", ".", "--no-cap", "--pause", "0", "--max-iters", "1")
PLAYS = [
    Play("fixed", BUG, make_constant_model(REPAIR), [("fix", "."), ("fix", ".")], soak=True),
    Play("green already", SOUND, make_constant_model(""), [("fix", ".")], soak=True),
    Play("no tests", {"main.py": "print(1)\n"}, make_constant_model(""), [("fix", ".")], soak=True),
    Play("a test patched", REPO, make_constant_model(OF_A_TEST), [ONCE], soak=True),
    Play("a test proposed", WRONG_TEST, make_constant_model(PROPOSED), [ONCE]),
    Play(
        "answered",
        WRONG_TEST,
        make_constant_model(PROPOSED),
        [ONCE, ("resume", "--reject"), ("resume", "--accept")],
        soak=True,
    ),
    Play("over budget", BUG, make_constant_model(""), [ONCE], {"REDSTART_LIMITS__TOKENS": "50"}),
    Play("given back", BUG, make_triggered_model(GIVEN_BACK, STILL_WRONG, "file back as it was"), [TWICE], BRIEF),
    Play("no edits", BUG, make_constant_model("I like the weather."), [TWICE], soak=True),
    Play("stopped", BUG, make_constant_model(REPAIR), [("fix", ".", "--stop-after", "plan"), ("resume",)], soak=True),
    Play("issue", SOUND, in_turn(reproduce=GREEN_TEST), [("fix", ".", "--issue", "total of none is 0")], soak=True),
    Play("asserts nothing", SOUND, in_turn(plan=PLAN, reproduce=EMPTY_TEST), [IMPROVE], soak=True),
    Play("green at once", SOUND, in_turn(plan=PLAN, reproduce=GREEN_TEST), [IMPROVE], soak=True),
    Play("audit", BUG, make_constant_model(""), [("audit", ".", "--no-model")], soak=True),
    *map(make_fix_play, EVERY),
    *map(make_goal_play, sorted((HERE / "goals").iterdir())),
    *map(make_program_play, sorted((HERE / "programs").glob("*.script"))),
]


def put(files: Path | dict[str, str], folder: Path) -> Path:
    if isinstance(files, Path):
        return Path(shutil.copytree(files, folder))
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def extract_outcomes(value: Any) -> Any:
    """Return what a stored value records as done, without its texts."""
    if isinstance(value, dict):
        return {
            key: field if key in OUTCOMES and not isinstance(field, dict | list) else extract_outcomes(field)
            for key, field in value.items()
            if key in OUTCOMES or isinstance(field, dict | list)
        }
    if isinstance(value, list):
        return [extract_outcomes(field) for field in value if isinstance(field, dict | list)]
    return None


def query_rows(home: Path, query: str) -> Iterator[tuple[Any, ...]]:
    for file in sorted(home.glob("*.db")):
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as store:
            yield from store.execute(query)


def run_play(play: Play, folder: Path, project: Path, *, reword: bool) -> Played:
    user = User(folder, project)
    if reword:
        user.environ["PYTHONPATH"] = str(REWORDING)
    repo = put(play.files, folder / "projects" / "repo")
    questions: list[str] = []
    answer = play.reply()

    def reply(request: Request) -> str:
        questions.append(parse_question(request))
        return answer(request)

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        user.environ |= play.environ
        codes = [user.redstart(*command, cwd=repo).code for command in play.commands]
    query = "SELECT attempt, step, artifact FROM steps ORDER BY run_id, version"
    steps = [
        (attempt, step, extract_outcomes(json.loads(artifact)))
        for attempt, step, artifact in query_rows(user.home, query)
    ]
    ends = "SELECT status, result, state FROM runs ORDER BY id"
    states = [(status, result, json.loads(state)) for status, result, state in query_rows(user.home, ends)]
    steps += [(status, result, extract_outcomes(state)) for status, result, state in states]
    return Played(codes, steps, questions, [state["reason"] for _, _, state in states])


def iter_cases() -> Iterator[Any]:
    for play in PLAYS:
        yield pytest.param(play, id=play.name.replace(" ", "-"), marks=[pytest.mark.soak] if play.soak else [])


@pytest.mark.parametrize("play", [*iter_cases()])
def test_reworded_texts_do_not_change_the_run(play, project, tmp_path):
    plain_result = run_play(play, tmp_path / "plain", project, reword=False)
    reworded_result = run_play(play, tmp_path / "other", project, reword=True)
    assert plain_result.steps, "no step was recorded, so there is nothing to compare"
    assert reworded_result._replace(reasons=plain_result.reasons) == plain_result
    assert [reason for reason in reworded_result.reasons if reason in plain_result.reasons and reason] == [], (
        "no text was reworded"
    )
