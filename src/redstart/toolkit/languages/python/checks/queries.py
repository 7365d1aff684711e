"""Tokenize SQL: enough of its grammar to detect misspelled keywords and the names that a statement uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

STARTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "WITH", "REPLACE", "TRUNCATE", "MERGE")
CLAUSES = (
    "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "VALUES", "JOIN", "INNER", "LEFT", "RIGHT", "OUTER",
    "CROSS", "UNION", "INTERSECT", "EXCEPT", "DISTINCT", "BETWEEN", "RETURNING", "INTO", "SET", "AND", "LIKE", "ILIKE",
    "EXISTS", "WHEN", "THEN", "ELSE", "END", "CASE", "DESC", "NULL", "NOT", "SELECT", "INSERT", "UPDATE", "DELETE",
    "TABLE", "INDEX", "PRIMARY", "FOREIGN", "REFERENCES", "DEFAULT", "UNIQUE", "CONSTRAINT", "CHECK", "CASCADE",
    "CREATE", "USING", "PARTITION", "COLUMN", "VIEW", "TRIGGER", "ON",
)  # fmt: skip
TYPES = (
    "INTEGER", "INT", "BIGINT", "SMALLINT", "TEXT", "VARCHAR", "CHAR", "REAL", "NUMERIC", "DECIMAL", "BOOLEAN", "BLOB",
    "DATE", "TIMESTAMP", "DATETIME", "TIME", "SERIAL", "BIGSERIAL", "DOUBLE", "FLOAT", "JSON", "JSONB", "UUID", "BYTEA",
    "TIMESTAMPTZ", "TINYINT", "BIT", "MONEY", "CLOB", "NVARCHAR", "CHARACTER", "INTERVAL", "ARRAY", "TINYTEXT", "ENUM",
    "MEDIUMTEXT", "LONGTEXT", "VARBINARY", "BINARY", "BOOL", "NCHAR",
)  # fmt: skip
OTHERS = (
    "AS", "IN", "IS", "OR", "BY", "ALL", "ANY", "ASC", "KEY", "IF", "ADD", "TO", "FOR", "FULL", "NATURAL", "WITHOUT",
    "ROWID", "AUTOINCREMENT", "AUTO_INCREMENT", "CONFLICT", "DO", "NOTHING", "IGNORE", "DUPLICATE", "OVER", "WINDOW",
    "ROWS", "RANGE", "PRECEDING", "FOLLOWING", "CURRENT", "ROW", "UNBOUNDED", "TEMP", "TEMPORARY", "BEGIN", "COMMIT",
    "ROLLBACK", "TRUE", "FALSE", "RECURSIVE", "LATERAL", "FETCH", "FIRST", "NEXT", "ONLY", "ESCAPE",
    "COLLATE", "NOCASE",
    "CAST", "WHERE", "SHARE", "LOCK", "SKIP", "LOCKED", "NOWAIT", "OF", "NULLS", "LAST", "FILTER", "WITHIN", "EXPLAIN",
    "ANALYZE", "PRAGMA", "VACUUM", "RENAME", "MODIFY", "ABORT", "FAIL", "TOP", "GLOB", "REGEXP", "MATCH", "SIMILAR",
    "UNKNOWN", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "TRANSACTION", "SAVEPOINT", "RELEASE", "GRANT",
    "REVOKE", "RESTRICT",
    "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "ZONE", "AT", "PRECISION", "VARYING", "UNSIGNED", "SIGNED",
    "GENERATED", "ALWAYS", "STORED", "VIRTUAL", "IDENTITY", "START", "INCREMENT", "CYCLE", "SEQUENCE", "SCHEMA",
    "DATABASE", "MATERIALIZED", "CONCURRENTLY", "ENGINE", "CHARSET", "COMMENT", "AFTER", "BEFORE", "EACH", "NEW", "OLD",
    "EXECUTE", "FUNCTION", "PROCEDURE", "RETURNS", "LANGUAGE", "EXTRACT", "SEPARATOR", "QUALIFY", "PIVOT", "ORDINALITY",
)  # fmt: skip
KEYWORDS = frozenset((*STARTS, *CLAUSES, *TYPES, *OTHERS))

_FOLLOWERS = {
    "INSERT": ("INTO", "OR", "IGNORE", "OVERWRITE"),
    "DELETE": ("FROM",),
    "GROUP": ("BY",),
    "ORDER": ("BY",),
    "PARTITION": ("BY",),
    "INNER": ("JOIN",),
    "CROSS": ("JOIN",),
    "OUTER": ("JOIN",),
    "LEFT": ("JOIN", "OUTER"),
    "RIGHT": ("JOIN", "OUTER"),
    "FULL": ("JOIN", "OUTER"),
    "PRIMARY": ("KEY",),
    "FOREIGN": ("KEY",),
    "IS": ("NULL", "NOT", "TRUE", "FALSE", "DISTINCT"),
    "SELECT": ("DISTINCT",),
    "UNION": ("ALL", "SELECT"),
    "CREATE": ("TABLE", "INDEX", "VIEW", "UNIQUE", "TRIGGER", "TEMPORARY", "DATABASE", "SCHEMA"),
    "DROP": ("TABLE", "INDEX", "VIEW", "COLUMN", "TRIGGER", "DATABASE", "SCHEMA"),
    "ALTER": ("TABLE", "COLUMN", "INDEX"),
    "ON": ("CONFLICT", "DUPLICATE", "DELETE", "UPDATE"),
}
"""The only keywords that may follow. If a name may also follow, only a word similar to a keyword counts."""
_ONLY = ("INSERT", "DELETE", "GROUP", "ORDER", "PARTITION", "INNER", "CROSS", "PRIMARY", "FOREIGN")
_BEFORE = {"BY": ("ORDER", "GROUP", "PARTITION"), "KEY": ("PRIMARY", "FOREIGN", "UNIQUE", "DUPLICATE")}
_TOKEN = re.compile(
    r"--[^\n]*|/\*[\s\S]*?\*/|'(?:[^']|'')*'|\"(?:[^\"])*\"|`[^`]*`|\[[A-Za-z_]\w*\]|%\(\w+\)s|%s|:\w+|\$\d+|\?|@\w+|"
    r"\d[\w.]*|[A-Za-z_\x80-\U0010ffff][\w$]*|\x00|[^\s\w]"
)
_FIRST_WORD = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*[\s\S]*?\*/)*([A-Za-z]{4,9})\b")


class Token(NamedTuple):
    text: str
    kind: str
    """`keyword`, `name`, `value` or `sign`."""
    start: int

    @property
    def upper(self) -> str:
        return self.text.upper()


class MisspeltWord(NamedTuple):
    word: str
    meant: str
    start: int


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for item in _TOKEN.finditer(text):
        word = item[0]
        if word.startswith(("--", "/*")):
            continue
        if word.upper() in KEYWORDS:
            kind = "keyword"
        elif re.match(r"[A-Za-z_\x80-\U0010ffff]", word) or word[0] in '"`[':
            kind = "name"
        elif re.match(r"['\d?:%$@\x00]", word) and word not in ("%", ":", "$", "@"):
            kind = "value"
        else:
            kind = "sign"
        found.append(Token(word, kind, item.start()))
    return found


@lru_cache(50_000)
def near(word: str, meant: str) -> bool:
    """Whether a word differs by one slip: a letter lost, doubled or wrong, or two swapped; two slips in a long word."""
    if word == meant or abs(len(word) - len(meant)) > 2:
        return False
    distance = _distance(word, meant)
    if len(meant) <= 3:
        return sorted(word) == sorted(meant) and distance == 1
    return distance == 1 or (distance == 2 and len(meant) >= 6 and word[0] == meant[0])


def _distance(one: str, other: str) -> int:
    """Count the edits between two words; a swap of neighbors is one edit."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now = [row]
        for column, other_letter in enumerate(other, 1):
            cost = letter != other_letter
            best = min(now[-1] + 1, last[column] + 1, last[column - 1] + cost)
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == other_letter:
                best = min(best, before[column - 2] + 1)
            now.append(best)
        before, last = last, now
    return last[-1]


