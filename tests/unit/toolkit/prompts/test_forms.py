from __future__ import annotations

import json

import pytest

from redstart.core.change import EditKind
from redstart.core.run import AttemptSummary
from redstart.toolkit.prompts.forms import LARGEST, brief_form, form_words, given_whole, often_rejected


def rejected(number: int, *files: str) -> AttemptSummary:
    told = "; ".join(f"edit 1 ({path}): not there" for path in files)
    return AttemptSummary(number=number, files=files, outcome=f"the edits were not applied: {told}")


@pytest.mark.parametrize(
    ("kind", "shaped", "word"),
    [
        (EditKind.block, False, "<<<<<<< SEARCH"),
        (EditKind.diff, False, "+++ b/"),
        (EditKind.whole, False, "all of the file as it shall be"),
        (EditKind.envelope, False, "*** End Patch"),
        (EditKind.whole, True, '"text": "all of the file'),
        (EditKind.diff, True, '"search": "the lines to replace'),
    ],
)
def test_every_form_is_described_in_its_own_words(kind, shaped, word):
    described = form_words(kind, shaped=shaped)
    assert word in described
    assert [other for other in EditKind if form_words(other, shaped=shaped) == described][:1] == (
        [kind] if not shaped or kind is EditKind.whole else [EditKind.block]
    )


@pytest.mark.parametrize(("path", "begins"), [("a.py", "def name("), ("web/a.ts", "function name(")])
def test_a_small_model_is_shown_code_where_it_is_to_write_code(path, begins):
    example = json.loads(brief_form(EditKind.whole, path, shaped=True).splitlines()[-1])
    (edit,) = example["edits"]
    assert edit["path"] == path
    assert edit["text"].startswith(begins)
    assert len(edit["text"].splitlines()) > 3, "the lines must be separated as in JSON"


def test_a_file_whose_edits_did_not_fit_twice_is_asked_for_as_a_whole_and_shown_so():
    history = [rejected(1, "a.py", "b.py"), rejected(2, "a.py")]
    assert often_rejected(history[:1]) == ()
    assert often_rejected(history) == ("a.py",)
    told = given_whole(("a.py",), {"a.py": b"x = 1\n"}.get)
    assert "Give it as a whole" in told
    assert '<data from="a.py">\nx = 1\n</data>' in told


def test_attempts_that_were_applied_or_refused_by_policy_do_not_count():
    applied = AttemptSummary(number=1, files=("a.py",), diff="d", red=1, outcome="still red: a.py")
    refused = AttemptSummary(number=2, files=("a.py",), refused=True, outcome="a.py is a test")
    assert often_rejected([applied, refused, rejected(3, "a.py")]) == ()


def test_a_file_that_is_gone_or_too_large_is_not_asked_for():
    assert given_whole(("a.py",), lambda _: None) == ""
    assert given_whole(("a.py",), lambda _: b"x" * (LARGEST + 1)) == ""
