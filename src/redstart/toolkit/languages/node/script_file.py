"""A test file in JavaScript or TypeScript: its tree, its tests by title, and its imported names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from redstart.toolkit.languages.node import CASE_MARK
from redstart.toolkit.languages.node.trees import MAX_BYTES, field_text, parse, text_of, walk

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
    usable: bool
    """Whether a failure of it counts: False for a test that is skipped or expected to fail."""


class ScriptFile:
    def __init__(self, path: str, text: bytes) -> None:
        self.path, self.text = path, text
        self.root = parse(path, text)
        self.readable = len(text) <= MAX_BYTES and not self.root.has_error

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        """The names that the file imports or requires at its top level."""
        return dict(pair for statement in self.root.named_children for pair in _bound_by(statement))

    @cached_property
    def tests(self) -> list[ScriptTest]:
        """Every test in the file, in text order, without groups."""
        return list(self._tests())

    def find(self, name: str) -> ScriptTest | None:
        """Find the test of this name; None if there is none or more than one candidate."""
        wanted = CASE_MARK.sub("", name).strip()
        exact = [test for test in self.tests if test.title == wanted]
        similar = [test for test in self.tests if _ANYTHING in test.title and _may_be(test.title, wanted)]
        chosen = exact or similar
        return chosen[0] if len(chosen) == 1 and chosen[0].usable else None

    def declared(self, name: str) -> Node | None:
        """Return the value or function that the top level of the file binds to a name; None unless exactly once."""
        values: list[Node] = []
        for statement in self.root.named_children:
            if statement.type == "function_declaration" and field_text(statement, "name") == name:
                values.append(statement)
            for declarator in statement.named_children:
                value = declarator.child_by_field_name("value")
                if declarator.type == "variable_declarator" and value and field_text(declarator, "name") == name:
                    values.append(value)
        return values[0] if len(values) == 1 else None

    def _tests(self) -> Iterator[ScriptTest]:
        waiting: list[tuple[Node, tuple[str, ...], bool]] = [(self.root, (), True)]
        while waiting:
            node, titles, usable = waiting.pop()
            words = self._words(node) if node.type == "call_expression" else []
            given = arguments(node) if words else []
            if given:
                titles = (*titles, self._title(given[0], is_table=not _TABLES.isdisjoint(words)))
                usable = usable and _UNUSABLE.isdisjoint(words) and not _is_unusable(given[1:])
                if _GROUPS.isdisjoint(words):
                    yield ScriptTest(node, self._callback(given[1:]), " > ".join(titles), usable)
            waiting.extend((child, titles, usable) for child in reversed(node.named_children))

    def _words(self, call: Node) -> list[str]:
        """Return the parts of `test.only.each(...)` if a call defines tests; empty otherwise."""
        words: list[str] = []
        node = call.child_by_field_name("function")
        is_curried = node is not None and node.type == "call_expression"
        while node is not None and node.type in ("member_expression", "call_expression"):
            if node.type == "member_expression":
                words.append(field_text(node, "property"))
                node = node.child_by_field_name("object")
            else:
                node = node.child_by_field_name("function")
        if node is None or node.type not in ("identifier", "this"):
            return []
        root = text_of(node)
        binding = self.bindings.get(root)
        root = binding.name or "test" if binding and binding.module in _RUNNERS else root
        words.append(root)
        is_known = _MODIFIERS.issuperset(words[:-1]) or words[0] in _GROUPS | _TESTS
        is_definition = (root in _GROUPS | _TESTS and is_known) or words[0] == "test"
        needs_table = not is_curried and words[0] in ("each", "for", "skipIf", "runIf")
        return words if is_definition and not needs_table else []

    def _title(self, node: Node, *, is_table: bool) -> str:
        title = self._text(node)
        title = _PLACEHOLDER.sub(_ANYTHING, title) if is_table else title
        return " ".join(title.split()) or "(no title)"

    def _text(self, node: Node) -> str:
        if node.type in ("string", "template_string"):
            return "".join(_text_of_part(part) for part in node.named_children)
        if node.type == "binary_expression" and field_text(node, "operator") == "+":
            return "".join(self._text(side) for side in node.named_children)
        if node.type == "identifier" and (value := self.declared(text_of(node))) is not None:
            return self._text(value) if value.type in ("string", "template_string") else _ANYTHING
        return _ANYTHING

    def _callback(self, given: list[Node]) -> Node | None:
        for node in reversed(given):
            declared = self.declared(text_of(node)) if node.type == "identifier" else node
            if declared is not None and declared.type in _CALLBACKS:
                return declared
        return None


@lru_cache(maxsize=4)
def read_script(path: str, text: bytes) -> ScriptFile:
    """Parse a script. Cached because callers read the same file for each of its tests."""
    return ScriptFile(path, text)


def arguments(call: Node) -> list[Node]:
    """Return the arguments of a call; empty for a tagged template."""
    given = call.child_by_field_name("arguments")
    if given is None or given.type != "arguments":
        return []
    return [node for node in given.named_children if node.type != "comment"]


def unwrapped(node: Node) -> Node:
    """Strip parentheses and TypeScript type annotations."""
    wrappers = ("parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression")
    while node.type in wrappers and node.named_children:
        node = node.named_children[0]
    return node


def _may_be(title: str, name: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, title.split(_ANYTHING))), name, re.DOTALL) is not None


def _text_of_part(part: Node) -> str:
    if part.type == "string_fragment":
        return text_of(part)
    if part.type == "escape_sequence":
        code = text_of(part)[1:]
        digits = re.fullmatch(r"(?:x|u)\{?([0-9a-fA-F]+)\}?", code)
        return chr(int(digits[1], 16)) if digits and int(digits[1], 16) < 0x110000 else _ESCAPES.get(code, code)
    return _ANYTHING


def _is_unusable(given: list[Node]) -> bool:
    return any(node.type == "object" and _UNUSABLE_OPTION.search(text_of(node)) for node in given)


def _bound_by(statement: Node) -> Iterator[tuple[str, Binding]]:
    if statement.type == "import_statement":
        yield from _imported(statement)
    for declarator in statement.named_children:
        if declarator.type == "variable_declarator":
            yield from _required(declarator)


def _imported(statement: Node) -> Iterator[tuple[str, Binding]]:
    source = statement.child_by_field_name("source")
    module = text_of(source)[1:-1] if source is not None else ""
    for node in walk(statement):
        if node.type == "import_specifier":
            name = field_text(node, "name")
            yield field_text(node, "alias") or name, Binding(module, name)
        elif node.type == "identifier" and node.parent and node.parent.type in ("import_clause", "namespace_import"):
            yield text_of(node), Binding(module, "")


def _required(declarator: Node) -> Iterator[tuple[str, Binding]]:
    value, name = declarator.child_by_field_name("value"), declarator.child_by_field_name("name")
    exported = ""
    if value is not None and value.type == "member_expression":
        exported, value = field_text(value, "property"), value.child_by_field_name("object")
    given = arguments(value) if value is not None and value.type == "call_expression" else []
    if value is None or name is None or not given or field_text(value, "function") != "require":
        return
    module = text_of(given[0])[1:-1]
    if name.type == "identifier":
        yield text_of(name), Binding(module, exported)
    for part in name.named_children if name.type == "object_pattern" else ():
        if part.type == "shorthand_property_identifier_pattern":
            yield text_of(part), Binding(module, text_of(part))
        elif part.type == "pair_pattern":
            yield field_text(part, "value"), Binding(module, field_text(part, "key"))
