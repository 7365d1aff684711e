from __future__ import annotations

import pytest

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.ladder import apply_to_snapshot, list_unchanged
from redstart.toolkit.patching.reading.parse import parse

pytestmark = pytest.mark.slow

OLD = b"def f():\n    return 1\n\n\ndef g():\n    return 1\n"


def block(search: str, text: str, path: str = "a.py") -> Edit:
    return Edit(kind=EditKind.block, path=path, search=search, text=text)


@pytest.fixture
def base(trees):
    return trees.write(trees.create_empty(), {"a.py": OLD, "crlf.py": b"x = 1\r\ny = 2\r\n", "bare.py": b"z = 3"})


def test_unique_match_is_replaced(trees, base):
    result = apply_to_snapshot(trees, base, [block("def f():\n    return 1\n", "def f():\n    return 2\n")])
    assert result.snapshot is not None
    assert trees.read(result.snapshot, "a.py") == OLD.replace(b"return 1", b"return 2", 1)


def test_ambiguous_match_is_refused_with_its_line_numbers(trees, base):
    result = apply_to_snapshot(trees, base, [block("    return 1\n", "    return 2\n")])
    assert result.snapshot is None
    assert result.rejects[0].reason == "the lines to change are there 2 times (lines 2, 6)"


def test_part_of_a_line_does_not_match(trees, base):
    assert apply_to_snapshot(trees, base, [block("turn 1\n\n\ndef g():\n", "turn 2\n")]).snapshot is None


def test_missing_lines_are_reported_with_the_nearest_lines(trees, base):
    result = apply_to_snapshot(trees, base, [block("def g(x):\n", "def g(y):\n")])
    assert "def g():" in result.rejects[0].nearest


def test_edit_already_applied_is_recognized(trees, base):
    result = apply_to_snapshot(trees, base, [block("def h():\n", "def g():\n")])
    assert "already" in result.rejects[0].reason


def test_diff_can_delete_the_end_of_a_file(trees, base):
    """All lines that the hunk leaves are there before it too. That alone does not mean that it was made already."""
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,6 +1,2 @@\n def f():\n     return 1\n-\n-\n-def g():\n-    return 1\n"
    result = apply_to_snapshot(trees, base, parse(diff).edits)
    assert result.snapshot is not None, result.rejects
    assert trees.read(result.snapshot, "a.py") == b"def f():\n    return 1\n"


def test_edits_are_applied_all_or_nothing(trees, base):
    result = apply_to_snapshot(trees, base, [block("def f():\n", "def e():\n"), block("nothing\n", "x\n", "crlf.py")])
    assert result.snapshot is None
    assert [reject.path for reject in result.rejects] == ["crlf.py"]


def test_two_edits_of_one_file_build_on_each_other(trees, base):
    result = apply_to_snapshot(trees, base, [block("def f():\n", "def e():\n"), block("def e():\n", "def d():\n")])
    assert result.snapshot is not None
    assert b"def d()" in (trees.read(result.snapshot, "a.py") or b"")


def test_line_endings_of_the_file_are_kept(trees, base):
    result = apply_to_snapshot(trees, base, [block("y = 2\n", "y = 3\nw = 4\n", "crlf.py")])
    assert result.snapshot is not None
    assert trees.read(result.snapshot, "crlf.py") == b"x = 1\r\ny = 3\r\nw = 4\r\n"


def test_missing_final_newline_is_kept(trees, base):
    result = apply_to_snapshot(trees, base, [block("z = 3\n", "z = 4\n", "bare.py")])
    assert result.snapshot is not None
    assert trees.read(result.snapshot, "bare.py") == b"z = 4"


def test_new_file_is_created_and_an_existing_file_is_not_overwritten(trees, base):
    result = apply_to_snapshot(trees, base, [block("", "n = 1\n", "pkg/new.py")])
    assert result.snapshot is not None
    assert trees.read(result.snapshot, "pkg/new.py") == b"n = 1\n"
    assert apply_to_snapshot(trees, base, [block("", "gone\n")]).snapshot is None
    assert "no such file" in apply_to_snapshot(trees, base, [block("x\n", "y\n", "nowhere.py")]).rejects[0].reason


def test_edit_without_a_change_is_rejected(trees, base):
    assert "changes nothing" in apply_to_snapshot(trees, base, [block("def f():\n", "def f():\n")]).rejects[0].reason


def create_whole_edit(text: bytes, path: str = "a.py") -> Edit:
    return Edit(kind=EditKind.whole, path=path, text=text.decode())


def test_unchanged_file_is_not_taken_for_an_edit_already_applied(trees, base):
    changed, unchanged_edit = (
        create_whole_edit(OLD.replace(b"f()", b"h()")),
        create_whole_edit(b"x = 1\ny = 2\n", "crlf.py"),
    )
    result = apply_to_snapshot(trees, base, [changed, unchanged_edit])
    assert [reject.words for reject in result.rejects] == [
        "edit 1 (crlf.py): it is the file as it was: something in it must change"
    ]


@pytest.mark.parametrize(
    ("edits", "files"),
    [
        ([create_whole_edit(OLD)], ("a.py",)),
        ([create_whole_edit(OLD + b"\n\n")], ("a.py",)),
        ([create_whole_edit(OLD), block("z = 3\n", "z = 3\n", "bare.py")], ("a.py", "bare.py")),
        ([create_whole_edit(OLD), block("z = 3\n", "z = 4\n", "bare.py")], ()),
        ([block("z = 9\n", "z = 3\n", "bare.py")], ()),
        ([create_whole_edit(OLD, "new.py")], ()),
        ([], ()),
    ],
)
def test_edits_that_only_return_unchanged_files_are_recognized(trees, base, edits, files):
    assert list_unchanged(edits, lambda path: trees.read(base, path), trees.list_files(base)) == files


def test_diff_is_applied_or_refused_with_the_missing_line(trees, base):
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n def f():\n-    return 1\n+    return 9\n \n"
    result = apply_to_snapshot(trees, base, parse(diff).edits)
    assert result.snapshot is not None
    assert b"return 9" in (trees.read(result.snapshot, "a.py") or b"")
    stale = apply_to_snapshot(trees, base, parse(diff.replace("return 1", "return 7")).edits)
    assert "no line 'return 7'" in stale.rejects[0].reason


@pytest.mark.parametrize("path", ["../out.py", "/etc/x", ".git/hooks/x", ".GIT/config", "a/../../b", ".git./x"])
def test_forbidden_path_is_refused(trees, base, path):
    result = apply_to_snapshot(trees, base, [block("", "x\n", path)])
    assert (result.snapshot, result.refused) == (None, True)
