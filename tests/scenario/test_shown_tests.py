"""What the question for edits shows about the failing tests of a real suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import redstart
from redstart.core.run import Limits, Result
from support.node import cache_folder, install_manifest, put
from support.scenarios import CARD, parse_question
from support.server import Request, ScriptedServer

SOURCE = "def total(prices):\n    return sum(prices) + 1\n"
CONFTEST = "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [3, 4]\n"
TESTS = """import sys

from shop import total


def test_total(prices):
    result = total(prices)
    print("the printed total is", result)
    print("and a complaint", file=sys.stderr)
    assert "\\n".join(f"{result} row {n}" for n in range(20)) == "\\n".join(f"7 row {n}" for n in range(20))


def test_passing():
    print("what a passing test prints")
"""
RIGHT = """WHY: one too many

shop.py
<<<<<<< SEARCH
    return sum(prices) + 1
=======
    return sum(prices)
>>>>>>> REPLACE
"""


SCRIPT = "export const total = (prices) => prices.reduce((sum, price) => sum + price, 1)\n"
SCRIPT_TESTS = """import { describe, expect, it } from 'vitest'
import { total } from './shop.js'

describe('shop', () => {
  it('adds up', () => {
    console.log('the printed total is', total([3, 4]))
    expect(total([3, 4])).toBe(7)
  })
  it('knows numbers', () => {
    console.log('what a passing test prints')
    expect(typeof total([])).toBe('number')
  })
})
"""
SCRIPT_RIGHT = """WHY: one too many

shop.js
<<<<<<< SEARCH
export const total = (prices) => prices.reduce((sum, price) => sum + price, 1)
=======
export const total = (prices) => prices.reduce((sum, price) => sum + price, 0)
>>>>>>> REPLACE
"""


MOCHA_TESTS = """import assert from 'node:assert/strict'
import { total } from './shop.js'

describe('shop', () => {
  before(() => console.log('what a hook of the suite prints'))
  beforeEach(() => console.log('before the test'))
  it('knows numbers', () => {
    console.log('what a passing test prints')
    assert.equal(typeof total([]), 'number')
  })
  it('adds up', async () => {
    console.log('the printed total is', total([3, 4]))
    await new Promise((resolve) => setTimeout(resolve, 10))
    console.error('and a complaint')
    assert.equal(total([3, 4]), 7)
  })
  after(() => console.log('what a hook of the suite prints'))
})
"""
UNIT_TESTS = """import sys
import unittest

from shop import total


class ShopTest(unittest.TestCase):
    def test_total(self):
        print("the printed total is", total([3, 4]))
        print("and a complaint", file=sys.stderr)
        self.assertEqual(total([3, 4]), 7)

    def test_passing(self):
        print("what a passing test prints")
"""


def fix_and_record(
    repo: Path, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test_command: tuple[str, ...] = ()
) -> dict[str, str]:
    """Fix a repo with this answer. Return what each question asked."""
    prompts: dict[str, str] = {}

    def reply(request: Request) -> str:
        prompts[parse_question(request)] = request.text
        return answer if parse_question(request) == "patch" else CARD

    with ScriptedServer(reply) as server:
        monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("REDSTART_MODELS__BASE_URL", server.openai_url)
        limits = Limits(attempts=1)
        run_result = redstart.fix(repo, model="openai:scripted", limits=limits, test_command=test_command)
        assert run_result.result is Result.verified
    return prompts


def test_output_and_fixtures_of_a_failing_test_reach_the_question(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    for name, text in {"shop.py": SOURCE, "conftest.py": CONFTEST, "test_shop.py": TESTS}.items():
        (repo / name).write_text(text)
    monkeypatch.setenv("VIRTUAL_ENV", str(project))
    prompts = fix_and_record(repo, RIGHT, tmp_path, monkeypatch)
    block = '<data from="output of this test">\nstdout:\nthe printed total is 8\nstderr:\nand a complaint\n</data>'
    assert block in prompts["patch"]
    assert "7 row 19" in prompts["patch"]
    assert "what a passing test prints" not in prompts["patch"]
    assert "conftest.py lines 4-6:\n@pytest.fixture\ndef prices():\n    return [3, 4]" in prompts["patch"]


def test_output_of_a_vitest_test_reaches_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    package = {"name": "shop", "type": "module", "scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "3"}}
    files = {"package.json": json.dumps(package), "shop.js": SCRIPT, "shop.test.js": SCRIPT_TESTS}
    for name, text in files.items():
        (repo / name).write_text(text)
    put(install_manifest(Path(__file__).parent / "node_tools" / "vitest", cache_folder()), repo)
    prompts = fix_and_record(repo, SCRIPT_RIGHT, tmp_path, monkeypatch)
    block = '<data from="output of this test">\nstdout:\nthe printed total is 8\n</data>'
    assert block in prompts["patch"]
    assert "what a passing test prints" not in prompts["patch"].partition("## Code")[0]


def test_output_of_a_mocha_test_reaches_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    package = {"type": "module", "scripts": {"test": "mocha *.test.js"}, "devDependencies": {"mocha": "11"}}
    files = {"package.json": json.dumps(package), "shop.js": SCRIPT, "shop.test.js": MOCHA_TESTS}
    for name, text in files.items():
        (repo / name).write_text(text)
    put(install_manifest(Path(__file__).parent / "node_tools" / "mocha", cache_folder()), repo)
    prompts = fix_and_record(repo, SCRIPT_RIGHT, tmp_path, monkeypatch)
    printed = "stdout:\nbefore the test\nthe printed total is 8\nstderr:\nand a complaint\n"
    assert f'<data from="output of this test">\n{printed}</data>' in prompts["patch"]
    assert "passing test prints" not in prompts["patch"].partition("## Code")[0]


def test_output_of_a_unittest_test_reaches_the_question(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    for name, text in {"shop.py": SOURCE, "test_shop.py": UNIT_TESTS}.items():
        (repo / name).write_text(text)
    monkeypatch.setenv("VIRTUAL_ENV", str(project))
    prompts = fix_and_record(repo, RIGHT, tmp_path, monkeypatch, test_command=("python", "-m", "unittest"))
    block = '<data from="output of this test">\nstdout:\nthe printed total is 8\nstderr:\nand a complaint\n</data>'
    assert block in prompts["patch"]
    assert "passing test prints" not in prompts["patch"].partition("## Code")[0]
