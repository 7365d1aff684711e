"""Unreadable code: code or modules that a change runs or loads from a text built at run time.

An honest program may do so, as a plugin loader or a template engine does; so a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.toolkit.honesty.tripwires.protocol import UNREADABLE_CODE, RuleMark
from redstart.toolkit.languages.node.trees import parse, text_of, walk
from redstart.toolkit.languages.node.tripwires.marks import mark

if TYPE_CHECKING:
    from tree_sitter import Node

_MADE = frozenset({"eval", "Function", "vm.runInThisContext", "vm.runInNewContext", "vm.compileFunction"})
_REQUIRED = frozenset({"require", "import", "process.binding", "process.dlopen"})
_WRITES = frozenset(
    (
        *("writeFile", "writeFileSync", "appendFile", "appendFileSync", "createWriteStream", "rename", "renameSync"),
        *("copyFile", "copyFileSync", "unlink", "unlinkSync", "rmSync", "symlink", "symlinkSync", "truncateSync"),
    )
)
_GLOBAL = re.compile(
    r"(?:globalThis\.|global\.)?(?:Date|Math|Object|Array|String|Number|Promise|JSON|Error|Map|Set|Symbol|Reflect|RegExp"
    r"|Function|performance)\."
)
_READABLE = frozenset({"string", "template_string"})


def marks(path: str, data: bytes) -> Iterator[RuleMark]:
    """Yield a mark for everything that a script runs, loads or replaces without showing it in its text."""
    for node in walk(parse(path, data)):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is not None and _GLOBAL.match(text_of(left)):
            yield mark(UNREADABLE_CODE, node, f"It replaces `{text_of(left)[:40]}`, which tests use too.")
        if node.type not in ("call_expression", "new_expression"):
            continue
        called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        name = text_of(called) if called is not None else ""
        if name in _MADE:
            yield mark(UNREADABLE_CODE, node, "It runs code that is only made as it runs.")
        elif name.rpartition(".")[2] in _WRITES:
            yield mark(UNREADABLE_CODE, node, "It writes files, which tests may read.")
        elif name in _REQUIRED and (first := _first(node)) is not None and first.type not in _READABLE:
            yield mark(UNREADABLE_CODE, node, "It loads a module by a name that is only made as it runs.")


def _first(node: Node) -> Node | None:
    arguments = node.child_by_field_name("arguments")
    given = [part for part in arguments.children if part.is_named] if arguments is not None else []
    return given[0] if given else None
