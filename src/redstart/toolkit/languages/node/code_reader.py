"""Read tests, definitions and imports of JavaScript and TypeScript for retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING

from redstart.toolkit.languages.node.trees import SUFFIXES, get_field_text, get_text, parse, walk
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
        data = self._sources.read_data(path)
        if not data:
            return None
        root = parse(path, data)
        subject = root
        for title in names:
            match = next((node for node in walk(subject) if node != subject and _has_title(node, title)), None)
            subject = match or subject
        words = dict.fromkeys(get_text(node) for node in walk(subject) if node.type in _NAMES)
        file_by_name: dict[str, str] = {}
        for bound, specifier in _list_imports(root):
            file_by_name |= dict.fromkeys(bound, resolve_import(specifier, path, self._sources.files))
        return ReadTest(
            CodePlace(path, *_get_line_range(subject)),
            sorted(words, key=lambda word: not file_by_name.get(word)),
            [file for file in file_by_name.values() if file],
        )

    def list_line_ranges(self, path: str) -> list[LineRange]:
        root = parse(path, self._sources.read_data(path))
        return [_get_line_range(_find_statement(node)) for node in walk(root) if _is_definition(node)]

    def list_imported_files(self, path: str) -> set[str]:
        specifiers = {specifier for _, specifier in _list_imports(parse(path, self._sources.read_data(path)))}
        return {file for item in specifiers if (file := resolve_import(item, path, self._sources.files))}


def resolve_import(specifier: str, importer: str, files: Set[str]) -> str:
    """Resolve `./cart`, `../src/cart.js` or `..` to a file; empty if it is none of these files.

    An import in TypeScript may end in `.js` and refer to the `.ts` file beside it.
    """
    if not specifier.startswith("."):
        return ""
    path = normpath(join(dirname(importer), specifier))
    stem = path.rpartition(".")[0] if path.endswith(SUFFIXES) else path
    candidates = (path, *(f"{stem}{end}" for end in SUFFIXES), *(f"{path}/index{end}" for end in SUFFIXES))
    return next((item for item in candidates if item in files), "")


def _is_definition(node: Node) -> bool:
    if node.type in _DEFINES:
        return True
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else None
    return value is not None and value.type in _CALLABLE


def _find_statement(node: Node) -> Node:
    """Return the whole statement around a definition: `export const f = ...`."""
    while node.parent is not None and node.parent.type in ("lexical_declaration", "export_statement"):
        node = node.parent
    return node


def _has_title(node: Node, title: str) -> bool:
    """Return whether a call is `it('title', ...)`, under any function name."""
    arguments = node.child_by_field_name("arguments") if node.type == "call_expression" else None
    first = next((child for child in arguments.children if child.is_named), None) if arguments is not None else None
    if first is None or first.type not in ("string", "template_string"):
        return False
    return " ".join(get_text(first)[1:-1].split()) == title


def _list_imports(root: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    for node in walk(root):
        if node.type in ("import_statement", "export_statement"):
            source = node.child_by_field_name("source")
            if source is not None:
                names = [get_text(path) for path in walk(node) if path.type == "identifier"]
                yield tuple(names), get_text(source)[1:-1]
        elif node.type == "call_expression" and get_field_text(node, "function") in ("require", "import"):
            argument = get_field_text(node, "arguments").strip("()\n\t ")
            if argument[:1] in ("'", '"'):
                yield _bound_by(node), argument[1:-1]


def _bound_by(node: Node) -> tuple[str, ...]:
    """List the names that `const { a, b: c } = require(...)` binds."""
    while node.parent is not None and node.parent.type in ("member_expression", "await_expression", "call_expression"):
        node = node.parent
    holder = node.parent
    name = holder.child_by_field_name("name") if holder is not None and holder.type == "variable_declarator" else None
    kinds = ("identifier", "shorthand_property_identifier_pattern")
    return tuple(get_text(path) for path in walk(name) if path.type in kinds) if name is not None else ()


def _get_line_range(node: Node) -> LineRange:
    return LineRange(node.start_point[0] + 1, node.end_point[0] + (1 if node.end_point[1] else 0))
