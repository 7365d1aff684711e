"""Find misspelled SQL in strings and `.sql` files: keywords by grammar, names by the schema found in the repo."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.checks.source import MAX_FILE_BYTES, Source
from redstart.toolkit.languages.python.checks.source import PythonSource
from redstart.toolkit.languages.python.checks.sql_tokens import (
    KEYWORDS,
    MisspeltWord,
    Token,
    find_misspelled_keywords,
    is_near,
    looks_like_sql,
    tokenize_sql,
)

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


def find_misspelled_sql(sources: Sequence[Source], schema_sources: Sequence[Source] = ()) -> list[Finding]:
    """Find SQL words similar to another word. The schema is read from these files and the additional ones."""
    texts = {source.path: list(_find_queries(source)) for source in (*sources, *schema_sources)}
    schema = Schema()
    for source in (*sources, *schema_sources):
        _from_models(source, schema)
        for query in texts[source.path]:
            if _CREATES.search(query.text):
                _from_create(query.text, schema)
    findings: list[Finding] = []
    for source in sources:
        reported: set[tuple[int, str]] = set()
        for query in texts[source.path]:
            for rule, item in _find_misspelled_words(query.text, schema):
                line = _find_line(source, query, item)
                if (line, item.word) not in reported:
                    reported.add((line, item.word))
                    message = f"{item.word} in this SQL is probably meant as {item.intended}"
                    findings.append(
                        source.build_finding(TOOL, rule, line, message, FindingKind.sql_misspelt, Risk.medium)
                    )
    return findings


def _find_misspelled_words(text: str, schema: Schema) -> Iterator[tuple[str, MisspeltWord]]:
    if not looks_like_sql(text):
        return
    misspelled: set[str] = set()
    for keyword in find_misspelled_keywords(text):
        misspelled.add(keyword.word)
        yield KEYWORD, keyword
    if not misspelled:
        yield from ((NAME, name) for name in _find_misspelled_names(text, schema))


# -- SQL in sources ----------------------------------------------------------------------------------------------------


def _find_queries(source: Source) -> Iterator[SqlText]:
    if source.path.endswith(".sql") and len(source.data) <= MAX_FILE_BYTES:
        line = 1
        for part in source.text.split(";"):
            lead = len(part) - len(part.lstrip())
            first_line = line + part.count("\n", 0, lead)
            line += part.count("\n")
            if part.strip():
                yield SqlText(part.strip()[:_LONGEST], first_line, line)
        return
    if not isinstance(source, PythonSource):
        return
    documented = {id(docstring) for docstring in _find_docstrings(source)}
    inside: set[int] = set()
    for node in (*source.iter_nodes(ast.JoinedStr), *source.iter_nodes(ast.Constant)):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(item) for item in node.values)
            text = "".join(str(item.value) if isinstance(item, ast.Constant) else "\x00" for item in node.values)
        elif isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if len(text) >= 10 and id(node) not in documented and " " in text.strip():
            yield SqlText(text[:_LONGEST], node.lineno, node.end_lineno or node.lineno)


def _find_docstrings(source: PythonSource) -> Iterator[ast.AST]:
    for node in source.iter_nodes(ast.Expr):
        if isinstance(node.value, ast.Constant):
            yield node.value


def _find_line(source: Source, query: SqlText, misspelling: MisspeltWord) -> int:
    """Find the line that contains the word."""
    estimated_line = query.line + query.text.count("\n", 0, misspelling.start)
    pattern = re.compile(rf"(?<!\w){re.escape(misspelling.word)}(?!\w)")
    if pattern.search(source.get_line(estimated_line)):
        return estimated_line
    return next(
        (line for line in range(query.line, query.last + 1) if pattern.search(source.get_line(line))), query.line
    )


# -- the schema --------------------------------------------------------------------------------------------------------


def _from_create(text: str, schema: Schema) -> None:
    sql_tokens = tokenize_sql(text)
    for place, token in enumerate(sql_tokens):
        if token.upper != "TABLE" or not any(item.upper == "CREATE" for item in sql_tokens[max(0, place - 3) : place]):
            continue
        following = [item for item in sql_tokens[place + 1 :] if item.upper not in ("IF", "NOT", "EXISTS")]
        if len(following) < 3 or following[0].kind == "value":
            continue
        names = [item for item in following[:4] if item.kind != "sign"]
        paren_index = next((index for index, item in enumerate(following[:5]) if item.text == "("), None)
        if paren_index is None or not names:
            continue
        schema.add(_strip_quotes(following[paren_index - 1].text), list(_list_columns(following[paren_index + 1 :])))


def _list_columns(sql_tokens: Sequence[Token]) -> Iterator[str]:
    depth, is_first = 0, True
    for token in sql_tokens:
        if is_first and token.kind != "sign" and token.upper not in _NOT_COLUMNS:
            yield _strip_quotes(token.text)
        is_first = False
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth < 0:
                return
        elif token.text == "," and depth == 0:
            is_first = True


def _strip_quotes(name: str) -> str:
    return name.strip('"`[]')


def _from_models(source: Source, schema: Schema) -> None:
    """Add SQLAlchemy's models and tables to the schema."""
    if not isinstance(source, PythonSource) or not ("Column" in source.text or "mapped_column" in source.text):
        return
    for node in (*source.iter_nodes(ast.ClassDef), *source.iter_nodes(ast.Call)):
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
                elif isinstance(value, ast.Call) and source.names.get_called_name(value).endswith(
                    ("Column", "mapped_column")
                ):
                    first_arg = value.args[0] if value.args else None
                    columns.append(str(first_arg.value) if isinstance(first_arg, ast.Constant) else target.id)
            if table:
                schema.add(table, columns)
        elif source.names.get_called_name(node).endswith("Table") and len(node.args) > 2:
            name = node.args[0]
            column_calls = [arg for arg in node.args[1:] if isinstance(arg, ast.Call) and arg.args]
            column_names = [
                item.args[0] for item in column_calls if source.names.get_called_name(item).endswith("Column")
            ]
            if isinstance(name, ast.Constant) and column_names:
                schema.add(
                    str(name.value), [str(item.value) for item in column_names if isinstance(item, ast.Constant)]
                )


