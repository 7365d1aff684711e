"""Which goals are similar: the words that are compared, and the threshold of the built-in embedder."""

from __future__ import annotations

from itertools import combinations
from operator import mul

import pytest

from redstart.core.pattern import LONGEST, extract_goal_words
from redstart.ports.memory.hashing import HashingEmbedder, embed_text
from redstart.testing.states import make_pattern

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


def measure_similarity(first: str, second: str) -> float:
    return sum(map(mul, embed_text(extract_goal_words(first)), embed_text(extract_goal_words(second))))


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_similar_goals_are_near(one: str, other: str) -> None:
    assert measure_similarity(one, other) >= HashingEmbedder.near_goals


def test_different_goals_are_not_near() -> None:
    for pair, other_pair in combinations(ALIKE, 2):
        for item in pair:
            assert max(measure_similarity(item, goal) for goal in other_pair) < HashingEmbedder.near_goals, item


def test_filler_words_are_removed_and_details_are_separate() -> None:
    assert (
        extract_goal_words("Write a small tool that sorts CSV files. It is fast; ties stay.")
        == "sorts CSV files\nfast ties stay"
    )
    assert extract_goal_words("  ") == extract_goal_words("Make a program") == ""


def test_only_the_stored_part_of_a_goal_is_compared() -> None:
    long = f"Sort csv files. {'x' * 900} {'y' * 4000} the end"
    short_pattern = make_pattern(goal=long[:LONGEST])
    assert len(extract_goal_words(long).encode()) <= LONGEST
    assert short_pattern.likeness.splitlines()[0] == extract_goal_words(long).splitlines()[0] == "Sort csv files"


def test_goal_key_ignores_spacing_and_case() -> None:
    assert (
        make_pattern(goal="Sort  CSV\nfiles").key
        == make_pattern(goal="sort csv files").key
        != make_pattern(goal="sort files").key
    )
