"""Read questions and answers from tests' data files: scenarios in prose, tables of cases, records and snapshots.

An answer belongs to the tests wherever they keep it. Only content that looks like a case is read: a file of any other
form, or a damaged one, adds nothing.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from redstart.toolkit.languages.python.tripwires.data import LARGEST, rows_of, typed
from redstart.toolkit.languages.python.tripwires.literals import (
    QuestionAndAnswer,
    Value,
    bits,
    is_plain_word,
    is_tiny,
    pair_of,
    pairs_of_row,
    plain,
)

_EXPECTATION = re.compile(r"expect|want|result|output|answer|should|return", re.IGNORECASE)
_LABEL = re.compile(r"(?:id|uuid|name|title|desc|description|comment|label|note)", re.IGNORECASE)
_MOST_FIELDS = 8
"""A record with more fields is data for the program, not a case."""
_LONGEST_ANSWER = 20_000
_LITERAL = re.compile(r"\"([^\"]*)\"|'([^']*)'|(?<![\w.<])(-?\d+(?:\.\d+)?)(?![\w.>]*\w)")
_STEP = re.compile(r"(Given|When|Then|And|But|\*)\s+(.*)")
_ENTRY = re.compile(r"(?P<indent>\s*)(?P<dash>(?:-\s+)*)(?P<rest>.*)")
_FIELD = re.compile(r"(?P<name>[\w .\"'/-]+?)\s*:(?:\s+(?P<value>.*))?$")
_YAML_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None, "~": None}
_SNAPSHOTS = (".ambr", ".snap")
_TELLING = 6
"""The minimum bits for a literal of a snapshot to be distinctive."""

Field = tuple[str, Value]


def pairs_of_file(path: str, text: bytes) -> Iterator[QuestionAndAnswer]:
    """Read the questions and answers of a test data file, according to its suffix."""
    ending = PurePosixPath(path).suffix.lower()
    content = text[:LARGEST].decode("utf-8", "replace")
    if ending in (".json", ".jsonl", ".ndjson"):
        yield from _json(content)
    elif ending == ".toml":
        try:
            yield from _nested(tomllib.loads(content))
        except ValueError:
            return
    elif ending in (".yaml", ".yml"):
        yield from _yaml(content)
    elif ending == ".feature":
        yield from _scenarios(content)
    elif ending == ".robot":
        for line in content.splitlines():
            cells = [typed(cell) for cell in re.split(r"\s{2,}|\t", line.strip()) if cell]
            yield from (*pairs_of_row(cells), *pairs_of_row(cells[1:]))  # the first cell may be the name of a test
    elif ending in _SNAPSHOTS:
        found = {value for value in _literals(content) if bits(value) >= _TELLING}
        yield from (pair_of("", [], value) for value in found)
    else:
        for key, row in rows_of(path, text):
            yield pair_of("", list(cast("tuple[Value, ...]", key)) if isinstance(key, tuple) else [key], row)
        if len(content) <= _LONGEST_ANSWER:
            yield from (pair_of("", [], whole) for whole in {content, content.strip()})


def _json(content: str) -> Iterator[QuestionAndAnswer]:
    for line in (content, *content.splitlines()):
        try:
            yield from _nested(json.loads(line))
        except (ValueError, RecursionError):
            continue


def _nested(data: Any) -> Iterator[QuestionAndAnswer]:
    stack: list[Any] = [data]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            stack += cast("dict[str, Any]", one).values()
            yield from _record(list(_fields(cast("dict[str, Any]", one))))
        elif isinstance(one, list):
            row = cast("list[Any]", one)
            stack += row
            if 2 <= len(row) <= _MOST_FIELDS:
                cells = [plain(inner) for inner in row]
                yield pair_of("", cells[:-1], cells[-1])


def _fields(data: dict[str, Any]) -> Iterator[Field]:
    """Iterate over a record's fields; fields of nested records are included, prefixed with the outer name."""
    for name, item in data.items():
        if isinstance(item, dict):
            yield from ((f"{name} {inner}", value) for inner, value in _fields(cast("dict[str, Any]", item)))
        else:
            yield name, plain(item)


