from __future__ import annotations

import pytest

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.ladder import climb, unchanged
from redstart.toolkit.patching.reading.parse import parse

pytestmark = pytest.mark.slow

OLD = b"def f():\n    return 1\n\n\ndef g():\n    return 1\n"


def block(search: str, text: str, path: str = "a.py") -> Edit:
    return Edit(kind=EditKind.block, path=path, search=search, text=text)


@pytest.fixture
def base(trees):
    return trees.write(trees.empty(), {"a.py": OLD, "crlf.py": b"x = 1\r\ny = 2\r\n", "bare.py": b"z = 3"})


def test_a_unique_place_is_replaced(trees, base):
    done = climb(trees, base, [block("def f():\n    return 1\n", "def f():\n    return 2\n")])
    assert done.snapshot is not None
    assert trees.read(done.snapshot, "a.py") == OLD.replace(b"return 1", b"return 2", 1)


def test_an_ambiguous_place_is_refused_with_its_line_numbers(trees, base):
    done = climb(trees, base, [block("    return 1\n", "    return 2\n")])
    assert done.snapshot is None
    assert done.rejects[0].reason == "the lines to change are there 2 times (lines 2, 6)"


def test_part_of_a_line_is_no_place(trees, base):
    assert climb(trees, base, [block("turn 1\n\n\ndef g():\n", "turn 2\n")]).snapshot is None


def test_what_is_not_there_comes_back_with_the_nearest_lines(trees, base):
    done = climb(trees, base, [block("def g(x):\n", "def g(y):\n")])
    assert "def g():" in done.rejects[0].nearest


def test_an_edit_that_is_already_there_is_recognised(trees, base):
    done = climb(trees, base, [block("def h():\n", "def g():\n")])
    assert "already" in done.rejects[0].reason


def test_the_end_of_a_file_is_taken_away_by_a_true_diff(trees, base):
    """All lines that the hunk leaves are there before it too. That alone does not mean that it was made already."""
    told = "--- a/a.py\n+++ b/a.py\n@@ -1,6 +1,2 @@\n def f():\n     return 1\n-\n-\n-def g():\n-    return 1\n"
    done = climb(trees, base, parse(told).edits)
    assert done.snapshot is not None, done.rejects
    assert trees.read(done.snapshot, "a.py") == b"def f():\n    return 1\n"


def test_all_or_nothing(trees, base):
    done = climb(trees, base, [block("def f():\n", "def e():\n"), block("nothing\n", "x\n", "crlf.py")])
    assert done.snapshot is None
    assert [reject.path for reject in done.rejects] == ["crlf.py"]


def test_two_edits_of_one_file_build_on_each_other(trees, base):
    done = climb(trees, base, [block("def f():\n", "def e():\n"), block("def e():\n", "def d():\n")])
    assert done.snapshot is not None
    assert b"def d()" in (trees.read(done.snapshot, "a.py") or b"")


def test_line_ends_of_the_file_are_kept(trees, base):
    done = climb(trees, base, [block("y = 2\n", "y = 3\nw = 4\n", "crlf.py")])
    assert done.snapshot is not None
    assert trees.read(done.snapshot, "crlf.py") == b"x = 1\r\ny = 3\r\nw = 4\r\n"


def test_a_missing_last_line_end_is_kept(trees, base):
    done = climb(trees, base, [block("z = 3\n", "z = 4\n", "bare.py")])
    assert done.snapshot is not None
    assert trees.read(done.snapshot, "bare.py") == b"z = 4"


def test_a_new_file_is_made_and_an_existing_one_is_not_overwritten(trees, base):
    done = climb(trees, base, [block("", "n = 1\n", "pkg/new.py")])
    assert done.snapshot is not None
    assert trees.read(done.snapshot, "pkg/new.py") == b"n = 1\n"
    assert climb(trees, base, [block("", "gone\n")]).snapshot is None
    assert "no such file" in climb(trees, base, [block("x\n", "y\n", "nowhere.py")]).rejects[0].reason


def test_no_change_is_a_reject(trees, base):
    assert "changes nothing" in climb(trees, base, [block("def f():\n", "def f():\n")]).rejects[0].reason


def whole(text: bytes, path: str = "a.py") -> Edit:
    return Edit(kind=EditKind.whole, path=path, text=text.decode())


def test_a_file_given_back_as_it_was_is_not_taken_for_an_edit_that_was_made_before(trees, base):
    changed, same = whole(OLD.replace(b"f()", b"h()")), whole(b"x = 1\ny = 2\n", "crlf.py")
    done = climb(trees, base, [changed, same])
    assert [reject.words for reject in done.rejects] == [
        "edit 1 (crlf.py): it is the file as it was: something in it must change"
    ]


@pytest.mark.parametrize(
    ("edits", "files"),
    [
        ([whole(OLD)], ("a.py",)),
        ([whole(OLD + b"\n\n")], ("a.py",)),
        ([whole(OLD), block("z = 3\n", "z = 3\n", "bare.py")], ("a.py", "bare.py")),
        ([whole(OLD), block("z = 3\n", "z = 4\n", "bare.py")], ()),
        ([block("z = 9\n", "z = 3\n", "bare.py")], ()),
        ([whole(OLD, "new.py")], ()),
        ([], ()),
    ],
)
def test_edits_that_only_give_files_back_are_told_from_others(trees, base, edits, files):
    assert unchanged(edits, lambda path: trees.read(base, path), trees.files(base)) == files


def test_a_diff_is_applied_or_refused_with_the_line_that_is_not_there(trees, base):
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n def f():\n-    return 1\n+    return 9\n \n"
    done = climb(trees, base, parse(diff).edits)
    assert done.snapshot is not None
    assert b"return 9" in (trees.read(done.snapshot, "a.py") or b"")
    stale = climb(trees, base, parse(diff.replace("return 1", "return 7")).edits)
    assert "no line 'return 7'" in stale.rejects[0].reason


@pytest.mark.parametrize("path", ["../out.py", "/etc/x", ".git/hooks/x", ".GIT/config", "a/../../b", ".git./x"])
def test_a_path_that_no_tree_may_hold_is_refused(trees, base, path):
    done = climb(trees, base, [block("", "x\n", path)])
    assert (done.snapshot, done.refused) == (None, True)
