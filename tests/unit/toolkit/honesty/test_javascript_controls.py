"""Alterations of tests in JavaScript and TypeScript, in the idioms of each runner."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.languages.node.alterer import JavaScriptAlterer
from redstart.toolkit.languages.node.trees import find_syntax_errors

ALTERER = JavaScriptAlterer()
NODE = "const test = require('node:test');\nconst assert = require('node:assert');\n"
UNRELATED = 'new (class Unrelated extends Error { name = "Unrelated"; code = "Unrelated"; })("Unrelated ~")'
FAILING = 'throw new Error("~");'


class Made(NamedTuple):
    kind: str
    text: str
    """The first line that differs, without its indentation."""


def create_case(actual: str | None, expected: str | None) -> Case:
    return Case(id="a", outcome=Outcome.failed, actual=actual, expected=expected)


def alter(text: str, name: str, failed: int | None = None, path: str = "test/a.test.js") -> list[Alteration]:
    alterations = ALTERER.list_alterations(path, text.encode(), name, failed)
    assert all(not find_syntax_errors(path, alteration.apply_to(text.encode())) for alteration in alterations)
    return alterations


def alter_test(text: str, name: str, failed: int | None = None, path: str = "test/a.test.js") -> list[Made]:
    return [Made(item.kind, find_changed_line(text, item)) for item in alter(text, name, failed, path)]


def find_changed_line(text: str, alteration: Alteration) -> str:
    old, new = text.splitlines(), alteration.apply_to(text.encode()).decode().splitlines()
    return next(after for before, after in zip(old, new, strict=False) if before != after).strip()


def alter_statement(statement: str, head: str = NODE) -> list[tuple[str, str]]:
    """Alter one statement in an async test; leave out the failing statement at the end."""
    text = f"{head}test('it', async (t) => {{\n  {statement}\n  last();\n}});\n"
    return [(kind, line) for kind, line in alter_test(text, "it") if kind != AlterationKind.inserted]


ASSERT = [
    (
        "assert.equal(f(), 3);",
        [("literal", "assert.equal(f(), 4);"), ("negated", "assert.notEqual(f(), 3);")],
    ),
    (
        "assert.ok(f().equals(new Fraction(5, 6)));",
        [
            ("negated", "assert.ok(!(f().equals(new Fraction(5, 6))));"),
            ("other", "assert.ok(f().equals(new Fraction(6, 6)));"),
        ],
    ),
    (
        "assert.strictEqual(f(), 'it\\'s');",
        [("literal", "assert.strictEqual(f(), 'it\\'s~');"), ("negated", "assert.notStrictEqual(f(), 'it\\'s');")],
    ),
    (
        "assert.deepStrictEqual(f(), { a: [x, -1], 'b': 2 }, 'why');",
        [
            ("literal", "assert.deepStrictEqual(f(), { a: [x, -2], 'b': 2 }, 'why');"),
            ("negated", "assert.notDeepStrictEqual(f(), { a: [x, -1], 'b': 2 }, 'why');"),
        ],
    ),
    (
        "assert.deepEqual(f(), []);",
        [("literal", 'assert.deepEqual(f(), ["~"]);'), ("negated", "assert.notDeepEqual(f(), []);")],
    ),
    (
        "assert.deepEqual(f(), {});",
        [("literal", 'assert.deepEqual(f(), {"~": 1});'), ("negated", "assert.notDeepEqual(f(), {});")],
    ),
    ("assert.notEqual(f(), 3);", [("negated", "assert.equal(f(), 3);")]),
    ("assert.equal(f(), g());", [("negated", "assert.notEqual(f(), g());")]),
    (
        "assert.equal(null, f());",
        [("literal", "assert.equal(0, f());"), ("negated", "assert.notEqual(null, f());")],
    ),
    ("assert(f());", [("negated", "assert(!(f()));")]),
    (
        "assert.ok(f() === true, 'why');",
        [("literal", "assert.ok(f() === false, 'why');"), ("negated", "assert.ok(!(f() === true), 'why');")],
    ),
    (
        "assert.ok(f() > 3);",
        [("negated", "assert.ok(!(f() > 3));"), ("other", "assert.ok(f() > 999999999999999);")],
    ),
    (
        "t.assert.strictEqual(f(), 0.5);",
        [("literal", "t.assert.strictEqual(f(), 1.5);"), ("negated", "t.assert.notStrictEqual(f(), 0.5);")],
    ),
    (
        "assert.throws(() => f(), RangeError);",
        [
            ("negated", "assert.doesNotThrow(() => f(), RangeError);"),
            ("unrelated", f"assert.throws(() => {{ throw {UNRELATED}; }}, RangeError);"),
        ],
    ),
    ("assert.throws(() => f());", [("negated", "assert.doesNotThrow(() => f());")]),
    ("assert.throws(() => f(), Error);", [("negated", "assert.doesNotThrow(() => f(), Error);")]),
    (
        "await assert.rejects(f(), { code: 'E' });",
        [
            ("negated", "await assert.doesNotReject(f(), { code: 'E' });"),
            ("unrelated", f"await assert.rejects(Promise.reject({UNRELATED}), {{ code: 'E' }});"),
            ("literal", "await assert.rejects(f(), { code: 'E~' });"),
        ],
    ),
    (
        "assert.match(f(), /a|b/u);",
        [("negated", "assert.doesNotMatch(f(), /a|b/u);"), ("other", "assert.match(f(), /(?:a|b)~/u);")],
    ),
]


@pytest.mark.parametrize(("statement", "expected"), ASSERT)
def test_node_assertion_is_altered(statement: str, expected: list[tuple[str, str]]):
    assert alter_statement(statement) == expected


EXPECT = [
    ("expect(f()).toBe(3);", [("literal", "expect(f()).toBe(4);"), ("negated", "expect(f()).not.toBe(3);")]),
    (
        'expect(f()).toEqual([{ a: "x" }]);',
        [("literal", 'expect(f()).toEqual([{ a: "x~" }]);'), ("negated", 'expect(f()).not.toEqual([{ a: "x" }]);')],
    ),
    ("expect(f()).not.toStrictEqual(3);", [("negated", "expect(f()).toStrictEqual(3);")]),
    ("expect(f()).toBeNull();", [("negated", "expect(f()).not.toBeNull();")]),
    (
        "await expect(f()).resolves.toBe(`a ${b}`);",
        [
            ("literal", "await expect(f()).resolves.toBe(`a ${b}~`);"),
            ("negated", "await expect(f()).resolves.not.toBe(`a ${b}`);"),
        ],
    ),
    ("expect(f()).resolves.toBe(3);", []),
    (
        "expect(() => f()).toThrow(TypeError);",
        [
            ("negated", "expect(() => f()).not.toThrow(TypeError);"),
            ("unrelated", f"expect(() => {{ throw {UNRELATED}; }}).toThrow(TypeError);"),
        ],
    ),
    (
        "expect(f()).toContain('a');",
        [("other", "expect(f()).toContain('a~');"), ("negated", "expect(f()).not.toContain('a');")],
    ),
    (
        "expect(f()).toBeLessThan(3);",
        [("other", "expect(f()).toBeLessThan(-999999999999999);"), ("negated", "expect(f()).not.toBeLessThan(3);")],
    ),
    ("expect(f()).toMatchInlineSnapshot(`a`);", [("literal", "expect(f()).toMatchInlineSnapshot(`a~`);")]),
    ("expect(f()).toMatchSnapshot();", []),
    ("expect.assertions(3);", []),
    (
        "expect(f()).to.deep.equal([1]);",
        [("literal", "expect(f()).to.deep.equal([2]);"), ("negated", "expect(f()).to.not.deep.equal([1]);")],
    ),
    (
        "expect(f()).to.eql('a');",
        [("literal", "expect(f()).to.eql('a~');"), ("negated", "expect(f()).to.not.eql('a');")],
    ),
    ("expect(f()).to.be.true;", [("negated", "expect(f()).to.not.be.true;")]),
    ("expect(f()).to.not.be.empty;", [("negated", "expect(f()).to.be.empty;")]),
    (
        "expect(f).to.throw(RangeError, 'far');",
        [
            ("negated", "expect(f).to.not.throw(RangeError, 'far');"),
            ("unrelated", f"expect(() => {{ throw {UNRELATED}; }}).to.throw(RangeError, 'far');"),
        ],
    ),
    (
        "f().should.equal(3);",
        [("literal", "f().should.equal(4);"), ("negated", "f().should.not.equal(3);")],
    ),
    (
        "should(f()).be.exactly(3);",
        [("literal", "should(f()).be.exactly(4);"), ("negated", "should(f()).not.be.exactly(3);")],
    ),
]


@pytest.mark.parametrize(("statement", "expected"), EXPECT)
def test_assertions_of_jest_vitest_chai_and_should_are_altered(statement: str, expected: list[tuple[str, str]]):
    assert alter_statement(statement, "") == expected


def test_assertions_imported_by_name_are_altered():
    head = "import test from 'node:test';\nimport { equal as same, notEqual, ok } from 'node:assert/strict';\n"
    assert alter_statement("same(f(), 3);", head) == [("literal", "same(f(), 4);"), ("negated", "notEqual(f(), 3);")]
    assert alter_statement("ok(f());", head) == [("negated", "ok(!(f()));")]
    single_import = "import test from 'node:test';\nimport { equal } from 'node:assert/strict';\n"
    assert alter_statement("equal(f(), 3);", single_import) == [("literal", "equal(f(), 4);")]


def test_chai_assert_functions_are_altered():
    head = "const { assert } = require('chai');\n"
    assert alter_statement("assert.isTrue(f());", head) == [("negated", "assert.isNotTrue(f());")]
    assert ("negated", "assert.notMatch(f(), /a/);") in alter_statement("assert.match(f(), /a/);", head)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("request(app).get('/').expect(200, done);", ["request(app).get('/').expect(201, done);"]),
        (
            "await request(app).get('/').expect(404).expect('Type', 'text');",
            [
                "await request(app).get('/').expect(405).expect('Type', 'text');",
                "await request(app).get('/').expect(404).expect('Type', 'text~');",
            ],
        ),
        ("request(app).get('/').expect('body').end(done);", ["request(app).get('/').expect('body~').end(done);"]),
        ("request(app).get('/').expect(200);", []),
        ("other(app).get('/').expect(200, done);", []),
    ],
)
def test_expected_supertest_response_is_altered(statement: str, expected: list[str]):
    head = "const request = require('supertest');\n"
    assert alter_statement(statement, head) == [("literal", line) for line in expected]


@pytest.mark.parametrize(
    "statement",
    [
        "assert.fail('no');",
        "throw new Error('no');",
        "expect.fail();",
        "assert(false);",
        "assert.ok(false, 'no');",
        "expect(true).toBe(false);",
        "try { assert.equal(f(), 3); } catch { last(); }",
        "assert.throws(() => { assert.equal(f(), g()); }) || 1;",
        "later(() => { assert.equal(f(), 3); });",
        "f().then(() => assert.equal(f(), 3));",
        "assert.rejects(f(), RangeError);",
        "console.assert(f() === 3);",
    ],
)
def test_always_failing_or_swallowed_assertion_is_left_alone(statement: str):
    changed = [line for _, line in alter_statement(statement)]
    assert [line for line in changed if "doesNotThrow" not in line] == []


@pytest.mark.parametrize(
    ("statement", "is_conditional"),
    [
        ("assert.equal(f(), 3);", False),
        ("for (const x of [1, 2]) assert.equal(f(x), 3);", False),
        ("[1, 2].forEach((x) => { assert.equal(f(x), 3); });", False),
        ("await (async () => { assert.equal(f(), 3); })();", False),
        ("for (const x of names()) assert.equal(f(x), 3);", True),
        ("if (f()) { assert.equal(f(), 3); }", True),
        ("switch (f()) { case 1: assert.equal(f(), 3); }", True),
        ("f() && assert.equal(f(), 3);", True),
        ("if (!f()) return; assert.equal(f(), 3);", True),
        ("if (!f()) t.skip(); assert.equal(f(), 3);", True),
        ("for (const x of [1]) { if (x) continue; g(); } assert.equal(f(), 3);", False),
        ("try { f(); } catch (e) { assert.equal(e.n, 3); }", True),
        ("try { assert.equal(f(), 3); } finally { g(); }", False),
    ],
)
def test_alteration_in_a_branch_or_loop_is_conditional(statement: str, is_conditional: bool):
    text = f"{NODE}test('it', async (t) => {{\n  {statement}\n}});\n"
    (literal,) = [item for item in alter(text, "it") if item.kind is AlterationKind.literal]
    assert literal.conditional is is_conditional


def test_literal_behind_a_constant_used_once_is_changed():
    assert alter_statement("const want = { a: 1 }; assert.deepEqual(f(), want);")[0] == (
        "literal",
        "const want = { a: 2 }; assert.deepEqual(f(), want);",
    )
    used_twice = alter_statement("const want = 3; g(want); assert.equal(f(), want);")
    assert [kind for kind, _ in used_twice] == ["negated"]
    not_constant = alter_statement("let want = 3; assert.equal(f(), want);")
    assert [kind for kind, _ in not_constant] == ["negated"]


@pytest.mark.parametrize(
    ("loop", "changed"),
    [
        (
            "for (const [a, want] of [[1, 'x'], [2, 'y']]) assert.equal(f(a), want);",
            "for (const [a, want] of [[1, 'x~'], [2, 'y']]) assert.equal(f(a), want);",
        ),
        (
            "for (const { a, out: want } of [{ a: 1, out: 5 }]) assert.equal(f(a), want);",
            "for (const { a, out: want } of [{ a: 1, out: 6 }]) assert.equal(f(a), want);",
        ),
        (
            "for (const row of [{ a: 1, want: 5 }]) assert.equal(f(row.a), row.want);",
            "for (const row of [{ a: 1, want: 6 }]) assert.equal(f(row.a), row.want);",
        ),
        (
            "[[1, 5]].forEach(([a, want]) => assert.equal(f(a), want));",
            "[[1, 6]].forEach(([a, want]) => assert.equal(f(a), want));",
        ),
        (
            "for (const [a, want] of [[1, 5], [2, 7]]) { if (g(a)) continue; assert.equal(f(a), want); }",
            "for (const [a, want] of [[1, 6], [2, 8]]) { if (g(a)) continue; assert.equal(f(a), want); }",
        ),
        ("for (const [a, want] of [[1, 5], [2, h()]]) { if (g(a)) assert.equal(f(a), want); }", None),
        ("for (const [a, want] of [[1, 5]]) { g(want); assert.equal(f(a), want); }", None),
    ],
)
def test_literal_in_a_table_is_changed(loop: str, changed: str | None):
    literals = [line for kind, line in alter_statement(loop) if kind == "literal"]
    assert literals == ([changed] if changed else [])


def test_every_row_is_changed_if_each_row_is_a_test():
    text = f"{NODE}const ROWS = [['a', 1], ['b', 2]];\nfor (const [given, want] of ROWS) {{\n"
    text += "  test(`of ${given}`, () => {\n    assert.equal(f(given), want);\n  });\n}\n"
    assert alter_test(text, "of b")[0] == ("literal", "const ROWS = [['a', 2], ['b', 3]];")
    text_with_value = text.replace("of ${given}", "of ${given} is ${want}")
    assert [item.kind for item in alter_test(text_with_value, "of b is 2")] == ["negated", "inserted"]


TITLES = """import { describe, it as check, test } from 'vitest';
describe('Cart', () => {
  describe(`of ${kind}`, () => {
    check('adds  a "line"', () => { expect(a()).toBe(1); });
  });
  test.each([[1, 2], [3, 4]])('%i and %i', (a, b) => { expect(f(a)).toBe(1); });
  test.concurrent('it\\'s', async () => { expect(b()).toBe(1); });
  test('twice', () => { expect(c()).toBe(1); });
  test('twice', () => { expect(d()).toBe(1); });
  test.skip('later', () => { expect(e()).toBe(1); });
  test.fails('known', () => { expect(g()).toBe(1); });
  test('given', { todo: true }, () => { expect(h()).toBe(1); });
  test('elsewhere', shared);
  it('asks', () => { const test = ask('/'); test.set('Type', 'a'); expect(j()).toBe(1); });
});
function shared() {
  expect(i()).toBe(1);
}
"""


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ('Cart > of pears > adds a "line"', "a()"),
        ("Cart > 3 and 4", "f(a)"),
        ("Cart > 3 and 4 [#2]", "f(a)"),
        ("Cart > asks ", "j()"),
        ("Cart > it's", "b()"),
        ("Cart > elsewhere", "i()"),
        ("Cart > asks", "j()"),
        ("Cart > asks > Type", None),
        ("Cart > twice", None),
        ("Cart > later", None),
        ("Cart > known", None),
        ("Cart > given", None),
        ("Cart > missing", None),
        ("Cart", None),
        ("", None),
    ],
)
def test_test_is_found_by_its_titles(name: str, call: str | None):
    literals = [item.text for item in alter_test(TITLES, name) if item.kind == "literal"]
    assert [f"expect({call}).toBe(2)" in line for line in literals] == ([True] if call else [])
    assert bool(alter_test(TITLES, name)) is (call is not None)


FAILED = f"""{NODE}function check(a) {{
  assert.equal(f(a), 7);
}}

test('it', async () => {{
  assert.equal(f(), 1);
  bus.on((event) => assert.equal(event.n, 3));
  assert.deepEqual(
    f(2),
    [5],
  );
  assert.throws(() => {{
    f(3);
  }}, RangeError);
  try {{
    f(4);
  }} catch (error) {{
    assert.equal(error.code, 9);
  }}
  if (f(5)) assert.fail();
  check(6);
}});
"""


def list_alterations(failed: str) -> list[tuple[str, str, int]]:
    """List the alterations for a failure in the line that holds this text, in order, with their line offsets."""
    line = 1 + next(index for index, text in enumerate(FAILED.splitlines()) if failed in text)
    return [(item.kind, find_changed_line(FAILED, item), item.line - line) for item in alter(FAILED, "it", line)]


def test_alterations_of_the_failed_line_come_first():
    assert list_alterations("event.n")[:4] == [
        ("literal", "bus.on((event) => assert.equal(event.n, 4));", 0),
        ("inserted", f"bus.on((event) => {{ {FAILING} }});", 0),
        ("negated", "bus.on((event) => assert.notEqual(event.n, 3));", 0),
        ("literal", "assert.equal(f(), 2);", -1),
    ]
    assert list_alterations("f(2)")[:3] == [
        ("literal", "[6],", 0),
        ("inserted", f"{FAILING} assert.deepEqual(", 0),
        ("negated", "assert.notDeepEqual(", 0),
    ]
    assert [item[:2] for item in list_alterations("f(3)")[:3]] == [
        ("inserted", f"{FAILING} assert.throws(() => {{"),
        ("negated", "assert.doesNotThrow(() => {"),
        ("unrelated", f"assert.throws(() => {{ throw {UNRELATED}; }}, RangeError);"),
    ]


def test_failure_in_a_helper_or_inside_a_try_block_is_altered_first():
    assert [item[:2] for item in list_alterations("f(a)")[:3]] == [
        ("literal", "assert.equal(f(a), 8);"),
        ("inserted", f"{FAILING} assert.equal(f(a), 7);"),
        ("negated", "assert.notEqual(f(a), 7);"),
    ]
    assert list_alterations("f(4)")[0] == ("inserted", f"{FAILING} try {{", 0)
    assert [kind for kind, *_ in list_alterations("f(4)")].count("inserted") == 1


def test_nothing_is_inserted_before_an_always_failing_statement():
    assert list_alterations("f(5)")[-1][:2] == ("inserted", f"{FAILING} check(6);")
    line = FAILED.splitlines().index("  if (f(5)) assert.fail();") + 1
    assert ALTERER.reach("test/a.test.js", FAILED.encode(), "it", line) is None


@pytest.mark.parametrize(
    ("statement", "earlier_case", "changed"),
    [
        ("assert.ok(f(3) == '3.00');", create_case("3", "3.00"), 'assert.ok(f(3) == "3");'),
        ("expect(f()).toBe(7);", create_case("6.5", "7"), "expect(f()).toBe(6.5);"),
        ("expect(f()).toBe(7);", create_case("[ 6 ]", "7"), None),
        ("expect(f()).toBe(seven);", create_case("6", "7"), None),
    ],
)
def test_former_wrong_value_becomes_the_expected_value(statement: str, earlier_case: Case, changed: str | None):
    text = f"{NODE}test('it', () => {{\n  {statement}\n}});\n"
    alterations = ALTERER.list_alterations("test/a.test.js", text.encode(), "it", 4, earlier_case)
    lines = [find_changed_line(text, item) for item in alterations if item.kind is AlterationKind.former]
    assert lines == ([changed] if changed else [])


def test_reach_inserts_a_failing_statement_at_an_existing_line():
    text = f"{NODE}test('it', () => {{\n  if (f())\n    assert.equal(g(), 3);\n  else h();\n}});\n"
    reach = ALTERER.reach("test/a.test.js", text.encode(), "it", 5)
    assert reach is not None
    assert (reach.kind, reach.conditional, reach.line) == (AlterationKind.inserted, True, 5)
    assert f"{{ {FAILING} assert.equal(g(), 3); }}\n  else h();" in reach.apply_to(text.encode()).decode()
    assert ALTERER.reach("test/a.test.js", text.encode(), "it", 99) is None
    assert ALTERER.reach("test/a.test.js", text.encode(), "other", 5) is None


def test_typescript_test_is_altered():
    text = "import { expect, test } from 'vitest';\ntest('it', () => {\n  const want = { a: 1 } as Row;\n"
    text += "  expect<Row>(f()!).toEqual(want);\n});\n"
    assert alter_test(text, "it", path="a.test.ts") == [
        ("literal", "const want = { a: 2 } as Row;"),
        ("negated", "expect<Row>(f()!).not.toEqual(want);"),
        ("inserted", f"{FAILING} expect<Row>(f()!).toEqual(want);"),
    ]


def test_file_with_a_syntax_error_is_left_alone():
    text = f"{NODE}test('it', () => {{ assert.equal(f(), 3);\n"
    assert alter(text, "it") == []
    assert ALTERER.rewrite_tests("test/a.test.js", text.encode(), "seed") == text.encode()


KEPT = f"""#!/usr/bin/env node
// @ts-check
'use strict';
{NODE}
// about this test
test('it', () => {{
  const sum = f();
  const short = 1;
  const spoken = 2;
  const work = () => 3;
  assert.deepEqual(g({{ short }}), 'spoken', spoken, work);
  assert.equal(sum, 3);
}});
"""


def test_harmless_changes_vary_by_seed_and_keep_names_used_elsewhere():
    texts = {ALTERER.rewrite_tests("a.test.js", KEPT.encode(), str(seed)).decode() for seed in range(20)}
    assert len(texts) > 5
    for text in texts:
        assert text.startswith("#!/usr/bin/env node\n// @ts-check\n'use strict';\n")
        assert "// about this test\ntest('it'" in text
        assert "const sum = " not in text
        assert "assert.equal(sum, 3)" not in text
        assert all(
            snippet in text for snippet in ("const short = 1;", "const spoken = 2;", "const work = ", "{ short }")
        )
        assert len(text.splitlines()) > len(KEPT.splitlines())
    assert ALTERER.rewrite_tests("a.test.js", KEPT.encode(), "7") == ALTERER.rewrite_tests(
        "a.test.js", KEPT.encode(), "7"
    )


def test_nothing_is_renamed_if_names_are_read_as_text():
    text = KEPT.replace("f();", "eval('f()');")
    assert "const sum = " in ALTERER.rewrite_tests("a.test.js", text.encode(), "1").decode()
