"""The names that a file defines, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.model_tools.visible_files import FileText

MAX_SYMBOLS = 400
_DEFINES = re.compile(
    r"^(?P<margin>[ \t]{0,12})(?:(?:export|default|public|private|static|async|pub|abstract|final)[ \t]+){0,4}"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|impl|type|module)[ \t]+(?P<name>[A-Za-z_][\w.]*)"
)


class Symbol(NamedTuple):
    name: str
    """Qualified by the surrounding names: `Cart.total`."""
    start: int
    end: int
    head: str
    """Its first line."""


def list_symbols(text: FileText) -> list[Symbol]:
    """List what the file defines, in order: exactly if its language has a parser for it, by its lines otherwise."""
    language = find_file_language(text.path)
    exact = language.outline(text.lines) if language else None
    definitions = _find_definitions(text.lines) if exact is None else exact
    return sorted(definitions, key=lambda item: (item.start, item.name))[:MAX_SYMBOLS]


def _find_definitions(lines: Sequence[str]) -> list[Symbol]:
    """Let each definition extend to the next one that is not indented further."""
    heads = [(number, head) for number, line in enumerate(lines, 1) if (head := _DEFINES.match(line[:500]))]
    definitions: list[Symbol] = []
    for place, (number, head) in enumerate(heads):
        following = (other for other, item in heads[place + 1 :] if len(item["margin"]) <= len(head["margin"]))
        definitions.append(Symbol(head["name"], number, next(following, len(lines) + 1) - 1, lines[number - 1].strip()))
    return definitions
