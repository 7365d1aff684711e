"""Find what a string expression consists of: the text that is in the code, and whether outside values enter it.

One module is read statement by statement, which is not a proof: values are followed through assignments, branches,
class attributes and the module's own functions; everything that comes from outside counts as loose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from redstart.toolkit.languages.python.checks.source import Names, is_constant
from redstart.toolkit.languages.python.checks.texts import LONGEST, NOTHING, KnownText, as_part, elsewhere, item_of
from redstart.toolkit.languages.python.syntax import Function

DEEPEST = 3
"""The maximum depth of nested calls of the module's own functions that are followed."""

_HARMLESS = frozenset({"int", "float", "len", "bool", "abs", "round", "ord", "id", "hash", "uuid.uuid4", "sum"})
_HARMLESS_ENDS = (
    ".quote_ident", ".quote_identifier", ".quote_name", ".escape_identifier", ".Identifier", ".Placeholder",
    ".Literal", ".quote", "quote_ident", "quote_identifier", "quote_name", ".paramstyle", ".literal_column",
)  # fmt: skip
_SAME_TEXT = frozenset(
    {"strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "encode", "decode", "expandtabs",
     "removeprefix", "removesuffix", "ljust", "rjust", "center", "getvalue"}
)  # fmt: skip
_WRAPPERS = ("textwrap.dedent", "textwrap.indent", "inspect.cleandoc", "str", "sys.intern", "sorted", "list", "tuple",
             "set", "reversed", "dict.fromkeys", "iter")  # fmt: skip
