"""Rewrite the tests of a script without changing them: other line numbers and other names of local constants."""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from redstart.toolkit.languages.node.script_file import FUNCTIONS, ScriptFile, ScriptTest, unwrap_expression
from redstart.toolkit.languages.node.script_literals import ScriptEdit
from redstart.toolkit.languages.node.trees import get_text, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_READS_NAMES = re.compile(rb"\beval\b|\bFunction\(|\bwith\s*\(|\.toString\(\)|\.stack\b")
_SHORT_FORMS = frozenset(("shorthand_property_identifier", "shorthand_property_identifier_pattern"))
_TEXTS = frozenset(("string_fragment", "regex_pattern", "comment", "jsx_text"))
_NAMED_TYPES = FUNCTIONS | {"class"}
_FILLERS = (b"", b"//", b"// --")


def rewrite_script(file: ScriptFile, seed: str) -> bytes:
    """Rewrite a script so that its tests mean the same; return its text unchanged if it does not parse."""
    if not file.is_readable:
        return file.text
    chance = random.Random(seed)  # noqa: S311 (it need not be secret, only another in each run)
    edits = [*_insert_lines(file, chance), *_rename_constants(file, chance)]
    text = file.text
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def _insert_lines(file: ScriptFile, chance: random.Random) -> Iterator[ScriptEdit]:
    """Insert lines between top-level statements, except before the first one and after a comment."""
    newline = b"\r\n" if b"\r\n" in file.text else b"\n"
    statements = file.root.named_children
    for previous, statement in pairwise(statements):
        gap = file.text[previous.end_byte : statement.start_byte]
        is_alone = statement.start_point[1] == 0 and b"\n" in gap
        if is_alone and not {previous.type, statement.type} & {"comment", "hash_bang_line"}:
            lines = [chance.choice(_FILLERS) + newline for _ in range(chance.randint(1, 3))]
            yield ScriptEdit(statement.start_byte, statement.start_byte, b"".join(lines))


def _rename_constants(file: ScriptFile, chance: random.Random) -> Iterator[ScriptEdit]:
    """Rename one constant of each test that contains no other test."""
    if _READS_NAMES.search(file.text):
        return
    used_names = {get_text(node) for node in walk(file.root) if node.type.endswith("identifier")}
    starts = sorted(test.call.start_byte for test in file.tests)
    for test in file.tests:
        block = _block(test, starts)
        names = _list_renamable(block) if block is not None else []
        if block is None or not names:
            continue
        name = chance.choice(names)
        new = next(candidate for candidate in _generate_names(name, chance) if candidate not in used_names)
        for node in walk(block):
            if node.type == "identifier" and get_text(node) == name:
                yield ScriptEdit(node.start_byte, node.end_byte, new.encode())


def _block(test: ScriptTest, starts: list[int]) -> Node | None:
    """Return the body of a test with an inline function that contains no other test; None otherwise."""
    if test.callback is None or test.callback.start_byte < test.call.start_byte:
        return None
    body = test.callback.child_by_field_name("body")
    if body is None or body.type != "statement_block" or test.callback.end_byte > test.call.end_byte:
        return None
    return body if bisect(starts, body.start_byte) == bisect(starts, body.end_byte) else None


def _list_renamable(block: Node) -> list[str]:
    """List plain constants that are declared once and do not appear in anything that could be read as text."""
    names: list[str] = []
    for statement in block.named_children:
        declarator = statement.named_children[0] if statement.named_children else None
        if statement.type != "lexical_declaration" or declarator is None or not get_text(statement).startswith("const"):
            continue
        name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
        if name is None or value is None or name.type != "identifier":
            continue
        if unwrap_expression(value).type not in _NAMED_TYPES:
            names.append(get_text(name))
    excluded: set[str] = set()
    for node in walk(block) if names else ():
        if node.type in _SHORT_FORMS:
            excluded.add(get_text(node))
        elif node.type in _TEXTS:
            excluded.update(re.findall(r"[\w$]+", get_text(node)))
        elif node.type.startswith("jsx_"):
            excluded.update(get_text(child) for child in node.named_children)
    return [name for name in names if name not in excluded]


def _generate_names(name: str, chance: random.Random) -> Iterator[str]:
    while True:
        yield f"{name}{chance.randint(2, 999)}"
