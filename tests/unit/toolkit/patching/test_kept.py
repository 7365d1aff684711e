"""What an edit preserves: line endings, marks, modes, valid programs, and every file if one edit does not fit."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.hunks import read, write
from redstart.toolkit.patching.ladder import climb, put
from redstart.toolkit.patching.reading.parse import parse


def block(search: str, text: str, path: str = "a.py", number: int = 1) -> Edit:
    return Edit(kind=EditKind.block, path=path, search=search, text=text, number=number)


def after(old: bytes, *edits: Edit) -> bytes | None:
    return put(edits, {"a.py": old}.get, ["a.py"]).files.get("a.py")


@given(st.binary(max_size=200))
def test_any_bytes_come_out_as_they_went_in(data):
    assert write(read(data)) == data


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"x = 1\r\ny = 2\r\nz = 3\r\n", b"x = 1\r\ny = 5\r\nw = 6\r\nz = 3\r\n"),
        (b"x = 1\ny = 2\r\nz = 3\n", b"x = 1\ny = 5\r\nw = 6\nz = 3\n"),
        (codecs.BOM_UTF8 + b"x = 1\ny = 2\n", codecs.BOM_UTF8 + b"x = 1\ny = 5\nw = 6\n"),
        (b"x = 1\ny = 2", b"x = 1\ny = 5\nw = 6"),
        (b"y = 2\n\x0cz = '\xe2\x80\xa8'\n", b"y = 5\nw = 6\n\x0cz = '\xe2\x80\xa8'\n"),
        (b"# -*- coding: latin-1 -*-\ny = 2\nz = '\xe9'\n", b"# -*- coding: latin-1 -*-\ny = 5\nw = 6\nz = '\xe9'\n"),
    ],
)
def test_line_ends_marks_and_odd_bytes_are_kept(old, new):
    assert after(old, block("y = 2\n", "y = 5\nw = 6\n")) == new


def test_a_whole_file_takes_the_line_ends_and_the_mark_of_the_old_one():
    old = codecs.BOM_UTF8 + b"".join(b"v%d = %d\r\n" % (n, n) for n in range(20))
    text = "".join(f"v{n} = {n + (n == 7)}\n" for n in range(20))
    made = after(old, Edit(kind=EditKind.whole, path="a.py", text=text))
    assert made == old.replace(b"v7 = 7", b"v7 = 8")


def test_other_letters_are_not_mixed_into_a_file_that_is_not_utf8():
    old = b"# \xe9\ny = 2\n"
    assert after(old, block("y = 2\n", "y = 'é'\n")) is None
    assert after(old, block("y = 2\n", "y = 3\n")) == b"# \xe9\ny = 3\n"


@pytest.mark.slow
def test_the_mode_is_kept(trees, tmp_path):
    script = tmp_path / "repo" / "run.py"
    script.parent.mkdir()
    script.write_text("x = 1\n")
    script.chmod(0o755)
    base = trees.take(script.parent)
    done = climb(trees, base, [block("x = 1\n", "x = 2\n", "run.py")])
    assert done.snapshot is not None
    assert [(change.old_mode, change.new_mode) for change in trees.changes(base, done.snapshot)] == [
        ("100755", "100755")
    ]


def test_a_syntax_error_is_refused_with_its_line_and_message():
    done = put([block("y = 2\n", "y = (\n")], {"a.py": b"x = 1\ny = 2\n"}.get, ["a.py"])
    assert done.files == {}
    assert "'(' was never closed (line 2)" in done.rejects[0].reason
    assert "y = (" in done.rejects[0].nearest


def test_a_file_that_was_no_program_may_be_mended_in_steps_and_a_new_one_must_be_a_program():
    assert after(b"x = (\ny = )\n", block("y = )\n", "y = ]\n")) == b"x = (\ny = ]\n"
    assert put([block("", "x = (\n", "new.py")], {}.get, []).files == {}


def test_two_edits_may_be_a_program_together_only():
    old = b"x = [\n    1,\n]\ny = 2\n"
    assert after(old, block("x = [\n", "x = (\n"), block("]\n", ")\n")) == b"x = (\n    1,\n)\ny = 2\n"


def test_one_edit_that_does_not_fit_keeps_all_files_and_says_which_and_what_else_fits():
    files = {"a.py": b"x = 1\n", "b.py": b"y = 1\nlonger_name = 2\n"}
    edits = [
        block("x = 1\n", "x = 2\n", number=1),
        block("longer_nam = 2\n", "longer_name = 3\n", "b.py", number=2),
        block("y = 1\n", "y = 5\n", "b.py", number=3),
    ]
    done = put(edits, files.get, list(files))
    assert done.files == {}
    (reject,) = done.rejects
    assert (reject.path, reject.block, done.fits) == ("b.py", 2, (1, 3))
    assert "2: longer_name = 2" in reject.nearest
    assert [item.rung is None for item in done.rungs] == [False, True, False]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=120))
def test_nothing_makes_it_raise_and_no_other_file_is_touched(search, text, old):
    answer = f"a.txt\n<<<<<<< SEARCH\n{search}\n=======\n{text}\n>>>>>>> REPLACE\n"
    data = old.encode(errors="replace")
    done = put(parse(answer).edits, {"a.txt": data}.get, ["a.txt"])
    assert bool(done.files) != bool(done.rejects) or not parse(answer).edits
    assert set(done.files) <= {"a.txt"}
