"""Tripwires on comparisons that always hold, and on code that swallows what a test raises."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from redstart.toolkit.honesty.marks import Mark, mark
from redstart.toolkit.honesty.names import Module

_COMPARISONS = frozenset(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])
_ASSIGNED = _COMPARISONS | {"__bool__", "__instancecheck__", "__subclasscheck__", "__contains__"}
_VALUES = frozenset(
    [
        "str",
        "int",
        "float",
        "complex",
        "bytes",
        "bytearray",
        "list",
        "tuple",
        "dict",
        "set",
        "frozenset",
        "bool",
        "Decimal",
        "Fraction",
        "datetime",
        "date",
        "time",
        "timedelta",
        "UserString",
        "UserDict",
        "UserList",
        "OrderedDict",
        "NamedTuple",
        "defaultdict",
        "Counter",
    ]
)
_NUMBERS = frozenset({"int", "float", "complex", "Decimal", "Fraction"})
_OPERATORS = frozenset(
    (
        "__sub__",
        "__rsub__",
        "__add__",
        "__radd__",
        "__mul__",
        "__abs__",
        "__round__",
        "__float__",
        "__int__",
        "__format__",
    )
)
_LENIENT = frozenset(
    (
        "set",
        "frozenset",
        "sorted",
        "sum",
        "len",
        "abs",
        "round",
        "min",
        "max",
        "int",
        "isclose",
        "or",
        "lower",
        "upper",
        "casefold",
        "strip",
        "startswith",
        "endswith",
    )
)
_SWALLOWS = frozenset({"BaseException", "Exception", "AssertionError", ""})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def marks(module: Module) -> Iterator[Mark]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            yield from _class(node)
        elif isinstance(node, ast.Assign | ast.Dict | ast.Call):
            yield from _assigned(module, node)
        elif isinstance(node, ast.Try):
            yield from _try(module, node)
    yield from _module_getattr(module)


def _class(node: ast.ClassDef) -> Iterator[Mark]:
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
    methods = [one for one in node.body if isinstance(one, Function)]
    for method in methods:
        yield from _leniency(node, method)
        if method.name in _COMPARISONS:
            if bases & _VALUES:
                words = f"`{node.name}` is a kind of {', '.join(sorted(bases & _VALUES))} that compares in its own way."
                yield mark("equality", method, words)
            elif _holds_always(method):
                yield mark(
                    "equality", method, f"`{node.name}.{method.name}` does not compare the two: it always holds."
                )
        elif method.name in ("__instancecheck__", "__subclasscheck__") and _returns_only(method, True):
            yield mark("equality", method, f"`{node.name}.{method.name}` always says yes.")
        elif method.name == "__contains__" and _holds_always(method):
            yield mark("equality", method, f"`{node.name}.{method.name}` does not look for what it is asked for.")
        elif method.name in _OPERATORS and (bases & _NUMBERS or _returns_constants(method)):
            yield mark("equality", method, f"`{node.name}.{method.name}` makes a value that reckons in its own way.")
        elif method.name in ("__exit__", "__aexit__") and any(map(_may_swallow, _returned(method))):
            yield mark("swallows", method, f"`{node.name}.{method.name}` swallows whatever a test raises inside it.")


def _leniency(node: ast.ClassDef, method: Function) -> Iterator[Mark]:
    """Whatever makes a comparison overlook a difference; it matters where the comparison was stricter before."""
    if method.name != "__eq__":
        return
    name = f"{node.name}.__eq__"
    ways = [""]
    for one in ast.walk(method):
        if isinstance(one, ast.Call):
            ways.append(one.func.attr if isinstance(one.func, ast.Attribute) else getattr(one.func, "id", ""))
        elif isinstance(one, ast.Set | ast.SetComp):
            ways.append("set")
        elif isinstance(one, ast.BoolOp) and isinstance(one.op, ast.Or):
            ways.append("or")
    for way in ways:
        if way in _LENIENT or way == "":
            yield mark(
                "weaker", method, f"`{name}` overlooks differences that it saw before (`{way}`).", f"{name}\0{way}"
            )


def _returned(method: Function) -> list[ast.expr]:
    return [node.value for node in ast.walk(method) if isinstance(node, ast.Return) and node.value is not None]


def _returns_constants(method: Function) -> bool:
    returned = _returned(method)
    return bool(returned) and all(isinstance(one, ast.Constant) for one in returned)


def _may_swallow(value: ast.expr) -> bool:
    """Whether what an `__exit__` returns could take the failure of an assertion for handled.

    Honest ones hand on what another manager says, or ask for an exception of their own.
    """
    if isinstance(value, ast.Constant):
        return bool(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return False
    named = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)} & {*_SWALLOWS}
    asks = isinstance(value, ast.Compare) and not any(isinstance(one, ast.IsNot | ast.NotEq) for one in value.ops)
    is_check = isinstance(value, ast.Call) and getattr(value.func, "id", "") in ("isinstance", "issubclass")
    return bool(named) or not (asks or is_check or isinstance(value, ast.Await | ast.Name | ast.Attribute))


def _holds_always(method: Function) -> bool:
    """Whether nothing in the method brings its two sides together."""
    names = [one.arg for one in (*method.args.posonlyargs, *method.args.args)]
    if len(names) != 2:
        return False
    if _returns_only(method, method.name != "__ne__"):
        return True
    own, other = _with_derived(method, names[0]), _with_derived(method, names[1])
    for node in ast.walk(method):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "hasattr", "id", "type"):
            continue
        if isinstance(node, ast.Compare | ast.Call) and _meets(node, own, other) and not _is_type_check(node):
            return _is_or_true(method)
        if (
            isinstance(node, ast.Return)
            and node.value is not None
            and getattr(node.value, "id", "") == "NotImplemented"
        ):
            continue
    return any(isinstance(one, ast.Return) and not _is_not_implemented(one) for one in ast.walk(method))


def _is_not_implemented(node: ast.Return) -> bool:
    return (
        node.value is None
        or getattr(node.value, "id", "") == "NotImplemented"
        or (isinstance(node.value, ast.Constant) and node.value.value is False)
    )


def _with_derived(method: Function, name: str) -> set[str]:
    """The parameter and every local name that is made from it."""
    names = {name}
    for _ in range(2):
        for node in ast.walk(method):
            if isinstance(node, ast.Assign) and _mentions(node.value, names):
                names |= {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node))


def _meets(node: ast.AST, own: set[str], other: set[str]) -> bool:
    return _mentions(node, own) and _mentions(node, other)


def _is_type_check(node: ast.AST) -> bool:
    """`type(self) is type(other)`, or the classes compared: says nothing of the values."""
    if not isinstance(node, ast.Compare):
        return False
    return all(
        (isinstance(side, ast.Call) and getattr(side.func, "id", "") == "type")
        or (isinstance(side, ast.Attribute) and side.attr == "__class__")
        for side in (node.left, *node.comparators)
    )


def _is_or_true(method: Function) -> bool:
    """Whether a `... or True` makes every answer a yes."""
    for node in ast.walk(method):
        values = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else []
        if any(isinstance(one, ast.Constant) and one.value is True for one in values):
            return True
    return False


def _returns_only(method: Function, value: bool) -> bool:
    returns = [node for node in ast.walk(method) if isinstance(node, ast.Return)]
    return bool(returns) and all(isinstance(one.value, ast.Constant) and one.value.value is value for one in returns)


def _assigned(module: Module, node: ast.Assign | ast.Dict | ast.Call) -> Iterator[Mark]:
    """Comparisons that are put on a class from elsewhere."""
    names: list[str | None] = []
    if isinstance(node, ast.Assign):
        names = [target.attr for target in node.targets if isinstance(target, ast.Attribute)]
        if isinstance(node.value, ast.Lambda):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    elif isinstance(node, ast.Dict):
        names = [module.text(key) for key in node.keys]
    elif module.dotted(node.func) == "builtins.setattr" and len(node.args) > 1:
        names = [module.text(node.args[1])]
    for name in names:
        if name in _ASSIGNED:
            yield mark("equality", node, f"It puts a `{name}` of its own on a class.")


def _try(module: Module, node: ast.Try) -> Iterator[Mark]:
    """Handlers that would take a test's own failure for handled."""
    yields = any(isinstance(one, ast.Yield) for line in node.body for one in ast.walk(line))
    for handler in node.handlers:
        caught = _caught(handler)
        if any(isinstance(one, ast.Raise) for one in ast.walk(handler)):
            continue
        if "AssertionError" in caught or (yields and caught & _SWALLOWS and _is_context_manager(module, node)):
            words = "It swallows the failure of an assertion that a test makes inside it."
            yield mark("swallows", handler, words, ast.dump(handler))


def _caught(handler: ast.ExceptHandler) -> set[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in kinds}


def _is_context_manager(module: Module, node: ast.AST) -> bool:
    function = module.function(node)
    if not isinstance(function, Function):
        return False
    found = (module.dotted(one).rpartition(".")[2] for one in function.decorator_list)
    return any(name in ("contextmanager", "asynccontextmanager", "fixture") for name in found)


def _module_getattr(module: Module) -> Iterator[Mark]:
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            raised = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if "AttributeError" not in raised:
                yield mark("equality", node, "The module answers to every name, whether it has it or not.")
