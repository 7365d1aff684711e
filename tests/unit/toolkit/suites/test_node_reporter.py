"""Results written by our reporter for node's own runner, read like the results of a run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.report import Case, Outcome
from redstart.core.shell import Completed, ExitCause
from redstart.toolkit.languages.node.runners import CASES, read_node
from redstart.toolkit.suites.request import read_sandbox_file

FILES = {
    "test/kinds.test.js": """
const { describe, it, test } = require('node:test');
const assert = require('node:assert');
describe('Cart', () => {
  it('adds', () => {});
  it('counts', () => assert.strictEqual(3, 4));
  it('twice', () => {});
  it('twice', () => assert.ok(false));
});
test.skip('later', () => {});
test('some day', { todo: true }, () => assert.ok(false));
test('throws', () => { throw new TypeError('no cart'); });
""",
    "test/hook.test.js": """
const { before, describe, it } = require('node:test');
describe('Shop', () => {
  before(() => { throw new Error('closed'); });
  it('sells', () => {});
});
""",
    "test/load.test.js": "require('../missing.js');\n",
    "test/exits.test.js": """
const { test } = require('node:test');
process.exit(0);
test('never', () => {});
""",
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("cart")
    reporter_folder = tmp_path_factory.mktemp("ours")
    for name in ("redstart_cases.cjs", "redstart_node.mjs"):
        (reporter_folder / name).write_text(read_sandbox_file(name))
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    to = reporter_folder / CASES
    options = (f"--test-reporter={reporter_folder / 'redstart_node.mjs'}", f"--test-reporter-destination={to}")
    # Otherwise node, if started by a test runner, believes that it is a test of that runner.
    environ = {name: value for name, value in os.environ.items() if name != "NODE_TEST_CONTEXT"}
    completed = subprocess.run(
        ("node", "--test", *options, *FILES), cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert to.is_file(), completed.stderr
    output_files = {CASES: to.read_text()}
    parsed_cases = read_node(
        Completed(exit_code=completed.returncode, cause=ExitCause.failed, output=completed.stdout, files=output_files)
    )
    assert parsed_cases is not None
    return {item.id: item for item in parsed_cases}


@pytest.mark.slow
def test_every_kind_of_outcome_is_reported(cases: dict[str, Case]):
    file = Path("test/kinds.test.js")
    outcomes = {id_: case.outcome for id_, case in cases.items() if id_.startswith(str(file))}
    assert outcomes == {
        f"{file}::Cart > adds": Outcome.passed,
        f"{file}::Cart > counts": Outcome.failed,
        f"{file}::Cart > twice": Outcome.passed,
        f"{file}::Cart > twice [#2]": Outcome.failed,
        f"{file}::later": Outcome.skipped,
        f"{file}::some day": Outcome.skipped,
        f"{file}::throws": Outcome.failed,
    }


def test_failure_shows_values_and_location(cases: dict[str, Case]):
    failing_case = cases["test/kinds.test.js::Cart > counts"]
    assert (failing_case.expected, failing_case.actual) == ("4", "3")
    assert "test/kinds.test.js:6" in failing_case.detail
    assert cases["test/kinds.test.js::throws"].message == "TypeError: no cart"


def test_test_with_a_failing_hook_is_an_error(cases: dict[str, Case]):
    assert {id_: case.outcome for id_, case in cases.items() if id_.startswith("test/hook")} == {
        "test/hook.test.js::Shop > sells": Outcome.error
    }


def test_file_that_cannot_be_loaded_is_an_error(cases: dict[str, Case]):
    assert cases["test/load.test.js"].outcome is Outcome.error
    assert "missing.js" in cases["test/load.test.js"].message


def test_file_that_ends_the_process_has_no_passing_test(cases: dict[str, Case]):
    assert not [id_ for id_ in cases if id_.startswith("test/exits")]
