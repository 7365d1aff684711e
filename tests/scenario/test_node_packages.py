"""Real npm packages with one seeded mutation each, fixed over real HTTP.

Two come with their own tests (`flat`, `object-path`); the tests of the others are here. They run with `--soak` and
are fetched once into a cache.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from redstart.core.chat import ToolCall
from support.node import cache_folder, install_manifest, put, unpack_package
from support.scenarios import parse_question
from support.server import Reply, Request, ScriptedServer, Wire

HERE = Path(__file__).parent


class Seeded(NamedTuple):
    package: str
    tools: str
    script: str
    path: str
    right: str
    mutated: str
    tests: dict[str, str] = {}
    drop: tuple[str, ...] = ()
    """Files of the package to leave out: tests for a runner that is not installed."""


MS = """
const { describe, it } = require('node:test');
const assert = require('node:assert');
const ms = require('..');

describe('ms', () => {
  for (const [text, wanted] of [['1m', 60000], ['1h', 3600000], ['2 days', 172800000], ['1w', 604800000]]) {
    it(`reads ${text}`, () => assert.strictEqual(ms(text), wanted));
  }
  it('shows short', () => assert.strictEqual(ms(60000), '1m'));
  it('shows long', () => assert.strictEqual(ms(2 * 60000, { long: true }), '2 minutes'));
});
"""
EQUAL = """
const equal = require('..');

describe('equal', () => {
  it('compares arrays', () => {
    expect(equal([1, { a: 2 }], [1, { a: 2 }])).toBe(true);
    expect(equal([1, 2], [1])).toBe(false);
  });
  it('compares objects', () => {
    expect(equal({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(equal({ a: 1, b: undefined }, { a: 1, c: undefined })).toBe(false);
  });
  it('compares dates and patterns', () => {
    expect(equal(/a/g, /a/i)).toBe(false);
    expect(equal(new Date(1), new Date(1))).toBe(true);
  });
});
"""
SLUG = """
import { describe, expect, it } from 'vitest';
import slugify from '../slugify.js';

describe('slugify', () => {
  it('joins words', () => expect(slugify('foo bar baz')).toBe('foo-bar-baz'));
  it('takes another joint', () => expect(slugify('foo bar', '_')).toBe('foo_bar'));
  it('trims', () => expect(slugify('  foo bar ')).toBe('foo-bar'));
  it('is strict', () => expect(slugify('foo_bar! baz', { strict: true })).toBe('foobar-baz'));
});
"""
MINIMIST = """
const test = require('node:test');
const assert = require('node:assert');
const parse = require('..');

test('flags', () => assert.deepEqual(parse(['-a', '--bee']), { _: [], a: true, bee: true }));
test('values', () => assert.deepEqual(parse(['-n', '3', '--m=4', 'x']), { _: ['x'], n: 3, m: 4 }));
test('hexadecimal', () => assert.strictEqual(parse(['--x', '0x1f']).x, 31));
test('negated', () => assert.strictEqual(parse(['--no-color']).color, false));
"""
PACKAGES = (
    Seeded("ms@2.1.3", "", "node --test", "index.js", "return n * w;", "return n * d;", {"test/ms.test.js": MS}),
    Seeded("flat@5.0.2", "mocha", "mocha -u tdd --reporter spec test/test.js", "index.js",
           "currentDepth < maxDepth", "currentDepth <= maxDepth"),
    Seeded("object-path@0.11.8", "mocha", "mocha test.js --reporter spec", "index.js",
           "(typeof prop === 'number' && Array.isArray(obj)) || hasOwnProperty(obj, prop)",
           "(typeof prop === 'number' && Array.isArray(obj)) && hasOwnProperty(obj, prop)"),
    Seeded("fast-deep-equal@3.1.3", "jest", "jest", "index.js",
           "a.source === b.source && a.flags === b.flags", "a.source === b.source || a.flags === b.flags",
           {"test/equal.test.js": EQUAL}),
    Seeded("slugify@1.6.6", "vitest", "vitest run", "slugify.js",
           "options.trim === undefined ? true : options.trim", "options.trim === undefined ? false : options.trim",
           {"test/slug.test.mjs": SLUG}),
    Seeded("minimist@1.2.8", "", "node --test", "index.js", "test(x)) { return true; }", "test(x)) { return false; }",
           {"check/minimist.test.js": MINIMIST}, ("test", "example")),
)  # fmt: skip


def place(seeded: Seeded, to: Path) -> Path:
    source = unpack_package(seeded.package, cache_folder())
    shutil.copytree(source, to, ignore=shutil.ignore_patterns(*seeded.drop))
    package = json.loads((source / "package.json").read_text())
    package["scripts"] = {"test": seeded.script}
    (to / "package.json").write_text(json.dumps(package, indent=2))
    (to / ".gitignore").write_text("node_modules/\n")
    for name, text in seeded.tests.items():
        (to / name).parent.mkdir(exist_ok=True)
        (to / name).write_text(text)
    code = (to / seeded.path).read_text()
    assert seeded.right in code
    (to / seeded.path).write_text(code.replace(seeded.right, seeded.mutated, 1))
    if seeded.tools:
        put(install_manifest(HERE / "node_tools" / seeded.tools, cache_folder()), to)
    subprocess.run(["git", "init", "-q"], cwd=to, check=True)
    return to


def find_line(text: str, part: str) -> str:
    """Return the first line that contains `part`, with the line before it if the line is not unique."""
    lines = text.splitlines()
    index = next(number for number, line in enumerate(lines) if part in line)
    return lines[index] if lines.count(lines[index]) == 1 else f"{lines[index - 1]}\n{lines[index]}"


@pytest.mark.soak
@pytest.mark.parametrize("one", PACKAGES, ids=lambda item: item.package)
def test_seeded_bug_is_fixed(one: Seeded, user, tmp_path):
    repo = place(one, tmp_path / "package")
    broken_line = find_line((repo / one.path).read_text(), one.mutated)
    fixed = broken_line.replace(one.mutated, one.right)
    right_answer = f"WHY: it says so\n\n{one.path}\n<<<<<<< SEARCH\n{broken_line}\n=======\n{fixed}\n>>>>>>> REPLACE\n"

    # The prompt shows only parts of a long file; a model that does not see the cause there reads the file.
    tool_call = ToolCall(id="call_1", name="read", arguments=json.dumps({"path": one.path, "start": 1, "end": 120}))

    def reply(request: Request) -> str | Reply:
        if parse_question(request) != "patch":
            return "{}"
        return right_answer if broken_line in request.text else Reply(calls=(tool_call,))

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        result = user.redstart("fix", repo, "--json", "--patch", tmp_path / "fix.patch")
    assert result.code == 0, result.out + result.err
    assert (result.ending["result"], result.ending["attempts"]) == ("verified", 1)
    subprocess.run(["git", "apply", str(tmp_path / "fix.patch")], cwd=repo, check=True)
    assert (repo / one.path).read_text() == (unpack_package(one.package, cache_folder()) / one.path).read_text()
