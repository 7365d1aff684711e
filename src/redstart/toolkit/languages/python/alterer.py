"""Alter Python tests for pytest, unittest and doctest."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator

from redstart.core.report import Case
from redstart.toolkit.honesty.controls.alteration import FORMER, MOST_TELLING_FIRST, Alteration, AlterationKind
from redstart.toolkit.languages.python.alter_literals import change_expected_literals, change_subtracted_numbers
from redstart.toolkit.languages.python.alter_timing import slow_down
from redstart.toolkit.languages.python.former_values import build_former_exception, restore_former_value
from redstart.toolkit.languages.python.harmless_rewrites import rewrite_test_file
from redstart.toolkit.languages.python.statement_offsets import (
    FAILING_STATEMENT,
    FrameStatement,
    Function,
    SourceEdit,
    TestFile,
    can_catch,
    can_only_fail,
    is_catch_all,
)
from redstart.toolkit.languages.python.syntax import is_python

CHANGED = "its expected value is changed"
ASSERTION_NEGATED = "its assertion is turned round"
FORMER_RAISED = "the exception from before the patch is raised where it expects another"
EXCEPTION_NOT_RAISED = "nothing raises the exception that it expects"
AT_FAILURE = "a failing statement stands where it failed before"
AT_END = "a failing statement stands at its end"
UNRELATED = 'raise type("Unrelated", (Exception,), {})("~")'

_OPPOSITES = {
    "assertEqual": "assertNotEqual",
    "assertTrue": "assertFalse",
    "assertIn": "assertNotIn",
    "assertIs": "assertIsNot",
    "assertIsNone": "assertIsNotNone",
    "assertIsInstance": "assertNotIsInstance",
    "assertAlmostEqual": "assertNotAlmostEqual",
    "assertRegex": "assertNotRegex",
    "assertLess": "assertGreaterEqual",
    "assertGreater": "assertLessEqual",
}
_TURN = {**_OPPOSITES, **{opposite: name for name, opposite in _OPPOSITES.items()}}
_EQUALITIES = frozenset(
    f"assert{kind}Equal" for kind in ("", "Almost", "List", "Tuple", "Dict", "Set", "Sequence", "MultiLine", "Count")
)


class PythonAlterer:
    def list_alterations(
        self, path: str, text: bytes, name: str, failed: int | None, failure: Case | None = None
    ) -> list[Alteration]:
        try:
            if not path.endswith(".py"):
                return list(_alter_examples(text, 0, len(text)))
            file = TestFile(text)
        except (SyntaxError, ValueError, RecursionError):
            return []
        test = None if _is_example(name) else file.find_function(name)
        if test is None:
            return list(_alter_docstring(file, name))
        alterations = [*_restore_former(file, test, failed, failure), *_alter_test(file, test, failed)]
        valid = [alteration for alteration in alterations if is_python(alteration.apply_to(text))]
        return sorted(
            valid, key=lambda alteration: (alteration.line != failed, MOST_TELLING_FIRST.index(alteration.kind))
        )

    def reach(self, path: str, text: bytes, name: str, line: int) -> Alteration | None:
        del name
        if not path.endswith(".py"):
            return None
        try:
            file = TestFile(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        place = file.find_innermost(line)
        if place is None or can_only_fail(place.statement):
            return None
        insertion = _create_alteration(
            AlterationKind.inserted, place, file.insert_before(place.statement, FAILING_STATEMENT), AT_FAILURE
        )._replace(line=line)
        return insertion if is_python(insertion.apply_to(text)) else None

    def rewrite_tests(self, path: str, text: bytes, seed: str) -> bytes:
        if not path.endswith(".py"):
            return text
        rewritten = rewrite_test_file(text, f"{seed}/{path}")
        return rewritten if is_python(rewritten) else text


def _restore_former(file: TestFile, test: Function, failed: int | None, failure: Case | None) -> Iterator[Alteration]:
    place = file.find_innermost(failed) if failed is not None else None
    if place is None or failure is None:
        return
    for edit in restore_former_value(file, place.statement, failure):
        yield _create_alteration(AlterationKind.former, place, edit, FORMER)
    raise_statement = build_former_exception(failure)
    for enclosing in file.find_statements(test) if raise_statement else ():
        block = enclosing.statement
        if isinstance(block, ast.With) and place.statement in block.body and _find_expected_exceptions(block):
            yield _create_alteration(
                AlterationKind.former,
                place,
                file.replace(block.body[0], block.body[-1], raise_statement.encode()),
                FORMER_RAISED,
            )


def _alter_test(file: TestFile, test: Function, failed: int | None) -> Iterator[Alteration]:
    places = list(file.find_statements(test))
    for place in places:
        if not can_only_fail(place.statement):
            yield from _alter_statement(file, test, place)
    yield from slow_down(file, test)
    at_failure = PythonAlterer().reach("a.py", file.text, "", failed) if failed is not None else None
    if at_failure is not None:
        yield at_failure
    elif places:
        last = places[-1]
        yield _create_alteration(
            AlterationKind.inserted, last, file.insert_before(last.statement, FAILING_STATEMENT), AT_END
        )


def _alter_statement(file: TestFile, test: Function, place: FrameStatement) -> Iterator[Alteration]:
    match place.statement:
        case ast.Assert(test=condition):
            yield from _alter_assertion(file, test, place, condition)
        case ast.Expr(value=ast.Call(func=ast.Attribute() as method) as call):
            yield from _alter_call(file, test, place, call, method)
        case ast.With() | ast.AsyncWith() as block:
            yield from _alter_raises(file, place, block)
        case _:
            return


def _alter_assertion(
    file: TestFile, test: Function, place: FrameStatement, condition: ast.expr
) -> Iterator[Alteration]:
    negated = b"not (" + file.get_source(condition) + b")"
    yield _create_alteration(
        AlterationKind.negated, place, file.replace(condition, condition, negated), ASSERTION_NEGATED
    )
    if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
        (operator,), operands = condition.ops, (condition.left, *condition.comparators)
        if isinstance(operator, ast.Eq | ast.In):
            yield from _alter_literals(file, test, place, operands, equal=isinstance(operator, ast.Eq))
        elif isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            for edit in change_subtracted_numbers(file, test, operands):
                yield _create_alteration(AlterationKind.other, place, edit, CHANGED)


def _alter_call(
    file: TestFile, test: Function, place: FrameStatement, call: ast.Call, method: ast.Attribute
) -> Iterator[Alteration]:
    if method.attr in _TURN and isinstance(method.value, ast.Name):
        end = file.end(method)
        edit = SourceEdit(end - len(method.attr), end, _TURN[method.attr].encode())
        yield _create_alteration(AlterationKind.negated, place, edit, ASSERTION_NEGATED)
    if method.attr in _EQUALITIES and len(call.args) >= 2:
        yield from _alter_literals(file, test, place, call.args[:2], equal=True)
    if method.attr == "assertRaises" and len(call.args) >= 2 and not is_catch_all(call.args[0]):
        silent_edit = file.replace(call.args[1], call.args[1], b"(lambda *args, **named: None)")
        yield _create_alteration(AlterationKind.negated, place, silent_edit, EXCEPTION_NOT_RAISED)


def _alter_literals(
    file: TestFile,
    test: Function,
    place: FrameStatement,
    operands: tuple[ast.expr, ...] | list[ast.expr],
    *,
    equal: bool,
) -> Iterator[Alteration]:
    for change in change_expected_literals(file, test, operands):
        kind = AlterationKind.literal if equal and change.is_certain else AlterationKind.other
        yield _create_alteration(kind, place, change.edit, CHANGED)


def _alter_raises(file: TestFile, place: FrameStatement, block: ast.With | ast.AsyncWith) -> Iterator[Alteration]:
    for kind in _find_expected_exceptions(block):
        first, last = block.body[0], block.body[-1]
        yield _create_alteration(
            AlterationKind.negated, place, file.replace(first, last, b"pass"), EXCEPTION_NOT_RAISED
        )
        message = f"an unrelated exception is raised where it expects {ast.unparse(kind)[:60]}"
        yield _create_alteration(
            AlterationKind.unrelated, place, file.replace(first, last, UNRELATED.encode()), message
        )


def _find_expected_exceptions(block: ast.With | ast.AsyncWith) -> list[ast.expr]:
    """Return the exception that a block expects; empty for other blocks and if a failing assertion matches it."""
    match block.items:
        case [ast.withitem(context_expr=ast.Call(func=function, args=[kind, *_]) as context)] if can_catch(context):
            return [] if "suppress" in ast.unparse(function) or is_catch_all(kind) else [kind]
        case _:
            return []


def _create_alteration(kind: AlterationKind, place: FrameStatement, edit: SourceEdit, message: str) -> Alteration:
    return Alteration(kind, place.statement.lineno, edit.start, edit.end, edit.new, message, place.conditional)


def _is_example(name: str) -> bool:
    """Whether a test name denotes an object's docstring: `module.function` rather than a test function or method."""
    return "::" not in name and "." in name and not name.rpartition(".")[2].startswith("test")