# -- names -------------------------------------------------------------------------------------------------------------


def _find_misspelled_names(text: str, schema: Schema) -> Iterator[MisspeltWord]:
    """Find table and column names that are not in the schema but are similar to a name that is."""
    sql_tokens = tokenize_sql(text)
    if not schema.tables or any(item.upper in ("CREATE", "ALTER", "DROP") for item in sql_tokens[:1]):
        return
    own_names, used = _list_own_names(sql_tokens), list(_find_used_tables(sql_tokens))
    for token in used:
        name = _strip_quotes(token.text).lower()
        is_unknown = name not in schema.tables and name not in own_names and len(name) >= 4
        intended = (
            next((table for table in sorted(schema.tables) if _is_near_name(name, table)), "") if is_unknown else ""
        )
        if intended:
            yield MisspeltWord(token.text, intended, token.start)
    tables = [_strip_quotes(item.text).lower() for item in used]
    if not tables or any(table not in schema.tables for table in tables):
        return
    columns = set[str]().union(*(schema.tables[table] for table in tables))
    known_names = columns | own_names | set(schema.tables) | {"rowid", "oid", "excluded"}
    for place, token in enumerate(sql_tokens):
        name = _strip_quotes(token.text).lower()
        next_text = sql_tokens[place + 1].text if place + 1 < len(sql_tokens) else ""
        if (
            token.kind != "name"
            or name in known_names
            or next_text == "("
            or len(name) < 3
            or "\x00" in (next_text, _get_previous_text(sql_tokens, place))
        ):
            continue
        if intended := next((column for column in sorted(columns) if _is_near_name(name, column)), ""):
            yield MisspeltWord(token.text, intended, token.start)


def _is_near_name(name: str, intended: str) -> bool:
    """As `is_near`, except for short names that are no transposition and names that differ only in digits."""
    if len(name) < 4 and sorted(name) != sorted(intended):
        return False
    if re.sub(r"\d+", "", name) == re.sub(r"\d+", "", intended):
        return False
    return is_near(name, intended)


def _get_previous_text(sql_tokens: Sequence[Token], place: int) -> str:
    return sql_tokens[place - 1].text if place else ""


def _find_used_tables(sql_tokens: Sequence[Token]) -> Iterator[Token]:
    for place, token in enumerate(sql_tokens[:-1]):
        next_token = sql_tokens[place + 1]
        if token.upper not in ("FROM", "JOIN", "INTO", "UPDATE") or next_token.kind != "name":
            continue
        text_after = sql_tokens[place + 2].text if place + 2 < len(sql_tokens) else ""
        if token.upper == "FROM" and _is_inside_function(sql_tokens, place):
            continue
        if text_after != "." and not (token.upper == "FROM" and text_after == "("):
            yield next_token
        position = place + 2
        # FROM a, b and FROM a x, b y
        while token.upper == "FROM" and position < len(sql_tokens):
            if sql_tokens[position].kind == "name" and sql_tokens[position].upper not in KEYWORDS:
                position += 1
                continue
            if (
                sql_tokens[position].text != ","
                or position + 1 >= len(sql_tokens)
                or sql_tokens[position + 1].kind != "name"
            ):
                break
            yield sql_tokens[position + 1]
            position += 2


def _is_inside_function(sql_tokens: Sequence[Token], place: int) -> bool:
    """Whether FROM is inside a function, as in `EXTRACT(year FROM x)`, where it names no table."""
    depth = 0
    for index in range(place - 1, -1, -1):
        depth += (sql_tokens[index].text == ")") - (sql_tokens[index].text == "(")
        if depth < 0:
            return index > 0 and sql_tokens[index - 1].upper in ("EXTRACT", "SUBSTRING", "TRIM", "OVERLAY", "POSITION")
    return False


def _list_own_names(sql_tokens: Sequence[Token]) -> set[str]:
    """List names that the statement defines: aliases, with and without AS, and common table expressions."""
    names: set[str] = set()
    for place, token in enumerate(sql_tokens):
        previous_token = sql_tokens[place - 1] if place else None
        next_token = sql_tokens[place + 1] if place + 1 < len(sql_tokens) else None
        if token.kind != "name" or previous_token is None:
            continue
        is_defined = (
            previous_token.upper in ("AS", "WITH", "RECURSIVE")
            or previous_token.kind in ("name", "value")
            or previous_token.text == ")"
        )
        opens = place + 2 < len(sql_tokens) and sql_tokens[place + 2].text == "("
        if is_defined or (opens and next_token is not None and next_token.upper == "AS"):
            names.add(_strip_quotes(token.text).lower())
    return names
