"""Alter Python tests for pytest, unittest and doctest."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator

from redstart.core.report import Case
from redstart.toolkit.honesty.controls.alteration import FORMER, MOST_TELLING_FIRST, Alteration, AlterationKind
from redstart.toolkit.languages.python.alter_former import former, former_exception
from redstart.toolkit.languages.python.alter_harmless import rearranged
from redstart.toolkit.languages.python.alter_literals import expected, subtracted
from redstart.toolkit.languages.python.alter_timing import slowed
from redstart.toolkit.languages.python.read_tests import (
    FAILING,
    FrameStatement,
    Function,
    SourceEdit,
    TestFile,
    can_only_fail,
    catches,
    expects_any,
)
from redstart.toolkit.languages.python.syntax import is_python

CHANGED = "its expected value is changed"
TURNED = "its assertion is turned round"
FORMER_RAISED = "the exception from before the patch is raised where it expects another"
SILENT = "nothing raises the exception that it expects"
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
_TURN = {**_OPPOSITES, **{turned: name for name, turned in _OPPOSITES.items()}}
_EQUALITIES = frozenset(
    f"assert{kind}Equal" for kind in ("", "Almost", "List", "Tuple", "Dict", "Set", "Sequence", "MultiLine", "Count")
)


class PythonAlterer:
    def alterations(
        self, path: str, text: bytes, name: str, failed: int | None, seen: Case | None = None
    ) -> list[Alteration]:
        try:
            if not path.endswith(".py"):
                return list(_examples(text, 0, len(text)))
            file = TestFile(text)
        except (SyntaxError, ValueError, RecursionError):
            return []
        test = None if _is_example(name) else file.function(name)
        if test is None:
            return list(_docstring_examples(file, name))
        alterations = [*_formers(file, test, failed, seen), *_alterations(file, test, failed)]
        readable = [alteration for alteration in alterations if is_python(alteration.of(text))]
        return sorted(
            readable, key=lambda alteration: (alteration.line != failed, MOST_TELLING_FIRST.index(alteration.kind))
        )

    def reach(self, path: str, text: bytes, name: str, line: int) -> Alteration | None:
        del name
        if not path.endswith(".py"):
            return None
        try:
            file = TestFile(text)
        except (SyntaxError, ValueError, RecursionError):
            return None
        place = file.innermost(line)
        if place is None or can_only_fail(place.statement):
            return None
        inserted = _made(
            AlterationKind.inserted, place, file.insert_before(place.statement, FAILING), AT_FAILURE
        )._replace(line=line)
        return inserted if is_python(inserted.of(text)) else None

    def harmless(self, path: str, text: bytes, seed: str) -> bytes:
        if not path.endswith(".py"):
            return text
        altered = rearranged(text, f"{seed}/{path}")
        return altered if is_python(altered) else text


def _formers(file: TestFile, test: Function, failed: int | None, seen: Case | None) -> Iterator[Alteration]:
    place = file.innermost(failed) if failed is not None else None
    if place is None or seen is None:
        return
    for edit in former(file, place.statement, seen):
        yield _made(AlterationKind.former, place, edit, FORMER)
    raised = former_exception(seen)
    for outer in file.places(test) if raised else ():
        block = outer.statement
        if isinstance(block, ast.With) and place.statement in block.body and _expected_kinds(block):
            yield _made(
                AlterationKind.former,
                place,
                file.replace(block.body[0], block.body[-1], raised.encode()),
                FORMER_RAISED,
            )


def _alterations(file: TestFile, test: Function, failed: int | None) -> Iterator[Alteration]:
    places = list(file.places(test))
    for place in places:
        if not can_only_fail(place.statement):
            yield from _of_statement(file, test, place)
    yield from slowed(file, test)
    at_failure = PythonAlterer().reach("a.py", file.text, "", failed) if failed is not None else None
    if at_failure is not None:
        yield at_failure
    elif places:
        last = places[-1]
        yield _made(AlterationKind.inserted, last, file.insert_before(last.statement, FAILING), AT_END)


def _of_statement(file: TestFile, test: Function, place: FrameStatement) -> Iterator[Alteration]:
    match place.statement:
        case ast.Assert(test=asserted):
            yield from _of_assertion(file, test, place, asserted)
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called) as call):
            yield from _of_call(file, test, place, call, called)
        case ast.With() | ast.AsyncWith() as block:
            yield from _of_raises(file, place, block)
        case _:
            return


def _of_assertion(file: TestFile, test: Function, place: FrameStatement, asserted: ast.expr) -> Iterator[Alteration]:
    negated = b"not (" + file.source(asserted) + b")"
    yield _made(AlterationKind.negated, place, file.replace(asserted, asserted, negated), TURNED)
    if isinstance(asserted, ast.Compare) and len(asserted.ops) == 1:
        (operator,), sides = asserted.ops, (asserted.left, *asserted.comparators)
        if isinstance(operator, ast.Eq | ast.In):
            yield from _literals(file, test, place, sides, equal=isinstance(operator, ast.Eq))
        elif isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            for edit in subtracted(file, test, sides):
                yield _made(AlterationKind.other, place, edit, CHANGED)


def _of_call(
    file: TestFile, test: Function, place: FrameStatement, call: ast.Call, called: ast.Attribute
) -> Iterator[Alteration]:
    if called.attr in _TURN and isinstance(called.value, ast.Name):
        end = file.end(called)
        edit = SourceEdit(end - len(called.attr), end, _TURN[called.attr].encode())
        yield _made(AlterationKind.negated, place, edit, TURNED)
    if called.attr in _EQUALITIES and len(call.args) >= 2:
        yield from _literals(file, test, place, call.args[:2], equal=True)
    if called.attr == "assertRaises" and len(call.args) >= 2 and not expects_any(call.args[0]):
        silent = file.replace(call.args[1], call.args[1], b"(lambda *args, **named: None)")
        yield _made(AlterationKind.negated, place, silent, SILENT)


def _literals(
    file: TestFile, test: Function, place: FrameStatement, sides: tuple[ast.expr, ...] | list[ast.expr], *, equal: bool
) -> Iterator[Alteration]:
    for change in expected(file, test, sides):
        kind = AlterationKind.literal if equal and change.certain else AlterationKind.other
        yield _made(kind, place, change.edit, CHANGED)


def _of_raises(file: TestFile, place: FrameStatement, block: ast.With | ast.AsyncWith) -> Iterator[Alteration]:
    for kind in _expected_kinds(block):
        first, last = block.body[0], block.body[-1]
        yield _made(AlterationKind.negated, place, file.replace(first, last, b"pass"), SILENT)
        words = f"an unrelated exception is raised where it expects {ast.unparse(kind)[:60]}"
        yield _made(AlterationKind.unrelated, place, file.replace(first, last, UNRELATED.encode()), words)


def _expected_kinds(block: ast.With | ast.AsyncWith) -> list[ast.expr]:
    """Return the exception that a block expects; empty for other blocks and if a failing assertion matches it."""
    match block.items:
        case [ast.withitem(context_expr=ast.Call(func=function, args=[kind, *_]) as context)] if catches(context):
            return [] if "suppress" in ast.unparse(function) or expects_any(kind) else [kind]
        case _:
            return []


def _made(kind: AlterationKind, place: FrameStatement, edit: SourceEdit, words: str) -> Alteration:
    return Alteration(kind, place.statement.lineno, edit.start, edit.end, edit.new, words, place.conditional)


def _is_example(name: str) -> bool:
    """Whether a test name denotes an object's docstring: `module.function` rather than a test function or method."""
    return "::" not in name and "." in name and not name.rpartition(".")[2].startswith("test")


