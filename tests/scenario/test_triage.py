"""`redstart triage` on small git repos: each origin of a failure, and each end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.git_repo import Files, git, hash_files, make_repo, write
from support.user import Ran, User

SHOP = """\
def total(prices, discount=0):
    return sum(prices)


def count(items):
    return len(items)
"""
TESTS = """\
from shop import count, total


def test_total():
    assert total([1, 2]) == 3


def test_discount():
    assert total([5, 5], discount=3) == 7


def test_count():
    assert count("ab") == 2
"""
WRONG_COUNT = SHOP.replace("len(items)", "len(items) + 1")
NEW_TEST = "\n\ndef test_empty():\n    assert total([]) == 1\n"
NEEDS_MODULE = "import surely_missing\n\n\ndef test_module():\n    assert surely_missing\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "shop", {"shop.py": SHOP, "tests/test_shop.py": TESTS})


@pytest.fixture
def triage(user: User, repo: Path) -> Callable[..., Ran]:
    """Return a function that changes the repo's working tree and triages its failing tests."""

    def run(files: Files, *arguments: str | Path) -> Ran:
        write(repo, files)
        return user.redstart("triage", repo, *arguments)

    return run


def read_origins(ran: Ran) -> dict[str, str]:
    return {name: test["origin"] for name, test in read_tests(ran).items()}


def read_tests(ran: Ran) -> dict[str, dict[str, Any]]:
    assert ran.out.startswith("{"), ran.out + ran.err
    return {test["test"].rpartition("::")[2]: test for test in json.loads(ran.out)["tests"]}


def test_failures_are_yours_already_red_or_of_the_environment(repo: Path, triage):
    files = {"shop.py": WRONG_COUNT, "tests/test_shop.py": TESTS + NEW_TEST, "tests/test_module.py": NEEDS_MODULE}
    write(repo, files)
    before = hash_files(repo)
    ran = triage({}, "--json")
    assert read_origins(ran) == {
        "test_count": "yours",
        "test_empty": "yours",
        "test_discount": "already_red",
        "tests/test_module.py": "environment",
    }
    result = json.loads(ran.out)
    assert (ran.code, result["end"], result["exit_code"]) == (1, "yours", 1)
    assert result["reason"] == "2 of 4 failing tests are yours: 1 green on main, 1 new"
    assert "surely-missing" in read_tests(ran)["tests/test_module.py"]["remedy"]
    assert hash_files(repo) == before


@pytest.mark.parametrize(
    ("files", "end", "code"),
    [
        ({}, "not_yours", 0),
        ({"shop.py": SHOP.replace("sum(prices)", "sum(prices) - discount")}, "green", 0),
        ({"tests/test_module.py": NEEDS_MODULE}, "environment", 3),
        ({"shop.py": "def total(:\n"}, "yours", 1),
        ({"tests/test_shop.py": None}, "no_tests", 5),
    ],
    ids=["nothing changed", "fixed", "missing module", "syntax error", "no tests"],
)
def test_end_and_exit_code(files: Files, end: str, code: int, triage):
    ran = triage(files, "--json")
    assert (json.loads(ran.out)["end"], ran.code) == (end, code), ran.out + ran.err


def test_environment_problem_of_the_base_too_is_not_yours(repo: Path, triage):
    write(repo, {"tests/test_module.py": NEEDS_MODULE})
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "need a module")
    ran = triage({"README.md": "A shop.\n"}, "--json")
    assert (ran.code, json.loads(ran.out)["end"]) == (0, "not_yours")
    assert read_origins(ran) == {"test_discount": "already_red", "tests/test_module.py": "environment"}


def test_base_that_cannot_run_leaves_failures_undecided(repo: Path, triage):
    write(repo, {"conftest.py": "raise SystemExit(9)\n"})
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "end at once")
    ran = triage({"conftest.py": None}, "--json")
    assert (ran.code, json.loads(ran.out)["end"]) == (3, "environment")
    assert read_origins(ran) == {"test_discount": "undecided"}


def test_head_is_a_ref_and_text_names_each_test_in_one_line(user: User, repo: Path):
    git(repo, "checkout", "-qb", "feature")
    write(repo, {"shop.py": WRONG_COUNT})
    git(repo, "commit", "-qam", "count one more")
    git(repo, "checkout", "-q", "main")
    ran = user.redstart("triage", repo, "--head", "feature")
    assert ran.code == 1, ran.out + ran.err
    lines = ran.out.splitlines()
    assert "yours        tests/test_shop.py::test_count  AssertionError: assert 3 == 2" in lines
    assert lines[-1] == "YOURS: 1 of 2 failing tests is yours: 1 green on main"
