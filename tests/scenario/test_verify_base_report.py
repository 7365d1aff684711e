"""`redstart verify --base-junit`: the report of a CI job replaces runs of the base, and never decides the verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.git_repo import Files, git, make_repo, write
from support.user import User

SHOP = "def total(prices, discount=0):\n    return sum(prices)\n"
CART = "def size(items):\n    return len(items)\n\n\ndef first(items):\n    return items[1]\n"
SHOP_TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
CART_TESTS = """\
from cart import first, size


def test_size():
    assert size("ab") == 2


def test_first():
    assert first("ab") == "a"
"""
BASE: Files = {
    "shop.py": SHOP,
    "cart.py": CART,
    "tests/test_shop.py": SHOP_TESTS,
    "tests/test_cart.py": CART_TESTS,
    "tests/test_sum.py": "def test_sum():\n    assert sum([1, 2]) == 3\n",
}
NEW_TEST = "\n\ndef test_discount():\n    assert total([5, 5], 3) == 7\n"
FIX: Files = {
    "shop.py": SHOP.replace("sum(prices)", "sum(prices) - discount"),
    "tests/test_shop.py": SHOP_TESTS + NEW_TEST,
}
OTHER_TESTS = "<testsuite><testcase classname='tests.test_other' name='test_other' time='0.1'/></testsuite>"
SIZE = 'classname="tests.test_cart" name="test_size"'


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "shop", BASE)


@pytest.fixture
def report(repo: Path, tmp_path: Path) -> Path:
    """Return the JUnit file that a CI job wrote for the base."""
    path = tmp_path / "base.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={path}"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": ".", "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run(command, cwd=repo, env=environment, capture_output=True, check=False).returncode == 1
    return path


def read_claims(result: dict[str, Any]) -> dict[str, str]:
    return {claim["test"].rpartition("::")[2]: claim["kind"] for claim in result["claims"]}


def test_results_of_the_report_are_marked_everywhere_and_a_recheck_runs_the_base_itself(
    user: User, repo: Path, report: Path, tmp_path: Path
):
    git(repo, "checkout", "-qb", "feature")
    write(repo, FIX)
    git(repo, "commit", "-qam", "fix")
    statement, comment = tmp_path / "statement.json", tmp_path / "comment.md"
    arguments = ("verify", repo, "--head", "feature", "--base-junit", report)
    ran = user.redstart(*arguments, "--markdown", comment, "--attest", statement)
    assert ran.code == 0, ran.out + ran.err
    assert "1 fail, 3 pass †" in ran.out
    assert "† from base.xml, not rerun here" in ran.out
    note = "1 of 4 results without the change are from base.xml and were not rerun here"
    assert f"note: {note}" in " ".join(ran.out.split())
    assert "| old (base.xml, not rerun here) | old | 1 | 3 | 0 |" in comment.read_text()
    result = json.loads(statement.read_text())["predicate"]["verification"]
    assert (result["end"], note in result["notes"]) == ("verified", True)
    assert [run["reported"] for run in result["matrix"]] == ["base.xml", "", "", ""]
    assert read_claims(result) == {"test_discount": "proven", "test_first": "red_before"}
    ran = user.redstart("verify", repo, "--recheck", statement, "--json")
    assert (ran.code, any(run["reported"] for run in json.loads(ran.out)["matrix"])) == (0, False), ran.out + ran.err


class Lie(NamedTuple):
    """A report that differs from what the tests of the base do here."""

    change: Files
    old: str
    new: str
    claims: dict[str, str]


LIES = {
    "failing test passed": Lie({}, "<failure", "<system-out", {"test_first": "red_before"}),
    "passing test failed": Lie(
        {"cart.py": CART.replace("len(items)", "len(items) + 1")},
        f"<testcase {SIZE}",
        f"<testcase {SIZE}><failure/></testcase><testcase name='other' classname='tests.test_cart'",
        {"test_size": "broken", "test_first": "red_before"},
    ),
    "test that does not exist": Lie(
        {},
        f"<testcase {SIZE}",
        f"<testcase classname='tests.test_cart' name='test_gone'/><testcase {SIZE}",
        {"test_first": "red_before"},
    ),
    "test is not listed": Lie({}, f"<testcase {SIZE}", "<ignored", {"test_first": "red_before"}),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_verdict_does_not_rest_on_the_report(lie: Lie, user: User, repo: Path, report: Path):
    text = report.read_text()
    assert lie.old in text
    report.write_text(
        text.replace(lie.old, lie.new).replace("</failure>", "</system-out>" if "out" in lie.new else "</failure>")
    )
    write(repo, {**FIX, **lie.change})
    ran = user.redstart("verify", repo, "--base-junit", report, "--json")
    result = json.loads(ran.out)
    assert read_claims(result) == {"test_discount": "proven", **lie.claims}, ran.err
    assert result["end"] == ("worse" if lie.change else "verified")


@pytest.mark.parametrize(
    ("text", "problem"),
    [(OTHER_TESTS, "names no test of main"), ("<html>", "is not JUnit XML"), (None, "cannot be read")],
    ids=["other tests", "no JUnit", "no file"],
)
def test_report_that_says_nothing_about_the_base_is_refused(
    text: str | None, problem: str, user: User, repo: Path, tmp_path: Path
):
    write(repo, FIX)
    path = tmp_path / "base.xml"
    if text is not None:
        path.write_text(text)
    ran = user.redstart("verify", repo, "--base-junit", path)
    assert (ran.code, problem in ran.err, "hint: give" in ran.err) == (2, True, True), ran.err


def test_recheck_takes_no_report(user: User, repo: Path, report: Path):
    ran = user.redstart("verify", repo, "--base-junit", report, "--recheck", report)
    assert (ran.code, "--recheck and --base-junit cannot be combined" in ran.err) == (2, True)
