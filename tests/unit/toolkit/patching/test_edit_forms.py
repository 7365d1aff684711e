"""Every form of edit in every wrapping, and truncated answers."""

from __future__ import annotations

import html
import json

import pytest

from redstart.core.change import EditFit, EditKind
from redstart.toolkit.patching.ladder import put
from redstart.toolkit.patching.reading.parse import parse

LINES = [f"line_{number} = {number}" for number in range(40)]
OLD = "\n".join(LINES) + "\n"
NEW = OLD.replace("line_20 = 20\n", "line_20 = 'twenty'\nmore = 1\n")
SEARCH = "line_19 = 19\nline_20 = 20\nline_21 = 21\n"
REPLACE = "line_19 = 19\nline_20 = 'twenty'\nmore = 1\nline_21 = 21\n"
BLOCK = f"pkg/a.py\n<<<<<<< SEARCH\n{SEARCH}=======\n{REPLACE}>>>>>>> REPLACE\n"
BODY = " line_19 = 19\n-line_20 = 20\n+line_20 = 'twenty'\n+more = 1\n line_21 = 21\n"
PATCH = f"*** Begin Patch\n*** Update File: pkg/a.py\n@@\n{BODY}*** End Patch\n"
DIFF = f"--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -20,3 +20,4 @@\n{BODY}"
WHOLE = f"pkg/a.py\n```python\n{NEW}```\n"


def apply_answer(answer: str, old: str = OLD, path: str = "pkg/a.py") -> str | None:
    edits = parse(answer).edits
    content = put(edits, {path: old.encode()}.get, [path]).files.get(path) if edits else None
    return None if content is None else content.decode()


@pytest.mark.parametrize(
    "answer",
    [
        BLOCK,
        BLOCK.replace("pkg/a.py\n", "**`pkg/a.py`**\n\n```python\n") + "```\nDone.\n",
        BLOCK.replace("pkg/a.py\n", "```python pkg/a.py\n") + "```\n",
        BLOCK.replace("SEARCH", "ORIGINAL").replace("REPLACE", "UPDATED"),
        BLOCK.replace("pkg/a.py", "The file `pkg/a.py` changes:"),
        BLOCK.replace("pkg/a.py\n<<<<<<< SEARCH", "<<<<<<< SEARCH pkg/a.py"),
        BLOCK.replace("\n", "\r\n"),
        BLOCK.replace("line_", "    line_").replace("more", "    more"),
        BLOCK.replace(SEARCH, "19: line_19 = 19\n20: line_20 = 20\n21: line_21 = 21\n"),
        BLOCK.replace(SEARCH, "-line_20 = 20\n").replace(REPLACE, "+line_20 = 'twenty'\n+more = 1\n"),
        html.escape(BLOCK),
        PATCH,
        f"I apply it:\n\n```sh\napply_patch <<'EOF'\n{PATCH}EOF\n```\n",
        json.dumps({"cmd": ["apply_patch", PATCH]}),
        PATCH.replace("*** Begin Patch\n", ""),
        PATCH.replace("pkg/a.py", "./pkg/a.py"),
        PATCH.replace("pkg/a.py", "/home/me/project/pkg/a.py"),
        DIFF,
        f"Sure:\n```diff\n{DIFF}```\nThat is all.\n",
        f"{DIFF}\nThis is all that is needed.\n",
        f"diff --git a/pkg/a.py b/pkg/a.py\nindex 12..34 100644\n{DIFF}",
        DIFF.replace("@@ -20,3 +20,4 @@", "@@"),
        DIFF.replace("@@ -20,3 +20,4 @@\n", ""),
        f"    {'    '.join(DIFF.splitlines(True))}",
        WHOLE,
        WHOLE.replace("pkg/a.py", "### File: pkg/a.py"),
        WHOLE.replace("pkg/a.py\n```python", "```python\n# pkg/a.py"),
        WHOLE.replace("```", "````"),
        f"First:\n\n```python\nline_20 = 20\n```\n\nis wrong.\n\n{WHOLE}",
    ],
)
def test_every_form_of_edit_is_read_in_every_wrapping(answer):
    assert apply_answer(answer) == NEW


@pytest.mark.parametrize(
    "answer",
    [
        BLOCK.partition(">>>>>>>")[0],
        BLOCK.partition("=======")[0],
        BLOCK + "pkg/a.py\n<<<<<<< SEARCH\nline_3",
        PATCH.partition("*** End")[0].partition(" line_21")[0],
        PATCH.partition("'twenty'")[0],
        DIFF.partition("'twenty'")[0],
        DIFF.partition("+more")[0],
        DIFF.partition("+more")[0].replace("@@ -20,3 +20,4 @@", "@@ @@"),
        WHOLE.removesuffix("```\n"),
        f"pkg/a.py\n```python\n{NEW[: len(NEW) // 2]}\n```\n",
        f"pkg/a.py\n```python\n{NEW[len(NEW) // 2 :]}```\n",
    ],
)
def test_truncated_answer_is_refused(answer):
    assert apply_answer(answer) is None


