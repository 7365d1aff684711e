"""Lessons on the command line: reported, shown, approved, exported and forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.cli.memory import ScopeName
from redstart.core.lesson import LessonScope
from support.scenarios import Scenario, question
from support.server import Request, ScriptedServer, Wire
from support.user import Ran, User

SCENARIO = Scenario.load(Path(__file__).parent / "repos" / "pager")
WORD = "flamingo"
WHEN, ADVICE = f"A pager counts one {WORD} too many", f"Look at what the last {WORD} of a page is compared with"
CARD = {"summary": "one too many", "root_cause": "a bound", "fix": "another bound", "debug_steps": []}


class Teaching:
    """Answers like the scenario, teaches one lesson and records the prompts for edits."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: Request) -> str:
        asked = question(request)
        if asked == "patch":
            self.asked.append(request.text)
        if asked == "remember":
            return json.dumps({**CARD, "when": WHEN, "advice": ADVICE})
        return SCENARIO.reply(request)


@pytest.fixture
def teacher() -> Teaching:
    return Teaching()


@pytest.fixture
def fix(user: User, repo_of: Callable[[str], Path], teacher: Teaching) -> Iterator[Callable[..., Ran]]:
    with ScriptedServer(teacher) as server:
        user.uses(server, Wire.openai)
        repo = repo_of(SCENARIO.name)
        yield lambda *more: user.redstart("fix", repo, *more)


def done(user: User, *words: str | Path) -> str:
    ran = user.redstart("memory", *words)
    assert (ran.code, ran.err) == (0, ""), ran
    return ran.out


def test_a_lesson_is_told_looked_at_approved_and_forgotten(
    user: User, fix: Callable[..., Ran], teacher: Teaching, tmp_path: Path
) -> None:
    assert fix().code == 0
    assert not any(WORD in text for text in teacher.asked)
    listed = [json.loads(line) for line in done(user, "list", "--json").splitlines()]
    (lesson,) = [item["lesson"] for item in listed if "lesson" in item]
    name = lesson["id"]
    assert (lesson["when"], lesson["advice"], lesson["status"], lesson["scope"]) == (WHEN, ADVICE, "new", "repo")

    teacher.asked.clear()
    second = fix()
    assert second.code == 0
    told = any(ADVICE in text for text in teacher.asked)
    words = "1 lesson shown" if told else "1 lesson withheld to measure its effect"
    assert words in second.out + second.err
    known = f"was shown: when {WHEN}, {ADVICE}" if told else "was withheld to measure its effect"
    ran = json.loads(user.redstart("runs", "list", "--json").out.splitlines()[0])["run_id"]
    assert f"\n{name} {known}\n" in user.redstart("show", ran).out

    shown = done(user, "show", name)
    assert f"  when         {WHEN}\n" in shown
    runs = ("with it", "without it") if told else ("without it", "with it")
    assert f"  {runs[0]:<12} 1 of 1 run solved\n" in shown
    assert f"  {runs[1]:<12} 0 of 0 runs solved\n" in shown
    assert "  taught by    " in shown
    assert "lessons                  new 1\n" in done(user, "stats")
    assert f"{name}  new" in done(user, "list")

    refused = user.redstart("memory", "export", "--skill", tmp_path / "shop")
    assert refused.code == 2
    assert "no lesson is measured to help yet" in refused.err
    assert done(user, "approve", name, "--scope", "tenant", "--by", "Ada").startswith(
        f"lesson {name} is for all of your repos, approved by Ada\n"
    )
    again = user.redstart("memory", "approve", name, "--scope", "repo")
    assert (again.code, "already for tenant" in again.err) == (2, True)

    assert [path for path in user.home.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    assert done(user, "forget", name).startswith(f"removed lesson {name} and ")
    assert [path for path in user.home.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()] == []
    assert user.redstart("memory", "show", name).code == 2


@pytest.mark.soak
def test_without_exploring_each_run_is_told(user: User, fix: Callable[..., Ran], teacher: Teaching) -> None:
    user.environ["REDSTART_MEMORY__EXPLORE"] = "0"
    assert fix().code == 0
    for _ in range(2):
        teacher.asked.clear()
        ran = fix()
        assert ADVICE in teacher.asked[0]
        assert "1 lesson shown" in ran.out + ran.err


def test_the_words_for_scopes_are_the_same_everywhere() -> None:
    assert [name.value for name in ScopeName] == [scope.value for scope in LessonScope]
