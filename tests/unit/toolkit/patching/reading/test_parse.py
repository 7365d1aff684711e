from __future__ import annotations

import pytest

from redstart.core.change import EditKind
from redstart.toolkit.patching.reading.parse import fingerprint, list_paths, parse

BLOCK = "a/b.py\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"
PLAIN = "--- x.py\n+++ x.py\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"


def test_block_is_parsed_with_its_path():
    (edit,) = parse(BLOCK).edits
    assert (edit.kind, edit.path, edit.search, edit.text) == (EditKind.block, "a/b.py", "old\n", "new\n")


@pytest.mark.parametrize(
    "template",
    [
        "Sure! Here it is:\n\n{}\nThat should do.",
        "```python\n{}```\n",
        "WHY: because\n\n`a/b.py`\n```\n{}```",
        "File: a/b.py\n\n{}",
        "**a/b.py**\n{}",
        "./a/b.py\n{}",
    ],
)
def test_prose_and_fences_around_a_block_are_ignored(template):
    body = BLOCK if template.count("a/b.py") == 0 else BLOCK.partition("\n")[2]
    (edit,) = parse(template.format(body)).edits
    assert (edit.path, edit.search) == ("a/b.py", "old\n")


def test_several_blocks_keep_their_order_and_paths():
    text = BLOCK + "\nc.py\n" + BLOCK.partition("\n")[2]
    assert [edit.path for edit in parse(text).edits] == ["a/b.py", "c.py"]


def test_empty_search_creates_a_file():
    (edit,) = parse("new.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE").edits
    assert (edit.search, edit.text) == ("", "x = 1\n")


def test_windows_line_endings_are_read():
    (edit,) = parse(BLOCK.replace("\n", "\r\n")).edits
    assert edit.search == "old\n"


def test_fenced_diff_followed_by_prose_is_parsed():
    (edit,) = parse(f"Here:\n```diff\n{DIFF}```\nDone.\n").edits
    assert (edit.kind, edit.path, edit.text, edit.closed) == (EditKind.diff, "x.py", PLAIN, True)
    assert list_paths([edit]) == ("x.py",)


def test_diff_without_prefixes_is_the_same_diff():
    (edit,) = parse(DIFF.replace("a/x.py", "x.py").replace("b/x.py", "x.py\t2020-01-01")).edits
    assert (edit.text, edit.closed) == (PLAIN, False)


def test_two_diffs_are_two_edits():
    edits = parse(DIFF + DIFF.replace("x.py", "y.py")).edits
    assert [list_paths([edit]) for edit in edits] == [("x.py",), ("y.py",)]


def test_labels_are_kept():
    parsed = parse(
        "ROOT CAUSE: off by one\nWHAT FAILED: the last page\n**TRY NEXT:** round up\n\nWHY: it adds\n" + BLOCK
    )
    assert parsed.reason == "it adds"
    assert parsed.reflection is not None
    assert (parsed.reflection.root_cause, parsed.reflection.try_next) == ("off by one", "round up")


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "empty"),
        ("I am not sure.", "no edit"),
        ("a.py\n<<<<<<< SEARCH\nold\n=======\nnew", "not complete"),
        ("<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE", "no file path"),
    ],
)
def test_unusable_answer_states_the_reason(text, phrase):
    parsed = parse(text)
    assert parsed.edits == ()
    assert phrase in parsed.fault


def test_fingerprint_ignores_trailing_whitespace_and_order():
    first_edits = parse(BLOCK + "c.py\n" + BLOCK.partition("\n")[2]).edits
    other_edits = parse("c.py\n" + BLOCK.partition("\n")[2] + BLOCK.replace("new\n", "new  \n")).edits
    assert fingerprint(first_edits) == fingerprint(other_edits)
    assert fingerprint(first_edits) != fingerprint(parse(BLOCK.replace("new", "newer")).edits)
    assert fingerprint(()) == ""
