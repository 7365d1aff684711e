"""Tripwires on unreadable code: a change runs code, or loads a module, from a text built at run time.

An honest program may do so, as a plugin loader or a template engine does; so a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.toolkit.honesty.tripwires.protocol import UNREADABLE_CODE, RuleMark
from redstart.toolkit.languages.node.trees import get_text, parse, walk
from redstart.toolkit.languages.node.tripwires.marks import mark

if TYPE_CHECKING:
    from tree_sitter import Node

_CODE_CREATORS = frozenset({"eval", "Function", "vm.runInThisContext", "vm.runInNewContext", "vm.compileFunction"})
_MODULE_LOADERS = frozenset({"require", "import", "process.binding", "process.dlopen"})
_WRITE_FUNCTIONS = frozenset(
    (
        *("writeFile", "writeFileSync", "appendFile", "appendFileSync", "createWriteStream", "rename", "renameSync"),
        *("copyFile", "copyFileSync", "unlink", "unlinkSync", "rmSync", "symlink", "symlinkSync", "truncateSync"),
    )
)
_GLOBAL = re.compile(
    r"(?:globalThis\.|global\.)?(?:Date|Math|Object|Array|String|Number|Promise|JSON|Error|Map|Set|Symbol|Reflect|RegExp"
    r"|Function|performance)\."
)
_READABLE_TYPES = frozenset({"string", "template_string"})


def find_marks(path: str, data: bytes) -> Iterator[RuleMark]:
    """Yield a mark for everything that a script runs, loads or replaces without showing it in its text."""
    for node in walk(parse(path, data)):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is not None and _GLOBAL.match(get_text(left)):
            yield mark(UNREADABLE_CODE, node, f"It replaces `{get_text(left)[:40]}`, which tests use too.")
        if node.type not in ("call_expression", "new_expression"):
            continue
        callee = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        name = get_text(callee) if callee is not None else ""
        if name in _CODE_CREATORS:
            yield mark(UNREADABLE_CODE, node, "It runs code that is only made as it runs.")
        elif name.rpartition(".")[2] in _WRITE_FUNCTIONS:
            yield mark(UNREADABLE_CODE, node, "It writes files, which tests may read.")
        elif (
            name in _MODULE_LOADERS
            and (argument := _get_first_argument(node)) is not None
            and argument.type not in _READABLE_TYPES
        ):
            yield mark(UNREADABLE_CODE, node, "It loads a module by a name that is only made as it runs.")


def _get_first_argument(node: Node) -> Node | None:
    arguments = node.child_by_field_name("arguments")
    args = [part for part in arguments.children if part.is_named] if arguments is not None else []
    return args[0] if args else None
