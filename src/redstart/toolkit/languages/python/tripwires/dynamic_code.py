"""Tripwires on code that cannot be read: a change runs or loads something that a text built at run time names.

An honest program may do this, for example a plugin loader or a template engine; a person is asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from redstart.toolkit.honesty.tripwires.protocol import UNREADABLE_CODE, RuleMark
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_RUN = frozenset({"builtins.eval", "builtins.exec", "builtins.compile", "marshal.loads", "types.CodeType"})
_LOAD = frozenset({"builtins.__import__", "importlib.import_module", "importlib.__import__"})
_NATIVE_NAMES = ("ctypes.CDLL", "ctypes.PyDLL", "ctypes.cdll", "ctypes.pydll", "ctypes.pythonapi", "cffi.", "_ctypes.")
_PROCESSES = ("subprocess.", "os.system", "os.popen", "os.posix_spawn", "os.exec")


def find_marks(module: ParsedModule) -> Iterator[RuleMark]:
    """Yield marks for code that a Python file runs, imports or loads but that cannot be read in it."""
    for node in module.nodes:
        if not isinstance(node, ast.Call):
            continue
        name, argument = module.get_full_name(node.func), node.args[0] if node.args else None
        if name in _RUN and module.evaluate_text(argument) is None:
            yield mark(UNREADABLE_CODE, node, "It runs code that is only made as it runs.")
        elif name in _LOAD and module.evaluate_text(argument) is None:
            yield mark(UNREADABLE_CODE, node, "It imports a module by a name that is only made as it runs.")
        elif name.startswith(_NATIVE_NAMES):
            yield mark(UNREADABLE_CODE, node, f"It loads native code with `{name}`.")
        elif name.startswith(_PROCESSES) and module.find_function(node) is None:
            yield mark(UNREADABLE_CODE, node, f"It starts a program with `{name}` as soon as it is imported.")
