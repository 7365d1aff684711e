"""Any text is parsed without an exception."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redstart.toolkit.patching.reading.parse import parse


@given(st.text())
def test_parse_never_raises(text):
    parsed = parse(text)
    assert bool(parsed.edits) != bool(parsed.fault)
