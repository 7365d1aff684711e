"""Lessons on the command line: reported, shown, approved, exported and forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redstart.cli.memory import ScopeName
from redstart.core.lesson import LessonScope
from support.scenarios import Scenario, parse_question
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
        question_name = parse_question(request)
        if question_name == "patch":
            self.asked.append(request.text)
        if question_name == "remember":
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
        yield lambda *options: user.redstart("fix", repo, *options)


def run_memory(user: User, *arguments: str | Path) -> str:
    result = user.redstart("memory", *arguments)
    assert (result.code, result.err) == (0, ""), result
    return result.out


def test_lesson_can_be_listed_shown_approved_and_forgotten(
    user: User, fix: Callable[..., Ran], teacher: Teaching, tmp_path: Path
) -> None:
    assert fix().code == 0
    assert not any(WORD in text for text in teacher.asked)
    listed_lessons = [json.loads(line) for line in run_memory(user, "list", "--json").splitlines()]
    (lesson,) = [item["lesson"] for item in listed_lessons if "lesson" in item]
    name = lesson["id"]
    assert (lesson["when"], lesson["advice"], lesson["status"], lesson["scope"]) == (WHEN, ADVICE, "new", "repo")

    teacher.asked.clear()
    second_result = fix()
    assert second_result.code == 0
    was_shown = any(ADVICE in text for text in teacher.asked)
    status_text = "1 lesson shown" if was_shown else "1 lesson withheld to measure its effect"
    assert status_text in second_result.out + second_result.err
    expected_line = f"was shown: when {WHEN}, {ADVICE}" if was_shown else "was withheld to measure its effect"
    latest_run_id = json.loads(user.redstart("runs", "list", "--json").out.splitlines()[0])["run_id"]
    assert f"\n{name} {expected_line}\n" in user.redstart("show", latest_run_id).out

    show_output = run_memory(user, "show", name)
    assert f"  when         {WHEN}\n" in show_output
    runs = ("with it", "without it") if was_shown else ("without it", "with it")
    assert f"  {runs[0]:<12} 1 of 1 run solved\n" in show_output
    assert f"  {runs[1]:<12} 0 of 0 runs solved\n" in show_output
    assert "  taught by    " in show_output
    assert "lessons                  new 1\n" in run_memory(user, "stats")
    assert f"{name}  new" in run_memory(user, "list")

    refused = user.redstart("memory", "export", "--skill", tmp_path / "shop")
    assert refused.code == 2
    assert "no lesson is measured to help yet" in refused.err
    assert run_memory(user, "approve", name, "--scope", "tenant", "--by", "Ada").startswith(
        f"lesson {name} is for all of your repos, approved by Ada\n"
    )
    approve_result = user.redstart("memory", "approve", name, "--scope", "repo")
    assert (approve_result.code, "already for tenant" in approve_result.err) == (2, True)

    assert [path for path in user.home.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    assert run_memory(user, "forget", name).startswith(f"removed lesson {name} and ")
    assert [path for path in user.home.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()] == []
    assert user.redstart("memory", "show", name).code == 2


@pytest.mark.soak
def test_every_run_gets_the_lesson_when_exploration_is_off(
    user: User, fix: Callable[..., Ran], teacher: Teaching
) -> None:
    user.environ["REDSTART_MEMORY__EXPLORE"] = "0"
    assert fix().code == 0
    for _ in range(2):
        teacher.asked.clear()
        result = fix()
        assert ADVICE in teacher.asked[0]
        assert "1 lesson shown" in result.out + result.err


def test_scope_names_are_the_same_everywhere() -> None:
    assert [name.value for name in ScopeName] == [scope.value for scope in LessonScope]