_FORMAT = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%(?:\((\w+)\))?[-#0 +]*[\d*]*(?:\.[\d*]+)?([a-zA-Z])")
_NUMBERS = frozenset("dioxXeEfFgGc")
_TABLE_NAMES = frozenset({"__tablename__", "db_table", "tablename", "__name__"})


@dataclass
class ModuleValues:
    """What the reader of one module needs to know in addition to the current scope."""

    names: Names
    follow: Callable[[FunctionScope, Function, ast.Call], KnownText | None]
    """Returns what a function of the module returns for a call; None if that is not known."""
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    attributes: dict[str, KnownText] = field(default_factory=dict[str, KnownText])
    """The attributes of all classes of the module, by name."""
    choices: frozenset[str] = frozenset()
    """Names of the module's enumerations."""


@dataclass
class FunctionScope:
    """The values of a function's names at the statement that is being read."""

    module: ModuleValues
    held: dict[str, KnownText] = field(default_factory=dict[str, KnownText])
    depth: int = 0
    chosen: set[str] = field(default_factory=set[str])
    """Parameters that are annotated with an enumeration."""

    def copy(self) -> FunctionScope:
        return replace(self, held=dict(self.held), chosen=set(self.chosen))

    def merge(self, *others: FunctionScope) -> None:
        """Continue as if any one of these scopes had reached this place."""
        keys = {key for other in others for key in other.held}
        for key in keys:
            seen = [other.held[key] for other in others if key in other.held]
            found = seen[0]
            for item in seen[1:]:
                found = found.either(item)
            self.held[key] = found

    # -- expressions -----------------------------------------------------------------------------------------------

    def read(self, node: ast.expr | None) -> KnownText:
        """Return what is known about an expression."""
        if node is None:
            return NOTHING
        match node:
            case ast.Constant(value=str() as value):
                return KnownText(value[:LONGEST])
            case ast.Constant(value=bytes() as value):
                return KnownText(value[:LONGEST].decode(errors="replace"))
            case ast.Constant():
                return KnownText(str(node.value))
            case ast.JoinedStr():
                return self._joined(node)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.BinOp():
                return self._operation(node)
            case ast.IfExp():
                return self._either((node.body, node.orelse))
            case ast.BoolOp():
                return self._either(node.values)
            case ast.NamedExpr():
                return self.read(node.value)
            case ast.Await() | ast.Starred():
                return self.read(node.value)
            case ast.Compare() | ast.UnaryOp():
                return KnownText(None)
            case ast.Subscript():
                return self._subscript(node)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._collection(node.elts)
            case ast.Dict():
                return self._collection(node.values)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return KnownText(None, 0, self._comprehension(node))
            case ast.Call():
                return self._call(node)
            case _:
                return elsewhere(node)

    def _either(self, nodes: Sequence[ast.expr]) -> KnownText:
        found = self.read(nodes[0])
        for node in nodes[1:]:
            found = found.either(self.read(node))
        return found

    def _joined(self, node: ast.JoinedStr) -> KnownText:
        made = NOTHING
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                made = made.plus(self._formatted(value))
            else:
                made = made.plus(self.read(value))
        return made

    def _formatted(self, value: ast.FormattedValue) -> KnownText:
        spec = value.format_spec
        last = spec.values[-1] if isinstance(spec, ast.JoinedStr) and spec.values else None
        if isinstance(last, ast.Constant) and str(last.value)[-1:] in ("d", "f", "x", "e", "g", "b", "o"):
            return KnownText("0")
        return as_part(self.read(value.value))

    def _name(self, node: ast.Name) -> KnownText:
        if node.id in self.held:
            held = self.held[node.id]
            # an unknown value enters where it is used, a built one where it was built
            unknown = held.loose < 0 or (held.loose and held.text is None)
            return held._replace(loose=node.lineno) if unknown else held
        known = self.module.names.known.get(node.id)
        # an imported constant: its name says that it does not change
        if node.id.isupper() and len(node.id) > 1:
            return KnownText("0" if known is None else node.id.lower())
        return elsewhere(node)

    def _attribute(self, node: ast.Attribute) -> KnownText:
        if node.attr in _TABLE_NAMES:
            return KnownText(node.attr)
        owner = node.value
        if isinstance(owner, ast.Name):
            if owner.id in self.chosen and node.attr in ("value", "name"):
                return KnownText("0")
            dotted = f"{owner.id}.{node.attr}"
            if dotted in self.held:
                return self.held[dotted]
            if owner.id in self.module.choices:
                return KnownText("0")
        inner = owner.value if isinstance(owner, ast.Attribute) and node.attr in ("value", "name") else None
        if isinstance(inner, ast.Name) and inner.id in self.module.choices:
            return KnownText("0")
        if node.attr in self.module.attributes:
            held = self.module.attributes[node.attr]
            return held._replace(loose=node.lineno) if held.loose else held
        if node.attr.isupper() and len(node.attr) > 1:
            return KnownText("0")
        return elsewhere(node)

    def _operation(self, node: ast.BinOp) -> KnownText:
        if isinstance(node.op, ast.Add):
            left, right = self.read(node.left), self.read(node.right)
            if left.items or right.items:
                return left.either(right)
            return left.plus(right)
        if isinstance(node.op, ast.Mod):
            return self._percent(node)
        if isinstance(node.op, ast.Mult):
            left, right = self.read(node.left), self.read(node.right)
            return left if left.text is not None or left.items else right
        if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Pow):
            return KnownText("0")  # only numbers have these
        return elsewhere(node)

    def _percent(self, node: ast.BinOp) -> KnownText:
        left = self.read(node.left)
        if left.text is None:
            return self.read(node.right)._replace(text=None) if left.fixed else left
        numbers = {found[1]: found[2] in _NUMBERS for found in _PERCENT.finditer(left.text)}
        if numbers and all(numbers.values()):
            return left
        values: Sequence[ast.expr]
        if isinstance(node.right, ast.Tuple):
            values = node.right.elts
        elif isinstance(node.right, ast.Dict):
            values = node.right.values
        else:
            values = (node.right,)
        return left.plus(self._all(values))._replace(text=left.text)

    def _all(self, nodes: Iterable[ast.expr]) -> KnownText:
        """Find the first part with an outside value; an empty text if there is none."""
        for node in nodes:
            part = as_part(self.read(node))
            if part.loose:
                return part
        return NOTHING

    def _subscript(self, node: ast.Subscript) -> KnownText:
        found = self.read(node.value)
        if found.items is not None:
            return found.items
        return found if found.text is not None else elsewhere(node)

    def _collection(self, nodes: Sequence[ast.expr | None]) -> KnownText:
        found: KnownText | None = None
        for node in nodes:
            one = self.read(node)
            if isinstance(node, ast.Starred):
                one = one.items or one
            found = one if found is None else found.either(one)
        return KnownText(None, 0, found or NOTHING)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> KnownText:
        inner = self.copy()
        for generator in node.generators:
            inner.bind(generator.target, item_of(self.read(generator.iter), generator.iter))
            for test in generator.ifs:
                inner.believe(test, true=True)
        return inner.read(node.elt)

    def _call(self, node: ast.Call) -> KnownText:
        name = self.module.names.called(node)
        if name in _HARMLESS or name.endswith(_HARMLESS_ENDS) or name == "shlex.quote":
            return KnownText("0")
        if name in _WRAPPERS and node.args:
            return self.read(node.args[0])
        if name in ("min", "max") and node.args:
            return as_part(self._either(node.args))
        if name in ("range", "enumerate") and node.args:
            return KnownText(None, 0, KnownText("0")) if name == "range" else self.read(node.args[0])
        if name in ("itertools.repeat",) and node.args:
            return KnownText(None, 0, self.read(node.args[0]))
        if name.endswith("StringIO"):
            return self.read(node.args[0]) if node.args else NOTHING
        if name == "map" and len(node.args) > 1:
            return KnownText(None, 0, self._mapped(node))
        if name.rpartition(".")[2] in ("text", "SQL", "Template", "TextClause", "Composed", "DDL") and node.args:
            return self.read(node.args[0])
        if isinstance(node.func, ast.Attribute):
            found = self._method(node, node.func)
            if found is not None:
                return found
        return self._own_function(node) or elsewhere(node)

    def _mapped(self, node: ast.Call) -> KnownText:
        called = self.module.names.dotted(node.args[0])
        if called in _HARMLESS or called == "shlex.quote" or called.endswith(_HARMLESS_ENDS):
            return KnownText("0")
        function = node.args[0]
        items = item_of(self.read(node.args[1]), node)
        if isinstance(function, ast.Lambda):
            inner = self.copy()
            for parameter in function.args.args:
                inner.held[parameter.arg] = items
            return inner.read(function.body)
        if called == "str":
            return items
        if isinstance(function, ast.Attribute) and function.attr == "format":
            return self.read(function.value).plus(as_part(items))
        return elsewhere(node)

    def _method(self, node: ast.Call, func: ast.Attribute) -> KnownText | None:
        """Return the result of a string method; None if the method is not known."""
        method, values = func.attr, [*node.args, *(keyword.value for keyword in node.keywords)]
        if method == "join" and len(node.args) == 1:
            parts = self.read(node.args[0])
            inner = parts.items if parts.items is not None else parts
            if inner.text is None and inner.loose:
                return self.read(func.value).plus(as_part(inner))
            return inner.plus(self.read(func.value)).plus(inner)
        if method in ("format", "format_map", "substitute", "safe_substitute"):
            base = self.read(func.value)
            if base.text is None and base.loose:
                return base
            got_in = self._all(values)
            return KnownText(base.text, base.loose or got_in.loose)
        if method in _SAME_TEXT:
            base = self.read(func.value)
            return base if base.text is not None or base.fixed else elsewhere(node)
        if method == "replace" and len(node.args) >= 2:
            base = self.read(func.value)
            return KnownText(base.text, base.loose or as_part(self.read(node.args[1])).loose)
        if method in ("get", "pop") and node.args:
            base = self.read(func.value)
            if base.items is not None:
                return base.items.either(self.read(node.args[1])) if len(node.args) > 1 else base.items
        if method in ("keys", "values", "items", "copy"):
            base = self.read(func.value)
            return base if base.items is not None else None
        return None

    def _own_function(self, node: ast.Call) -> KnownText | None:
        """Return what a function of the module returns for these arguments; None if that is not known."""
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        of_self = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
        function = self.module.functions.get(name)
        if function is None or self.depth >= DEEPEST or not (isinstance(func, ast.Name) or of_self):
            return None
        if isinstance(func, ast.Attribute) and self.module.names.dotted(func.value) in self.module.names.known.values():
            return None  # a function with the same name in another module
        return self.module.follow(self, function, node)

    # -- names -----------------------------------------------------------------------------------------------------

    def bind(self, target: ast.expr, value: KnownText) -> None:
        match target:
            case ast.Name():
                self.held[target.id] = value
            case ast.Attribute(value=ast.Name(id=owner)):
                self.held[f"{owner}.{target.attr}"] = value
            case ast.Tuple() | ast.List():
                for elt in target.elts:
                    self.bind(elt, value.items or value)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.held:
                kept = self.held[name]
                self.held[name] = kept._replace(items=value.either(kept.items) if kept.items else value)
            case _:
                pass

    def believe(self, test: ast.expr, *, true: bool) -> None:
        """Continue with this result of the test: a name that was found among constants is one of them."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                self.believe(inner, true=not true)
            case ast.BoolOp(op=ast.And()) if true:
                for item in test.values:
                    self.believe(item, true=True)
            case ast.BoolOp(op=ast.Or()) if not true:
                for item in test.values:
                    self.believe(item, true=False)
            case ast.Compare(left=left, ops=[op], comparators=[among]):
                found = self.read(among)
                is_in = (isinstance(op, ast.In) and true) or (isinstance(op, ast.NotIn) and not true)
                same = (isinstance(op, ast.Eq) and true) or (isinstance(op, ast.NotEq) and not true)
                fixed = found.items is not None and found.items.fixed and found.items.text is not None
                # a value that is named as a constant and comes from elsewhere also holds constants
                named = isinstance(among, ast.Name | ast.Attribute) and found.fixed and found.text is not None
                if (is_in and (fixed or named)) or (same and is_constant(among)):
                    self.bind(unwrapped(left), KnownText("0"))
            case ast.Call(
                func=ast.Attribute(value=value, attr="isidentifier" | "isalnum" | "isdigit" | "isdecimal" | "isalpha")
            ) if true:
                self.bind(unwrapped(value), KnownText("0"))
            case ast.Call() if true and self.module.names.called(test).endswith("fullmatch"):
                if test.args:
                    self.bind(unwrapped(test.args[-1]), KnownText("0"))
            case _:
                pass


def unwrapped(node: ast.expr) -> ast.expr:
    """Return `name` of `name.lower()`: a test of one holds closely enough for the other."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_TEXT:
        node = node.func.value
    return node
