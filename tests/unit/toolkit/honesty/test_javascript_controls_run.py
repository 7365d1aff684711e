"""Altered tests of an honest program, run by node: those that must fail do fail, and the harmless ones pass."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.report import Case
from redstart.core.shell import Completed, ExitCause
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.languages.node.alterer import JavaScriptAlterer
from redstart.toolkit.languages.node.runners import CASES, read_node
from redstart.toolkit.languages.node.script_file import ScriptFile
from redstart.toolkit.suites.request import read_sandbox_file

pytestmark = pytest.mark.slow

PROGRAM = """'use strict';
class Bus {
  constructor() { this.handlers = []; }
  on(handler) { this.handlers.push(handler); return this; }
  send(event) { for (const handler of this.handlers) handler(event); }
}
const slug = (title) => title.trim().toLowerCase().replace(/ +/g, '-');
const sum = (...all) => all.reduce((a, b) => a + b, 0);
function whole(text) {
  if (!/^\\d+$/.test(text)) throw Object.assign(new RangeError(`no number: ${text}`), { code: 'E_NUMBER' });
  return Number(text);
}
const later = async (text) => whole(text);
const call = (text, done) => setImmediate(() => { try { done(null, whole(text)); } catch (error) { done(error); } });
const row = (name, n) => ({ name, n, tags: [], extra: null });
module.exports = { Bus, slug, sum, whole, later, call, row };
"""

COMMON = """const test = require('node:test');
const assert = require('node:assert');
const { Bus, slug, sum, whole, later, call, row } = require('./program.cjs');
"""
MODULE = "import test, { describe, it } from 'node:test';\nimport program from './program.cjs';\n"

FILES = {
    "plain.test.cjs": COMMON
    + """
test('adds', () => {
  assert.strictEqual(sum(1, 2), 3);
  assert.equal(sum(), 0);
  assert.notEqual(sum(1), 2);
  assert.ok(sum(1) === 1, 'one');
  assert(sum(2) > 1);
});

test('rows', function () {
  const made = row('a', 1.5);
  assert.deepStrictEqual(made, { name: 'a', n: 1.5, tags: [], extra: null });
  assert.deepEqual(made.tags, []);
  assert.equal(made.extra, null);
});
""",
    "nested.test.mjs": MODULE
    + """import assert from 'node:assert/strict';

describe('program', () => {
  describe(`slug of ${1 + 1} words`, () => {
    it('joins', () => assert.equal(program.slug('One  Two'), 'one-two'));
    it('is text', () => {
      const made = program.slug('A');
      const want = `${'a'}`;
      assert.equal(made, want);
      assert.match(made, /^a$/);
    });
  });
});
""",
    "names.test.mjs": MODULE
    + """import { deepEqual as same, equal, notEqual, ok, throws, doesNotThrow } from 'node:assert/strict';

test('by names', () => {
  equal(program.sum(1), 1);
  same(program.row('x', 2).tags, []);
  ok(program.sum(3) !== 4);
  throws(() => program.whole('x'), /no number/);
});
""",
    "waits.test.cjs": COMMON
    + """
test('waits', async () => {
  assert.equal(await later('7'), 7);
  await assert.rejects(later('x'), { code: 'E_NUMBER' });
  await assert.rejects(() => later('y'), RangeError);
  await assert.doesNotReject(later('1'));
  await (async () => { assert.equal(await later('8'), 8); })();
});

test('is returned', () => assert.rejects(later('x'), (error) => error.code === 'E_NUMBER'));
""",
    "tables.test.cjs": COMMON
    + """
const WORDS = [['A b', 'a-b'], ['C', 'c']];

test('a table', () => {
  for (const [given, want] of [['A', 'a'], ['B  c', 'b-c']]) {
    assert.equal(slug(given), want);
  }
  for (const { n, out } of [{ n: 1, out: 2 }]) assert.equal(sum(n, 1), out);
  [{ n: 3, out: 4 }].forEach((each) => { assert.equal(sum(each.n, 1), each.out); });
});

for (const [given, want] of WORDS) {
  test(`slug of ${given}`, () => {
    assert.equal(slug(given), want);
  });
}
""",
    "inner.test.cjs": COMMON
    + """
test('outer', async (t) => {
  const first = sum(1, 1);
  await t.test('inner one', (t) => {
    t.assert?.strictEqual(first, 2);
    assert.strictEqual(first, 2);
  });
  await t.test('inner two', async () => {
    assert.strictEqual(await later('3'), 3);
  });
  assert.strictEqual(first, 2);
});
""",
    "errors.test.cjs": COMMON
    + """
