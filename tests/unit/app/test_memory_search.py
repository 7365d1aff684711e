"""Memory answers about a pasted error, and its answer fits a screen of 80 columns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redstart.app.memory import TenantMemory, forget_learned, open_memory
from redstart.app.memory_search import ALIKE, KIND, SAME_FAILURE, MemoryAnswer, read_error, search_memory
from redstart.app.settings import Settings
from redstart.app.wire import open_database
from redstart.cli.main import app
from redstart.cli.memory import answer_lines
from redstart.core.errors import ConfigError
from redstart.core.learning import FailureRecord, FixCard, NewMemories
from redstart.core.lesson import Lesson
from redstart.core.run import Result, Status, Step
from redstart.ports.sql.store import SqlStore
from redstart.testing.contracts.store import Clock, begin
from redstart.testing.states import commit, make_card, make_failure, make_lesson, make_signature, make_spec
from redstart.toolkit.learning.signature import sign

TRACEBACK = """Traceback (most recent call last):
  File "{root}/main.py", line 9, in <module>
    Cart().total()
  File "{root}/shop/cart.py", line 3, in Cart.total
    return sum(item["price"] for item in self.items)
KeyError: 'price'
"""
BUG = sign(read_error(TRACEBACK.format(root="/w")), is_source=lambda _: True, roots=("/w",))
OTHER = make_signature(exception="ZeroDivisionError", message="division by zero", frame="bank/rates.py:mean")


class Desk:
    def __init__(self, settings: Settings, shelf: TenantMemory) -> None:
        self.settings, self.shelf = settings, shelf

    def keep(self, left: FixCard | FailureRecord | Lesson, repo: str = "shop") -> None:
        kind = {FixCard: "card", FailureRecord: "failure", Lesson: "lesson"}[type(left)]

        async def go() -> None:
            with open_database(self.settings) as database:
                store = SqlStore(database, Clock())
                new, fence = await begin(store, f"run of {left.id}", spec=make_spec(repo=repo))
                outcome_fields = {"status": Status.finished, "result": Result.verified}
                memories = NewMemories.model_validate({kind: left})
                await store.commit(commit(new, Step.remember, remembered=memories, **outcome_fields), fence)

        asyncio.run(go())

    def search(self, text: str, root: Path = Path("/w"), repo: str | None = None) -> MemoryAnswer:
        return asyncio.run(search_memory(self.shelf, text, root=root, repo=repo))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    settings = Settings(home=tmp_path / "home")
    with open_memory(settings) as memory:
        yield Desk(settings, memory)


def test_fixes_failed_attempts_and_lessons_for_the_failure_are_found(desk: Desk) -> None:
    desk.keep(make_card("fix-1", BUG, signature=BUG))
    desk.keep(make_failure("fail-1", BUG, signature=BUG, tried="index with a default", what_failed="KeyError: 'price'"))
    desk.keep(make_lesson(failure_signature=BUG))
    desk.keep(
        make_card("stranger", OTHER, signature=OTHER, summary="A mean of nothing", root_cause="no numbers", fix="0")
    )
    matches = desk.search(TRACEBACK.format(root="/w"))
    assert matches.error == "KeyError: 'price'"
    assert [(item.card.id, item.match) for item in matches.fixes] == [("fix-1", SAME_FAILURE)]
    assert [(item.failure.id, item.match) for item in matches.failures] == [("fail-1", SAME_FAILURE)]
    assert [(item.lesson.id, item.match) for item in matches.lessons] == [("lesson-1", KIND)]


def test_single_line_matches_the_same_error_kind_and_words(desk: Desk) -> None:
    desk.keep(make_card("fix-1", BUG, signature=BUG))
    desk.keep(
        make_failure(
            "fail-1",
            OTHER,
            signature=OTHER,
            what_failed="TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        )
    )
    assert [(fix.card.id, fix.match) for fix in desk.search("E   KeyError: 'price'").fixes] == [("fix-1", KIND)]
    matches = desk.search("TypeError: unsupported operand")
    assert (matches.fixes, [(item.failure.id, item.match) for item in matches.failures]) == ((), [("fail-1", ALIKE)])


def test_search_can_be_limited_to_a_repo(desk: Desk) -> None:
    desk.keep(make_card("fix-1", BUG, signature=BUG))
    desk.keep(make_failure("fail-1", BUG, signature=BUG), repo="bank")
    matches = desk.search("KeyError: 'price'", repo="bank")
    assert (matches.fixes, [item.failure.id for item in matches.failures]) == ((), ["fail-1"])


@pytest.mark.parametrize(
    ("text", "id_", "message"),
    [
        (
            "FAILED tests/test_cart.py::test_total - KeyError: 'price'",
            "tests/test_cart.py::test_total",
            "KeyError: 'price'",
        ),
        ("E       assert 3 == 4\n", "", "assert 3 == 4"),
        ("something odd\nhappened here\n", "", "happened here"),
        (TRACEBACK.format(root="/w"), "", "KeyError: 'price'"),
    ],
)
def test_error_line_of_a_text_is_found(text: str, id_: str, message: str) -> None:
    case = read_error(text)
    assert (case.id, case.message) == (id_, message)


def test_empty_search_is_rejected(desk: Desk) -> None:
    with pytest.raises(ConfigError, match="no text to search for"):
        desk.search(" \n")


def test_answer_fits_the_screen_and_states_counts_in_words(desk: Desk) -> None:
    desk.keep(make_card("fix-1", BUG, signature=BUG, summary="An item without a price broke the total. " * 5))
    lines = list(answer_lines(desk.search("KeyError: 'price'")))
    assert lines[0] == "1 fix, 0 failed attempts and 0 lessons for: KeyError: 'price'"
    assert max(map(len, lines)) <= 80
    assert "what:" in lines[3]


def test_command_answers_in_json_and_reads_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    plain_result = CliRunner().invoke(app, ["memory", "search", "KeyError:", "'price'"])
    assert (plain_result.exit_code, plain_result.output.splitlines()[0]) == (0, "no results for: KeyError: 'price'")
    piped_result = CliRunner().invoke(app, ["memory", "search", "-", "--json"], input=TRACEBACK)
    assert MemoryAnswer.model_validate_json(piped_result.output).error == "KeyError: 'price'"


def test_failed_attempt_can_be_forgotten(desk: Desk) -> None:
    desk.keep(make_failure("fail-1", BUG, signature=BUG))
    removed = asyncio.run(forget_learned(desk.shelf, "fail-1"))
    assert (removed.kind, removed.name) == ("failed attempt", "fail-1")
    assert desk.search("KeyError: 'price'").failures == ()
