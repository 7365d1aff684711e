"""Which goals are similar: the words that are compared, and the threshold of the built-in embedder."""

from __future__ import annotations

from itertools import combinations
from operator import mul

import pytest

from redstart.core.pattern import LONGEST, goal_words
from redstart.ports.memory.hashing import HashingEmbedder, embedded
from redstart.testing.states import pattern

ALIKE = [
    (
        "A command line tool that sorts a CSV file by a column.",
        "Sort csv files by column, on the command line",
    ),
    (
        "A library `rom` converting integers to Roman numerals and back",
        "roman numerals converter",
    ),
    (
        "A module `durations` with parse(text), which reads durations such as '1h 30m' as a number of seconds. What "
        "cannot be read is a ValueError.",
        "parse durations such as 1h 30m into seconds",
    ),
    (
        "A REST API for todo items with SQLite: GET /todos lists them, POST /todos with a title adds one (201; 400 "
        "without a title), and an id that is not there is 404.",
        "A REST API for notes that are kept in a JSON file: GET /notes lists them, POST /notes with a text adds one "
        "(201; 400 without a text), and an id that is not there is 404.",
    ),
    (
        "a tool that prints the most frequent words of a file",
        "A command line tool `wordfreq` that counts the words of a text file: it prints the most frequent words first.",
    ),
]


def likeness(one: str, other: str) -> float:
    return sum(map(mul, embedded(goal_words(one)), embedded(goal_words(other))))


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_goals_about_the_same_are_near(one: str, other: str) -> None:
    assert likeness(one, other) >= HashingEmbedder.near_goals


def test_goals_about_something_else_are_not() -> None:
    for pair, other in combinations(ALIKE, 2):
        for item in pair:
            assert max(likeness(item, goal) for goal in other) < HashingEmbedder.near_goals, item


def test_words_that_say_nothing_of_a_goal_are_left_out_and_details_stand_apart() -> None:
    assert (
        goal_words("Write a small tool that sorts CSV files. It is fast; ties stay.")
        == "sorts CSV files\nfast ties stay"
    )
    assert goal_words("  ") == goal_words("Make a program") == ""


def test_a_goal_is_compared_by_as_much_as_is_kept_of_it() -> None:
    long = f"Sort csv files. {'x' * 900} {'y' * 4000} the end"
    kept = pattern(goal=long[:LONGEST])
    assert len(goal_words(long).encode()) <= LONGEST
    assert kept.likeness.splitlines()[0] == goal_words(long).splitlines()[0] == "Sort csv files"


def test_the_same_goal_has_the_same_key_however_it_is_spaced() -> None:
    assert pattern(goal="Sort  CSV\nfiles").key == pattern(goal="sort csv files").key != pattern(goal="sort files").key
