"""Reads tests, definitions and imports of JavaScript and TypeScript for retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING

from redstart.toolkit.languages.node.trees import SUFFIXES, field_text, parse, text_of, walk
from redstart.toolkit.retrieval.code_reader import CodePlace, CodeReader, LineRange, ReadTest
from redstart.toolkit.retrieval.sources import Sources

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFINES = ("function_declaration", "generator_function_declaration", "class_declaration", "method_definition")
_CALLABLE = ("arrow_function", "function_expression")
_NAMES = ("identifier", "property_identifier", "shorthand_property_identifier", "type_identifier")


class ScriptReader(CodeReader):
    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def read_test(self, path: str, names: Sequence[str]) -> ReadTest | None:
        data = self._sources.data(path)
        if not data:
            return None
        root = parse(path, data)
        subject = root
        for title in names:
            inner = next((node for node in walk(subject) if node != subject and _titled(node, title)), None)
            subject = inner or subject
        words = dict.fromkeys(text_of(node) for node in walk(subject) if node.type in _NAMES)
        meant: dict[str, str] = {}
        for bound, specifier in _imported(root):
            meant |= dict.fromkeys(bound, file_of(specifier, path, self._sources.files))
        return ReadTest(
            CodePlace(path, *_lines(subject)),
            sorted(words, key=lambda word: not meant.get(word)),
            [file for file in meant.values() if file],
        )

    def line_ranges(self, path: str) -> list[LineRange]:
        root = parse(path, self._sources.data(path))
        return [_lines(_statement(node)) for node in walk(root) if _defines(node)]

    def imported_files(self, path: str) -> set[str]:
        specifiers = {specifier for _, specifier in _imported(parse(path, self._sources.data(path)))}
        return {file for item in specifiers if (file := file_of(item, path, self._sources.files))}


def file_of(specifier: str, importer: str, files: Set[str]) -> str:
    """Resolve `./cart`, `../src/cart.js` or `..` to a file; empty if it is none of these files.

    An import in TypeScript may end in `.js` and refer to the `.ts` file beside it.
    """
    if not specifier.startswith("."):
        return ""
    path = normpath(join(dirname(importer), specifier))
    bare = path.rpartition(".")[0] if path.endswith(SUFFIXES) else path
    found = (path, *(f"{bare}{end}" for end in SUFFIXES), *(f"{path}/index{end}" for end in SUFFIXES))
    return next((item for item in found if item in files), "")


def _defines(node: Node) -> bool:
    if node.type in _DEFINES:
        return True
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
    return value is not None and value.type in _CALLABLE


def _statement(node: Node) -> Node:
    """Return the whole statement around a definition: `export const f = ...`."""
    while node.parent is not None and node.parent.type in ("lexical_declaration", "export_statement"):
        node = node.parent
    return node


def _titled(node: Node, title: str) -> bool:
    """Return whether a call is `it('title', ...)`, under any function name."""
    arguments = node.child_by_field_name("arguments") if node.type == "call_expression" else None
    first = next((child for child in arguments.children if child.is_named), None) if arguments is not None else None
    if first is None or first.type not in ("string", "template_string"):
        return False
    return " ".join(text_of(first)[1:-1].split()) == title


def _imported(root: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    for node in walk(root):
        if node.type in ("import_statement", "export_statement"):
            source = node.child_by_field_name("source")
            if source is not None:
                names = [text_of(path) for path in walk(node) if path.type == "identifier"]
                yield tuple(names), text_of(source)[1:-1]
        elif node.type == "call_expression" and field_text(node, "function") in ("require", "import"):
            given = field_text(node, "arguments").strip("()\n\t ")
            if given[:1] in ("'", '"'):
                yield _bound_by(node), given[1:-1]


def _bound_by(node: Node) -> tuple[str, ...]:
    """List the names that `const { a, b: c } = require(...)` binds."""
    while node.parent is not None and node.parent.type in ("member_expression", "await_expression", "call_expression"):
        node = node.parent
    holder = node.parent
    name = holder.child_by_field_name("name") if holder is not None and holder.type == "variable_declarator" else None
    kinds = ("identifier", "shorthand_property_identifier_pattern")
    return tuple(text_of(path) for path in walk(name) if path.type in kinds) if name is not None else ()


def _lines(node: Node) -> LineRange:
    return LineRange(node.start_point[0] + 1, node.end_point[0] + (1 if node.end_point[1] else 0))