def _alter_docstring(file: TestFile, name: str) -> Iterator[Alteration]:
    """Alter the examples of the object that a doctest ID names: `module.Class.method`, or `module` for the module."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False):
            own_name = name.rpartition(".")[2]
            is_named = own_name == name if isinstance(node, ast.Module) else own_name == node.name
            text = node.body[0]
            if is_named and isinstance(text, ast.Expr):
                quotes = 3 if file.get_source(text).endswith((b'"""', b"'''")) else 1
                yield from _alter_examples(file.text, file.start(text), file.end(text) - quotes)


def _alter_examples(text: bytes, start: int, end: int) -> Iterator[Alteration]:
    """Change the expected output of each example. The text is read exactly as it is in the file."""
    lines = text[start:end].decode("utf-8", "replace").splitlines(keepends=True)
    first_line = text[:start].count(b"\n") + 1
    try:
        examples = doctest.DocTestParser().get_examples("".join(lines))
    except ValueError:
        return
    for example in examples:
        number = example.lineno + example.source.count("\n")
        if not example.want.strip() or example.exc_msg is not None or number >= len(lines):
            continue
        offset = start + sum(len(line.encode()) for line in lines[:number]) + len(lines[number].rstrip().encode())
        yield Alteration(
            AlterationKind.literal,
            first_line + number,
            offset,
            offset,
            b"~",
            "the output of an example is changed",
            always=True,
        )
