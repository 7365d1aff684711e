"""Find misspelled SQL in strings and `.sql` files: keywords by grammar, names by the schema found in the repo."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.checks.source import LARGEST, Source
from redstart.toolkit.languages.python.checks.queries import (
    KEYWORDS,
    MisspeltWord,
    Token,
    looks_like_sql,
    misspelt_keywords,
    near,
    tokens,
)
from redstart.toolkit.languages.python.checks.source import PythonSource

TOOL = "rules"
KEYWORD, NAME = "misspelt-sql-keyword", "misspelt-sql-name"

_CREATES = re.compile(r"\bCREATE\s+(?:TEMP(?:ORARY)?\s+)?TABLE\b", re.IGNORECASE)
_NOT_COLUMNS = frozenset({"PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "CONSTRAINT", "KEY", "INDEX", "EXCLUDE", "LIKE"})
_LONGEST = 20_000


@dataclass
class Schema:
    """Tables and their columns, in lower case, as far as the code defines them."""

    tables: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def add(self, table: str, columns: Sequence[str]) -> None:
        self.tables.setdefault(table.lower(), set()).update(column.lower() for column in columns)


class SqlText(NamedTuple):
    text: str
    line: int
    """The line where it starts."""
    last: int


def misspelt_sql(sources: Sequence[Source], around: Sequence[Source] = ()) -> list[Finding]:
    """Find SQL words similar to another word. The schema is read from these files and the additional ones."""
    texts = {source.path: list(_queries(source)) for source in (*sources, *around)}
    schema = Schema()
    for source in (*sources, *around):
        _from_models(source, schema)
        for query in texts[source.path]:
            if _CREATES.search(query.text):
                _from_create(query.text, schema)
    found: list[Finding] = []
    for source in sources:
        seen: set[tuple[int, str]] = set()
        for query in texts[source.path]:
            for rule, item in _wrong(query.text, schema):
                line = _line(source, query, item)
                if (line, item.word) not in seen:
                    seen.add((line, item.word))
                    message = f"{item.word} in this SQL is probably meant as {item.meant}"
                    found.append(source.finding(TOOL, rule, line, message, FindingKind.sql_misspelt, Risk.medium))
    return found


def _wrong(text: str, schema: Schema) -> Iterator[tuple[str, MisspeltWord]]:
    if not looks_like_sql(text):
        return
    words: set[str] = set()
    for keyword in misspelt_keywords(text):
        words.add(keyword.word)
        yield KEYWORD, keyword
    if not words:
        yield from ((NAME, name) for name in _misspelt_names(text, schema))


# -- SQL in sources ----------------------------------------------------------------------------------------------------


def _queries(source: Source) -> Iterator[SqlText]:
    if source.path.endswith(".sql") and len(source.data) <= LARGEST:
        line = 1
        for part in source.text.split(";"):
            lead = len(part) - len(part.lstrip())
            first = line + part.count("\n", 0, lead)
            line += part.count("\n")
            if part.strip():
                yield SqlText(part.strip()[:_LONGEST], first, line)
        return
    if not isinstance(source, PythonSource):
        return
    documented = {id(docstring) for docstring in _docstrings(source)}
    inside: set[int] = set()
    for node in (*source.all(ast.JoinedStr), *source.all(ast.Constant)):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(item) for item in node.values)
            text = "".join(str(item.value) if isinstance(item, ast.Constant) else "\x00" for item in node.values)
        elif isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if len(text) >= 10 and id(node) not in documented and " " in text.strip():
            yield SqlText(text[:_LONGEST], node.lineno, node.end_lineno or node.lineno)


def _docstrings(source: PythonSource) -> Iterator[ast.AST]:
    for node in source.all(ast.Expr):
        if isinstance(node.value, ast.Constant):
            yield node.value


def _line(source: Source, query: SqlText, one: MisspeltWord) -> int:
    """Find the line that contains the word."""
    guess = query.line + query.text.count("\n", 0, one.start)
    word = re.compile(rf"(?<!\w){re.escape(one.word)}(?!\w)")
    if word.search(source.line(guess)):
        return guess
    return next((line for line in range(query.line, query.last + 1) if word.search(source.line(line))), query.line)


# -- the schema --------------------------------------------------------------------------------------------------------


def _from_create(text: str, schema: Schema) -> None:
    found = tokens(text)
    for place, token in enumerate(found):
        if token.upper != "TABLE" or not any(item.upper == "CREATE" for item in found[max(0, place - 3) : place]):
            continue
        rest = [item for item in found[place + 1 :] if item.upper not in ("IF", "NOT", "EXISTS")]
        if len(rest) < 3 or rest[0].kind == "value":
            continue
        names = [item for item in rest[:4] if item.kind != "sign"]
        opened = next((index for index, item in enumerate(rest[:5]) if item.text == "("), None)
        if opened is None or not names:
            continue
        schema.add(_bare(rest[opened - 1].text), list(_columns(rest[opened + 1 :])))


def _columns(found: Sequence[Token]) -> Iterator[str]:
    depth, first = 0, True
    for token in found:
        if first and token.kind != "sign" and token.upper not in _NOT_COLUMNS:
            yield _bare(token.text)
        first = False
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth < 0:
                return
        elif token.text == "," and depth == 0:
            first = True


def _bare(name: str) -> str:
    return name.strip('"`[]')


def _from_models(source: Source, schema: Schema) -> None:
    """Add SQLAlchemy's models and tables to the schema."""
    if not isinstance(source, PythonSource) or not ("Column" in source.text or "mapped_column" in source.text):
        return
    for node in (*source.all(ast.ClassDef), *source.all(ast.Call)):
        if isinstance(node, ast.ClassDef):
            table, columns = "", list[str]()
            for statement in node.body:
                target = (
                    statement.targets[0]
                    if isinstance(statement, ast.Assign)
                    else statement.target
                    if isinstance(statement, ast.AnnAssign)
                    else None
                )
                value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
                if not isinstance(target, ast.Name):
                    continue
                if target.id == "__tablename__" and isinstance(value, ast.Constant):
                    table = str(value.value)
                elif isinstance(value, ast.Call) and source.names.called(value).endswith(("Column", "mapped_column")):
                    first = value.args[0] if value.args else None
                    columns.append(str(first.value) if isinstance(first, ast.Constant) else target.id)
            if table:
                schema.add(table, columns)
        elif source.names.called(node).endswith("Table") and len(node.args) > 2:
            name = node.args[0]
            inner = [arg for arg in node.args[1:] if isinstance(arg, ast.Call) and arg.args]
            named = [item.args[0] for item in inner if source.names.called(item).endswith("Column")]
            if isinstance(name, ast.Constant) and named:
                schema.add(str(name.value), [str(item.value) for item in named if isinstance(item, ast.Constant)])


