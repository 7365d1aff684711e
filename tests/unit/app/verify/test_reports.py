"""The report of a verification in a terminal and as Markdown, with names that try to leave their place."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from rich.cells import cell_len

from redstart.app.verify.junit import as_junit
from redstart.app.verify.kinds import describe_lines
from redstart.app.verify.markdown import as_markdown
from redstart.cli.verify_text import format_report
from redstart.core.report import CheckEvidence, Mutants, OutcomeCounts
from redstart.core.run import Level
from redstart.core.verification import (
    ChangeType,
    Claim,
    ClaimKind,
    CodeVersion,
    FileRole,
    MatrixRun,
    ProofRequirement,
    SortedFile,
    UntestedLines,
    Verification,
    VerificationEnd,
)

HOSTILE = "tests/test_a.py::test[| <b>x</b> | `y`\n\x1b[2J]"
LONG = f"tests/{'deep/' * 20}test_a.py::test_b"
RESULT = Verification(
    redstart="0.1.0",
    repo="shop",
    end=VerificationEnd.weakened,
    exit_code=7,
    reason="2 tests demand less than before, and nobody has accepted that",
    remedy="if this is intended: redstart verify --accept 'tests/test_a.py::test'",
    require=ProofRequirement.no_worse,
    level=Level.standard,
    base=CodeVersion(name="main", commit="0123456789abcdef", tree="1"),
    head=CodeVersion(name="working tree", tree="2"),
    files=(SortedFile(path="shop.py", role=FileRole.source, change=ChangeType.edited),),
    matrix=tuple(
        MatrixRun(
            new_tests=tests, new_code=code, counts=OutcomeCounts(passed=1200, failed=2), seconds=1.5, partial=tests
        )
        for tests in (False, True)
        for code in (False, True)
    ),
    claims=(
        Claim(test=HOSTILE, kind=ClaimKind.weakened, note="its old form fails: " + "assert 1 == 2 " * 20),
        *(Claim(test=f"{LONG}{number}", kind=ClaimKind.outdated) for number in range(14)),
    ),
    evidence=(CheckEvidence(check="control", targets=2, covered=1),),
    notes=("new finding: shop.py:1 undefined name (ruff F821)",),
)


def test_text_fits_80_columns_unless_a_word_is_longer():
    lines = [line.text for line in format_report(RESULT, 80)]
    assert [line for line in lines if cell_len(line) > 80 and " " in line.strip()] == []
    assert "old tests  2 fail, 1,200 pass     2 fail, 1,200 pass" in lines
    assert "Outdated (14): its old form uses a name that is gone" in lines
    assert "  and 4 more: --verbose lists them" in lines
    assert any(line.startswith("WEAKENED: 2 tests demand less") for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_all_tests_are_listed_on_request_and_one_per_line_in_a_log():
    lines = [line.text for line in format_report(RESULT, None, shows_all=True)]
    assert sum(line.startswith(f"  {LONG}") for line in lines) == 14
    assert sum("assert 1 == 2" in line for line in lines) == 1


def test_unchanged_tests_have_one_row():
    result = RESULT.model_copy(update={"matrix": (RESULT.matrix[0], RESULT.matrix[3])})
    lines = [line.text for line in format_report(result, 80)]
    assert "tests      2 fail, 1,200 pass     2 fail, 1,200 pass *" in lines


def test_markdown_lists_what_counts_against_the_change_first():
    kinds = (ClaimKind.proven, ClaimKind.weakened, ClaimKind.hidden)
    claims = tuple(Claim(test=f"tests/test_a.py::{kind.value}", kind=kind) for kind in kinds)
    rows = as_markdown(RESULT.model_copy(update={"claims": claims})).splitlines()
    assert [row.split("**")[1] for row in rows if row.startswith("| **")] == ["Hidden", "Weakened", "Proven"]


def test_markdown_is_short_and_keeps_hostile_names_in_their_cells():
    text = as_markdown(RESULT)
    assert text.startswith("### ❌ Weakened: 2 tests demand less than before")
    table = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(table) == 1
    assert table[0].count("|") == 4
    assert "<b>" not in text
    assert "\x1b" not in text
    visible = text[: text.index("<details>")]
    assert len(visible.splitlines()) < 12
    assert text.count("<details>") == text.count("</details>") == 1


UNNOTICED = RESULT.model_copy(
    update={
        "untested": (UntestedLines(path="shop[x].py", lines=(3, 7, 8)),),
        "mutants": Mutants(sampled=4, killed=2, survivors=("in `total`, a condition is negated",)),
    }
)


def test_reports_list_what_no_test_notices():
    lines = [line.text for line in format_report(UNNOTICED, 80)]
    assert lines[lines.index("Untested: no test that imports the file runs these changed lines") + 1] == (
        "  shop[x].py, lines 3, 7-8"
    )
    assert lines[lines.index("Unnoticed: no test fails after 2 of 4 small changes of the changed lines") + 1] == (
        "  in `total`, a condition is negated"
    )
    text = as_markdown(UNNOTICED)
    assert "- Not run by any test that imports it: shop&#91;x&#93;.py, lines 3, 7-8" in text
    assert "No test notices a small change: in" in text


@pytest.mark.parametrize(
    ("lines", "text"), [((4,), "line 4"), ((1, 2, 3, 5, 8, 9), "lines 1-3, 5, 8-9"), ((1, 3), "lines 1, 3")]
)
def test_line_numbers_are_joined_to_ranges(lines: tuple[int, ...], text: str):
    assert describe_lines(lines) == text


def test_junit_report_fails_for_what_counts_against_the_change():
    accepted = Claim(test="tests/test_a.py::gone", kind=ClaimKind.removed, accepted="Ann")
    missing = Claim(test="tests/test_a.py::net", kind=ClaimKind.environment, note="no network")
    result = RESULT.model_copy(update={"claims": (*RESULT.claims[:2], accepted, missing)})
    suite = ElementTree.fromstring(as_junit(result))
    ends = {case.get("name"): [child.tag for child in case] for case in suite}
    assert ends == {
        "verdict": ["failure"],
        HOSTILE.replace("\x1b", "\ufffd"): ["failure"],
        f"{LONG}0": ["system-out"],
        "tests/test_a.py::gone": ["system-out"],
        "tests/test_a.py::net": ["error"],
    }
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "2", "1")
    passed = ElementTree.fromstring(as_junit(result.model_copy(update={"exit_code": 0})))
    assert passed[0].find("failure") is None
