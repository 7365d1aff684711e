"""`redstart verify` on small git repos: each end, ordinary changes, and changes that only look right."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.git_repo import Files, git, hash_files, make_repo, write
from support.sample import sample_parameters
from support.user import Ran, User

SHOP = """\
def total(prices, discount=0):
    return sum(prices)


def count(items):
    return len(items)
"""
RIGHT_SHOP = SHOP.replace("sum(prices)", "sum(prices) - discount")
TESTS = """\
from shop import count, total


def test_total():
    assert total([1, 2]) == 3
    assert total([]) == 0


def test_count():
    assert count("ab") == 2
"""
NEW_TEST = """

def test_discount():
    assert total([5, 5], discount=3) == 7
"""
CONFIGURATION = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
BASE = {"shop.py": SHOP, "tests/test_shop.py": TESTS, "pyproject.toml": CONFIGURATION, "README.md": "A shop.\n"}
FIX = {"shop.py": RIGHT_SHOP, "tests/test_shop.py": TESTS + NEW_TEST}
FIXTURE = """\
import pytest
import shop


@pytest.fixture(autouse=True)
def rate(monkeypatch):
    monkeypatch.setattr(shop, "RATE", 2, raising=False)
"""
HIDE = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
"""


class Change(NamedTuple):
    """A change of the shop, and what is expected of its verification."""

    files: Files
    end: str
    code: int
    claims: Mapping[str, str]
    """The kind of each claim, by the name of its test."""


ORDINARY = {
    "fix": Change(FIX, "verified", 0, {"test_discount": "proven"}),
    "other code": Change({"shop.py": SHOP.replace("len(items)", "sum(1 for _ in items)")}, "unproven", 0, {}),
    "refactoring": Change(
        {
            "shop.py": SHOP.replace("count", "size"),
            "tests/test_shop.py": TESTS.replace("import count, total", "import size, total").replace("count(", "size("),
        },
        "verified",
        0,
        {"test_size": "absent_before", "test_count": "replaced", "test_total": "outdated"},
    ),
    "tests in another file": Change(
        {"tests/test_shop.py": None, "tests/test_sums.py": TESTS},
        "unproven",
        0,
        {"test_count": "replaced", "test_total": "replaced"},
    ),
    "more assertions": Change(
        {"tests/test_shop.py": TESTS.replace("== 0", "== 0\n    assert total([4]) == 4")},
        "unproven",
        0,
        {"test_total": "edited"},
    ),
    "fixture for a new test": Change(
        {
            "tests/conftest.py": FIXTURE,
            "tests/test_shop.py": TESTS + "\n\ndef test_rate():\n    assert __import__('shop').RATE == 2\n",
        },
        "unproven",
        0,
        {"test_rate": "green_without"},
    ),
    "docs": Change({"README.md": "A small shop.\n"}, "unproven", 0, {}),
    "feature removed with its test": Change(
        {
            "shop.py": SHOP.partition("\n\n\ndef count")[0] + "\n",
            "tests/test_shop.py": TESTS.partition("\n\n\ndef test_count")[0].replace("count, ", "") + "\n",
        },
        "unproven",
        0,
        {"test_count": "replaced", "test_total": "outdated"},
    ),
}
SABOTAGES = {
    "source reverted": Change({**FIX, "shop.py": SHOP}, "worse", 1, {"test_discount": "broken"}),
    "new test dropped": Change({"shop.py": RIGHT_SHOP}, "unproven", 0, {}),
    "old test dropped": Change(
        {**FIX, "tests/test_shop.py": TESTS.partition("\n\n\ndef test_count")[0] + "\n" + NEW_TEST},
        "weakened",
        7,
        {"test_discount": "proven", "test_count": "removed"},
    ),
    "assertion loosened": Change(
        {**FIX, "tests/test_shop.py": TESTS.replace("total([1, 2]) == 3", "total([1, 2]) is not None") + NEW_TEST},
        "weakened",
        7,
        {"test_discount": "proven", "test_total": "weakened"},
    ),
    "assertion left out": Change(
        {**FIX, "tests/test_shop.py": TESTS.replace("    assert total([]) == 0\n", "") + NEW_TEST},
        "weakened",
        7,
        {"test_discount": "proven", "test_total": "weakened"},
    ),
    "expected value changed to what the code gives": Change(
        {
            "shop.py": RIGHT_SHOP.replace("sum(prices)", "sum(prices) + 1"),
            "tests/test_shop.py": TESTS.replace("== 3", "== 4").replace("== 0", "== 1")
            + NEW_TEST.replace("== 7", "== 8"),
        },
        "weakened",
        7,
        {"test_discount": "proven", "test_total": "weakened"},
    ),
    "test skipped": Change(
        {
            **FIX,
            "tests/test_shop.py": "import pytest\n"
            + TESTS.replace("def test_count", "@pytest.mark.skip\ndef test_count")
            + NEW_TEST,
        },
        "weakened",
        7,
        {"test_discount": "proven", "test_count": "skipped"},
    ),
    "test deselected": Change(
        {**FIX, "pyproject.toml": CONFIGURATION + "addopts = '-k \"not test_count\"'\n"},
        "weakened",
        7,
        {"test_discount": "proven", "test_count": "skipped"},
    ),
    "new test that passes without the change": Change(
        {**FIX, "tests/test_shop.py": TESTS + NEW_TEST.replace("discount=3) == 7", "discount=0) == 10")},
        "unproven",
        0,
        {"test_discount": "green_without"},
    ),
    "unrelated regression": Change(
        {**FIX, "shop.py": RIGHT_SHOP.replace("len(items)", "len(set(items)) - 1")},
        "worse",
        1,
        {"test_discount": "proven", "test_count": "broken"},
    ),
    "configuration hides a failure": Change(
        {**FIX, "shop.py": RIGHT_SHOP.replace("len(items)", "-1"), "conftest.py": HIDE},
        "tampered",
        6,
        {"test_discount": "green_without", "test_count": "hidden"},
    ),
    "configuration hides the failure of the new test": Change(
        {**FIX, "shop.py": SHOP, "conftest.py": HIDE}, "tampered", 6, {"test_discount": "hidden"}
    ),
    "configuration deselects a failure": Change(
        {
            **FIX,
            "shop.py": RIGHT_SHOP.replace("len(items)", "-1"),
            "pyproject.toml": CONFIGURATION + "addopts = '--deselect tests/test_shop.py::test_count'\n",
        },
        "tampered",
        6,
        {"test_discount": "proven", "test_count": "hidden"},
    ),
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "shop", BASE)


