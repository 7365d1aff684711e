from __future__ import annotations

import json

import pytest

from redstart.core.change import EditKind
from redstart.core.run import AttemptSummary
from redstart.toolkit.prompts.edit_forms import (
    MAX_FILE_CHARACTERS,
    build_whole_files_section,
    describe_brief_form,
    describe_form,
    find_often_rejected,
)


def build_rejected_attempt(number: int, *files: str) -> AttemptSummary:
    reasons = "; ".join(f"edit 1 ({path}): not there" for path in files)
    return AttemptSummary(number=number, files=files, outcome=f"the edits were not applied: {reasons}")


@pytest.mark.parametrize(
    ("kind", "has_shape", "phrase"),
    [
        (EditKind.block, False, "<<<<<<< SEARCH"),
        (EditKind.diff, False, "+++ b/"),
        (EditKind.whole, False, "all of the file as it shall be"),
        (EditKind.envelope, False, "*** End Patch"),
        (EditKind.whole, True, '"text": "all of the file'),
        (EditKind.diff, True, '"search": "the lines to replace'),
    ],
)
def test_every_form_has_its_own_description(kind, has_shape, phrase):
    description = describe_form(kind, as_json=has_shape)
    assert phrase in description
    assert [form for form in EditKind if describe_form(form, as_json=has_shape) == description][:1] == (
        [kind] if not has_shape or kind is EditKind.whole else [EditKind.block]
    )


@pytest.mark.parametrize(("path", "expected_start"), [("a.py", "def name("), ("web/a.ts", "function name(")])
def test_small_model_gets_a_code_example_for_code(path, expected_start):
    example = json.loads(describe_brief_form(EditKind.whole, path, as_json=True).splitlines()[-1])
    (edit,) = example["edits"]
    assert edit["path"] == path
    assert edit["text"].startswith(expected_start)
    assert len(edit["text"].splitlines()) > 3, "the lines must be separated as in JSON"


def test_small_model_leaves_out_documentation_only_where_it_can_be_put_back():
    def describe(kind: EditKind, path: str, *, as_json: bool = False) -> str:
        return describe_brief_form(kind, path, as_json=as_json, omits_documentation=True)

    assert "without comments, docstrings" in describe(EditKind.whole, "a.py")
    assert "a.py\n```python" in describe(EditKind.whole, "a.py")
    assert describe(EditKind.whole, "web/a.ts") == describe_brief_form(EditKind.whole, "web/a.ts")
    assert describe(EditKind.block, "a.py") == describe_brief_form(EditKind.block, "a.py")
    assert describe(EditKind.whole, "a.py", as_json=True) == describe_brief_form(EditKind.whole, "a.py", as_json=True)


def test_file_with_two_rejected_edits_is_shown_and_requested_as_a_whole():
    history = [build_rejected_attempt(1, "a.py", "b.py"), build_rejected_attempt(2, "a.py")]
    assert find_often_rejected(history[:1]) == ()
    assert find_often_rejected(history) == ("a.py",)
    text = build_whole_files_section(("a.py",), {"a.py": b"x = 1\n"}.get)
    assert "Give it as a whole" in text
    assert '<data from="a.py">\nx = 1\n</data>' in text


def test_attempts_applied_or_refused_by_policy_do_not_count():
    applied = AttemptSummary(number=1, files=("a.py",), diff="d", red=1, outcome="still red: a.py")
    refused = AttemptSummary(number=2, files=("a.py",), refused=True, outcome="a.py is a test")
    assert find_often_rejected([applied, refused, build_rejected_attempt(3, "a.py")]) == ()


def test_missing_or_too_large_file_is_not_requested():
    assert build_whole_files_section(("a.py",), lambda _: None) == ""
    assert build_whole_files_section(("a.py",), lambda _: b"x" * (MAX_FILE_CHARACTERS + 1)) == ""
