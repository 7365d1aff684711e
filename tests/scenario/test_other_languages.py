"""Suites of other languages, run by a command that writes JUnit XML: a green is unproven, a changed test is refused.

No compiler is needed: each repo has a script that looks in the source for what its test file asks for.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.testing.scenarios import CARD, question
from redstart.testing.server import ScriptedServer, Wire

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
    return f"WHY: a total is a product\n\n{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


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
    with ScriptedServer(lambda request: CARD if question(request) == "remember" else answer) as server:
        user.uses(server, Wire.openai)
        how = ("--junit", "out.xml", "--verify", "quick", "--max-attempts", "1", "--no-input")
        return user.redstart("fix", repo, *how, *options)


@pytest.mark.parametrize("suite", EVERY)
def test_a_true_fix_ends_unproven(user, tmp_path, suite):
    repo, patch = make_repo(tmp_path / "shop", suite), tmp_path / "fix.patch"
    answer = edit(suite.source, f"total = {BUG}", f"total = {RIGHT}")
    ran = fix(user, repo, answer, "--test-cmd", "sh run.sh", *suite.options, "--json", "--patch", patch)
    assert ran.code == 8, ran.out + ran.err
    assert ran.ending["result"] == "unproven"
    assert f"cannot alter tests written in {suite.language} to prove that they can still fail" in ran.ending["reason"]
    assert RIGHT in patch.read_text()


@pytest.mark.parametrize("suite", EVERY)
def test_a_changed_test_is_not_accepted(user, tmp_path, suite):
    repo = make_repo(tmp_path / "shop", suite)
    answer = edit(suite.test, f"EXPECT total = {RIGHT}", f"EXPECT total = {BUG}")
    ran = fix(user, repo, answer, "--test-cmd", "sh run.sh", *suite.options, "--json")
    assert ran.code == 6, ran.out + ran.err
    assert suite.test in ran.ending["reason"]
