"""`redstart verify --history` on a small repo with the changes of a person, a bot and agents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.git_repo import git, hash_files, make_repo, write
from support.user import User

SHOP = "def total(prices, discount=0):\n    return sum(prices)\n\n\ndef count(items):\n    return len(items)\n"
TESTS = """\
from pathlib import Path

from shop import count, total


def test_total():
    assert total([1, 2]) == 3


def test_count():
    assert count("ab") == 2
"""
DISCOUNT = "\n\ndef test_discount():\n    assert total([5, 5], 3) == 7\n"
EMPTY = '\n\ndef test_empty():\n    assert count("") == 0\n'
REFUND = "\n\ndef refund(prices):\n    return -sum(prices)\n"
BOT = "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "shop", {"shop.py": SHOP, "test_shop.py": TESTS, "README.md": "A shop.\n"})

    def commit(files: Mapping[str, str], message: str, author: str = "Ann <ann@example.org>") -> None:
        write(repo, files)
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", message, "--author", author)

    shop, tests = SHOP.replace("sum(prices)", "sum(prices) - discount"), TESTS + DISCOUNT
    commit({"README.md": "A small shop.\n"}, "docs")
    commit({"shop.py": shop, "test_shop.py": tests}, "proven")
    shop, tests = shop.replace("len(items)", "sum(1 for _ in items)"), tests + EMPTY
    message = "vacuous\n\nCo-Authored-By: Claude <noreply@anthropic.com>"
    commit({"shop.py": shop, "test_shop.py": tests}, message)
    tests = tests.replace("total([1, 2]) == 3", "total([1, 2])")
    commit({"test_shop.py": tests}, "weakened", "Bob <bob@example.org>")
    commit({"shop.py": shop + REFUND}, "untested", "Bob <bob@example.org>")
    commit({"requirements.txt": "six==1.0\n"}, "bump", BOT)
    commit({"shop.py": "import surely_missing\n" + shop, "requirements.txt": "surely-missing\n"}, "cannot run")
    return repo


def read_history(user: User, repo: Path, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    ran = user.redstart("verify", repo, "--history", "90d", "--json", *arguments)
    assert ran.code == code, ran.out + ran.err
    return json.loads(ran.out)


def test_history_counts_what_the_changes_show_and_a_second_call_runs_no_suite(user: User, repo: Path, tmp_path: Path):
    before, page = hash_files(repo), tmp_path / "history.html"
    history = read_history(user, repo)
    assert hash_files(repo) == before
    assert [
        (change["subject"], change["author"], change["agents"], change["end"]) for change in history["changes"]
    ] == [
        ("cannot run", "Ann", [], "environment"),
        ("bump", "dependabot[bot]", [], "unproven"),
        ("untested", "Bob", [], "unproven"),
        ("weakened", "Bob", [], "weakened"),
        ("vacuous", "Ann", ["Claude"], "unproven"),
        ("proven", "Ann", [], "verified"),
        ("docs", "Ann", [], "unproven"),
    ]
    assert history["counts"] == {
        "changes": 7,
        "judged": 5,
        "proven": 1,
        "green_without": 1,
        "weakened": 1,
        "untested": 1,
        "worse": 0,
        "no_test_ran": 1,
        "not_run": 1,
        "not_examined": 0,
    }
    assert [change["untested"] for change in history["changes"] if change["untested"]] == [
        [{"path": "shop.py", "lines": [10]}]
    ]
    assert [group["name"] for group in history["agents"]] == ["", "Claude", "bots"]
    # Without time for a run, everything is there: it was kept.
    assert read_history(user, repo, "--max-minutes", "0", "--html", page) == history
    assert "vacuous" in page.read_text()
    screen = user.redstart("verify", repo, "--history", "90d", "--by", "agent").out
    assert "Of 7 changes in the last 90 days, 1 added tests that pass without the change, 1 weakened a test" in screen
    assert "Claude                1       -        1         -" in screen


def test_interrupted_history_goes_on_where_it_ended(user: User, repo: Path):
    git(repo, "reset", "-q", "--hard", "HEAD~5")
    nothing = read_history(user, repo, "--max-minutes", "0", code=3)
    assert (nothing["counts"]["changes"], nothing["counts"]["not_examined"]) == (2, 2)
    git(repo, "branch", "-q", "docs", "HEAD~1")
    assert read_history(user, repo, "--head", "docs")["counts"]["no_test_ran"] == 1
    half = read_history(user, repo, "--max-minutes", "0")
    assert [change["end"] for change in half["changes"]] == [None, "unproven"]
    assert half["summary"][1].endswith("1 not examined within 0 minutes.")


def test_options_of_one_change_and_unknown_periods_are_refused(user: User, repo: Path):
    for arguments, message in (
        (("--history", "90d", "--base", "main"), "--base has no meaning with --history"),
        (("--by", "agent"), "--by has no meaning without --history"),
        (("--history", "soon"), "soon is not a period"),
    ):
        ran = user.redstart("verify", repo, *arguments)
        assert (ran.code, message in ran.err) == (2, True), ran.err
