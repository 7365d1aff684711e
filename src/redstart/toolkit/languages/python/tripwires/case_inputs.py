"""Read what tests ask: which inputs they give to the code, and what they expect for them."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import PurePosixPath

from redstart.toolkit.languages.python.tripwires.casefiles import read_file_pairs
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    QuestionAndAnswer,
    TestLiterals,
    Value,
    create_pair,
    get_literal,
    pair_row,
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
_PROSE_SUFFIXES = (".txt", ".rst", ".md")
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
        if path.endswith(_PROSE_SUFFIXES):
            pairs += _read_examples(text.decode("utf-8", "replace"))
        if not path.endswith((".py", ".pyi", ".pyw")):
            pairs += islice(read_file_pairs(path, text), _MOST_FROM_FILES)
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        pairs += _find_pairs(tree)
        pools += _collect_pools(tree)
    pools += [pair.nested_values | {pair.expected} for pair in pairs]
    return TestLiterals(tuple(pairs), tuple(pools), frozenset(item for pair in pairs for item in pair.nested_values))


def is_configuration(path: str) -> bool:
    """Whether a file configures how tests run and does not say what they expect."""
    parts = PurePosixPath(path).parts
    return parts[-1] in _CONFIGURATION or any(part.startswith(".") for part in parts)


def _find_pairs(tree: ast.Module) -> Iterator[QuestionAndAnswer]:
    yield from _find_table_pairs(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    top = ast.Module([node for node in tree.body if not isinstance(node, definitions)], [])
    module_values = _map_values(top)
    for scope in (top, *functions):
        values_by_name = {**module_values, **_map_values(scope)}
        for item, other_item in _find_comparisons(scope):
            yield from _pair_operands(
                values_by_name.get(getattr(item, "id", ""), item),
                values_by_name.get(getattr(other_item, "id", ""), other_item),
                values_by_name,
            )
        yield from _find_raising_calls(scope, values_by_name)
    for node in (tree, *(item for item in ast.walk(tree) if isinstance(item, definitions))):
        yield from _read_examples(ast.get_docstring(node) or "")


def _map_values(scope: ast.AST) -> dict[str, ast.expr]:
    """Map a scope's names to their last assigned values: tests often name the actual and the expected value."""
    return {
        target.id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _find_comparisons(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
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


def _find_raising_calls(scope: ast.AST, values_by_name: Mapping[str, ast.expr]) -> Iterator[QuestionAndAnswer]:
    """Iterate over calls that must raise. They have no expected answer, but their inputs come from a test."""
    for node in ast.walk(scope):
        if isinstance(node, ast.With | ast.AsyncWith):
            if any(isinstance(item.context_expr, ast.Call) and _is_raises(item.context_expr) for item in node.items):
                calls = (item for line in node.body for item in ast.walk(line) if isinstance(item, ast.Call))
                yield from (_read_call(call, NONE_SUCH, values_by_name) for call in calls)
        elif isinstance(node, ast.Call) and _is_raises(node) and len(node.args) > 2:
            raising_call = ast.Call(node.args[1], node.args[2:], node.keywords)
            yield _read_call(raising_call, NONE_SUCH, values_by_name)


def _is_raises(node: ast.Call) -> bool:
    return _get_called_name(node) in _RAISES


def _find_table_pairs(tree: ast.Module) -> Iterator[QuestionAndAnswer]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List):
            yield from _pair_cells(node.elts)
        elif isinstance(node, ast.Call) and _get_called_name(node) in _ROWS:
            yield from _pair_cells([*node.args, *(keyword.value for keyword in node.keywords if keyword.arg != "id")])
        elif isinstance(node, ast.Dict):
            for key, item in zip(node.keys, node.values, strict=True):
                yield from _pair_entry(key, item)


def _pair_operands(
    first: ast.expr, second: ast.expr, values_by_name: Mapping[str, ast.expr]
) -> Iterator[QuestionAndAnswer]:
    for question, answer in ((first, second), (second, first)):
        expected = get_literal(_unwrap_call(answer))
        if expected is NONE_SUCH:
            continue
        for call in ast.walk(question):
            if isinstance(call, ast.Call) and (call.args or call.keywords):
                pair = _read_call(call, expected, values_by_name)
                if pair.inputs:
                    yield pair


def _read_call(call: ast.Call, expected: Value, values_by_name: Mapping[str, ast.expr]) -> QuestionAndAnswer:
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    inputs = [get_literal(values_by_name.get(getattr(arg, "id", ""), arg)) for arg in arguments]
    return create_pair(_get_called_name(call), [value for value in inputs if value is not NONE_SUCH], expected)


def _get_called_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _unwrap_call(node: ast.expr) -> ast.expr:
    """Return the argument of `pytest.approx(...)`, `Decimal(...)` and similar calls."""
    return node.args[0] if isinstance(node, ast.Call) and node.args and _get_called_name(node) in _WRAPS else node


def _pair_cells(cells: Iterable[ast.expr]) -> Iterator[QuestionAndAnswer]:
    yield from pair_row([value for cell in cells if (value := get_literal(_unwrap_call(cell))) is not NONE_SUCH])


def _pair_entry(key: ast.expr | None, value: ast.expr) -> Iterator[QuestionAndAnswer]:
    question, answer = get_literal(key), get_literal(value)
    if NONE_SUCH not in (question, answer):
        yield create_pair("", [question], answer)


def _collect_pools(tree: ast.Module) -> Iterator[frozenset[Value]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield frozenset(value for item in ast.walk(node) if (value := get_literal(item)) is not NONE_SUCH)


def _read_examples(text: str) -> Iterator[QuestionAndAnswer]:
    """Yield the examples of a docstring or of prose that consist of one call and one answer."""
    if not re.search(r"^\s*>>> ", text, re.MULTILINE):
        return
    try:
        examples = _PARSER.get_examples(text)
    except ValueError:
        return
    for example in examples:
        try:
            question, answer = ast.parse(example.source, mode="eval"), ast.parse(example.want.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        yield from _pair_operands(question.body, answer.body, {})
