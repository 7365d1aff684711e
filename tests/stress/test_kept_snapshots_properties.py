"""What an edit preserves: line endings, marks, modes, valid programs, and every file if one edit does not fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redstart.toolkit.patching.hunks import read, write
from redstart.toolkit.patching.ladder import put
from redstart.toolkit.patching.reading.parse import parse


@given(st.binary(max_size=200))
def test_any_bytes_survive_a_round_trip(data):
    assert write(read(data)) == data


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=120))
def test_applying_never_raises_and_touches_no_other_file(search, text, old):
    answer = f"a.txt\n<<<<<<< SEARCH\n{search}\n=======\n{text}\n>>>>>>> REPLACE\n"
    data = old.encode(errors="replace")
    edited_files = put(parse(answer).edits, {"a.txt": data}.get, ["a.txt"])
    assert bool(edited_files.files) != bool(edited_files.rejects) or not parse(answer).edits
    assert set(edited_files.files) <= {"a.txt"}
