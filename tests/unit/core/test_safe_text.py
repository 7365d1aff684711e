"""Displayed text hides nothing and controls no terminal."""

from __future__ import annotations

import json

import pytest

from redstart.core.safe_text import escape_hidden, escape_json, escape_line, to_one_line

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
def test_invisible_characters_are_escaped(text: str, shown: str) -> None:
    assert escape_hidden(text) == shown
    assert json.loads(escape_json(json.dumps(text, ensure_ascii=False))) == text
    assert escape_json(json.dumps(text, ensure_ascii=False)).isprintable()


@pytest.mark.parametrize("text", HONEST)
def test_visible_characters_are_unchanged(text: str) -> None:
    assert escape_hidden(text) == escape_json(text) == text


def test_windows_line_endings_are_normalized() -> None:
    assert escape_hidden("a\r\nb\r\r\n") == "a\nb\n"


def test_line_is_kept_single_and_cut() -> None:
    assert escape_line("a\nb") == "a\\nb"
    assert escape_line("x" * 310) == "x" * 300 + " [… 10 more characters]"


def test_prompt_text_loses_invisible_characters() -> None:
    assert to_one_line(" a\u202e b\x1b\n\tc\u2028d ") == "a b c d"
