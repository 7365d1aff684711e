"""A test file in JavaScript or TypeScript: its tree, its tests by title, and its imported names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.languages.node import CASE_MARK
from redstart.toolkit.languages.node.trees import MAX_BYTES, get_field_text, get_text, parse, walk

if TYPE_CHECKING:
    from tree_sitter import Node

FUNCTIONS = frozenset(
    (
        "arrow_function",
        "function_expression",
        "generator_function",
        "function_declaration",
        "generator_function_declaration",
        "method_definition",
    )
)
_CALLBACKS = frozenset(("arrow_function", "function_expression", "function_declaration"))
_RUNNERS = frozenset(("node:test", "test", "vitest", "@jest/globals", "mocha"))
_GROUPS = frozenset(("describe", "suite", "context", "fdescribe", "xdescribe", "xcontext"))
_TESTS = frozenset(("it", "test", "specify", "fit", "ftest", "xit", "xtest", "xspecify"))
_UNUSABLE = frozenset(("skip", "todo", "failing", "fails", "fail", "xit", "xtest", "xspecify"))
_UNUSABLE_OPTION = re.compile(r"\b(?:todo|skip|fails|expectFailure)\b")
_MODIFIERS = frozenset(
    ("only", "concurrent", "sequential", "serial", "shuffle", "each", "for", "skipIf", "runIf", *_UNUSABLE)
)
_TABLES = frozenset(("each", "for"))
_PLACEHOLDER = re.compile(r"%[a-zA-Z#%$]|\$[\w.#]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_ANYTHING = "\0"
"""A placeholder in a title for text that is known only at run time."""


class Binding(NamedTuple):
    """The target of an imported name: a module's export, or the module itself if `name` is empty."""

    module: str
    name: str


class ScriptTest(NamedTuple):
    """A call that defines a test."""

    call: Node
    callback: Node | None
    title: str
    """All titles from the outermost, joined as in an ID; `_ANYTHING` stands for a part known only at run time."""
    is_usable: bool
    """Whether a failure of it counts: False for a test that is skipped or expected to fail."""


class ScriptFile:
    def __init__(self, path: str, text: bytes) -> None:
        self.path, self.text = path, text
        self.root = parse(path, text)
        self.is_readable = len(text) <= MAX_BYTES and not self.root.has_error

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        """The names that the file imports or requires at its top level."""
        return dict(pair for statement in self.root.named_children for pair in _bound_by(statement))

    @cached_property
    def tests(self) -> list[ScriptTest]:
        """Every test in the file, in text order, without groups."""
        return list(self._find_tests())

    def find(self, name: str) -> ScriptTest | None:
        """Find the test of this name; None if there is none or more than one candidate."""
        title = CASE_MARK.sub("", name).strip()
        exact = [test for test in self.tests if test.title == title]
        similar = [test for test in self.tests if _ANYTHING in test.title and _can_match_title(test.title, title)]
        candidates = exact or similar
        return candidates[0] if len(candidates) == 1 and candidates[0].is_usable else None

    def find_declaration(self, name: str) -> Node | None:
        """Return the value or function that the top level of the file binds to a name; None unless exactly once."""
        values: list[Node] = []
        for statement in self.root.named_children:
            if statement.type == "function_declaration" and get_field_text(statement, "name") == name:
                values.append(statement)
            for declarator in statement.named_children:
                value = declarator.child_by_field_name("value")
                if declarator.type == "variable_declarator" and value and get_field_text(declarator, "name") == name:
                    values.append(value)
        return values[0] if len(values) == 1 else None

    def _find_tests(self) -> Iterator[ScriptTest]:
        waiting: list[tuple[Node, tuple[str, ...], bool]] = [(self.root, (), True)]
        while waiting:
            node, titles, is_usable = waiting.pop()
            parts = self._parse_definition(node) if node.type == "call_expression" else []
            args = list_arguments(node) if parts else []
            if args:
                titles = (*titles, self._read_title(args[0], is_table=not _TABLES.isdisjoint(parts)))
                is_usable = is_usable and _UNUSABLE.isdisjoint(parts) and not _is_unusable(args[1:])
                if _GROUPS.isdisjoint(parts):
                    yield ScriptTest(node, self._find_callback(args[1:]), " > ".join(titles), is_usable)
            waiting.extend((child, titles, is_usable) for child in reversed(node.named_children))

    def _parse_definition(self, call: Node) -> list[str]:
        """Return the parts of `test.only.each(...)` if a call defines tests; empty otherwise."""
        parts: list[str] = []
        node = call.child_by_field_name("function")
        is_curried = node is not None and node.type == "call_expression"
        while node is not None and node.type in ("member_expression", "call_expression"):
            if node.type == "member_expression":
                parts.append(get_field_text(node, "property"))
                node = node.child_by_field_name("object")
            else:
                node = node.child_by_field_name("function")
        if node is None or node.type not in ("identifier", "this"):
            return []
        root = get_text(node)
        binding = self.bindings.get(root)
        root = binding.name or "test" if binding and binding.module in _RUNNERS else root
        parts.append(root)
        is_known = _MODIFIERS.issuperset(parts[:-1]) or parts[0] in _GROUPS | _TESTS
        is_definition = (root in _GROUPS | _TESTS and is_known) or parts[0] == "test"
        needs_table = not is_curried and parts[0] in ("each", "for", "skipIf", "runIf")
        return parts if is_definition and not needs_table else []

    def _read_title(self, node: Node, *, is_table: bool) -> str:
        title = self._read_text(node)
        title = _PLACEHOLDER.sub(_ANYTHING, title) if is_table else title
        return " ".join(title.split()) or "(no title)"

    def _read_text(self, node: Node) -> str:
        if node.type in ("string", "template_string"):
            return "".join(_read_part(part) for part in node.named_children)
        if node.type == "binary_expression" and get_field_text(node, "operator") == "+":
            return "".join(self._read_text(operand) for operand in node.named_children)
        if node.type == "identifier" and (value := self.find_declaration(get_text(node))) is not None:
            return self._read_text(value) if value.type in ("string", "template_string") else _ANYTHING
        return _ANYTHING

    def _find_callback(self, args: list[Node]) -> Node | None:
        for node in reversed(args):
            candidate = self.find_declaration(get_text(node)) if node.type == "identifier" else node
            if candidate is not None and candidate.type in _CALLBACKS:
                return candidate
        return None


