"""Displayed text hides nothing and controls no terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.core.visible import one_line, visible, visible_json, visible_line

HOSTILE = {
    "\x1b[2J": "\\x1b[2J",
    "\x1b]8;;http://evil\x1b\\": "\\x1b]8;;http://evil\\x1b\\",
    "\x9b31m": "\\x9b31m",
    "\x9d0;title\x9c": "\\x9d0;title\\x9c",
    "a\u202eb": "a\\u202eb",
    "a\u2066b": "a\\u2066b",
    "a\u200bb\u200d\ufeff\u00ad": "a\\u200bb\\u200d\\ufeff\\xad",
    "\x07\x08\x7f\x00": "\\x07\\x08\\x7f\\x00",
    "50%\r100%": "50%\\r100%",
    "a\u2028b\u2029\x85\x0b\x0c": "a\\u2028b\\u2029\\x85\\x0b\\x0c",
    "\u3164\u115f\u2800": "\\u3164\\u115f\\u2800",
    "\U000e0041": "\\U000e0041",
    "bad\udc9bname": "bad\\x9bname",
    "\ud800": "\\ud800",
}
HONEST = [
    "",
    "plain",
    "zażółć\u00a0gęślą",
    "日本語\u3000です",
    "e\u0301",
    "🙂",
    "a\n\tb",
    "café — “x” · ✓",
    "\u0627\u0644",
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE.items())
def test_what_does_not_show_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert json.loads(visible_json(json.dumps(text, ensure_ascii=False))) == text
    assert visible_json(json.dumps(text, ensure_ascii=False)).isprintable()


@pytest.mark.parametrize("text", HONEST)
def test_what_shows_stays(text: str) -> None:
    assert visible(text) == visible_json(text) == text


def test_line_ends_of_windows_are_line_ends() -> None:
    assert visible("a\r\nb\r\r\n") == "a\nb\n"


def test_a_line_is_one_line_and_is_cut() -> None:
    assert visible_line("a\nb") == "a\\nb"
    assert visible_line("x" * 310) == "x" * 300 + " [… 10 more characters]"


def test_words_for_a_prompt_lose_what_does_not_show() -> None:
    assert one_line(" a\u202e b\x1b\n\tc\u2028d ") == "a b c d"


@given(st.text())
@settings(max_examples=300, derandomize=True)
def test_nothing_hidden_is_left_and_twice_is_once(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs") for sign in shown if sign not in "\n\t")
    assert visible(shown) == shown
    assert json.loads(visible_json(json.dumps(text, ensure_ascii=False))) == text
