"""Syntax errors are found without running the script."""

from __future__ import annotations

import pytest

from redstart.toolkit.checks.narrow import syntax_errors
from redstart.toolkit.checks.syntax import syntax_findings


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.js", "const {a, ...b} = await import('x');\nclass A { #x = 1; static {} get y() { return a?.b ?? c; } }\n"),
        ("a.mjs", "export default async function* f() { for await (const x of y) yield x; }\n"),
        ("a.jsx", "const view = () => <p className='x'>{name}</p>;\n"),
        ("a.ts", "enum A { b }\nexport const f = <T,>(x: T): x is T => true;\ntype K = keyof typeof A;\n"),
        ("a.tsx", "export const v = <T,>(p: { x: T }) => <div>{String(p.x)}</div>;\n"),
        ("a.cts", "import fs = require('fs');\nlet x = <number>y;\n"),
        ("a.py", "def f(:\n"),
    ],
)
def test_what_can_be_read(path, text):
    assert syntax_findings({path: text.encode()}) == []


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.js", "let x = 1;\nlet y = ;\n", 2),
        ("a.ts", "const f = (x: number => x;\n", 1),
        ("a.js", "function f() {\n  return 1;\n", 3),
        ("a.js", "const a: number = 1;\n", 1),
    ],
)
def test_what_cannot_be_read(path, text, line):
    found = syntax_findings({path: text.encode()})
    assert [(item.path, item.rule) for item in found] == [(path, "syntax")]
    assert abs(found[0].line - line) <= 2
    assert syntax_errors(found) == found