@lru_cache(maxsize=4)
def read_script(path: str, text: bytes) -> ScriptFile:
    """Parse a script. Cached because callers read the same file for each of its tests."""
    return ScriptFile(path, text)


def list_arguments(call: Node) -> list[Node]:
    """Return the arguments of a call; empty for a tagged template."""
    arguments_node = call.child_by_field_name("arguments")
    if arguments_node is None or arguments_node.type != "arguments":
        return []
    return [node for node in arguments_node.named_children if node.type != "comment"]


def unwrap_expression(node: Node) -> Node:
    """Strip parentheses and TypeScript type annotations."""
    wrappers = ("parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression")
    while node.type in wrappers and node.named_children:
        node = node.named_children[0]
    return node


def _can_match_title(title: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, title.split(_ANYTHING))), name, re.DOTALL) is not None


def _read_part(part: Node) -> str:
    if part.type == "string_fragment":
        return get_text(part)
    if part.type == "escape_sequence":
        code = get_text(part)[1:]
        hex_match = re.fullmatch(r"(?:x|u)\{?([0-9a-fA-F]+)\}?", code)
        return (
            chr(int(hex_match[1], 16)) if hex_match and int(hex_match[1], 16) < 0x110000 else _ESCAPES.get(code, code)
        )
    return _ANYTHING


def _is_unusable(args: list[Node]) -> bool:
    return any(node.type == "object" and _UNUSABLE_OPTION.search(get_text(node)) for node in args)


def _bound_by(statement: Node) -> Iterator[tuple[str, Binding]]:
    if statement.type == "import_statement":
        yield from _read_imports(statement)
    for declarator in statement.named_children:
        if declarator.type == "variable_declarator":
            yield from _read_requires(declarator)


def _read_imports(statement: Node) -> Iterator[tuple[str, Binding]]:
    source = statement.child_by_field_name("source")
    module = get_text(source)[1:-1] if source is not None else ""
    for node in walk(statement):
        if node.type == "import_specifier":
            name = get_field_text(node, "name")
            yield get_field_text(node, "alias") or name, Binding(module, name)
        elif node.type == "identifier" and node.parent and node.parent.type in ("import_clause", "namespace_import"):
            yield get_text(node), Binding(module, "")


def _read_requires(declarator: Node) -> Iterator[tuple[str, Binding]]:
    value, name = declarator.child_by_field_name("value"), declarator.child_by_field_name("name")
    export_name = ""
    if value is not None and value.type == "member_expression":
        export_name, value = get_field_text(value, "property"), value.child_by_field_name("object")
    args = list_arguments(value) if value is not None and value.type == "call_expression" else []
    if value is None or name is None or not args or get_field_text(value, "function") != "require":
        return
    module = get_text(args[0])[1:-1]
    if name.type == "identifier":
        yield get_text(name), Binding(module, export_name)
    for part in name.named_children if name.type == "object_pattern" else ():
        if part.type == "shorthand_property_identifier_pattern":
            yield get_text(part), Binding(module, get_text(part))
        elif part.type == "pair_pattern":
            yield get_field_text(part, "value"), Binding(module, get_field_text(part, "key"))