def _record(fields: Sequence[Field]) -> Iterator[QuestionAndAnswer]:
    """Pair a record's fields: the expectation is the field named so, else the last or the first."""
    if not 2 <= len(fields) <= _MOST_FIELDS:
        return
    said = [at for at, (name, _) in enumerate(fields) if _EXPECTATION.search(name)]
    if not said and all(is_plain_word(value) or is_tiny(value) for _, value in fields):
        return  # A record of only plain words may be anything.
    for at in said or (len(fields) - 1, 0):
        others = [field for place, field in enumerate(fields) if place != at]
        yield pair_of("", [value for _, value in others], fields[at][1])
        asked = [value for name, value in others if not _LABEL.fullmatch(name)]
        if asked and len(asked) < len(others):
            yield pair_of("", asked, fields[at][1])


def _literals(text: str) -> Iterator[Value]:
    for double, single, number in _LITERAL.findall(text):
        yield typed(number) if number else double or single


def _scenarios(content: str) -> Iterator[QuestionAndAnswer]:
    """Yield the rows of each table except its heading, and the values of a scenario's steps with those of `Then`."""
    given: list[Value] = []
    keyword, in_table = "", False
    for line in map(str.strip, content.splitlines()):
        if line.startswith("|"):
            if in_table:
                yield from pairs_of_row([typed(cell.strip()) for cell in line.strip("|").split("|")])
            in_table = True
            continue
        in_table = False
        if (step := _STEP.match(line)) is None:
            given = [] if line.endswith(":") or ": " in line else given
            continue
        keyword = step[1] if step[1] in ("Given", "When", "Then") else keyword
        found = list(_literals(step[2]))
        if keyword == "Then":
            yield from (pair_of("", given, value) for value in found if given)
        else:
            given = [*given, *found]


class _Line(NamedTuple):
    depth: int
    fields: tuple[Field, ...]


def _yaml(content: str) -> Iterator[QuestionAndAnswer]:
    """Read records by indentation and in braces: enough of YAML for test cases, without its details."""
    lines = [_Line(-1, ()), *(entry for line in content.splitlines() for entry in _entries(line))]
    for at, parent in enumerate(lines):
        if len(parent.fields) > 1:
            yield from _record(parent.fields)
        below: list[Field] = []
        for line in islice(lines, at + 1, None):
            if line.depth <= parent.depth or len(below) > _MOST_FIELDS:
                break
            below += line.fields
        if len(below) > 1:
            yield from _record(below)


def _entries(line: str) -> Iterator[_Line]:
    hit = _ENTRY.match(re.sub(r"(?:^|\s)#.*", "", line).rstrip())
    if hit is None or not hit["rest"] or hit["rest"].startswith(("---", "%")):
        return
    indent = len(hit["indent"])
    if hit["dash"]:
        yield _Line(indent, ())
    depth = indent + len(hit["dash"])
    field = _FIELD.match(hit["rest"])
    name, value = (field["name"], field["value"] or "") if field is not None else ("", hit["rest"])
    if value.startswith("{") and value.endswith("}"):
        yield _Line(depth, tuple(_in_braces(value[1:-1])))
    else:
        yield _Line(depth, ((name, _scalar(value)),) if value and value not in ("|", ">") else ())


def _in_braces(text: str) -> Iterator[Field]:
    for part in _split(text):
        name, _, value = part.partition(":")
        if value:
            yield name.strip(), _scalar(value.strip())


def _scalar(text: str) -> Value:
    if text.startswith("[") and text.endswith("]"):
        return tuple(_scalar(part.strip()) for part in _split(text[1:-1]))
    return _YAML_WORDS[text] if text in _YAML_WORDS else typed(text)


def _split(text: str) -> Iterator[str]:
    """Split at commas outside of brackets and quotes."""
    depth, quote, part = 0, "", ""
    for sign in text:
        if quote or sign in "\"'":
            quote = "" if sign == quote else quote or sign
        else:
            depth += (sign in "[{") - (sign in "]}")
        if sign == "," and not depth and not quote:
            yield part
            part = ""
        else:
            part += sign
    if part.strip():
        yield part