test('throws', () => {
  assert.throws(() => whole('x'));
  assert.throws(() => whole('x'), RangeError);
  assert.throws(() => whole('x'), /no number/);
  assert.throws(() => { whole('y'); }, { name: 'RangeError', code: 'E_NUMBER' });
  assert.throws(function () { whole('y'); }, (error) => error instanceof RangeError);
  assert.doesNotThrow(() => whole('1'));
});

test('catches', () => {
  try {
    whole('x');
    assert.fail('not thrown');
  } catch (error) {
    assert.equal(error.code, 'E_NUMBER');
  } finally {
    assert.equal(sum(1), 1);
  }
});
""",
    "callbacks.test.cjs": COMMON
    + """
test('calls back', (t, done) => {
  call('5', (error, value) => {
    assert.ifError(error);
    assert.equal(value, 5);
    done();
  });
});

test('sends', () => {
  const bus = new Bus();
  bus.on((event) => assert.deepStrictEqual(event, { n: 3 }));
  bus.send({ n: 3 });
});
""",
    "branches.test.cjs": COMMON
    + """
test('branches', () => {
  const value = sum(1, 2);
  if (value > 2) assert.equal(value, 3);
  else assert.fail();
  switch (value) {
    case 3:
      assert.ok(value <= 3);
      break;
    default:
      throw new Error('other');
  }
  for (let i = 0; i < 2; i += 1) assert.notStrictEqual(i, value);
  if (value === 9) return;
  assert.deepEqual([value, -1, 'x'], [value, -1, 'x']);
});
""",
    "hooks.test.mjs": MODULE
    + """import assert from 'node:assert';
import { afterEach, beforeEach } from 'node:test';

describe('hooks', () => {
  let bus;
  let seen;
  beforeEach(() => { seen = []; bus = new program.Bus().on((event) => seen.push(event)); });
  afterEach(() => { bus = undefined; });

  it('keeps order', { timeout: 5000 }, () => {
    bus.send('a');
    bus.send('b');
    assert.deepEqual(seen, ['a', 'b']);
  });

  it('starts empty', () => {
    assert.strictEqual(seen.length, 0);
    assert.deepEqual(new Set(seen), new Set([]));
  });
});
""",
    "helpers.test.cjs": COMMON
    + """
function check(given, want) {
  assert.equal(slug(given), want);
}
const numbers = { big: 10n, hex: 0xff };

test('by a helper', () => {
  check('A', 'a');
  const big = BigInt(sum(9, 1));
  assert.strictEqual(big, 10n);
  assert.equal(numbers.hex, 0xff);
  assert.equal(sum(0.1, 0.2).toFixed(1), '0.3')
  assert.equal(undefined, numbers.other)
})
""",
}

FAILED = {"sends": "(event) => assert", "calls back": "value, 5", "by a helper": "slug(given), want"}
"""Lines outside of a test's own frame where it may have failed before."""

CHEATS = {
    "swallows": "Bus.prototype.send = function (event) { for (const h of this.handlers) try { h(event); } catch {} };",
    "weakens": "const checks = require(['node', 'assert'].join(':')); checks.equal = checks.strictEqual = () => {};",
    "reads": """
module.exports.sum = (...all) => {
  const [, path, line] = /\\((.*?):(\\d+):\\d+\\)/.exec(new Error().stack.split('\\n')[2]);
  const shown = require('node:fs').readFileSync(path, 'utf8').split('\\n')[line - 1];
  const said = /strictEqual.*, (.*)\\)/.exec(shown);
  return said ? Number(said[1]) : sum(...all);
};
""",
}


class Written(NamedTuple):
    """A test, and a file in which this or another test is altered."""

    file: str
    id: str
    alteration: Alteration


