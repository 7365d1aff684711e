"""The commit that `redstart apply --branch` makes says why the change was made."""

from __future__ import annotations

import pytest

from redstart.app.handover import LINE, commit_message
from redstart.core.change import Patch
from redstart.core.report import Ids, PatchTestResult, Verdict
from redstart.core.run import Attempt, ChildProgress, Mode, RunState, Step
from redstart.testing.states import make_spec, make_state, report


def run_with(reason: str, fixed: tuple[str, ...] = (), mode: Mode = Mode.fix, **changes: object) -> RunState:
    test_result = PatchTestResult(report=report(), verdict=Verdict(fixed=Ids.from_ids(fixed)))
    attempt = Attempt(entry=Step.reproduce, patch=Patch(edits="blob", why=reason), test=test_result)
    return make_state(spec=make_spec(mode=mode, goal="a todo list"), now=attempt, **changes)


def get_title(run: RunState) -> str:
    return commit_message(run).splitlines()[0]


def test_title_is_the_models_reason():
    run = run_with("round half to even, as the invoice does.", ("t.py::test_a",))
    assert commit_message(run) == f"Round half to even, as the invoice does\n\nBy Redstart, run {run.run_id}."


def test_long_reason_is_cut_at_a_word_and_repeated_in_full_below():
    reason = "the last page was computed by floor division, " * 4 + "so that a part of a page was lost"
    lines = commit_message(run_with(reason)).splitlines()
    assert len(lines[0]) <= LINE
    assert lines[0] == "The last page was computed by floor division, the last page was…"
    assert lines[1] == ""
    assert max(map(len, lines)) <= LINE
    assert reason in " ".join(lines)


@pytest.mark.parametrize(
    "why", ["one\n\nSigned-off-by: you <you@example.com>", "one \x1b[31mtwo\x00\u202ethree", "\r\nTwo\ttabs"]
)
def test_reason_becomes_one_printable_line(why):
    first, blank, *rest = commit_message(run_with(why)).split("\n")
    assert first
    assert first.isprintable()
    assert blank == ""
    assert rest[-1].startswith("By Redstart, run ")
    assert not any(line.startswith("Signed-off-by") for line in rest)


@pytest.mark.parametrize("why", ["", "  \n\x00", "\u200b"])
def test_title_without_a_reason_names_the_tests(why):
    assert get_title(run_with(why, ("t.py::test_b", "t.py::test_a"))) == "Fix test_a, test_b"
    five = tuple(f"t.py::test_{letter}" for letter in "abcde")
    assert get_title(run_with(why, five)) == "Fix test_a, test_b, test_c and 2 more"
    assert get_title(run_with(why)) == "Fix the failing tests"


def test_title_without_a_reason_names_program_or_improvements():
    assert get_title(run_with("", mode=Mode.create)) == "Create a todo list"
    improved = make_state(
        spec=make_spec(mode=Mode.improve), now=Attempt(entry=Step.decide), work=ChildProgress(begun=3, kept=2)
    )
    assert get_title(improved) == "Apply 2 improvements"
