"""Text is wrapped between words, with a hanging indent, and never obeyed by a terminal."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.cli.text_wrap import wrap


@given(text=st.text(alphabet="ab cd\n·", max_size=300), width=st.integers(10, 140), hang=st.integers(0, 8))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_no_word_is_lost_or_broken(text, width, hang):
    lines = wrap(text, width, hang=hang)
    assert [word for line in lines for word in line.split()] == text.split()
    too_wide = [line for line in lines if len(line) > width and len(line.replace(" ·", "").split()) > 1]
    assert too_wide == []
