"""`redstart triage` on small git repos: each origin of a failure, and each end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.git_repo import Files, commit_each, git, hash_files, make_repo, write
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


FLAKY = {
    ".gitignore": "*.cache\n",
    "state.py": "STATE = []\n",
    "tests/test_first.py": "import state\n\n\ndef test_fills():\n    state.STATE.append(1)\n",
    "tests/test_order.py": "import state\n\n\ndef test_order():\n    assert state.STATE == []\n",
    "tests/test_zone.py": "import time\n\n\ndef test_zone():\n    assert time.tzname[0] != 'UTC'\n",
    "tests/test_hash.py": "def test_hash():\n    assert hash('redstart') != HASH\n",
    "tests/test_file.py": "from pathlib import Path\n\n\ndef test_file():\n    assert not Path('old.cache').exists()\n",
    "old.cache": "of an earlier run\n",
}


def test_flaky_failures_have_a_rate_and_a_cause(triage):
    code = ["-c", "print(hash('redstart'))"]
    value = subprocess.run([sys.executable, *code], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True).stdout
    files = {**FLAKY, "tests/test_hash.py": FLAKY["tests/test_hash.py"].replace("HASH", value.strip())}
    ran = triage({**files, "shop.py": WRONG_COUNT}, "--json")
    tests = read_tests(ran)
    assert (ran.code, read_origins(ran)) == (
        1,
        {
            "test_count": "yours",
            "test_discount": "already_red",
            **dict.fromkeys(("test_order", "test_zone", "test_hash", "test_file"), "flaky"),
        },
    )
    causes = {name: test["cause"] for name, test in tests.items() if test["cause"]}
    assert causes == {
        "test_order": "order",
        "test_zone": "time",
        "test_hash": "hash_seed",
        "test_file": "leftover_file",
    }
    # Each has the first run, six reruns, and one that tells its cause: without the ignored files, or among the others
    # after one more alone.
    assert {name: (tests[name]["failures"], tests[name]["runs"]) for name in ("test_count", "test_order")} == {
        "test_count": (8, 8),
        "test_order": (2, 9),
    }


def test_failure_by_chance_is_told_from_one_that_depends_on_other_tests(tmp_path: Path, triage):
    counter = tmp_path / "counter"
    counter.touch()
    text = f"""\
from pathlib import Path


def test_chance():
    with Path({str(counter)!r}).open("a") as file:
        file.write(".")
    assert Path({str(counter)!r}).stat().st_size % 2 == 0
"""
    ran = triage({"tests/test_chance.py": text}, "--json", "--sandbox", "process", "--unsafe-no-sandbox")
    test = read_tests(ran)["test_chance"]
    runs = counter.stat().st_size
    assert (ran.code, test["origin"], test["cause"]) == (0, "flaky", "chance")
    assert (test["runs"], test["failures"]) == (runs, (runs + 1) // 2)


@pytest.mark.parametrize("option", ["--junit", "--log"])
def test_only_the_failures_of_a_ci_job_run(option: str, tmp_path: Path, repo: Path, triage):
    gone = {"tests/test_gone.py": "def test_gone():\n    assert False\n"}
    weather = {"tests/test_ci.py": "import os\n\n\ndef test_ci():\n    assert 'CI_ONLY' not in os.environ\n"}
    write(repo, {**gone, **weather, "shop.py": WRONG_COUNT})
    report = tmp_path / "report"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": ".", "PYTHONDONTWRITEBYTECODE": "1", "CI_ONLY": "yes"}
    output = subprocess.run(command, cwd=repo, env=environment, capture_output=True, text=True).stdout
    if option == "--log":
        report.write_text("".join(f"2026-11-02T10:00:00.0000000Z {line}\n" for line in output.splitlines()))
    ran = triage({"tests/test_gone.py": None, "tests/test_shop.py": TESTS + NEW_TEST}, option, report, "--json")
    assert (ran.code, read_origins(ran)) == (
        1,
        {"test_count": "yours", "test_discount": "already_red", "test_ci": "not_reproduced"},
    ), ran.err
    assert json.loads(ran.out)["notes"] == ["1 test of report did not run here: tests/test_gone.py::test_gone"]


@pytest.mark.parametrize(
    ("text", "option", "code"),
    [
        ("<testsuite name='a'><testcase classname='tests.test_shop' name='test_total'/></testsuite>", "--junit", 0),
        ("<html>", "--junit", 2),
        ("all is well\n", "--log", 2),
        ("FAILED tests/test_other.py::test_a - assert 1 == 2\n", "--log", 5),
    ],
    ids=["none failed", "no JUnit", "no log", "other tests"],
)
def test_report_without_a_failure_of_this_repo(text: str, option: str, code: int, tmp_path: Path, triage):
    (tmp_path / "report").write_text(text)
    ran = triage({}, option, tmp_path / "report")
    assert ran.code == code, ran.out + ran.err


def test_200_commits_with_one_culprit_are_bisected_in_at_most_9_runs(tmp_path: Path, repo: Path, triage):
    counter = tmp_path / "counter"
    conftest = f"""\
