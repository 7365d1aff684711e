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

from redstart.toolkit.languages.python.tripwires.data import MAX_FILE_BYTES, parse_cell, read_rows
from redstart.toolkit.languages.python.tripwires.literals import (
    QuestionAndAnswer,
    Value,
    create_pair,
    estimate_bits,
    is_plain_word,
    is_tiny,
    normalize_value,
    pair_row,
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
_YAML_LITERALS: dict[str, Value] = {"true": True, "false": False, "null": None, "~": None}
_SNAPSHOTS = (".ambr", ".snap")
_MIN_DISTINCTIVE_BITS = 6
"""The minimum bits for a literal of a snapshot to be distinctive."""

Field = tuple[str, Value]


def read_file_pairs(path: str, text: bytes) -> Iterator[QuestionAndAnswer]:
    """Read the questions and answers of a test data file, according to its suffix."""
    ending = PurePosixPath(path).suffix.lower()
    content = text[:MAX_FILE_BYTES].decode("utf-8", "replace")
    if ending in (".json", ".jsonl", ".ndjson"):
        yield from _read_json(content)
    elif ending == ".toml":
        try:
            yield from _read_nested(tomllib.loads(content))
        except ValueError:
            return
    elif ending in (".yaml", ".yml"):
        yield from _read_yaml(content)
    elif ending == ".feature":
        yield from _read_scenarios(content)
    elif ending == ".robot":
        for line in content.splitlines():
            cells = [parse_cell(cell) for cell in re.split(r"\s{2,}|\t", line.strip()) if cell]
            yield from (*pair_row(cells), *pair_row(cells[1:]))  # the first cell may be the name of a test
    elif ending in _SNAPSHOTS:
        values = {value for value in _find_literals(content) if estimate_bits(value) >= _MIN_DISTINCTIVE_BITS}
        yield from (create_pair("", [], value) for value in values)
    else:
        for key, row in read_rows(path, text):
            yield create_pair("", list(cast("tuple[Value, ...]", key)) if isinstance(key, tuple) else [key], row)
        if len(content) <= _LONGEST_ANSWER:
            yield from (create_pair("", [], answer) for answer in {content, content.strip()})


def _read_json(content: str) -> Iterator[QuestionAndAnswer]:
    for line in (content, *content.splitlines()):
        try:
            yield from _read_nested(json.loads(line))
        except (ValueError, RecursionError):
            continue


def _read_nested(data: Any) -> Iterator[QuestionAndAnswer]:
    stack: list[Any] = [data]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            stack += cast("dict[str, Any]", current).values()
            yield from _record(list(_flatten_fields(cast("dict[str, Any]", current))))
        elif isinstance(current, list):
            row = cast("list[Any]", current)
            stack += row
            if 2 <= len(row) <= _MOST_FIELDS:
                cells = [normalize_value(cell) for cell in row]
                yield create_pair("", cells[:-1], cells[-1])


def _flatten_fields(data: dict[str, Any]) -> Iterator[Field]:
    """Iterate over a record's fields; fields of nested records are included, prefixed with the outer name."""
    for name, item in data.items():
        if isinstance(item, dict):
            yield from (
                (f"{name} {nested_name}", value) for nested_name, value in _flatten_fields(cast("dict[str, Any]", item))
            )
        else:
            yield name, normalize_value(item)


def _record(fields: Sequence[Field]) -> Iterator[QuestionAndAnswer]:
    """Pair a record's fields: the expectation is the field named so, else the last or the first."""
    if not 2 <= len(fields) <= _MOST_FIELDS:
        return
    expectation_indexes = [index for index, (name, _) in enumerate(fields) if _EXPECTATION.search(name)]
    if not expectation_indexes and all(is_plain_word(value) or is_tiny(value) for _, value in fields):
        return  # A record of only plain words may be anything.
    for index in expectation_indexes or (len(fields) - 1, 0):
        other_fields = [field for place, field in enumerate(fields) if place != index]
        yield create_pair("", [value for _, value in other_fields], fields[index][1])
        inputs = [value for name, value in other_fields if not _LABEL.fullmatch(name)]
        if inputs and len(inputs) < len(other_fields):
            yield create_pair("", inputs, fields[index][1])


def _find_literals(text: str) -> Iterator[Value]:
    for double, single, number in _LITERAL.findall(text):
        yield parse_cell(number) if number else double or single


def _read_scenarios(content: str) -> Iterator[QuestionAndAnswer]:
    """Yield the rows of each table except its heading, and the values of a scenario's steps with those of `Then`."""
    given_values: list[Value] = []
    keyword, in_table = "", False
    for line in map(str.strip, content.splitlines()):
        if line.startswith("|"):
            if in_table:
                yield from pair_row([parse_cell(cell.strip()) for cell in line.strip("|").split("|")])
            in_table = True
            continue
        in_table = False
        if (step := _STEP.match(line)) is None:
            given_values = [] if line.endswith(":") or ": " in line else given_values
            continue
        keyword = step[1] if step[1] in ("Given", "When", "Then") else keyword
        values = list(_find_literals(step[2]))
        if keyword == "Then":
            yield from (create_pair("", given_values, value) for value in values if given_values)
        else:
            given_values = [*given_values, *values]


class _Line(NamedTuple):
    depth: int
    fields: tuple[Field, ...]


def _read_yaml(content: str) -> Iterator[QuestionAndAnswer]:
    """Read records by indentation and in braces: enough of YAML for test cases, without its details."""
    lines = [_Line(-1, ()), *(entry for line in content.splitlines() for entry in _parse_line(line))]
    for index, parent in enumerate(lines):
        if len(parent.fields) > 1:
            yield from _record(parent.fields)
        child_fields: list[Field] = []
        for line in islice(lines, index + 1, None):
            if line.depth <= parent.depth or len(child_fields) > _MOST_FIELDS:
                break
            child_fields += line.fields
        if len(child_fields) > 1:
            yield from _record(child_fields)


def _parse_line(line: str) -> Iterator[_Line]:
    match = _ENTRY.match(re.sub(r"(?:^|\s)#.*", "", line).rstrip())
    if match is None or not match["rest"] or match["rest"].startswith(("---", "%")):
        return
    indent = len(match["indent"])
    if match["dash"]:
        yield _Line(indent, ())
    depth = indent + len(match["dash"])
    field = _FIELD.match(match["rest"])
    name, value = (field["name"], field["value"] or "") if field is not None else ("", match["rest"])
    if value.startswith("{") and value.endswith("}"):
        yield _Line(depth, tuple(_in_braces(value[1:-1])))
    else:
        yield _Line(depth, ((name, _parse_scalar(value)),) if value and value not in ("|", ">") else ())


def _in_braces(text: str) -> Iterator[Field]:
    for part in _split(text):
        name, _, value = part.partition(":")
        if value:
            yield name.strip(), _parse_scalar(value.strip())


def _parse_scalar(text: str) -> Value:
    if text.startswith("[") and text.endswith("]"):
        return tuple(_parse_scalar(part.strip()) for part in _split(text[1:-1]))
    return _YAML_LITERALS[text] if text in _YAML_LITERALS else parse_cell(text)


def _split(text: str) -> Iterator[str]:
    """Split at commas outside of brackets and quotes."""
    depth, quote, part = 0, "", ""
    for char in text:
        if quote or char in "\"'":
            quote = "" if char == quote else quote or char
        else:
            depth += (char in "[{") - (char in "]}")
        if char == "," and not depth and not quote:
            yield part
            part = ""
        else:
            part += char
    if part.strip():
        yield part
