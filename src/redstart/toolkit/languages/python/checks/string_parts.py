"""Find what a string expression consists of: the text that is in the code, and whether outside values enter it.

One module is read statement by statement, which is not a proof: values are followed through assignments, branches,
class attributes and the module's own functions; everything that comes from outside counts as loose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from redstart.toolkit.languages.python.checks.known_values import (
    EMPTY_TEXT,
    LONGEST,
    KnownText,
    as_part,
    create_outside_value,
    get_item,
)
from redstart.toolkit.languages.python.checks.source import Names, is_constant
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
    known_values: dict[str, KnownText] = field(default_factory=dict[str, KnownText])
    depth: int = 0
    enum_parameters: set[str] = field(default_factory=set[str])
    """Parameters that are annotated with an enumeration."""

    def copy(self) -> FunctionScope:
        return replace(self, known_values=dict(self.known_values), enum_parameters=set(self.enum_parameters))

    def merge(self, *scopes: FunctionScope) -> None:
        """Continue as if any one of these scopes had reached this place."""
        keys = {key for scope in scopes for key in scope.known_values}
        for key in keys:
            values = [scope.known_values[key] for scope in scopes if key in scope.known_values]
            combined = values[0]
            for item in values[1:]:
                combined = combined.combine(item)
            self.known_values[key] = combined

    # -- expressions -----------------------------------------------------------------------------------------------

    def read(self, node: ast.expr | None) -> KnownText:
        """Return what is known about an expression."""
        if node is None:
            return EMPTY_TEXT
        match node:
            case ast.Constant(value=str() as value):
                return KnownText(value[:LONGEST])
            case ast.Constant(value=bytes() as value):
                return KnownText(value[:LONGEST].decode(errors="replace"))
            case ast.Constant():
                return KnownText(str(node.value))
            case ast.JoinedStr():
                return self._read_joined_string(node)
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                return self._read_attribute(node)
            case ast.BinOp():
                return self._read_operation(node)
            case ast.IfExp():
                return self._read_either((node.body, node.orelse))
            case ast.BoolOp():
                return self._read_either(node.values)
            case ast.NamedExpr():
                return self.read(node.value)
            case ast.Await() | ast.Starred():
                return self.read(node.value)
            case ast.Compare() | ast.UnaryOp():
                return KnownText(None)
            case ast.Subscript():
                return self._read_subscript(node)
            case ast.List() | ast.Tuple() | ast.Set():
                return self._read_collection(node.elts)
            case ast.Dict():
                return self._read_collection(node.values)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return KnownText(None, 0, self._read_comprehension(node))
            case ast.Call():
                return self._call(node)
            case _:
                return create_outside_value(node)

    def _read_either(self, nodes: Sequence[ast.expr]) -> KnownText:
        combined = self.read(nodes[0])
        for node in nodes[1:]:
            combined = combined.combine(self.read(node))
        return combined

    def _read_joined_string(self, node: ast.JoinedStr) -> KnownText:
        text = EMPTY_TEXT
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                text = text.concatenate(self._read_formatted_value(value))
            else:
                text = text.concatenate(self.read(value))
        return text

    def _read_formatted_value(self, value: ast.FormattedValue) -> KnownText:
        spec = value.format_spec
        last = spec.values[-1] if isinstance(spec, ast.JoinedStr) and spec.values else None
        if isinstance(last, ast.Constant) and str(last.value)[-1:] in ("d", "f", "x", "e", "g", "b", "o"):
            return KnownText("0")
        return as_part(self.read(value.value))

    def _name(self, node: ast.Name) -> KnownText:
        if node.id in self.known_values:
            value = self.known_values[node.id]
            # an unknown value enters where it is used, a built one where it was built
            is_unknown = value.outside_line < 0 or (value.outside_line and value.text is None)
            return value._replace(outside_line=node.lineno) if is_unknown else value
        imported_name = self.module.names.full_names.get(node.id)
        # an imported constant: its name says that it does not change
        if node.id.isupper() and len(node.id) > 1:
            return KnownText("0" if imported_name is None else node.id.lower())
        return create_outside_value(node)

    def _read_attribute(self, node: ast.Attribute) -> KnownText:
        if node.attr in _TABLE_NAMES:
            return KnownText(node.attr)
        owner = node.value
        if isinstance(owner, ast.Name):
            if owner.id in self.enum_parameters and node.attr in ("value", "name"):
                return KnownText("0")
            full_name = f"{owner.id}.{node.attr}"
            if full_name in self.known_values:
                return self.known_values[full_name]
            if owner.id in self.module.choices:
                return KnownText("0")
        base = owner.value if isinstance(owner, ast.Attribute) and node.attr in ("value", "name") else None
        if isinstance(base, ast.Name) and base.id in self.module.choices:
            return KnownText("0")
        if node.attr in self.module.attributes:
            value = self.module.attributes[node.attr]
            return value._replace(outside_line=node.lineno) if value.outside_line else value
        if node.attr.isupper() and len(node.attr) > 1:
            return KnownText("0")
        return create_outside_value(node)

    def _read_operation(self, node: ast.BinOp) -> KnownText:
        if isinstance(node.op, ast.Add):
            left, right = self.read(node.left), self.read(node.right)
            if left.items or right.items:
                return left.combine(right)
            return left.concatenate(right)
        if isinstance(node.op, ast.Mod):
            return self._read_percent_format(node)
        if isinstance(node.op, ast.Mult):
            left, right = self.read(node.left), self.read(node.right)
            return left if left.text is not None or left.items else right
        if isinstance(node.op, ast.Sub | ast.Div | ast.FloorDiv | ast.Pow):
            return KnownText("0")  # only numbers have these
        return create_outside_value(node)

    def _read_percent_format(self, node: ast.BinOp) -> KnownText:
        left = self.read(node.left)
        if left.text is None:
            return self.read(node.right)._replace(text=None) if left.fixed else left
        numbers = {match[1]: match[2] in _NUMBERS for match in _PERCENT.finditer(left.text)}
        if numbers and all(numbers.values()):
            return left
        values: Sequence[ast.expr]
        if isinstance(node.right, ast.Tuple):
            values = node.right.elts
        elif isinstance(node.right, ast.Dict):
            values = node.right.values
        else:
            values = (node.right,)
        return left.concatenate(self._find_outside_part(values))._replace(text=left.text)

    def _find_outside_part(self, nodes: Iterable[ast.expr]) -> KnownText:
        """Find the first part with an outside value; an empty text if there is none."""
        for node in nodes:
            part = as_part(self.read(node))
            if part.outside_line:
                return part
        return EMPTY_TEXT

    def _read_subscript(self, node: ast.Subscript) -> KnownText:
        value = self.read(node.value)
        if value.items is not None:
            return value.items
        return value if value.text is not None else create_outside_value(node)

    def _read_collection(self, nodes: Sequence[ast.expr | None]) -> KnownText:
        combined: KnownText | None = None
        for node in nodes:
            item = self.read(node)
            if isinstance(node, ast.Starred):
                item = item.items or item
            combined = item if combined is None else combined.combine(item)
        return KnownText(None, 0, combined or EMPTY_TEXT)

    def _read_comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> KnownText:
        inner_scope = self.copy()
        for generator in node.generators:
            inner_scope.bind(generator.target, get_item(self.read(generator.iter), generator.iter))
            for test in generator.ifs:
                inner_scope.assume(test, is_true=True)
        return inner_scope.read(node.elt)

    def _call(self, node: ast.Call) -> KnownText:
        name = self.module.names.get_called_name(node)
        if name in _HARMLESS or name.endswith(_HARMLESS_ENDS) or name == "shlex.quote":
            return KnownText("0")
        if name in _WRAPPERS and node.args:
            return self.read(node.args[0])
        if name in ("min", "max") and node.args:
            return as_part(self._read_either(node.args))
        if name in ("range", "enumerate") and node.args:
            return KnownText(None, 0, KnownText("0")) if name == "range" else self.read(node.args[0])
        if name in ("itertools.repeat",) and node.args:
            return KnownText(None, 0, self.read(node.args[0]))
        if name.endswith("StringIO"):
            return self.read(node.args[0]) if node.args else EMPTY_TEXT
        if name == "map" and len(node.args) > 1:
            return KnownText(None, 0, self._read_map(node))
        if name.rpartition(".")[2] in ("text", "SQL", "Template", "TextClause", "Composed", "DDL") and node.args:
            return self.read(node.args[0])
        if isinstance(node.func, ast.Attribute):
            result = self._read_method(node, node.func)
            if result is not None:
                return result
        return self._read_own_function(node) or create_outside_value(node)

    def _read_map(self, node: ast.Call) -> KnownText:
        function_name = self.module.names.get_full_name(node.args[0])
        if function_name in _HARMLESS or function_name == "shlex.quote" or function_name.endswith(_HARMLESS_ENDS):
            return KnownText("0")
        function = node.args[0]
        items = get_item(self.read(node.args[1]), node)
        if isinstance(function, ast.Lambda):
            inner_scope = self.copy()
            for parameter in function.args.args:
                inner_scope.known_values[parameter.arg] = items
            return inner_scope.read(function.body)
        if function_name == "str":
            return items
        if isinstance(function, ast.Attribute) and function.attr == "format":
            return self.read(function.value).concatenate(as_part(items))
        return create_outside_value(node)

    def _read_method(self, node: ast.Call, func: ast.Attribute) -> KnownText | None:
        """Return the result of a string method; None if the method is not known."""
        method, values = func.attr, [*node.args, *(keyword.value for keyword in node.keywords)]
        if method == "join" and len(node.args) == 1:
            parts = self.read(node.args[0])
            item = parts.items if parts.items is not None else parts
            if item.text is None and item.outside_line:
                return self.read(func.value).concatenate(as_part(item))
            return item.concatenate(self.read(func.value)).concatenate(item)
        if method in ("format", "format_map", "substitute", "safe_substitute"):
            base = self.read(func.value)
            if base.text is None and base.outside_line:
                return base
            got_in = self._find_outside_part(values)
            return KnownText(base.text, base.outside_line or got_in.outside_line)
        if method in _SAME_TEXT:
            base = self.read(func.value)
            return base if base.text is not None or base.fixed else create_outside_value(node)
        if method == "replace" and len(node.args) >= 2:
            base = self.read(func.value)
            return KnownText(base.text, base.outside_line or as_part(self.read(node.args[1])).outside_line)
        if method in ("get", "pop") and node.args:
            base = self.read(func.value)
            if base.items is not None:
                return base.items.combine(self.read(node.args[1])) if len(node.args) > 1 else base.items
        if method in ("keys", "values", "items", "copy"):
            base = self.read(func.value)
            return base if base.items is not None else None
        return None

    def _read_own_function(self, node: ast.Call) -> KnownText | None:
        """Return what a function of the module returns for these arguments; None if that is not known."""
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        is_method = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
        function = self.module.functions.get(name)
        if function is None or self.depth >= DEEPEST or not (isinstance(func, ast.Name) or is_method):
            return None
        if (
            isinstance(func, ast.Attribute)
            and self.module.names.get_full_name(func.value) in self.module.names.full_names.values()
        ):
            return None  # a function with the same name in another module
        return self.module.follow(self, function, node)

    # -- names -----------------------------------------------------------------------------------------------------

    def bind(self, target: ast.expr, value: KnownText) -> None:
        match target:
            case ast.Name():
                self.known_values[target.id] = value
            case ast.Attribute(value=ast.Name(id=owner)):
                self.known_values[f"{owner}.{target.attr}"] = value
            case ast.Tuple() | ast.List():
                for elt in target.elts:
                    self.bind(elt, value.items or value)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.known_values:
                previous = self.known_values[name]
                self.known_values[name] = previous._replace(
                    items=value.combine(previous.items) if previous.items else value
                )
            case _:
                pass

    def assume(self, test: ast.expr, *, is_true: bool) -> None:
        """Continue with this result of the test: a name that was found among constants is one of them."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.assume(operand, is_true=not is_true)
            case ast.BoolOp(op=ast.And()) if is_true:
                for item in test.values:
                    self.assume(item, is_true=True)
            case ast.BoolOp(op=ast.Or()) if not is_true:
                for item in test.values:
                    self.assume(item, is_true=False)
            case ast.Compare(left=left, ops=[op], comparators=[candidates]):
                contents = self.read(candidates)
                is_in = (isinstance(op, ast.In) and is_true) or (isinstance(op, ast.NotIn) and not is_true)
                is_equal = (isinstance(op, ast.Eq) and is_true) or (isinstance(op, ast.NotEq) and not is_true)
                fixed = contents.items is not None and contents.items.fixed and contents.items.text is not None
                # a value that is named as a constant and comes from elsewhere also holds constants
                is_named_constant = (
                    isinstance(candidates, ast.Name | ast.Attribute) and contents.fixed and contents.text is not None
                )
                if (is_in and (fixed or is_named_constant)) or (is_equal and is_constant(candidates)):
                    self.bind(unwrap_calls(left), KnownText("0"))
            case ast.Call(
                func=ast.Attribute(value=value, attr="isidentifier" | "isalnum" | "isdigit" | "isdecimal" | "isalpha")
            ) if is_true:
                self.bind(unwrap_calls(value), KnownText("0"))
            case ast.Call() if is_true and self.module.names.get_called_name(test).endswith("fullmatch"):
                if test.args:
                    self.bind(unwrap_calls(test.args[-1]), KnownText("0"))
            case _:
                pass


def unwrap_calls(node: ast.expr) -> ast.expr:
    """Return `name` of `name.lower()`: a test of one holds closely enough for the other."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_TEXT:
        node = node.func.value
    return node