def _docstring_examples(file: TestFile, name: str) -> Iterator[Alteration]:
    """Alter the examples of the object that a doctest ID names: `module.Class.method`, or `module` for the module."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node, clean=False):
            own = name.rpartition(".")[2]
            is_named = own == name if isinstance(node, ast.Module) else own == node.name
            text = node.body[0]
            if is_named and isinstance(text, ast.Expr):
                quotes = 3 if file.source(text).endswith((b'"""', b"'''")) else 1
                yield from _examples(file.text, file.start(text), file.end(text) - quotes)


def _examples(text: bytes, start: int, end: int) -> Iterator[Alteration]:
    """Change the expected output of each example. The text is read exactly as it is in the file."""
    lines = text[start:end].decode("utf-8", "replace").splitlines(keepends=True)
    first = text[:start].count(b"\n") + 1
    try:
        examples = doctest.DocTestParser().get_examples("".join(lines))
    except ValueError:
        return
    for example in examples:
        number = example.lineno + example.source.count("\n")
        if not example.want.strip() or example.exc_msg is not None or number >= len(lines):
            continue
        at = start + sum(len(line.encode()) for line in lines[:number]) + len(lines[number].rstrip().encode())
        yield Alteration(
            AlterationKind.literal, first + number, at, at, b"~", "the output of an example is changed", always=True
        )
