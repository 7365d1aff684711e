"""What the four runs of the matrix show of one test, and how a verification with these claims ends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from redstart.core.report import Case, Outcome
from redstart.core.suite import Suite
from redstart.core.verification import Claim, ClaimKind, VerificationEnd
from redstart.toolkit.honesty.changes.claims import ChangeEvidence, decide_end, derive_claims
from redstart.toolkit.honesty.changes.edited_tests import EditedTests
from redstart.toolkit.honesty.changes.missing_names import FileVersions, collect_changed_words, find_missing_name
from redstart.toolkit.honesty.changes.suite_results import ResultMatrix, SuiteResults
from redstart.toolkit.suites.suite_directory import TreeView

TEST = "test_a.py::test_sum"
OLD = "def test_sum():\n    assert total(1) == 1\n    assert total(2) == 2\n"
NEW = OLD.replace("== 2", "== 3")
WEAKER = OLD.replace("    assert total(2) == 2\n", "")
SOURCE = FileVersions("shop.py", b"def total(x):\n    return x\n", b"def amount(x):\n    return x\n")
VALUE = "AssertionError: assert 3 == 2"
GONE = "ImportError: cannot import name 'total' from 'shop'"
ADDED = "ImportError: cannot import name 'amount' from 'shop'"


def run(outcome: str) -> SuiteResults:
    """Return the results of a run in which the test passed, was skipped, is absent (empty) or failed with a message."""
    if outcome in ("passed", "skipped"):
        return SuiteResults([Case(id=TEST, outcome=Outcome(outcome))])
    return SuiteResults([Case(id=TEST, outcome=Outcome.failed, message=outcome)] if outcome else [])


def view(text: str | None) -> TreeView:
    files: Mapping[str, bytes] = {} if text is None else {"test_a.py": text.encode()}
    return TreeView(Suite(runner="pytest"), files, files.get)


def derive(
    outcomes: tuple[str, str, str, str],
    before: str | None = OLD,
    after: str | None = OLD,
    restored: str | None = None,
    problems: Mapping[str, str] | None = None,
    flaky: tuple[str, ...] = (),
) -> dict[str, ClaimKind]:
    """Derive claims from the outcomes: old on old, new on new, new on old, old on new."""
    changed = ["test_a.py"] if before != after else []
    evidence = ChangeEvidence(
        ResultMatrix(*map(run, outcomes)),
        EditedTests(view(before), view(after), changed),
        collect_changed_words([SOURCE]),
        problems or {},
        None if restored is None else run(restored),
        flaky,
    )
    return {claim.test: claim.kind for claim in derive_claims(evidence)}


@pytest.mark.parametrize(
    ("outcomes", "before", "after", "kind"),
    [
        (("passed", "passed", "passed", "passed"), OLD, OLD, None),
        ((VALUE, "passed", VALUE, "passed"), OLD, OLD, ClaimKind.fixed),
        ((VALUE, VALUE, VALUE, VALUE), OLD, OLD, ClaimKind.red_before),
        (("passed", VALUE, "passed", VALUE), OLD, OLD, ClaimKind.broken),
        (("passed", "skipped", "skipped", "passed"), OLD, NEW, ClaimKind.skipped),
        (("passed", "passed", "passed", VALUE), OLD, NEW, ClaimKind.weakened),
        (("passed", "passed", VALUE, VALUE), OLD, NEW, ClaimKind.weakened),
        ((VALUE, "passed", "passed", VALUE), OLD, NEW, ClaimKind.weakened),
        (("passed", "passed", "passed", "passed"), OLD, WEAKER, ClaimKind.weakened),
        (("passed", "passed", "passed", GONE), OLD, NEW, ClaimKind.outdated),
        (("passed", "passed", "passed", GONE), OLD, WEAKER, ClaimKind.weakened),
        (("passed", "passed", "passed", "passed"), OLD, NEW, ClaimKind.edited),
        (("passed", "passed", VALUE, "passed"), OLD, NEW, ClaimKind.proven),
        (("", "passed", VALUE, ""), None, NEW, ClaimKind.proven),
        (("", "passed", ADDED, ""), None, NEW, ClaimKind.absent_before),
        (("", "passed", GONE, ""), None, NEW, ClaimKind.proven),
        (("", "passed", "passed", ""), None, NEW, ClaimKind.green_without),
        (("", VALUE, VALUE, ""), None, NEW, ClaimKind.broken),
        (("passed", "", "", "passed"), OLD, "", ClaimKind.removed),
        (("passed", "", "", VALUE), OLD, "", ClaimKind.weakened),
        (("passed", "", "", GONE), OLD, "", ClaimKind.replaced),
        ((VALUE, "", "", VALUE), OLD, "", ClaimKind.removed),
        (
            ("passed", "", "", "passed"),
            OLD,
            OLD.replace("def test_sum", "class TestA:\n    def test_sum"),
            ClaimKind.replaced,
        ),
        (("passed", "", "", "passed"), OLD, OLD + "\n", ClaimKind.skipped),
    ],
)
def test_kind_follows_from_the_four_runs(outcomes, before, after, kind):
    assert derive(outcomes, before, after) == ({TEST: kind} if kind else {})


def test_failure_that_only_the_new_configuration_hides_is_named():
    assert derive(("passed", "passed", "passed", VALUE), restored=VALUE) == {TEST: ClaimKind.hidden}
    assert derive(("passed", "", "", VALUE), restored=VALUE) == {TEST: ClaimKind.hidden}
    fixture = "fixture 'amount' not found"
    assert derive(("passed", "passed", "passed", "passed"), restored=fixture) == {}


def test_environment_problem_and_flaky_test_do_not_count_as_broken():
    outcomes = ("passed", "ModuleNotFoundError: No module named 'yaml'", "passed", "passed")
    assert derive(outcomes, problems={TEST: "missing package: yaml"}) == {TEST: ClaimKind.environment}
    assert derive(outcomes, flaky=(TEST,)) == {TEST: ClaimKind.flaky}


def test_parameters_that_differ_in_each_run_are_no_new_tests():
    old, new = (SuiteResults([Case(id=f"{TEST}[{clock}]", outcome=Outcome.passed)]) for clock in ("9:58", "9:59"))
    for after in (OLD, OLD + "\n"):
        tests = EditedTests(view(OLD), view(after), ["test_a.py"] if after != OLD else [])
        assert (
            derive_claims(ChangeEvidence(ResultMatrix(old, new, old, new), tests, collect_changed_words([]), {})) == []
        )
    tests = EditedTests(view(OLD), view(NEW), ["test_a.py"])
    claims = derive_claims(ChangeEvidence(ResultMatrix(old, new, old, old), tests, collect_changed_words([]), {}))
    assert [claim.kind for claim in claims] == [ClaimKind.absent_before, ClaimKind.edited]


def test_tests_of_a_file_that_cannot_be_imported_are_broken_and_not_gone():
    error = Case(id="test_a.py", outcome=Outcome.error, message="SyntaxError: invalid syntax")
    matrix = ResultMatrix(run("passed"), SuiteResults([error]), run("passed"), run("passed"))
    evidence = ChangeEvidence(matrix, EditedTests(view(OLD), view(OLD), []), collect_changed_words([]), {})
    assert {claim.test: claim.kind for claim in derive_claims(evidence)}[TEST] is ClaimKind.broken
    lacking = evidence._replace(problems={"test_a.py": "missing package: yaml"})
    assert {claim.test: claim.kind for claim in derive_claims(lacking)}[TEST] is ClaimKind.environment


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (ADDED, "amount"),
        ("AttributeError: module 'shop' has no attribute 'amount'", "amount"),
        ("TypeError: amount() got an unexpected keyword argument 'rate'", "amount"),
        ("TypeError: Cart.amount() missing 1 required positional argument: 'x'", "amount"),
        ("TypeError: amount() takes 1 positional argument but 2 were given", "amount"),
        ("NameError: name 'amount' is not defined", "amount"),
        ("AttributeError: 'NoneType' object has no attribute 'amount'", ""),
        ("AssertionError: name 'amount' is not defined", ""),
        ("ImportError: cannot import name 'other' from 'shop'", ""),
        ("ValueError: amount", ""),
    ],
)
def test_missing_name_is_one_that_the_change_adds(message: str, name: str):
    case = Case(id=TEST, outcome=Outcome.failed, message=message)
    assert find_missing_name(case, collect_changed_words([SOURCE]).added) == name


@pytest.mark.parametrize(
    ("kinds", "end"),
    [
        ([], VerificationEnd.unproven),
        ([ClaimKind.proven, ClaimKind.outdated, ClaimKind.red_before], VerificationEnd.verified),
        ([ClaimKind.fixed, ClaimKind.environment], VerificationEnd.environment),
        ([ClaimKind.proven, ClaimKind.removed], VerificationEnd.weakened),
        ([ClaimKind.weakened, ClaimKind.broken], VerificationEnd.worse),
        ([ClaimKind.broken, ClaimKind.hidden], VerificationEnd.tampered),
        ([ClaimKind.absent_before], VerificationEnd.unproven),
    ],
)
def test_gravest_claim_decides_the_end(kinds: list[ClaimKind], end: VerificationEnd):
    assert decide_end([Claim(test=kind.value, kind=kind) for kind in kinds]) is end


def test_accepted_and_controlled_claims_decide_otherwise():
    accepted = Claim(test="a", kind=ClaimKind.weakened, accepted="Ann")
    controlled = Claim(test="b", kind=ClaimKind.absent_before, controlled=True)
    assert decide_end([accepted]) is VerificationEnd.unproven
    assert decide_end([accepted, controlled]) is VerificationEnd.verified


def test_accepted_test_that_fails_without_the_change_proves_it():
    evidence = ChangeEvidence(
        ResultMatrix(*map(run, ("passed", "passed", VALUE, VALUE))),
        EditedTests(view(OLD), view(NEW), ["test_a.py"]),
        collect_changed_words([SOURCE]),
        {},
    )
    (claim,) = derive_claims(evidence)
    assert decide_end([claim]) is VerificationEnd.weakened
    assert decide_end([claim.model_copy(update={"accepted": "Ann"})]) is VerificationEnd.verified


def test_file_that_could_not_be_loaded_before_is_no_test_that_is_gone():
    old = SuiteResults([Case(id="test_a.py", outcome=Outcome.error, message="ModuleNotFoundError: six")])
    new = SuiteResults([Case(id=TEST, outcome=Outcome.passed)])
    tests = EditedTests(view(OLD), view(OLD), [])
    claims = derive_claims(ChangeEvidence(ResultMatrix(old, new, old, new), tests, collect_changed_words([]), {}))
    assert [(claim.test, claim.kind) for claim in claims] == [(TEST, ClaimKind.proven)]
