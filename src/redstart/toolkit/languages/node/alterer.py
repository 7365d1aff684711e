"""Altered tests in JavaScript and TypeScript, for node's own runner, Jest, Vitest and Mocha."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.core.report import Case
from redstart.toolkit.honesty.controls.alteration import FORMER, MOST_TELLING_FIRST, Alteration, AlterationKind
from redstart.toolkit.languages.node.script_asserts import changes, is_assertion
from redstart.toolkit.languages.node.script_file import ScriptFile, ScriptTest, read_script
from redstart.toolkit.languages.node.script_harmless import rewritten
from redstart.toolkit.languages.node.script_places import (
    can_only_fail,
    standing,
    unit_at,
    unit_of,
)
from redstart.toolkit.languages.node.trees import faults, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FAILING = b'throw new Error("~");'
_AT_FAILURE = "a failing statement stands where it failed before"
_AT_END = "a failing statement stands at its end"


class JavaScriptAlterer:
    """Alters scripts by their syntax trees; a file with syntax errors is left alone."""

    def alterations(
        self, path: str, text: bytes, name: str, failed: int | None, seen: Case | None = None
    ) -> list[Alteration]:
        file = read_script(path, text)
        test = file.find(name) if file.readable else None
        if test is None:
            return []
        unit = unit_at(file, failed) if failed else None
        first: list[Alteration] = []
        if failed and unit is not None:
            made = (*_formers(unit, test, failed, seen), *_of_failure(file, test, unit, failed))
            first = sorted(made, key=lambda made: MOST_TELLING_FIRST.index(made.kind))
        rest = list(_of_callback(file, test, unit))
        if not any(made.kind is AlterationKind.inserted for made in first):
            rest += _at_end(test)
        return [made for made in (*first, *rest) if not faults(path, made.of(text))]

    def reach(self, path: str, text: bytes, name: str, line: int) -> Alteration | None:
        file = read_script(path, text)
        test = file.find(name) if file.readable else None
        if test is None or (unit := unit_at(file, line)) is None:
            return None
        made = _inserted(unit, test, line, _AT_FAILURE)
        return made if made is not None and not faults(path, made.of(text)) else None

    def harmless(self, path: str, text: bytes, seed: str) -> bytes:
        made = rewritten(read_script(path, text), seed)
        return text if faults(path, made) else made


def _formers(unit: Node, test: ScriptTest, line: int, seen: Case | None) -> Iterator[Alteration]:
    """Replace the expected literal by the value that the original code returned."""
    if seen is None or seen.actual is None or seen.expected in (None, seen.actual):
        return
    for node in walk(unit):
        text = (node.text or b"").decode(errors="replace")
        if node.type == "string" and text[1:-1] == seen.expected:
            new = json.dumps(seen.actual)
        elif node.type == "number" and text == seen.expected and _NUMBER.fullmatch(seen.actual):
            new = seen.actual
        else:
            continue
        conditional = standing(node, test.callback).conditional
        yield Alteration(AlterationKind.former, line, node.start_byte, node.end_byte, new.encode(), FORMER, conditional)
        return


def _of_failure(file: ScriptFile, test: ScriptTest, unit: Node, line: int) -> Iterator[Alteration]:
    if (made := _inserted(unit, test, line, _AT_FAILURE)) is None:
        return
    yield made
    for node in walk(unit):
        if is_assertion(node, file) and unit_of(node) == unit and standing(node, None).guarded is None:
            yield from _changed(node, file, test, line)


def _of_callback(file: ScriptFile, test: ScriptTest, apart: Node | None) -> Iterator[Alteration]:
    """Alter the assertions in the test's own frame, except those of the statement `apart`."""
    for node in walk(test.callback) if test.callback is not None else ():
        if not is_assertion(node, file):
            continue
        unit = unit_of(node)
        place = standing(node, test.callback)
        if place.own and place.guarded is None and unit != apart and not can_only_fail(unit):
            yield from _changed(node, file, test, unit.start_point[0] + 1)


def _changed(node: Node, file: ScriptFile, test: ScriptTest, line: int) -> Iterator[Alteration]:
    conditional = standing(node, test.callback).conditional
    for change in changes(node, file, test.callback):
        yield Alteration(change.kind, line, *change.edit, change.words, conditional)


def _at_end(test: ScriptTest) -> list[Alteration]:
    body = test.callback.child_by_field_name("body") if test.callback is not None else None
    if body is None:
        return []
    is_block = body.type == "statement_block"
    statements = [node for node in body.named_children if node.type != "comment"] if is_block else [body]
    made = _inserted(statements[-1], test, statements[-1].start_point[0] + 1, _AT_END) if statements else None
    return [made] if made is not None else []


def _inserted(unit: Node, test: ScriptTest, line: int, words: str) -> Alteration | None:
    """Insert a failing statement before another, or in place of the expression that an arrow function returns."""
    parent = unit.parent
    if parent is None or can_only_fail(unit):
        return None
    conditional = standing(unit, test.callback).conditional
    start, end, new = unit.start_byte, unit.start_byte, _FAILING + b" "
    if parent.type == "arrow_function":
        end, new = unit.end_byte, b"{ " + _FAILING + b" }"
    elif parent.type not in ("program", "statement_block", "switch_case", "switch_default"):
        end, new = unit.end_byte, b"{ " + _FAILING + b" " + (unit.text or b"") + b" }"
    return Alteration(AlterationKind.inserted, line, start, end, new, words, conditional)
