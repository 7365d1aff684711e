"""Failing tests that the code is not to blame for: a missing submodule, another package version, a model's word."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.scenarios import CARD, parse_question
from support.server import ScriptedServer, Wire

CODE = "def total(prices):\n    return sum(prices) + 1\n"
BUG = "from shop import total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n"
FOREIGN = "from packaging.version import Version\n\n\ndef test_version():\n    assert Version('1', loose=True)\n"
COLORS = "def test_colors():\n    assert 'red' == 'green'\n"
MODULES = '[submodule "cases"]\n\tpath = tests/cases\n\turl = https://example.org/cases.git\n'
NEEDS_CASES = "from pathlib import Path\n\n\ndef test_cases():\n    assert Path('tests/cases/a.json').read_text()\n"
FIX = (
    "WHY: a total has no extra one\n\nshop.py\n<<<<<<< SEARCH\n    return sum(prices) + 1\n=======\n"
    "    return sum(prices)\n>>>>>>> REPLACE\n"
)
CLAIM = "NOT THIS CODE: tests/test_colors.py\nThe colors come from the terminal.\n\n"


@pytest.fixture
def repo(tmp_path):
    folder = tmp_path / "projects" / "shop"

    def write(**files: str) -> Path:
        (folder / "tests").mkdir(parents=True)
        for name, text in {"shop.py": CODE, "conftest.py": "", **files}.items():
            (folder / name.replace("__", "/")).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        return folder

    return write


def answer_patch(text: str):
    return lambda request: text if parse_question(request) == "patch" else CARD


def test_package_of_another_version_beside_a_bug_ends_partial(user, repo, tmp_path):
    folder = repo(**{"tests__test_shop.py": BUG, "tests__test_version.py": FOREIGN})
    with ScriptedServer(answer_patch(FIX)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "--no-input", "--apply", "--patch", tmp_path / "fix.patch")
        assert "test_version" not in server.requests[0].text
    assert result.code == 9, result.out + result.err
    assert "PARTIAL  1 failing test now passes, and no other test got worse; 1 failing test set aside" in result.out
    assert "the tests need another version of packaging" in " ".join(result.out.split())
    assert (folder / "shop.py").read_text() == CODE, "a partial patch is never applied unasked"
    refused = user.redstart("apply", cwd=folder)
    assert (refused.code, "--partial" in refused.err) == (2, True), refused.out + refused.err
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=folder).out)
    assert (proof["result"], proof["verified"]) == ("partial", False)
    assert [entry["ids"] for entry in proof["set_aside"]] == [["tests/test_version.py::test_version"]]
    assert {check["name"]: check["mark"] for check in proof["checks"]}["targets"] == "passed"
    assert user.redstart("apply", "--partial", cwd=folder).code == 0
    assert (folder / "shop.py").read_text() == CODE.replace(" + 1", "")


def test_named_target_is_verified_whatever_else_fails(user, repo):
    folder = repo(**{"tests__test_shop.py": BUG, "tests__test_version.py": FOREIGN})
    with ScriptedServer(answer_patch(FIX)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "tests/test_shop.py", "--no-input")
    assert result.code == 0, result.out + result.err


@pytest.mark.parametrize(
    ("files", "message", "remedy"),
    [
        ({"tests__test_version.py": FOREIGN}, "another version of packaging", "install the version of packaging"),
        (
            {"tests__test_cases.py": NEEDS_CASES, ".gitmodules": MODULES},
            "the git submodule tests/cases is not checked out",
            "git submodule update --init",
        ),
    ],
    ids=["package", "submodule"],
)
def test_nothing_but_foreign_failures_ends_without_a_model(user, repo, files, message, remedy):
    folder = repo(**files)
    with ScriptedServer(answer_patch(FIX)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "--no-input")
        assert server.requests == []
    text = " ".join(result.out.split())
    assert (result.code, message in text, remedy in text) == (3, True, True), result.out + result.err


def test_every_failing_test_is_a_target_if_the_user_says_so(user, repo):
    folder = repo(**{"tests__test_version.py": FOREIGN})
    with ScriptedServer(answer_patch(CLAIM)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "--no-input", "--all-red", "--max-attempts", "1")
        assert "test_version" in server.requests[0].text
        assert "NOT THIS CODE" not in server.requests[0].text
    assert result.code == 1, result.out + result.err


def test_word_of_a_model_ends_partial_until_a_person_accepts(user, repo):
    folder = repo(**{"tests__test_shop.py": BUG, "tests__test_colors.py": COLORS})
    with ScriptedServer(answer_patch(CLAIM + FIX)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "--json")
        assert (result.code, result.ending["result"]) == (9, "partial"), result.out + result.err
        refused = user.redstart("resume", "--max-attempts", "1", cwd=folder)
        accepted = user.redstart("resume", "--accept", cwd=folder)
    assert (refused.code, "accept its patch with" in refused.err) == (2, True), "there is nothing left to fix"
    assert (accepted.code, "GREEN  you accepted the patch" in accepted.out) == (0, True), accepted.out + accepted.err
    assert "The colors come from the terminal" in " ".join(accepted.out.split())


TWO_BUGS = "def total(prices):\n    return sum(prices) + 1\n\n\ndef name(item):\n    return item.title\n"
TWO_TESTS = (
    "import pytest\n\nfrom shop import name, total\n\n\ndef test_total():\n    assert total([2, 3]) == 5\n\n\n"
    "@pytest.mark.parametrize('item', ['pear', 'plum'])\ndef test_name(item):\n    assert name(item) == item.upper()\n"
)
HALF_A_CAUSE = FIX.replace("return sum(prices) + 1", "return item.title").replace(
    "return sum(prices)\n", "return 'PEAR'\n"
)


def test_kept_patch_that_fixes_all_tests_of_a_cause_ends_partial(user, repo):
    folder = repo(**{"shop.py": TWO_BUGS, "tests__test_shop.py": TWO_TESTS})
    with ScriptedServer(answer_patch(FIX)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "--no-input", "--max-attempts", "2")
        asked = sum(parse_question(request) == "patch" for request in server.requests)
    assert (result.code, asked) == (9, 2), result.out + result.err
    screen = " ".join(result.out.split())
    assert "PARTIAL 1 failing test now passes, and no other test got worse; 2 failing tests set aside" in screen
    assert "(not fixed in 2 attempts)" in screen
    proof = json.loads(user.redstart("show", "--proof", "--json", cwd=folder).out)
    assert (proof["result"], proof["verified"], proof["set_aside"][0]["source"]) == ("partial", False, "unsolved")
    assert proof["set_aside"][0]["ids"] == [
        "tests/test_shop.py::test_name[pear]",
        "tests/test_shop.py::test_name[plum]",
    ]
    refused = user.redstart("resume", "--accept", cwd=folder)
    assert (refused.code, "has not asked anything" in refused.err) == (2, True), "nobody can accept what is not fixed"
    assert user.redstart("apply", "--partial", cwd=folder).code == 0
    assert (folder / "shop.py").read_text() == TWO_BUGS.replace(" + 1", "")


def test_partial_run_goes_on_with_the_tests_that_still_fail(user, repo):
    folder = repo(**{"shop.py": TWO_BUGS, "tests__test_shop.py": TWO_TESTS})
    answers = [FIX, FIX, HALF_A_CAUSE.replace("'PEAR'", "item.upper()")]

    def reply(request):
        return answers.pop(0) if parse_question(request) == "patch" else CARD

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        assert user.redstart("fix", folder, "--no-input", "--max-attempts", "2").code == 9
        result = user.redstart("resume", "--max-attempts", "1", cwd=folder)
    assert result.code == 0, result.out + result.err
    assert "3 failing tests now pass" in result.out


@pytest.mark.parametrize("flags", [(), ("--all-red",), ("--fresh",)])
def test_patch_that_fixes_a_part_of_a_cause_or_is_not_kept_stays_unsolved(user, repo, flags):
    folder = repo(**{"shop.py": TWO_BUGS, "tests__test_shop.py": TWO_TESTS})
    with ScriptedServer(answer_patch(FIX if flags else HALF_A_CAUSE)) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", folder, "--no-input", "--max-attempts", "1", *flags)
    assert result.code == 1, result.out + result.err
