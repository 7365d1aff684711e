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


def hash_tree(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


def test_directory_suite_runs_with_its_sibling_directories(user, repo, server):
    before = hash_tree(repo)
    result = user.redstart("fix", repo / "shop", "tests/test_price.py::TestPrice", "--patch", repo.parent / "p.patch")
    assert result.code == 0, result.out + result.err
    assert "GREEN  1 failing test now passes" in result.out
    assert hash_tree(repo) == before
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
def test_only_selected_tests_are_targets(user, repo, server, chosen, code, words):
    result = user.redstart("fix", "shop", *chosen, cwd=repo)
    assert result.code == code, result.out + result.err
    assert words in result.out + result.err


@pytest.mark.soak
def test_target_without_a_directory_uses_the_current_directory(user, repo, server):
    result = user.redstart("fix", "tests/test_price.py::TestPrice::test_large", cwd=repo / "shop")
    assert (result.code, "GREEN  1 failing test now passes" in result.out) == (0, True), result.out + result.err


def test_several_suites_are_listed_and_no_model_is_asked(user, repo, server):
    result = user.redstart("fix", repo, "--no-input")
    assert (result.code, server.requests) == (2, [])
    assert "this repo has 2 test suites" in result.err
    assert [line.strip() for line in result.err.splitlines()[-2:]] == ["redstart fix shop", "redstart fix tools"]


@pytest.mark.soak
def test_edits_stay_in_the_directory_unless_the_scope_is_wider(user, repo, server):
    wider_edit = block("common/shared/words.py", "    return f'{number:,}'\n", "    return f'{number // 100:,}'\n")
    with ScriptedServer(lambda request: Reply(wider_edit)) as second_server:
        user.uses(second_server, Wire.openai)
        result = user.redstart("fix", "shop", "-k", "large", "--max-iters", "1", cwd=repo)
        assert result.code == 6, result.out + result.err
        assert "common/shared/words.py: only shop is to be changed in this run" in result.out
        result = user.redstart("fix", "shop", "-k", "large", "--scope", "common", cwd=repo)
        assert (result.code, "GREEN" in result.out) == (0, True), result.out + result.err
