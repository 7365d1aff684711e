"""Rewrites the tests of a script without changing them: other line numbers and other names of local constants."""

from __future__ import annotations

import random
import re
from bisect import bisect
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from redstart.toolkit.languages.node.script_file import FUNCTIONS, ScriptFile, ScriptTest, unwrapped
from redstart.toolkit.languages.node.script_literals import ScriptEdit
from redstart.toolkit.languages.node.trees import text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

_READS_NAMES = re.compile(rb"\beval\b|\bFunction\(|\bwith\s*\(|\.toString\(\)|\.stack\b")
_SHORT_FORMS = frozenset(("shorthand_property_identifier", "shorthand_property_identifier_pattern"))
_TEXTS = frozenset(("string_fragment", "regex_pattern", "comment", "jsx_text"))
_NAMED = FUNCTIONS | {"class"}
_FILLERS = (b"", b"//", b"// --")


def rewritten(file: ScriptFile, seed: str) -> bytes:
    """Rewrite a script so that its tests mean the same; return its text unchanged if it does not parse."""
    if not file.readable:
        return file.text
    chance = random.Random(seed)  # noqa: S311 (it need not be secret, only another in each run)
    edits = [*_offsets(file, chance), *_renamed(file, chance)]
    text = file.text
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


def _offsets(file: ScriptFile, chance: random.Random) -> Iterator[ScriptEdit]:
    """Insert lines between top-level statements, except before the first one and after a comment."""
    newline = b"\r\n" if b"\r\n" in file.text else b"\n"
    statements = file.root.named_children
    for before, statement in pairwise(statements):
        follows = file.text[before.end_byte : statement.start_byte]
        is_alone = statement.start_point[1] == 0 and b"\n" in follows
        if is_alone and not {before.type, statement.type} & {"comment", "hash_bang_line"}:
            lines = [chance.choice(_FILLERS) + newline for _ in range(chance.randint(1, 3))]
            yield ScriptEdit(statement.start_byte, statement.start_byte, b"".join(lines))


def _renamed(file: ScriptFile, chance: random.Random) -> Iterator[ScriptEdit]:
    """Rename one constant of each test that contains no other test."""
    if _READS_NAMES.search(file.text):
        return
    taken = {text_of(node) for node in walk(file.root) if node.type.endswith("identifier")}
    starts = sorted(test.call.start_byte for test in file.tests)
    for test in file.tests:
        block = _block(test, starts)
        names = _renamable(block) if block is not None else []
        if block is None or not names:
            continue
        name = chance.choice(names)
        new = next(word for word in _fresh(name, chance) if word not in taken)
        for node in walk(block):
            if node.type == "identifier" and text_of(node) == name:
                yield ScriptEdit(node.start_byte, node.end_byte, new.encode())


def _block(test: ScriptTest, starts: list[int]) -> Node | None:
    """Return the body of a test with an inline function that contains no other test; None otherwise."""
    if test.callback is None or test.callback.start_byte < test.call.start_byte:
        return None
    body = test.callback.child_by_field_name("body")
    if body is None or body.type != "statement_block" or test.callback.end_byte > test.call.end_byte:
        return None
    return body if bisect(starts, body.start_byte) == bisect(starts, body.end_byte) else None


def _renamable(block: Node) -> list[str]:
    """List plain constants that are declared once and do not appear in anything that could be read as text."""
    names: list[str] = []
    for statement in block.named_children:
        declarator = statement.named_children[0] if statement.named_children else None
        if statement.type != "lexical_declaration" or declarator is None or not text_of(statement).startswith("const"):
            continue
        name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
        if name is None or value is None or name.type != "identifier":
            continue
        if unwrapped(value).type not in _NAMED:
            names.append(text_of(name))
    kept: set[str] = set()
    for node in walk(block) if names else ():
        if node.type in _SHORT_FORMS:
            kept.add(text_of(node))
        elif node.type in _TEXTS:
            kept.update(re.findall(r"[\w$]+", text_of(node)))
        elif node.type.startswith("jsx_"):
            kept.update(text_of(child) for child in node.named_children)
    return [name for name in names if name not in kept]


def _fresh(name: str, chance: random.Random) -> Iterator[str]:
    while True:
        yield f"{name}{chance.randint(2, 999)}"
