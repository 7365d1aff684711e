"""Syntax errors are found without running the script."""

from __future__ import annotations

import pytest

from redstart.toolkit.checks.selection import select_syntax_errors
from redstart.toolkit.checks.syntax import find_syntax_errors


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
def test_script_without_syntax_error_has_no_finding(path, text):
    assert find_syntax_errors({path: text.encode()}) == []


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.js", "let x = 1;\nlet y = ;\n", 2),
        ("a.ts", "const f = (x: number => x;\n", 1),
        ("a.js", "function f() {\n  return 1;\n", 3),
        ("a.js", "const a: number = 1;\n", 1),
    ],
)
def test_syntax_error_is_found(path, text, line):
    findings = find_syntax_errors({path: text.encode()})
    assert [(item.path, item.rule) for item in findings] == [(path, "syntax")]
    assert abs(findings[0].line - line) <= 2
    assert select_syntax_errors(findings) == findings
