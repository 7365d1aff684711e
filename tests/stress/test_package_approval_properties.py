"""Package requests read from a project's files, and how they are judged by their names alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redstart.toolkit.installs.names import get_popular_names, is_within_one_edit

PYTHON, NODE = "python", "node"


@given(st.sampled_from(sorted(get_popular_names(PYTHON))), st.data())
def test_single_edit_is_recognized(name: str, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcxyz"))
    swapped = name[:index] + name[index + 1 : index + 2] + name[index] + name[index + 2 :]
    for edited in (
        name[:index] + name[index + 1 :],
        name[:index] + letter + name[index:],
        name[:index] + letter + name[index + 1 :],
    ):
        assert is_within_one_edit(edited, name)
    assert is_within_one_edit(swapped, name)
    assert not is_within_one_edit(name + "xy", name)