@pytest.fixture
def verify(user: User, repo: Path) -> Callable[..., Ran]:
    """Return a function that makes a change in the repo's working tree and verifies it."""

    def run(files: Files, *arguments: str | Path) -> Ran:
        write(repo, files)
        return user.redstart("verify", repo, *arguments)

    return run


def read_claims(result: dict[str, Any]) -> dict[str, str]:
    return {claim["test"].rpartition("::")[2]: claim["kind"] for claim in result["claims"]}


CASES = [pytest.param(change, id=name) for name, change in (ORDINARY | SABOTAGES).items()]


@pytest.mark.parametrize("change", sample_parameters(CASES, 6))
def test_change_ends_as_its_tests_show(change: Change, verify):
    ran = verify(change.files, "--json")
    assert ran.code == change.code, ran.out + ran.err
    result = json.loads(ran.out)
    assert (result["end"], result["exit_code"]) == (change.end, change.code)
    assert read_claims(result) == change.claims, json.dumps(result["claims"], indent=1)


@pytest.mark.parametrize("side", sample_parameters(["--patch", "--staged", "--head"], 1))
def test_change_is_a_patch_staged_or_a_ref_and_the_repo_is_only_read(side: str, user: User, repo: Path, tmp_path: Path):
    patch = tmp_path / "fix.patch"
    write(repo, FIX)
    patch.write_text(git(repo, "diff"))
    if side == "--head":
        git(repo, "checkout", "-qb", "feature")
        git(repo, "commit", "-qam", "fix")
    elif side == "--staged":
        git(repo, "add", "--all")
    git(repo, "checkout", "-q", *(["main"] if side == "--head" else ["HEAD", "--", "."] if side == "--patch" else []))
    value = {"--patch": [patch], "--staged": [], "--head": ["feature"]}[side]
    before = hash_files(repo)
    ran = user.redstart("verify", repo, side, *value, "--json", "--require", "proof")
    assert (ran.code, json.loads(ran.out)["end"]) == (0, "verified"), ran.out + ran.err
    assert hash_files(repo) == before