def looks_like_sql(text: str) -> bool:
    """Whether a string is meant as SQL, even if misspelled, judging by its start and the words that follow."""
    opening = _FIRST_WORD.match(text)
    if opening is None or not (opening[1].isupper() or opening[1].islower()):
        return False
    first = opening[1].upper()
    begins = first in STARTS
    nearly = not begins and len(first) >= 5 and any(near(first, start) for start in STARTS)
    if not (begins or nearly):
        return False
    words = [token.upper for token in tokens(text[:2000]) if token.kind in ("keyword", "name")]
    strong = {"FROM", "INTO", "WHERE", "SET", "VALUES", "TABLE", "JOIN", "INDEX", "ORDER", "GROUP", "LIMIT"}
    known = sum(word in strong for word in words[1:])
    almost = sum(any(near(word, item) for item in strong) for word in words[1:] if word not in KEYWORDS)
    shouted = opening[1].isupper()
    marks = re.search(r"[=*?(),]|%s|:\w", text) is not None
    if begins:
        return (known + almost > 0 and (shouted or marks)) and (shouted or first != "WITH")
    return nearly and known + almost > 0 and (shouted or (marks and known > 0))


def misspelt_keywords(text: str) -> Iterator[MisspeltWord]:
    """Find words that are in a place for a keyword and are similar to one."""
    found = tokens(text)
    upper = found[0].text.isupper() if found else False
    for place, token in enumerate(found):
        # authors who write keywords in capitals also misspell them in capitals
        if token.kind != "name" or token.text[0] in '"`[' or token.text.isupper() != upper:
            continue
        before = found[place - 1] if place else None
        after = found[place + 1] if place + 1 < len(found) else None
        meant = _meant(found, place, token, before, after)
        if meant:
            yield MisspeltWord(token.text, meant, token.start)