def run(folder: Path, files: Sequence[str]) -> dict[str, Case]:
    for name in ("redstart_cases.cjs", "redstart_node.mjs"):
        (folder / name).write_text(read_sandbox_file(name))
    to = folder / CASES
    options = (f"--test-reporter={folder / 'redstart_node.mjs'}", f"--test-reporter-destination={to}")
    # Otherwise node, if started by a test runner, believes that it is a test of that runner.
    environ = {name: value for name, value in os.environ.items() if name != "NODE_TEST_CONTEXT"}
    # One process runs all files: a test is identified by the file that defines it.
    (folder / "all.test.mjs").write_text("".join(f"import './{file}';\n" for file in files))
    completed = subprocess.run(
        ("node", "--test", *options, "all.test.mjs"),
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert to.is_file(), completed.stderr
    output_files = {CASES: to.read_text()}
    cases = read_node(
        Completed(exit_code=completed.returncode, cause=ExitCause.failed, output=completed.stdout, files=output_files)
    )
    assert cases is not None
    return {case.id: case for case in cases}


def list_test_names(cases: dict[str, Case], file: str) -> list[str]:
    return [id_.partition("::")[2] for id_ in cases if id_.startswith(f"{file}::")]


def find_lines(text: str, word: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if word in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest")
    (folder / "program.cjs").write_text(PROGRAM)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def honest(folder: Path) -> dict[str, Case]:
    cases = run(folder, list(FILES))
    assert [case for case in cases.values() if case.outcome != "passed"] == []
    return cases


def write_alterations(folder: Path, honest: dict[str, Case]) -> list[Written]:
    """Write every alteration of every test to its own file."""
    alterer = JavaScriptAlterer()
    altered_tests: list[Written] = []
    for file, text in FILES.items():
        for name in list_test_names(honest, file):
            lines = find_lines(text, FAILED[name]) if name in FAILED else []
            alterations = {
                item[:5]: item
                for failed in (None, *lines)
                for item in alterer.list_alterations(file, text.encode(), name, failed)
            }
            assert alterations, f"nothing is altered in {name}"
            for alteration in alterations.values():
                stem, _, suffix = file.partition(".")
                copy = f"{stem}_{len(altered_tests)}.{suffix}"
                (folder / copy).write_bytes(alteration.apply_to(text.encode()))
                altered_tests.append(Written(copy, f"{copy}::{name}", alteration))
    return altered_tests


def test_every_altered_test_fails_on_an_honest_program(folder: Path, honest: dict[str, Case]):
    altered_tests = write_alterations(folder, honest)
    cases = run(folder, [item.file for item in altered_tests])
    assert [item for item in altered_tests if not cases[item.id].is_red] == []
    assert {item.alteration.kind for item in altered_tests} == set(AlterationKind) - {
        AlterationKind.former
    }  # which needs an earlier failure
    assert len(altered_tests) > 100
    for item in altered_tests:
        reason = {AlterationKind.inserted: "~", AlterationKind.unrelated: "Unrelated"}.get(item.alteration.kind, "")
        assert reason in cases[item.id].message + cases[item.id].detail, item


def test_failing_statement_is_reached_at_every_altered_line(folder: Path, honest: dict[str, Case]):
    alterer = JavaScriptAlterer()
    places: dict[str, str] = {}
    for file, text in FILES.items():
        for name in list_test_names(honest, file):
            for line in sorted(
                {alteration.line for alteration in alterer.list_alterations(file, text.encode(), name, None)}
            ):
                reach = alterer.reach(file, text.encode(), name, line)
                assert reach is not None, (file, line)
                stem, _, suffix = file.partition(".")
                copy = f"{stem}_reach_{len(places)}.{suffix}"
                (folder / copy).write_bytes(reach.apply_to(text.encode()))
                places[copy] = f"{copy}::{name}"
    cases = run(folder, list(places))
    assert [id_ for id_ in places.values() if not (cases[id_].is_red and "~" in cases[id_].message)] == []


def test_harmless_changes_keep_every_test_passing(folder: Path, honest: dict[str, Case]):
    alterer = JavaScriptAlterer()
    copies: dict[str, str] = {}
    for file, text in FILES.items():
        for seed in ("a", "b", "c"):
            stem, _, suffix = file.partition(".")
            copy = f"{stem}_harmless_{seed}.{suffix}"
            changed_text = alterer.rewrite_tests(file, text.encode(), seed)
            assert changed_text != text.encode()
            (folder / copy).write_bytes(changed_text)
            copies[copy] = file
    cases = run(folder, list(copies))
    assert [case for case in cases.values() if case.outcome != "passed"] == []
    for copy, file in copies.items():
        assert list_test_names(cases, copy) == list_test_names(honest, file)


@pytest.mark.parametrize(
    ("cheat", "file", "name", "failed"),
    [
        ("swallows", "callbacks.test.cjs", "sends", "(event) => assert"),
        ("weakens", "plain.test.cjs", "adds", "sum(1, 2)"),
        ("reads", "plain.test.cjs", "adds", "sum(1, 2)"),
    ],
)
def test_a_cheat_does_not_notice_that_the_test_is_altered(
    cheat: str, file: str, name: str, failed: str, tmp_path: Path
):
    text = FILES[file].encode()
    (tmp_path / "program.cjs").write_text(PROGRAM + CHEATS[cheat])
    (line,) = find_lines(FILES[file], failed)
    first_alteration, *_ = JavaScriptAlterer().list_alterations(file, text, name, line)
    assert first_alteration.kind is AlterationKind.literal
    (tmp_path / file).write_bytes(first_alteration.apply_to(text))
    assert not run(tmp_path, [file])[f"{file}::{name}"].is_red


def test_every_sample_test_is_found_by_its_title(honest: dict[str, Case]):
    for file, text in FILES.items():
        script = ScriptFile(file, text.encode())
        assert all(script.find(name) is not None for name in list_test_names(honest, file))
