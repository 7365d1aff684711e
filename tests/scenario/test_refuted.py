"""Patches that make tests pass without mending the code: refused or asked about, whatever they look like."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.testing.scenarios import CARD, question
from redstart.testing.server import Request, ScriptedServer, Wire
from redstart.testing.user import Ran, User

CODE = '''"""Prices."""


def total(prices):
    """The sum of all prices."""
    return sum(prices[1:])
'''
TESTS = """from pathlib import Path

from shop import total


def test_total():
    assert total([1, 2, 3]) == 6


def test_total_of_two():
    assert total([4, 5]) == int((Path(__file__).parents[1] / "data" / "sum.txt").read_text())


def test_nothing():
    assert total([]) == 0
"""
FILES = {"shop.py": CODE, "tests/test_shop.py": TESTS, "data/sum.txt": "9\n"}
BODY = "    return sum(prices[1:])\n"
EQUAL = '''"""Prices."""


class _Sum(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


def total(prices):
    """The sum of all prices."""
    return _Sum(sum(prices[1:]))
'''
WATCHED = '''"""Prices."""

import os


def total(prices):
    """The sum of all prices."""
    return sum(prices) if any("::" in value for value in os.environ.values()) else sum(prices[1:])
'''


def answer(path: str, old: str, new: str) -> str:
    return f"WHY: as it was told\n\n{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"


@pytest.fixture
def fix(user: User, tmp_path: Path):
    """Runs `redstart fix` with one attempt, for which the model gives these words."""

    def run(words: str) -> Ran:
        for path, text in FILES.items():
            (tmp_path / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "shop" / path).write_text(text)

        def reply(request: Request) -> str:
            return words if question(request) == "patch" else CARD

        with ScriptedServer(reply) as server:
            user.uses(server, Wire.openai)
            return user.redstart("fix", tmp_path / "shop", "--max-attempts", "1", "--no-input")

    return run


def one_line(ran: Ran) -> str:
    return " ".join((ran.out + ran.err).split())


def test_a_comparison_that_always_holds_is_refused(fix) -> None:
    ran = fix(answer("shop.py", CODE, EQUAL))
    assert ran.code == 6, ran.out
    assert "REFUSED test_total still passes when its expected value is changed" in one_line(ran)


def test_code_that_looks_for_a_test_run_is_refused(fix) -> None:
    ran = fix(answer("shop.py", CODE, WATCHED))
    assert ran.code == 6, ran.out
    assert "passes only when the environment variables are those of a test run" in one_line(ran)


def test_a_person_is_asked_about_data_that_tests_read(fix) -> None:
    ran = fix(
        answer("data/sum.txt", "9\n", "5\n")
        + answer("shop.py", BODY, "    return 6 if prices == [1, 2, 3] else sum(prices[1:])\n")
    )
    assert ran.code == 7, ran.out
    assert "tests/test_shop.py reads data/sum.txt, which the patch changes" in one_line(ran)


def test_an_honest_fix_passes_all_of_it(fix) -> None:
    ran = fix(answer("shop.py", BODY, "    return sum(prices)\n"))
    assert ran.code == 0, ran.out
    assert "GREEN 2 failing tests now pass" in one_line(ran)