def _meant(found: Sequence[Token], place: int, token: Token, before: Token | None, after: Token | None) -> str:
    word = token.upper
    if (
        before is None
        or before.text in (";",)
        or (before.text == "(" and after is not None and word[:2] in ("SE", "SL"))
    ):
        return next((start for start in STARTS if near(word, start)), "")
    if before.text == "." or (after is not None and after.text == "."):
        return ""
    if before.kind == "keyword" and before.upper in _FOLLOWERS:
        expected = _FOLLOWERS[before.upper]
        hit = next((item for item in expected if near(word, item)), "")
        if hit and (before.upper != "SELECT" or (after is not None and after.kind == "name")):
            return hit
        if before.upper in _ONLY and before.upper not in ("INNER", "CROSS", "PARTITION"):
            return ""
    leads_to = _BEFORE.get(after.upper, ()) if after is not None and before.text not in (",", "(") else ()
    if hit := next((lead for lead in leads_to if near(word, lead)), ""):
        return hit
    if _is_column_type(found, place, before):
        return next((type_ for type_ in TYPES if len(type_) > 3 and near(word, type_)), "")
    ends_thing = (
        before.kind in ("name", "value") or before.text in ("*", ")") or before.upper in ("NULL", "END", "ASC", "DESC")
    )
    starts_thing = after is not None and (
        after.kind in ("name", "value")
        or after.text in ("(", "*")
        or after.upper
        in ("SELECT", "NOT", "NULL", "CASE", "DISTINCT", "BY", "KEY", "JOIN", "EXISTS", "TABLE", "DEFAULT", "LIKE")
    )
    if ends_thing and starts_thing:
        return _clause(found, place, word)
    if ends_thing and (after is None or after.text in (")", ";", ",")) and _seen(found, place, "ORDER"):
        return next((item for item in ("DESC",) if near(word, item)), "")
    if before.upper in ("NOT", "IS") and near(word, "NULL"):
        return "NULL"
    return ""


def _clause(found: Sequence[Token], place: int, word: str) -> str:
    for clause in CLAUSES:
        if not near(word, clause):
            continue
        if clause in ("FROM", "WHERE", "SET", "VALUES") and _seen(found, place, clause):
            continue
        return clause
    return ""


def _seen(found: Sequence[Token], place: int, keyword: str) -> bool:
    """Whether the keyword occurs earlier in the same statement, at the same or a lower parenthesis depth."""
    depth = 0
    for token in reversed(found[:place]):
        if token.text == ";":
            return False
        depth += (token.text == ")") - (token.text == "(")
        if depth < 0:
            depth = 0
        if depth == 0 and token.upper == keyword:
            return True
    return False


def _is_column_type(found: Sequence[Token], place: int, before: Token) -> bool:
    """Whether the word is in the place of a column type in a new table."""
    if before.kind != "name" or place < 2 or found[place - 2].text not in ("(", ","):
        return False
    return any(item.upper == "CREATE" for item in found[:3])
