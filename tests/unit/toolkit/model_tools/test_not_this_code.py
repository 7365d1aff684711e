"""An answer may name failing tests that the code is not to blame for."""

from __future__ import annotations

import pytest

from redstart.toolkit.model_tools.not_this_code import find_not_this_code

A, B, C = "tests/test_a.py::test_one", "tests/test_a.py::test_two[x, 1]", "tests/test_b.py::test_three"
TARGETS = (A, B, C)
EDIT = "shop.py\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("answer", "ids", "reason"),
    [
        (f"NOT THIS CODE: {A}, {C}\nThey need\na newer click.\n", (A, C), "They need a newer click."),
        (f"**NOT THIS CODE:** `{A}` and `{B}`\n\nNo network.\n", (A, B), "No network."),
        (f"NOT THIS CODE:\n- {A}\n- {C}\n\nThe submodule is empty.\n", (A, C), "The submodule is empty."),
        ("NOT THIS CODE: tests/test_a.py\nOther version.\n", (A, B), "Other version."),
        ("NOT THIS CODE: tests/test_a.py::test_two\nOther version.\n", (B,), "Other version."),
        (f"NOT THIS CODE: {A}\n", (A,), ""),
        (f"NOT THIS CODE: {A}\nOther version.\n{EDIT}", (A,), "Other version."),
        (f"NOT THIS CODE: {A}\n{EDIT}", (A,), ""),
        (f"NOT THIS CODE: {A}\nOther version.\nWHY: a typo\n\n{EDIT}", (A,), "Other version."),
    ],
)
def test_targets_and_reason_are_read(answer, ids, reason):
    claim = find_not_this_code(answer, TARGETS)
    assert claim is not None
    assert (claim.ids, claim.reason, claim.ignored) == (ids, reason, ())
    assert (EDIT in claim.remaining_text) is (EDIT in answer)
    assert ("WHY: a typo" in claim.remaining_text) is ("WHY: a typo" in answer)


def test_names_that_are_no_targets_are_ignored_and_listed():
    claim = find_not_this_code(f"NOT THIS CODE: tests/test_c.py::test_four, {A}\nOther version.\n", TARGETS)
    assert claim is not None
    assert (claim.ids, claim.ignored) == ((A,), ("tests/test_c.py::test_four",))


@pytest.mark.parametrize("answer", [EDIT, "NOT THIS CODE: tests/test_c.py\nx\n", f"It is not this code: {A}"])
def test_answer_that_names_no_target_sets_nothing_aside(answer):
    assert find_not_this_code(answer, TARGETS) is None
