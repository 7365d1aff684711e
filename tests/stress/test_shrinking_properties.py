"""All hunks of any change give the new file, and none gives the old file."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.toolkit.honesty.verdict.hunks import compose, split_hunks

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"\n", b"def f():\n", b"    c\n", b"d"]), max_size=9).map(b"".join)


@settings(max_examples=300)
@given(st.one_of(st.none(), texts), st.one_of(st.none(), texts))
def test_all_hunks_give_the_new_file_and_no_hunks_the_old_file(old: bytes | None, new: bytes | None) -> None:
    before, after = {"x": old}, {"x": new}
    hunks = split_hunks(before, after)
    assert compose(before, hunks, range(len(hunks))) == ({"x": new} if old != new else {})
    assert compose(before, hunks, ()) == ({"x": old} if old != new else {})