# -- names -------------------------------------------------------------------------------------------------------------


def _misspelt_names(text: str, schema: Schema) -> Iterator[MisspeltWord]:
    """Find table and column names that are not in the schema but are similar to a name that is."""
    found = tokens(text)
    if not schema.tables or any(item.upper in ("CREATE", "ALTER", "DROP") for item in found[:1]):
        return
    own, used = _own_names(found), list(_used_tables(found))
    for token in used:
        name = _bare(token.text).lower()
        unknown = name not in schema.tables and name not in own and len(name) >= 4
        meant = next((table for table in sorted(schema.tables) if _near_name(name, table)), "") if unknown else ""
        if meant:
            yield MisspeltWord(token.text, meant, token.start)
    tables = [_bare(item.text).lower() for item in used]
    if not tables or any(table not in schema.tables for table in tables):
        return
    columns = set[str]().union(*(schema.tables[table] for table in tables))
    allowed = columns | own | set(schema.tables) | {"rowid", "oid", "excluded"}
    for place, token in enumerate(found):
        name = _bare(token.text).lower()
        after = found[place + 1].text if place + 1 < len(found) else ""
        if (
            token.kind != "name"
            or name in allowed
            or after == "("
            or len(name) < 3
            or "\x00" in (after, _before(found, place))
        ):
            continue
        if meant := next((column for column in sorted(columns) if _near_name(name, column)), ""):
            yield MisspeltWord(token.text, meant, token.start)


def _near_name(name: str, meant: str) -> bool:
    """As `is_near`, except for short names that are no transposition and names that differ only in digits."""
    if len(name) < 4 and sorted(name) != sorted(meant):
        return False
    if re.sub(r"\d+", "", name) == re.sub(r"\d+", "", meant):
        return False
    return near(name, meant)


def _before(found: Sequence[Token], place: int) -> str:
    return found[place - 1].text if place else ""


def _used_tables(found: Sequence[Token]) -> Iterator[Token]:
    for place, token in enumerate(found[:-1]):
        after = found[place + 1]
        if token.upper not in ("FROM", "JOIN", "INTO", "UPDATE") or after.kind != "name":
            continue
        beyond = found[place + 2].text if place + 2 < len(found) else ""
        if token.upper == "FROM" and _inside_function(found, place):
            continue
        if beyond != "." and not (token.upper == "FROM" and beyond == "("):
            yield after
        following = place + 2
        # FROM a, b and FROM a x, b y
        while token.upper == "FROM" and following < len(found):
            if found[following].kind == "name" and found[following].upper not in KEYWORDS:
                following += 1
                continue
            if found[following].text != "," or following + 1 >= len(found) or found[following + 1].kind != "name":
                break
            yield found[following + 1]
            following += 2


def _inside_function(found: Sequence[Token], place: int) -> bool:
    """Whether FROM is inside a function, as in `EXTRACT(year FROM x)`, where it names no table."""
    depth = 0
    for index in range(place - 1, -1, -1):
        depth += (found[index].text == ")") - (found[index].text == "(")
        if depth < 0:
            return index > 0 and found[index - 1].upper in ("EXTRACT", "SUBSTRING", "TRIM", "OVERLAY", "POSITION")
    return False


def _own_names(found: Sequence[Token]) -> set[str]:
    """List names that the statement defines: aliases, with and without AS, and common table expressions."""
    own: set[str] = set()
    for place, token in enumerate(found):
        before = found[place - 1] if place else None
        after = found[place + 1] if place + 1 < len(found) else None
        if token.kind != "name" or before is None:
            continue
        named = before.upper in ("AS", "WITH", "RECURSIVE") or before.kind in ("name", "value") or before.text == ")"
        opens = place + 2 < len(found) and found[place + 2].text == "("
        if named or (opens and after is not None and after.upper == "AS"):
            own.add(_bare(token.text).lower())
    return own
