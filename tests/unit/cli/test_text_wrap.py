"""Text is wrapped between words, with a hanging indent, and never obeyed by a terminal."""

from __future__ import annotations

import pytest

from redstart.cli.text_wrap import wrap


def test_line_that_fits_stays_unchanged():
    assert wrap("a  b\n  c", 80) == ["a  b", "  c"]


def test_line_breaks_between_words_and_continues_indented():
    assert wrap("one two three four", 9, hang=4) == ["one two", "    three", "    four"]
    assert wrap("  one two three", 9) == ["  one two", "  three"], "by default the indent of the first line is repeated"


def test_separator_may_end_but_not_begin_a_line():
    assert wrap("run 1 · shop · pytest", 12) == ["run 1 ·", "shop ·", "pytest"]


def test_list_breaks_between_its_parts():
    assert wrap("1 attempt · 2 calls · redstart show a1", 24) == ["1 attempt · 2 calls ·", "redstart show a1"]
    assert wrap("run 1 · a very long part of words", 12) == ["run 1 · a", "very long", "part of", "words"]


def test_only_a_word_longer_than_the_line_overflows():
    path = "/home/somebody/projects/shop/tests/test_basket.py"
    assert wrap(f"patch: {path} ok", 20) == ["patch:", path, "ok"]


def test_log_lines_are_not_wrapped():
    assert wrap("word " * 100, None) == ["word " * 100]


def test_wide_characters_count_as_two_columns():
    assert wrap("漢字 漢字 漢字", 9) == ["漢字 漢字", "漢字"]


def test_terminal_control_characters_are_escaped():
    assert wrap("a\x1b[2Jb\tc\rd\u202ee\n", 80) == ["a\\x1b[2Jb    c\\rd\\u202ee", ""]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_every_prose_line_fits_the_width(width):
    assert all(len(line) <= width for line in wrap("a sentence of many words " * 30, width, hang=15))