def test_files_can_be_created_and_deleted_but_not_overwritten():
    new = "*** Begin Patch\n*** Add File: pkg/b.py\n+x = 1\n+\n+y = 2\n*** Delete File: pkg/a.py\n*** End Patch\n"
    assert put(parse(new).edits, {"pkg/a.py": b"z = 1\n"}.get, ["pkg/a.py"]).files == {
        "pkg/b.py": b"x = 1\n\ny = 2\n",
        "pkg/a.py": None,
    }
    (reject,) = put(parse(new).edits[:1], {"pkg/b.py": b"z = 1\n"}.get, ["pkg/b.py"]).rejects
    assert "exists" in reject.reason
    diff = "--- /dev/null\n+++ b/pkg/c.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
    assert put(parse(diff).edits, {}.get, []).files == {"pkg/c.py": b"x = 1\ny = 2\n"}


@pytest.mark.parametrize(
    "head",
    [
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc/passwd\n",
        "diff --git a/pkg/a.py b/b.py\nrename from pkg/a.py\nrename to b.py\n",
        '--- /dev/null\n+++ "b/\\056\\056/x"\n@@ -0,0 +1 @@\n+x\n',
        PATCH.replace("@@", "*** Move to: /tmp/x\n@@"),
    ],
)
def test_links_renames_and_quoted_paths_are_refused(head):
    edited_files = put(parse(head).edits, {"pkg/a.py": OLD.encode()}.get, ["pkg/a.py"])
    assert edited_files.files == {}
    assert edited_files.rejects


def test_ambiguous_path_suffix_is_refused_with_the_candidates():
    answer = BLOCK.replace("pkg/a.py", "a.py")
    (reject,) = put(parse(answer).edits, {}.get, ["x/a.py", "y/a.py"]).rejects
    assert "x/a.py, y/a.py" in reject.reason


FUNCTIONS = "import os\n\n\n" + "\n\n".join(
    f"class C{number}:\n    def only_{number}(self):\n        return {number}\n\n    def same(self):\n        pass\n"
    for number in range(5)
)


def test_definition_replaces_its_namesake():
    answer = "pkg/a.py\n```python\ndef only_3(self):\n    return 'three'\n```\n"
    edits = parse(answer).edits
    edited_files = put(edits, {"pkg/a.py": FUNCTIONS.encode()}.get, ["pkg/a.py"])
    assert edited_files.files["pkg/a.py"] == FUNCTIONS.replace("return 3", "return 'three'").encode()
    assert (edited_files.edit_records[0].kind, edited_files.edit_records[0].rung) == (EditKind.whole, EditFit.node)
    assert apply_answer(answer.replace("only_3", "same"), FUNCTIONS) is None
    assert (
        apply_answer("pkg/a.py\n```python\nclass C3:\n    def only_3(self):\n        return 'x'\n```\n", FUNCTIONS)
        is None
    )


def test_omitted_lines_of_a_whole_file_are_taken_from_the_old_file():
    new_lines = NEW.split("\n")
    answer = (
        "pkg/a.py\n```python\n" + "\n".join([*new_lines[:26], "# ... existing code ...", *new_lines[-6:]]) + "```\n"
    )
    assert apply_answer(answer) == NEW
    assert apply_answer(answer.replace("line_36", "line_66")) is None


@pytest.mark.parametrize("note", ["# (other lines unchanged)", "# [omitted]", "# ( the rest is not shown )"])
def test_bracketed_note_stands_for_omitted_lines(note):
    new_lines = NEW.split("\n")
    assert apply_answer("pkg/a.py\n```python\n" + "\n".join([*new_lines[:26], note, *new_lines[-6:]]) + "```\n") == NEW


def test_comment_in_place_of_omitted_lines_is_refused():
    body = "\n".join(f"    print({number})" for number in range(20))
    other_functions = "\n\n".join(f"def other_{number}():\n    return {number}\n" for number in range(20))
    old = f"def told(one):\n{body}\n    return one\n\n\n{other_functions}"
    shortened = "def told(one):\n    print(0)\n    # the rest stays the same\n    print(19)\n    return one + 1\n"
    for answer in (shortened, f"{shortened}\n\n{other_functions}"):
        edits = parse(f"pkg/a.py\n```python\n{answer}```\n").edits
        (reject,) = put(edits, {"pkg/a.py": old.encode()}.get, ["pkg/a.py"]).rejects
        assert reject.reason == "18 lines from line 3 on are not in it, only the comment: # the rest stays the same"
    for replacement in ("    # the rest stays the same\n    print(7)\n", "    # the same as before\n"):
        changed = old.replace("    print(7)\n", replacement)
        assert apply_answer(f"pkg/a.py\n```python\n{changed}```\n", old) == changed
