"""Code that is not there to be read: what a change runs or loads by a text that is only made as it runs.

An honest program may do so, as a plugin loader or a template engine does; a person is asked.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redstart.toolkit.honesty.tripwires.marks import Mark, mark
from redstart.toolkit.honesty.tripwires.names import Module
from redstart.toolkit.languages.node.trees import is_script, parse, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

KIND = "unreadable_code"
_RUN = frozenset({"builtins.eval", "builtins.exec", "builtins.compile", "marshal.loads", "types.CodeType"})
_LOAD = frozenset({"builtins.__import__", "importlib.import_module", "importlib.__import__"})
_NATIVE = ("ctypes.CDLL", "ctypes.PyDLL", "ctypes.cdll", "ctypes.pydll", "ctypes.pythonapi", "cffi.", "_ctypes.")
_PROCESSES = ("subprocess.", "os.system", "os.popen", "os.posix_spawn", "os.exec")
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


def marks(module: Module) -> Iterator[Mark]:
    """What a Python file runs, imports or loads that cannot be read in it."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        name, first = module.dotted(node.func), node.args[0] if node.args else None
        if name in _RUN and module.text(first) is None:
            yield mark(KIND, node, "It runs code that is only made as it runs.")
        elif name in _LOAD and module.text(first) is None:
            yield mark(KIND, node, "It imports a module by a name that is only made as it runs.")
        elif name.startswith(_NATIVE):
            yield mark(KIND, node, f"It loads native code with `{name}`.")
        elif name.startswith(_PROCESSES) and module.function(node) is None:
            yield mark(KIND, node, f"It starts a program with `{name}` as soon as it is imported.")


def script_marks(path: str, data: bytes) -> Iterator[Mark]:
    """The same for JavaScript and TypeScript."""
    if not is_script(path):
        return
    for node in walk(parse(path, data)):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is not None and _GLOBAL.match(text_of(left)):
            yield _mark(node, f"It replaces `{text_of(left)[:40]}`, which tests use too.")
        if node.type not in ("call_expression", "new_expression"):
            continue
        called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        name = text_of(called) if called is not None else ""
        if name in _MADE:
            yield _mark(node, "It runs code that is only made as it runs.")
        elif name.rpartition(".")[2] in _WRITES:
            yield _mark(node, "It writes files, which tests may read.")
        elif name in _REQUIRED and (first := _first(node)) is not None and first.type not in _READABLE:
            yield _mark(node, "It loads a module by a name that is only made as it runs.")


def _first(node: Node) -> Node | None:
    arguments = node.child_by_field_name("arguments")
    given = [part for part in arguments.children if part.is_named] if arguments is not None else []
    return given[0] if given else None


def _mark(node: Node, words: str) -> Mark:
    return Mark(KIND, " ".join(text_of(node).split()), node.start_point[0] + 1, words)