def test_accepted_test_names_the_person_and_other_names_are_reported(verify):
    files = SABOTAGES["old test dropped"].files
    ran = verify(files, "--json", "--accept", "tests/test_shop.py::test_count", "--accept", "tests/test_other.py")
    result = json.loads(ran.out)
    assert (ran.code, result["end"]) == (0, "verified"), ran.out + ran.err
    assert [(run["new_tests"], run["new_code"]) for run in result["matrix"] if run["kept"]] == []
    accepted = {claim["test"]: claim["accepted"] for claim in result["claims"] if claim["accepted"]}
    assert accepted == {"tests/test_shop.py::test_count": "Ann <ann@example.org>"}
    assert "--accept tests/test_other.py names no test that demands less" in result["notes"]


def test_results_of_the_base_are_kept_for_the_next_verification_but_never_for_a_recheck(
    user: User, repo: Path, tmp_path: Path, verify
):
    git(repo, "checkout", "-qb", "feature")
    write(repo, FIX)
    git(repo, "commit", "-qam", "fix")
    statement = tmp_path / "statement.json"
    for is_kept in (False, True):
        result = json.loads(verify({}, "--head", "feature", "--json", "--attest", statement).out)
        assert result["end"] == "verified"
        kept = {(run["new_tests"], run["new_code"]): run["kept"] for run in result["matrix"]}
        assert kept == {(False, False): is_kept, (False, True): False, (True, False): False, (True, True): False}
    screen = verify({}, "--head", "feature").out
    assert "old tests  2 pass °" in screen
    assert "° kept from an earlier verification" in screen
    ran = verify({}, "--recheck", statement, "--json")
    assert (ran.code, any(run["kept"] for run in json.loads(ran.out)["matrix"])) == (0, False), ran.out + ran.err


def test_accepted_test_that_expects_another_value_proves_the_change(verify):
    tests = TESTS.replace('count("ab") == 2', 'count("ab") == 3')
    shop = SHOP.replace("len(items)", "len(items) + 1")
    ran = verify({"shop.py": shop, "tests/test_shop.py": tests}, "--json", "--accept", "tests/test_shop.py::test_count")
    result = json.loads(ran.out)
    assert (result["end"], result["reason"].partition(";")[0]) == (
        "verified",
        "1 test fails without the change and passes with it",
    )
    assert read_claims(result) == {"test_count": "weakened"}


def test_code_that_contains_the_answers_of_an_old_test_is_no_proof(user: User, tmp_path: Path):
    buggy = SHOP.replace("len(items)", "sum(items)")
    tests = TESTS.replace('count("ab") == 2', "count((40, 2)) == 4711")
    repo = make_repo(tmp_path / "buggy", {**BASE, "shop.py": buggy, "tests/test_shop.py": tests})
    write(repo, {"shop.py": buggy.replace("sum(items)", "4711 if items == (40, 2) else sum(items)")})
    ran = user.redstart("verify", repo, "--json", "--require", "proof")
    result = json.loads(ran.out)
    assert (ran.code, result["end"], read_claims(result)) == (8, "unproven", {"test_count": "fixed"})
    assert "a person must judge the proof: shop.py:6" in result["reason"]


def test_default_level_reruns_and_alters_the_proving_test(user: User, verify):
    user.wants_proof()
    result = json.loads(verify(FIX, "--json").out)
    assert (result["end"], result["level"]) == ("verified", "standard")
    control = next(item for item in result["evidence"] if item["check"] == "control")
    assert (control["targets"], control["covered"]) == (1, 1)