from pathlib import Path


def pytest_sessionstart():
    with Path({str(counter)!r}).open("a") as file:
        print(Path("number.txt").read_text(), file=file)
"""
    write(repo, {"conftest.py": conftest, "number.txt": "0"})
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "count the runs")
    git(repo, "checkout", "-qb", "feature")
    changes: list[dict[str, str]] = [{"number.txt": str(number)} for number in range(1, 201)]
    changes[136]["shop.py"] = WRONG_COUNT
    commit_each(repo, changes)
    before = hash_files(repo)
    ran = triage({}, "--bisect", "--json", "--sandbox", "process", "--unsafe-no-sandbox")
    test = read_tests(ran)["test_count"]
    assert (test["origin"], test["first_bad"]["subject"], test["first_bad"]["unknown"]) == ("yours", "commit 137", [])
    commits = [line for line in counter.read_text().splitlines() if line not in ("0", "200")]
    assert len(commits) <= 9
    assert json.loads(ran.out)["bisection"]["suite_runs"] <= 9
    assert hash_files(repo) == before


def test_first_bad_commits_of_several_tests_with_one_commit_that_cannot_run(user: User, repo: Path, triage):
    broken = "raise SystemExit(9)\n"
    loads = "def test_loads():\n    pass\n"
    other = "from shop import total\n\n\ndef test_zero():\n    assert total([]) == 0\n"
    write(repo, {"tests/test_other.py": other, "tests/test_load.py": loads})
    git(repo, "add", "--all")
    git(repo, "commit", "-qm", "test the empty list")
    git(repo, "checkout", "-qb", "feature")
    changes: list[dict[str, str | None]] = [{"README.md": str(number)} for number in range(6)]
    changes[1]["shop.py"] = SHOP.replace("sum(prices)", "sum(prices, 1)")
    changes[2]["tests/test_load.py"] = loads.replace(":", "")
    changes[3]["conftest.py"] = broken
    changes[4] |= {"conftest.py": None, "shop.py": WRONG_COUNT.replace("sum(prices)", "sum(prices, 1)")}
    changes[5]["tests/test_other.py"] = "def test_born_red():\n    assert False\n"
    commit_each(repo, changes)
    ran = triage({"tests/test_new.py": "def test_new():\n    assert False\n"}, "--bisect", "--json")
    found = {name: test["first_bad"] for name, test in read_tests(ran).items()}
    ids = git(repo, "rev-list", "--reverse", "HEAD").split()
    assert {name: (first["subject"], first["added"]) for name, first in found.items()} == {
        "test_total": ("commit 2", False),
        "tests/test_load.py": ("commit 3", False),
        "test_count": ("commit 5", False),
        "test_born_red": ("commit 6", True),
        "test_new": ("working tree", True),
        "test_discount": ("start", True),
    }
    assert found["test_count"]["unknown"] == [ids[-3]]
    assert [skipped["subject"] for skipped in json.loads(ran.out)["bisection"]["skipped"]] == ["commit 4"]
    shown = user.redstart("triage", repo, "--bisect")
    assert f"first bad {ids[-2][:8]} 2025-11-01 Ann: commit 5; or one of 1 commit before it" in shown.out


def test_fix_targets_only_what_the_branch_broke_unless_asked_for_all(user: User, repo: Path):
    git(repo, "checkout", "-qb", "feature")
    write(repo, {"shop.py": WRONG_COUNT})
    git(repo, "commit", "-qam", "count one more")
    restricted = user.redstart("fix", repo, "--dry-run")
    assert "to fix: test_count; 1 other test failed before this branch: --all-red fixes them too" in restricted.out
    everything = user.redstart("fix", repo, "--dry-run", "--all-red")
    assert "to fix: test_count, test_discount" in everything.out
    write(repo, {"shop.py": SHOP})
    earlier_only = user.redstart("fix", repo, "--dry-run")
    assert "to fix: test_discount" in earlier_only.out
    assert "before this branch" not in earlier_only.out
