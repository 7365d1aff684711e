"""Text that is cut to a limit keeps its beginning and its end."""

from __future__ import annotations

import pytest

from redstart.core.frozen import clip

MARK = " […] "


@pytest.mark.parametrize("limit", [0, 1, 10, 100])
def test_text_within_the_limit_is_unchanged(limit: int):
    assert clip("x" * limit, limit) == "x" * limit


def test_two_thirds_of_the_kept_text_come_from_the_beginning():
    text = "a" * 500 + "z" * 500
    head, tail = clip(text, 60 + len(MARK.encode())).split(MARK)
    assert (head, tail) == ("a" * 40, "z" * 20)


def test_cut_text_respects_the_limit_in_bytes():
    assert len(clip("ü" * 1000, 101).encode()) <= 101
    assert len(clip("a" * 1000, 101).encode()) == 101


def test_limit_below_the_mark_keeps_one_character_on_each_side():
    assert clip("abcdef", 3) == f"a{MARK}f"
