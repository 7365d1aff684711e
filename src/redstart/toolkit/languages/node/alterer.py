"""Altered tests in JavaScript and TypeScript, for node's own runner, Jest, Vitest and Mocha."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.core.report import Case
from redstart.toolkit.honesty.controls.alteration import FORMER, MOST_TELLING_FIRST, Alteration, AlterationKind
from redstart.toolkit.languages.node.script_asserts import is_assertion, list_assertion_changes
from redstart.toolkit.languages.node.script_context import (
    can_only_fail,
    describe_context,
    find_enclosing_statement,
    find_statement_at,
)
from redstart.toolkit.languages.node.script_file import ScriptFile, ScriptTest, read_script
from redstart.toolkit.languages.node.script_rewrites import rewrite_script
from redstart.toolkit.languages.node.trees import find_syntax_errors, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FAILING_STATEMENT = b'throw new Error("~");'
_AT_FAILURE = "a failing statement stands where it failed before"
_AT_END = "a failing statement stands at its end"


class JavaScriptAlterer:
    """Alters scripts by their syntax trees; a file with syntax errors is left alone."""

    def list_alterations(
        self, path: str, text: bytes, name: str, failed: int | None, failure: Case | None = None
    ) -> list[Alteration]:
        file = read_script(path, text)
        test = file.find(name) if file.is_readable else None
        if test is None:
            return []
        unit = find_statement_at(file, failed) if failed else None
        first: list[Alteration] = []
        if failed and unit is not None:
            alteration = (
                *_replace_with_former(unit, test, failed, failure),
                *_alter_failed_statement(file, test, unit, failed),
            )
            first = sorted(alteration, key=lambda alteration: MOST_TELLING_FIRST.index(alteration.kind))
        rest = list(_alter_callback(file, test, unit))
        if not any(alteration.kind is AlterationKind.inserted for alteration in first):
            rest += _fail_at_end(test)
        return [alteration for alteration in (*first, *rest) if not find_syntax_errors(path, alteration.apply_to(text))]

    def reach(self, path: str, text: bytes, name: str, line: int) -> Alteration | None:
        file = read_script(path, text)
        test = file.find(name) if file.is_readable else None
        if test is None or (unit := find_statement_at(file, line)) is None:
            return None
        alteration = _insert_failure(unit, test, line, _AT_FAILURE)
        return (
            alteration if alteration is not None and not find_syntax_errors(path, alteration.apply_to(text)) else None
        )

    def rewrite_tests(self, path: str, text: bytes, seed: str) -> bytes:
        new_text = rewrite_script(read_script(path, text), seed)
        return text if find_syntax_errors(path, new_text) else new_text


def _replace_with_former(unit: Node, test: ScriptTest, line: int, failure: Case | None) -> Iterator[Alteration]:
    """Replace the expected literal by the value that the original code returned."""
    if failure is None or failure.actual is None or failure.expected in (None, failure.actual):
        return
    for node in walk(unit):
        text = (node.text or b"").decode(errors="replace")
        if node.type == "string" and text[1:-1] == failure.expected:
            new = json.dumps(failure.actual)
        elif node.type == "number" and text == failure.expected and _NUMBER.fullmatch(failure.actual):
            new = failure.actual
        else:
            continue
        conditional = describe_context(node, test.callback).conditional
        yield Alteration(AlterationKind.former, line, node.start_byte, node.end_byte, new.encode(), FORMER, conditional)
        return


def _alter_failed_statement(file: ScriptFile, test: ScriptTest, unit: Node, line: int) -> Iterator[Alteration]:
    if (alteration := _insert_failure(unit, test, line, _AT_FAILURE)) is None:
        return
    yield alteration
    for node in walk(unit):
        if (
            is_assertion(node, file)
            and find_enclosing_statement(node) == unit
            and describe_context(node, None).guarded is None
        ):
            yield from _alter_assertion(node, file, test, line)


def _alter_callback(file: ScriptFile, test: ScriptTest, apart: Node | None) -> Iterator[Alteration]:
    """Alter the assertions in the test's own frame, except those of the statement `apart`."""
    for node in walk(test.callback) if test.callback is not None else ():
        if not is_assertion(node, file):
            continue
        unit = find_enclosing_statement(node)
        place = describe_context(node, test.callback)
        if place.is_own_frame and place.guarded is None and unit != apart and not can_only_fail(unit):
            yield from _alter_assertion(node, file, test, unit.start_point[0] + 1)


def _alter_assertion(node: Node, file: ScriptFile, test: ScriptTest, line: int) -> Iterator[Alteration]:
    conditional = describe_context(node, test.callback).conditional
    for change in list_assertion_changes(node, file, test.callback):
        yield Alteration(change.kind, line, *change.edit, change.message, conditional)


def _fail_at_end(test: ScriptTest) -> list[Alteration]:
    body = test.callback.child_by_field_name("body") if test.callback is not None else None
    if body is None:
        return []
    is_block = body.type == "statement_block"
    statements = [node for node in body.named_children if node.type != "comment"] if is_block else [body]
    alteration = (
        _insert_failure(statements[-1], test, statements[-1].start_point[0] + 1, _AT_END) if statements else None
    )
    return [alteration] if alteration is not None else []


def _insert_failure(unit: Node, test: ScriptTest, line: int, words: str) -> Alteration | None:
    """Insert a failing statement before another, or in place of the expression that an arrow function returns."""
    parent = unit.parent
    if parent is None or can_only_fail(unit):
        return None
    conditional = describe_context(unit, test.callback).conditional
    start, end, new = unit.start_byte, unit.start_byte, _FAILING_STATEMENT + b" "
    if parent.type == "arrow_function":
        end, new = unit.end_byte, b"{ " + _FAILING_STATEMENT + b" }"
    elif parent.type not in ("program", "statement_block", "switch_case", "switch_default"):
        end, new = unit.end_byte, b"{ " + _FAILING_STATEMENT + b" " + (unit.text or b"") + b" }"
    return Alteration(AlterationKind.inserted, line, start, end, new, words, conditional)
