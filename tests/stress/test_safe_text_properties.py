"""Displayed text hides nothing and controls no terminal."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.core.safe_text import escape_hidden, escape_json


@given(st.text())
@settings(max_examples=300, derandomize=True)
def test_escaping_is_complete_and_idempotent(text: str) -> None:
    rendered = escape_hidden(text)
    assert not any(
        unicodedata.category(character) in ("Cc", "Cf", "Cs") for character in rendered if character not in "\n\t"
    )
    assert escape_hidden(rendered) == rendered
    assert json.loads(escape_json(json.dumps(text, ensure_ascii=False))) == text
