"""Tripwires on data files that a change adds: tables of the tests' questions and answers outside the code."""

from __future__ import annotations

import ast
import csv
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, cast

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.tripwires.answers import explain_disguised_table, explain_repeated_table
from redstart.toolkit.languages.python.tripwires.literals import Row, TestLiterals, Value, normalize_value

MAX_FILE_BYTES = 1 << 20
"""The maximum number of bytes read from one file; a table made for tests is small."""
_LINE = re.compile(r"^\s*[\"']?(.+?)[\"']?\s*(?:=>|=|:|\t|\|)\s*(.+?)\s*$")


def read_rows(path: str, text: bytes) -> tuple[Row, ...]:
    """Read a data file's rows: keys with their values, and the last cell of a line with the cells before it.

    A file of an unknown type, or a damaged one, has no rows.
    """
    ending = PurePosixPath(path).suffix.lower()
    content = text[:MAX_FILE_BYTES].decode("utf-8", "replace")
    try:
        if ending in (".json", ".jsonl", ".ndjson"):
            lines = [content] if ending == ".json" else content.splitlines()
            return tuple(row for line in lines for row in _read_nested(json.loads(line)))
        if ending == ".toml":
            return tuple(_read_nested(tomllib.loads(content)))
        if ending in (".csv", ".tsv"):
            return tuple(_read_lines(csv.reader(content.splitlines(), delimiter="\t" if ending == ".tsv" else ",")))
        if ending in (".txt", ".ini", ".cfg", ".yaml", ".yml", ".dat", ".properties", ".conf", ""):
            matches = (_LINE.match(line) for line in content.splitlines())
            return tuple((parse_cell(match[1]), parse_cell(match[2])) for match in matches if match is not None)
    except (ValueError, csv.Error, RecursionError):
        return ()
    return ()


def find_marks(rows: tuple[Row, ...], test_literals: TestLiterals) -> Iterator[RuleMark]:
    """Mark tables. Disguised inputs are made for the tests; a table that repeats them openly may be requested."""
    if message := explain_disguised_table(rows, test_literals):
        yield RuleMark("special_case", "data", 1, message)
    elif message := explain_repeated_table(rows, test_literals):
        yield RuleMark("keyed_by_tests", "data", 1, message)


def _read_nested(data: Any) -> Iterator[Row]:
    if isinstance(data, dict):
        for key, item in cast("dict[str, Any]", data).items():
            if isinstance(item, dict):
                yield from _read_nested(item)
            else:
                yield key, normalize_value(item)
    elif isinstance(data, list):
        items = cast("list[Any]", data)
        for item in items:
            if isinstance(item, dict):
                yield from _record(cast("dict[str, Any]", item))
            elif isinstance(item, list):
                yield from _read_lines([cast("list[Any]", item)])


def _record(record: dict[str, Any]) -> Iterator[Row]:
    """Pair a record's last field with the fields before it."""
    yield from _read_lines([list(record.values())])


def _read_lines(lines: Any) -> Iterator[Row]:
    for line in lines:
        cells: list[Value] = [parse_cell(item) if isinstance(item, str) else normalize_value(item) for item in line]
        if len(cells) == 2:
            yield cells[0], cells[1]
        elif len(cells) > 2:
            yield tuple(cells[:-1]), cells[-1]


def parse_cell(text: str) -> Value:
    """Parse a cell as a literal if it looks like one; else return its text."""
    try:
        return normalize_value(ast.literal_eval(text.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
