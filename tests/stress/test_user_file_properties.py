"""Setting one value in the user's settings file changes nothing else in it."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from redstart.app.settings.user_file import _format_toml

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=6,
)


@given(VALUES)
def test_every_value_can_be_read_back(value):
    assert tomllib.loads(f"x = {_format_toml(value)}")["x"] == value
