"""A folder of a monorepo, selected tests, and a repo with several suites."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from support.server import Reply, ScriptedServer, Wire

COMMON = "def grouped(number):\n    return f'{number:,}'\n"
PRICE = "from shared.words import grouped\n\n\ndef price(cents):\n    return grouped(cents) + ' EUR'\n"
FIXED = PRICE.replace("grouped(cents)", "grouped(cents // 100)")
TESTS = """\
from shop.price import price


class TestPrice:
    def test_large(self):
        assert price(250_000) == "2,500 EUR"

    def test_small(self):
        assert price(0) == "0 EUR"


def test_other():
    assert price(100) == "one EUR"
"""
CONFTEST = "import sys, pathlib\nsys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'common'))\n"
PROJECT = "[project]\nname = 'shop'\nversion = '1'\n[tool.pytest.ini_options]\npythonpath = ['src']\n"


def block(path: str, search: str, text: str) -> str:
    return f"WHY: the price is in cents\n\n{path}\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


HONEST = block(
    "shop/src/shop/price.py",
    "    return grouped(cents) + ' EUR'\n",
    "    return grouped(cents // 100) + ' EUR'\n",
)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ("git", "-c", "user.name=n", "-c", "user.email=e@example.invalid", *arguments), cwd=folder, check=True
    )


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "projects" / "house"
    for name, text in {
        "common/shared/words.py": COMMON,
        "common/shared/__init__.py": "",
        "shop/src/shop/__init__.py": "",
        "shop/src/shop/price.py": PRICE,
        "shop/tests/test_price.py": TESTS,
        "shop/conftest.py": CONFTEST,
        "shop/pyproject.toml": PROJECT,
        "tools/setup.py": "",
        "tools/test_tool.py": "def test_tool():\n    assert True\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    return root


@pytest.fixture
def server(user):
    with ScriptedServer(lambda request: Reply(HONEST)) as running:
        user.uses(running, Wire.openai)
        yield running


def state_of(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


def test_the_suite_of_a_folder_runs_with_what_lies_beside_it(user, repo, server):
    before = state_of(repo)
    ran = user.redstart("fix", repo / "shop", "tests/test_price.py::TestPrice", "--patch", repo.parent / "p.patch")
    assert ran.code == 0, ran.out + ran.err
    assert "GREEN  1 failing test now passes" in ran.out
    assert state_of(repo) == before
    assert "shop/src/shop/price.py" in server.requests[0].text
    # The patch is relative to the whole repo, so git applies it from any folder.
    git(repo / "shop", "apply", str(repo.parent / "p.patch"))
    assert (repo / "shop/src/shop/price.py").read_text() == FIXED
    git(repo, "checkout", "-q", ".")
    assert user.redstart("apply", cwd=repo / "shop").code == 0
    assert (repo / "shop/src/shop/price.py").read_text() == FIXED
    assert user.redstart("undo", cwd=repo / "shop").code == 0
    assert (repo / "shop/src/shop/price.py").read_text() == PRICE


@pytest.mark.parametrize(
    ("chosen", "code", "words"),
    [
        (("-k", "large"), 0, "GREEN  1 failing test now passes"),
        (("-k", "small"), 0, "GREEN  the tests that you chose pass already"),
        (("-k", "(nothing or other"), 2, "a parenthesis is not closed"),
        pytest.param(("-k", "TestPrice and not small"), 0, "GREEN  1 failing test now passes", marks=pytest.mark.soak),
        (("tests/test_absent.py",), 5, "no test matches the ids"),
        (("shop/tests/test_price.py::TestPrice::test_large",), 0, "GREEN  1 failing test now passes"),
    ],
)
def test_only_chosen_tests_are_targets(user, repo, server, chosen, code, words):
    ran = user.redstart("fix", "shop", *chosen, cwd=repo)
    assert ran.code == code, ran.out + ran.err
    assert words in ran.out + ran.err


@pytest.mark.soak
def test_a_test_alone_means_this_folder(user, repo, server):
    ran = user.redstart("fix", "tests/test_price.py::TestPrice::test_large", cwd=repo / "shop")
    assert (ran.code, "GREEN  1 failing test now passes" in ran.out) == (0, True), ran.out + ran.err


def test_several_suites_are_listed_and_nothing_is_asked_for(user, repo, server):
    ran = user.redstart("fix", repo, "--no-input")
    assert (ran.code, server.requests) == (2, [])
    assert "this repo has 2 test suites" in ran.err
    assert [line.strip() for line in ran.err.splitlines()[-2:]] == ["redstart fix shop", "redstart fix tools"]


@pytest.mark.soak
def test_edits_stay_in_the_folder_unless_the_scope_is_wider(user, repo, server):
    wider = block("common/shared/words.py", "    return f'{number:,}'\n", "    return f'{number // 100:,}'\n")
    with ScriptedServer(lambda request: Reply(wider)) as beside:
        user.uses(beside, Wire.openai)
        ran = user.redstart("fix", "shop", "-k", "large", "--max-iters", "1", cwd=repo)
        assert ran.code == 6, ran.out + ran.err
        assert "common/shared/words.py: only shop is to be changed in this run" in ran.out
        ran = user.redstart("fix", "shop", "-k", "large", "--scope", "common", cwd=repo)
        assert (ran.code, "GREEN" in ran.out) == (0, True), ran.out + ran.err