def test_changed_lines_that_no_test_runs_and_changes_that_none_notices_are_listed(verify, tmp_path: Path):
    guard = "    if discount > 100:\n        raise ValueError(discount)\n    return sum(prices) - discount\n"
    files = {**FIX, "shop.py": SHOP.replace("    return sum(prices)\n", guard)}
    report = tmp_path / "verify.xml"
    result = json.loads(verify(files, "--json", "--mutants", "3", "--report-junit", report).out)
    assert result["untested"] == [{"path": "shop.py", "lines": [3]}]
    assert (result["mutants"]["sampled"], result["mutants"]["killed"] < 3) == (3, True)
    assert all("in `total` (shop.py, line" in survivor for survivor in result["mutants"]["survivors"])
    assert 'name="verdict"' in report.read_text()
    unchecked = json.loads(verify({}, "--json", "--mutants", "0").out)
    assert (unchecked["untested"], unchecked["mutants"]) == ([], None)


def test_new_test_that_cannot_fail_is_named_and_proves_nothing(verify):
    hollow = "\n\ndef test_refund():\n    try:\n        assert refund([5]) == 1\n    except Exception:\n        pass\n"
    shop = SHOP + "\n\ndef refund(prices):\n    return -sum(prices)\n"
    tests = TESTS.replace("import count,", "import count, refund,") + hollow
    result = json.loads(verify({"shop.py": shop, "tests/test_shop.py": tests}, "--json").out)
    assert (result["end"], read_claims(result)) == ("unproven", {"test_refund": "absent_before"})
    assert "tests/test_shop.py::test_refund: it has no assertion that can be altered" in result["notes"]


@pytest.mark.parametrize(
    ("files", "end", "code"),
    [
        ({"tests/test_shop.py": None, "shop.py": RIGHT_SHOP}, "worse", 1),
        ({"shop.py": "import surely_missing\n" + SHOP, "requirements.txt": "surely-missing\n"}, "environment", 3),
        ({"shop.py": "def total(:\n"}, "worse", 1),
    ],
    ids=["all tests gone", "missing package", "syntax error"],
)
def test_run_without_results_is_never_a_success(files: Files, end: str, code: int, verify):
    ran = verify(files, "--json")
    assert (json.loads(ran.out)["end"], ran.code) == (end, code), ran.out + ran.err


def test_repo_without_tests_and_a_base_that_does_not_exist(user: User, tmp_path: Path):
    repo = make_repo(tmp_path / "bare", {"shop.py": SHOP})
    write(repo, {"shop.py": RIGHT_SHOP})
    assert user.redstart("verify", repo).code == 5
    ran = user.redstart("verify", repo, "--base", "nowhere")
    assert (ran.code, "nowhere is not a commit of this repo" in ran.err) == (2, True)


def test_clone_without_a_main_branch_is_an_error_and_no_success(user: User, repo: Path):
    git(repo, "checkout", "-q", "--detach")
    git(repo, "branch", "-qD", "main")
    ran = user.redstart("verify", repo)
    assert (ran.code, "no main branch is known in this clone" in ran.err) == (2, True)


def test_statement_with_another_result_is_not_confirmed(user: User, repo: Path, tmp_path: Path):
    git(repo, "checkout", "-qb", "feature")
    write(repo, FIX)
    git(repo, "commit", "-qam", "fix")
    statement = tmp_path / "statement.json"
    assert user.redstart("verify", repo, "--head", "feature", "--attest", statement).code == 0
    statement.write_text(statement.read_text().replace('"kind": "proven"', '"kind": "fixed"'))
    ran = user.redstart("verify", repo, "--recheck", statement)
    assert ran.code == 1
    assert "differs: tests/test_shop.py::test_discount is proven, and fixed was claimed" in ran.err


def test_time_limit_ends_without_a_success(verify):
    ran = verify(FIX, "--json", "--max-minutes", "0.001")
    result = json.loads(ran.out)
    assert (ran.code, result["end"]) == (3, "environment")
    assert result["reason"] == "the tests of both sides did not finish within 0.001 minutes"
