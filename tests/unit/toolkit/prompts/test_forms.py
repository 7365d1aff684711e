from __future__ import annotations

import pytest

from redstart.core.change import EditKind
from redstart.core.run import AttemptSummary
from redstart.toolkit.prompts.forms import LARGEST, form, often_rejected


def rejected(number: int, *files: str) -> AttemptSummary:
    told = "; ".join(f"edit 1 ({path}): not there" for path in files)
    return AttemptSummary(number=number, files=files, outcome=f"the edits were not applied: {told}")


def test_the_usual_form_needs_no_words():
    assert form(EditKind.block) == ""


@pytest.mark.parametrize(
    ("kind", "word"), [(EditKind.diff, "+++ b/"), (EditKind.whole, "```"), (EditKind.envelope, "*** End Patch")]
)
def test_another_form_is_described(kind, word):
    assert word in form(kind)


def test_a_file_whose_edits_did_not_fit_twice_is_asked_for_as_a_whole_and_shown_so():
    history = [rejected(1, "a.py", "b.py"), rejected(2, "a.py")]
    assert often_rejected(history[:1]) == ()
    assert often_rejected(history) == ("a.py",)
    told = form(EditKind.block, ("a.py",), {"a.py": b"x = 1\n"}.get)
    assert "Give it as a whole" in told
    assert '<data from="a.py">\nx = 1\n</data>' in told


def test_attempts_that_were_applied_or_refused_by_policy_do_not_count():
    applied = AttemptSummary(number=1, files=("a.py",), diff="d", red=1, outcome="still red: a.py")
    refused = AttemptSummary(number=2, files=("a.py",), refused=True, outcome="a.py is a test")
    assert often_rejected([applied, refused, rejected(3, "a.py")]) == ()


def test_a_file_that_is_gone_or_too_large_is_not_asked_for():
    assert form(EditKind.block, ("a.py",)) == ""
    assert form(EditKind.block, ("a.py",), lambda _: b"x" * (LARGEST + 1)) == ""
