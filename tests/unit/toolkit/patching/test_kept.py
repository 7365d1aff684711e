"""What an edit preserves: line endings, marks, modes, valid programs, and every file if one edit does not fit."""

from __future__ import annotations

import codecs

import pytest

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.ladder import apply_to_snapshot, put


def block(search: str, text: str, path: str = "a.py", number: int = 1) -> Edit:
    return Edit(kind=EditKind.block, path=path, search=search, text=text, number=number)


def apply_edits(old: bytes, *edits: Edit) -> bytes | None:
    return put(edits, {"a.py": old}.get, ["a.py"]).files.get("a.py")


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
def test_line_endings_bom_and_unusual_bytes_are_kept(old, new):
    assert apply_edits(old, block("y = 2\n", "y = 5\nw = 6\n")) == new


def test_whole_file_keeps_old_line_endings_and_bom():
    old = codecs.BOM_UTF8 + b"".join(b"v%d = %d\r\n" % (n, n) for n in range(20))
    text = "".join(f"v{n} = {n + (n == 7)}\n" for n in range(20))
    result = apply_edits(old, Edit(kind=EditKind.whole, path="a.py", text=text))
    assert result == old.replace(b"v7 = 7", b"v7 = 8")


def test_unicode_text_is_not_mixed_into_a_non_utf8_file():
    old = b"# \xe9\ny = 2\n"
    assert apply_edits(old, block("y = 2\n", "y = 'é'\n")) is None
    assert apply_edits(old, block("y = 2\n", "y = 3\n")) == b"# \xe9\ny = 3\n"


@pytest.mark.slow
def test_file_mode_is_kept(trees, tmp_path):
    script = tmp_path / "repo" / "run.py"
    script.parent.mkdir()
    script.write_text("x = 1\n")
    script.chmod(0o755)
    base = trees.take(script.parent)
    result = apply_to_snapshot(trees, base, [block("x = 1\n", "x = 2\n", "run.py")])
    assert result.snapshot is not None
    assert [(change.old_mode, change.new_mode) for change in trees.list_changes(base, result.snapshot)] == [
        ("100755", "100755")
    ]


def test_syntax_error_is_refused_with_its_line_and_message():
    edited_files = put([block("y = 2\n", "y = (\n")], {"a.py": b"x = 1\ny = 2\n"}.get, ["a.py"])
    assert edited_files.files == {}
    assert "'(' was never closed (line 2)" in edited_files.rejects[0].reason
    assert "y = (" in edited_files.rejects[0].nearest


def test_broken_file_may_stay_broken_but_a_new_file_must_parse():
    assert apply_edits(b"x = (\ny = )\n", block("y = )\n", "y = ]\n")) == b"x = (\ny = ]\n"
    assert put([block("", "x = (\n", "new.py")], {}.get, []).files == {}


def test_two_edits_may_be_valid_only_together():
    old = b"x = [\n    1,\n]\ny = 2\n"
    assert apply_edits(old, block("x = [\n", "x = (\n"), block("]\n", ")\n")) == b"x = (\n    1,\n)\ny = 2\n"


def test_misfit_edit_blocks_all_files_and_reports_which_edits_fit():
    files = {"a.py": b"x = 1\n", "b.py": b"y = 1\nlonger_name = 2\n"}
    edits = [
        block("x = 1\n", "x = 2\n", number=1),
        block("longer_nam = 2\n", "longer_name = 3\n", "b.py", number=2),
        block("y = 1\n", "y = 5\n", "b.py", number=3),
    ]
    edited_files = put(edits, files.get, list(files))
    assert edited_files.files == {}
    (reject,) = edited_files.rejects
    assert (reject.path, reject.block, edited_files.fitting_edits) == ("b.py", 2, (1, 3))
    assert "2: longer_name = 2" in reject.nearest
    assert [item.rung is None for item in edited_files.edit_records] == [False, True, False]
