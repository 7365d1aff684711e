"""Text is wrapped between words, with a hanging indent, and never obeyed by a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.cli.wrap import wrap


def test_a_line_that_fits_stays_as_it_is():
    assert wrap("a  b\n  c", 80) == ["a  b", "  c"]


def test_a_line_is_broken_between_words_and_continues_indented():
    assert wrap("one two three four", 9, hang=4) == ["one two", "    three", "    four"]
    assert wrap("  one two three", 9) == ["  one two", "  three"], "by default the indent of the first line is repeated"


def test_a_separator_ends_a_line_and_begins_none():
    assert wrap("run 1 · shop · pytest", 12) == ["run 1 ·", "shop ·", "pytest"]


def test_a_list_is_broken_between_its_parts():
    assert wrap("1 attempt · 2 calls · redstart show a1", 24) == ["1 attempt · 2 calls ·", "redstart show a1"]
    assert wrap("run 1 · a very long part of words", 12) == ["run 1 · a", "very long", "part of", "words"]


def test_only_a_word_that_is_longer_than_the_line_overflows():
    path = "/home/somebody/projects/shop/tests/test_basket.py"
    assert wrap(f"patch: {path} ok", 20) == ["patch:", path, "ok"]


def test_a_log_gets_whole_lines():
    assert wrap("word " * 100, None) == ["word " * 100]


def test_wide_letters_count_as_two():
    assert wrap("漢字 漢字 漢字", 9) == ["漢字 漢字", "漢字"]


def test_nothing_that_a_terminal_obeys_is_left():
    assert wrap("a\x1b[2Jb\tc\rd\u202ee\n", 80) == ["a\\x1b[2Jb    c\\rd\\u202ee", ""]


@given(text=st.text(alphabet="ab cd\n·", max_size=300), width=st.integers(10, 140), hang=st.integers(0, 8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_word_is_lost_or_broken(text, width, hang):
    lines = wrap(text, width, hang=hang)
    assert [word for line in lines for word in line.split()] == text.split()
    too_wide = [line for line in lines if len(line) > width and len(line.replace(" ·", "").split()) > 1]
    assert too_wide == []


@pytest.mark.parametrize("width", [80, 100, 140])
def test_every_line_of_prose_has_room(width):
    assert all(len(line) <= width for line in wrap("a sentence of many words " * 30, width, hang=15))
