"""Suites of other languages whose command writes JUnit XML: a fix is unproven, a changed test is refused.

No compiler is needed: each repo has a script that searches the source for the text in its test file.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from support.scenarios import CARD, parse_question
from support.server import ScriptedServer, Wire

BUG, RIGHT = "price + count", "price * count"
RUNNER = """\
want=$(sed -n 's/.*EXPECT //p' {test})
{{
  echo '<testsuite name="shop"><testcase classname="shop" name="plain"/><testcase classname="shop" name="total">'
  grep -qF "$want" {source} || echo '<failure message="the total is wrong"/>'
  echo '</testcase></testsuite>'
}} > out.xml
grep -qF "$want" {source}
"""


class Suite(NamedTuple):
    language: str
    source: str
    test: str
    options: tuple[str, ...] = ()


SUITES = (
    Suite("Go", "shop.go", "shop_test.go"),
    Suite("Rust", "src/lib.rs", "tests/shop.rs"),
    Suite("Java", "src/main/java/Shop.java", "src/test/java/ShopTest.java"),
    Suite("Kotlin", "src/main/kotlin/Shop.kt", "src/test/kotlin/ShopTest.kt"),
    Suite("C#", "Shop/Shop.cs", "Shop.Tests/Totals.cs"),
    Suite("Ruby", "lib/shop.rb", "spec/shop_spec.rb"),
    Suite("PHP", "src/Shop.php", "src/ShopTest.php"),
    Suite("Perl", "lib/Shop.pm", "t/shop.t"),
    Suite("Elixir", "lib/shop.ex", "test/shop_test.exs"),
    Suite("Swift", "Sources/Shop.swift", "Tests/ShopTests.swift"),
    Suite("C++", "src/shop.cpp", "src/shop_test.cpp"),
    Suite("C", "src/shop.c", "src/test_shop.c"),
    Suite("Dart", "lib/shop.dart", "test/shop_test.dart"),
    Suite("Scala", "src/main/scala/Shop.scala", "src/test/scala/Totals.scala"),
    Suite("another language", "shop.awk", "asked/totals.txt", ("--tests", "asked/*")),
)
IN_SHORT = ("Go", "Perl", "another language")
EVERY = [
    pytest.param(suite, id=suite.language, marks=() if suite.language in IN_SHORT else (pytest.mark.soak,))
    for suite in SUITES
]


def edit(path: str, old: str, new: str) -> str:
    search_text = f"{old}\n" if old else ""
    return f"WHY: a total is a product\n\n{path}\n<<<<<<< SEARCH\n{search_text}=======\n{new}\n>>>>>>> REPLACE\n"


def make_repo(folder: Path, suite: Suite) -> Path:
    files = {
        suite.source: f"total = {BUG}\n",
        suite.test: f"EXPECT total = {RIGHT}\n",
        "run.sh": RUNNER.format(test=suite.test, source=suite.source),
    }
    return write_repo(folder, files)


def write_repo(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def fix(user, repo: Path, answer: str, *options: object):
    with ScriptedServer(lambda request: CARD if parse_question(request) == "remember" else answer) as server:
        user.uses(server, Wire.openai)
        fixed_options = ("--junit", "out.xml", "--verify", "quick", "--max-attempts", "1", "--no-input")
        return user.redstart("fix", repo, *fixed_options, *options)


@pytest.mark.parametrize("suite", EVERY)
def test_correct_fix_ends_unproven(user, tmp_path, suite):
    repo, patch = make_repo(tmp_path / "shop", suite), tmp_path / "fix.patch"
    answer = edit(suite.source, f"total = {BUG}", f"total = {RIGHT}")
    result = fix(user, repo, answer, "--test-cmd", "sh run.sh", *suite.options, "--json", "--patch", patch)
    assert result.code == 8, result.out + result.err
    assert result.ending["result"] == "unproven"
    assert (
        f"cannot alter tests written in {suite.language} to prove that they can still fail" in result.ending["reason"]
    )
    assert RIGHT in patch.read_text()


@pytest.mark.parametrize("suite", EVERY)
def test_changed_test_is_not_accepted(user, tmp_path, suite):
    repo = make_repo(tmp_path / "shop", suite)
    answer = edit(suite.test, f"EXPECT total = {RIGHT}", f"EXPECT total = {BUG}")
    result = fix(user, repo, answer, "--test-cmd", "sh run.sh", *suite.options, "--json")
    assert result.code == 6, result.out + result.err
    assert suite.test in result.ending["reason"]


MAKE = {
    "Makefile": "check:\n\tsh all.sh\n",
    "all.sh": RUNNER.format(test="shop_test.go", source="shop.go"),
    "shop.go": f"total = {BUG}\n",
    "shop_test.go": f"EXPECT total = {RIGHT}\n",
}
NO_FAILURE = "check:\n\t-sh all.sh\n\tsed -i '/<failure/d' out.xml\n"


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("Makefile", "\tsh all.sh", "\t-sh all.sh\n\tsed -i '/<failure/d' out.xml"),
        ("GNUmakefile", "", NO_FAILURE),
    ],
)
def test_patch_must_not_change_the_files_of_the_test_command(user, tmp_path, path, old, new):
    repo = write_repo(tmp_path / "shop", MAKE)
    result = fix(user, repo, edit(f"./{path}", old, new), "--test-cmd", "make check", "--json")
    assert result.code == 6, result.out + result.err
    assert f"{path}: the tests are in it or start from it" in result.ending["reason"]


def test_person_can_accept_an_unproven_patch(user, tmp_path):
    repo = write_repo(tmp_path / "shop", MAKE)
    answer = edit("shop.go", f"total = {BUG}", f"total = {RIGHT}")
    with ScriptedServer(lambda request: answer) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--junit", "out.xml", "--test-cmd", "make check", "--no-input", "--apply")
        assert result.code == 8, result.out + result.err
        header, ending = result.out.split("reproduce", 1)
        assert "· make check\n" in header
        assert "\nUNPROVEN  the tests pass by their own report; Redstart cannot alter tests written in Go" in ending
        assert "saved a fix card" not in ending
        assert BUG in (repo / "shop.go").read_text(), "--apply is for what is verified"
        unproven = user.redstart("show", "--proof", "--json", cwd=repo)
        accepted = user.redstart("resume", "--accept", "--json", cwd=repo)
        assert [parse_question(item) for item in server.requests] == ["patch"]
    assert (accepted.code, accepted.ending["result"]) == (0, "verified"), accepted.out + accepted.err
    proof_result = user.redstart("show", "--proof", "--json", cwd=repo)
    flags = [
        [json.loads(item.out)[name] for name in ("result", "verified", "by_person")]
        for item in (unproven, proof_result)
    ]
    assert flags == [["unproven", False, False], ["verified", False, True]]
    assert json.loads(proof_result.out)["reason"].startswith(
        "you accepted the patch: the tests pass by their own report"
    )
    replay_result = user.redstart("runs", "replay", cwd=repo)
    assert replay_result.code == 0, replay_result.out + replay_result.err


def test_suite_without_a_known_test_file_is_refused(user, tmp_path):
    files = {"shop.awk": f"total = {BUG}\n", "asked/totals.txt": f"EXPECT total = {RIGHT}\n"}
    repo = write_repo(tmp_path / "shop", files)
    result = fix(user, repo, "", "--test-cmd", "awk-runner --all")
    assert (result.code, result.err) == (
        2,
        "error: no test file is known for this test command\nhint: specify the test files with --tests GLOB\n",
    )
    result = fix(user, repo, "", "--test-cmd", "awk-runner --all", "--tests", "checks/*")
    assert (result.code, "no file of the project matches --tests checks/*" in result.err) == (2, True)


def test_changed_tests_in_a_rust_source_file_need_a_person(user, tmp_path):
    tests = "#[cfg(test)]\nmod tests {\n    // EXPECT total = "
    files = {
        "src/lib.rs": f"total = {BUG}\n\n{tests}{RIGHT}\n}}\n",
        "all.sh": RUNNER.format(test="src/lib.rs", source="src/lib.rs").replace(
            'grep -qF "$want"', 'grep -qxF "$want"'
        ),
    }
    repo = write_repo(tmp_path / "shop", files)
    answer = edit("src/lib.rs", f"    // EXPECT total = {RIGHT}", f"    // EXPECT total = {BUG}")
    result = fix(user, repo, answer, "--test-cmd", "sh all.sh", "--json")
    assert (result.code, "src/lib.rs: the tests in this file change" in result.ending["reason"]) == (7, True), (
        result.out
    )
