"""Read what tests ask: which inputs they give to the code, and what they expect for them."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from redstart.toolkit.languages.python.tripwires.casefiles import pairs_of_file
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    QuestionAndAnswer,
    TestLiterals,
    Value,
    pair_of,
    pairs_of_row,
    value_of,
)

_EQUALS = frozenset(
    [
        "assertEqual",
        "assertEquals",
        "assertListEqual",
        "assertDictEqual",
        "assertTupleEqual",
        "assertSetEqual",
        "assertSequenceEqual",
        "assertCountEqual",
        "assertAlmostEqual",
        "assertMultiLineEqual",
        "assertIs",
        "assertIn",
    ]
)
_RAISES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assert_raises"})
_WRAPS = frozenset({"approx", "Decimal", "Fraction", "set", "frozenset", "tuple", "list", "float", "param"})
_ROWS = frozenset({"param", "subTest", "example", "case", "Case"})
"""Calls that represent one row of a table of cases."""
_CONFIGURATION = frozenset(
    ["pyproject.toml", "pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "mypy.ini", "noxfile.py", "package.json"]
)
_WRITTEN = (".txt", ".rst", ".md")
"""Suffixes of prose files that may contain examples."""
_MOST_FROM_FILES = 20_000
_PARSER = doctest.DocTestParser()


def read_tests(tests: Mapping[str, bytes]) -> TestLiterals:
    """Read the questions and answers of all test files and their data. A file that cannot be read adds nothing."""
    pairs: list[QuestionAndAnswer] = []
    pools: list[frozenset[Value]] = []
    for path, text in tests.items():
        if is_configuration(path):
            continue
        if path.endswith(_WRITTEN):
            pairs += _examples(text.decode("utf-8", "replace"))
        if not path.endswith((".py", ".pyi", ".pyw")):
            pairs += islice(pairs_of_file(path, text), _MOST_FROM_FILES)
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        pairs += _pairs(tree)
        pools += _pools(tree)
    pools += [pair.within | {pair.expected} for pair in pairs]
    return TestLiterals(tuple(pairs), tuple(pools), frozenset(item for pair in pairs for item in pair.within))


def is_configuration(path: str) -> bool:
    """Whether a file configures how tests run and does not say what they expect."""
    parts = PurePosixPath(path).parts
    return parts[-1] in _CONFIGURATION or any(part.startswith(".") for part in parts)


def _pairs(tree: ast.Module) -> Iterator[QuestionAndAnswer]:
    yield from _tables(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    top = ast.Module([node for node in tree.body if not isinstance(node, definitions)], [])
    everywhere = _named(top)
    for scope in (top, *functions):
        named = {**everywhere, **_named(scope)}
        for item, other in _compared(scope):
            yield from _sides(
                named.get(getattr(item, "id", ""), item), named.get(getattr(other, "id", ""), other), named
            )
        yield from _refused(scope, named)
    for node in (tree, *(item for item in ast.walk(tree) if isinstance(item, definitions))):
        yield from _examples(ast.get_docstring(node) or "")


def _named(scope: ast.AST) -> dict[str, ast.expr]:
    """Map a scope's names to their last assigned values: tests often name the actual and the expected value."""
    return {
        target.id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _compared(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Iterate over the pairs of expressions that a scope's assertions compare."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.Is):
            yield node.left, node.comparators[0]
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.Call):
            yield node.test, ast.Constant(True)
        elif isinstance(node, ast.Assert) and isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            yield node.test.operand, ast.Constant(False)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in _EQUALS and len(node.args) > 1:
                yield node.args[0], node.args[1]
            elif node.func.attr in ("assertTrue", "assertFalse", "assertIsNone") and node.args:
                yield node.args[0], ast.Constant({"assertTrue": True, "assertFalse": False}.get(node.func.attr))


def _refused(scope: ast.AST, named: Mapping[str, ast.expr]) -> Iterator[QuestionAndAnswer]:
    """Iterate over calls that must raise. They have no expected answer, but their inputs come from a test."""
    for node in ast.walk(scope):
        if isinstance(node, ast.With | ast.AsyncWith):
            if any(isinstance(item.context_expr, ast.Call) and _is_raises(item.context_expr) for item in node.items):
                calls = (item for line in node.body for item in ast.walk(line) if isinstance(item, ast.Call))
                yield from (_asked(call, NONE_SUCH, named) for call in calls)
        elif isinstance(node, ast.Call) and _is_raises(node) and len(node.args) > 2:
            given = ast.Call(node.args[1], node.args[2:], node.keywords)
            yield _asked(given, NONE_SUCH, named)


def _is_raises(node: ast.Call) -> bool:
    return _called(node) in _RAISES


def _tables(tree: ast.Module) -> Iterator[QuestionAndAnswer]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List):
            yield from _row(node.elts)
        elif isinstance(node, ast.Call) and _called(node) in _ROWS:
            yield from _row([*node.args, *(word.value for word in node.keywords if word.arg != "id")])
        elif isinstance(node, ast.Dict):
            for key, item in zip(node.keys, node.values, strict=True):
                yield from _keyed(key, item)


def _sides(one: ast.expr, other: ast.expr, named: Mapping[str, ast.expr]) -> Iterator[QuestionAndAnswer]:
    for asked, wanted in ((one, other), (other, one)):
        expected = value_of(_bare(wanted))
        if expected is NONE_SUCH:
            continue
        for call in ast.walk(asked):
            if isinstance(call, ast.Call) and (call.args or call.keywords):
                found = _asked(call, expected, named)
                if found.inputs:
                    yield found


def _asked(call: ast.Call, expected: Value, named: Mapping[str, ast.expr]) -> QuestionAndAnswer:
    words = (*call.args, *(word.value for word in call.keywords))
    given = [value_of(named.get(getattr(arg, "id", ""), arg)) for arg in words]
    return pair_of(_called(call), [value for value in given if value is not NONE_SUCH], expected)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _bare(node: ast.expr) -> ast.expr:
    """Return the argument of `pytest.approx(...)`, `Decimal(...)` and similar calls."""
    return node.args[0] if isinstance(node, ast.Call) and node.args and _called(node) in _WRAPS else node


def _row(cells: Iterable[ast.expr]) -> Iterator[QuestionAndAnswer]:
    yield from pairs_of_row([value for cell in cells if (value := value_of(_bare(cell))) is not NONE_SUCH])


def _keyed(key: ast.expr | None, one: ast.expr) -> Iterator[QuestionAndAnswer]:
    asked, wanted = value_of(key), value_of(one)
    if NONE_SUCH not in (asked, wanted):
        yield pair_of("", [asked], wanted)


def _pools(tree: ast.Module) -> Iterator[frozenset[Value]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield frozenset(value for item in ast.walk(node) if (value := value_of(item)) is not NONE_SUCH)


def _examples(text: str) -> Iterator[QuestionAndAnswer]:
    """Yield the examples of a docstring or of prose that consist of one call and one answer."""
    if not re.search(r"^\s*>>> ", text, re.MULTILINE):
        return
    try:
        examples = _PARSER.get_examples(text)
    except ValueError:
        return
    for example in examples:
        try:
            asked, wanted = ast.parse(example.source, mode="eval"), ast.parse(example.want.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        yield from _sides(asked.body, wanted.body, {})
