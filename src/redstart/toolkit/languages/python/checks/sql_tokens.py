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
OTHER_KEYWORDS = (
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
KEYWORDS = frozenset((*STARTS, *CLAUSES, *TYPES, *OTHER_KEYWORDS))

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
_UNAMBIGUOUS_KEYWORDS = ("INSERT", "DELETE", "GROUP", "ORDER", "PARTITION", "INNER", "CROSS", "PRIMARY", "FOREIGN")
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
    intended: str
    start: int


def tokenize_sql(text: str) -> list[Token]:
    result: list[Token] = []
    for item in _TOKEN.finditer(text):
        token_text = item[0]
        if token_text.startswith(("--", "/*")):
            continue
        if token_text.upper() in KEYWORDS:
            kind = "keyword"
        elif re.match(r"[A-Za-z_\x80-\U0010ffff]", token_text) or token_text[0] in '"`[':
            kind = "name"
        elif re.match(r"['\d?:%$@\x00]", token_text) and token_text not in ("%", ":", "$", "@"):
            kind = "value"
        else:
            kind = "sign"
        result.append(Token(token_text, kind, item.start()))
    return result


@lru_cache(50_000)
def is_near(word: str, intended: str) -> bool:
    """Whether a word differs by one slip: a letter lost, doubled or wrong, or two swapped; two slips in a long word."""
    if word == intended or abs(len(word) - len(intended)) > 2:
        return False
    distance = _count_edits(word, intended)
    if len(intended) <= 3:
        return sorted(word) == sorted(intended) and distance == 1
    return distance == 1 or (distance == 2 and len(intended) >= 6 and word[0] == intended[0])


def _count_edits(first: str, second: str) -> int:
    """Count the edits between two words; a swap of neighbors is one edit."""
    older_row: list[int] = []
    previous_row = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        current_row = [row]
        for column, other_letter in enumerate(second, 1):
            cost = letter != other_letter
            minimum = min(current_row[-1] + 1, previous_row[column] + 1, previous_row[column - 1] + cost)
            if row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other_letter:
                minimum = min(minimum, older_row[column - 2] + 1)
            current_row.append(minimum)
        older_row, previous_row = previous_row, current_row
    return previous_row[-1]


def looks_like_sql(text: str) -> bool:
    """Whether a string is meant as SQL, even if misspelled, judging by its start and the words that follow."""
    opening = _FIRST_WORD.match(text)
    if opening is None or not (opening[1].isupper() or opening[1].islower()):
        return False
    first_word = opening[1].upper()
    is_start = first_word in STARTS
    nearly = not is_start and len(first_word) >= 5 and any(is_near(first_word, start) for start in STARTS)
    if not (is_start or nearly):
        return False
    words = [token.upper for token in tokenize_sql(text[:2000]) if token.kind in ("keyword", "name")]
    strong = {"FROM", "INTO", "WHERE", "SET", "VALUES", "TABLE", "JOIN", "INDEX", "ORDER", "GROUP", "LIMIT"}
    known_count = sum(word in strong for word in words[1:])
    almost = sum(any(is_near(word, item) for item in strong) for word in words[1:] if word not in KEYWORDS)
    shouted = opening[1].isupper()
    marks = re.search(r"[=*?(),]|%s|:\w", text) is not None
    if is_start:
        return (known_count + almost > 0 and (shouted or marks)) and (shouted or first_word != "WITH")
    return nearly and known_count + almost > 0 and (shouted or (marks and known_count > 0))


def find_misspelled_keywords(text: str) -> Iterator[MisspeltWord]:
    """Find words that are in a place for a keyword and are similar to one."""
    sql_tokens = tokenize_sql(text)
    upper = sql_tokens[0].text.isupper() if sql_tokens else False
    for place, token in enumerate(sql_tokens):
        # authors who write keywords in capitals also misspell them in capitals
        if token.kind != "name" or token.text[0] in '"`[' or token.text.isupper() != upper:
            continue
        previous_token = sql_tokens[place - 1] if place else None
        next_token = sql_tokens[place + 1] if place + 1 < len(sql_tokens) else None
        intended = _find_intended_keyword(sql_tokens, place, token, previous_token, next_token)
        if intended:
            yield MisspeltWord(token.text, intended, token.start)


def _find_intended_keyword(
    sql_tokens: Sequence[Token], place: int, token: Token, previous_token: Token | None, next_token: Token | None
) -> str:
    word = token.upper
    if (
        previous_token is None
        or previous_token.text in (";",)
        or (previous_token.text == "(" and next_token is not None and word[:2] in ("SE", "SL"))
    ):
        return next((start for start in STARTS if is_near(word, start)), "")
    if previous_token.text == "." or (next_token is not None and next_token.text == "."):
        return ""
    if previous_token.kind == "keyword" and previous_token.upper in _FOLLOWERS:
        expected = _FOLLOWERS[previous_token.upper]
        candidate = next((item for item in expected if is_near(word, item)), "")
        if candidate and (previous_token.upper != "SELECT" or (next_token is not None and next_token.kind == "name")):
            return candidate
        if previous_token.upper in _UNAMBIGUOUS_KEYWORDS and previous_token.upper not in (
            "INNER",
            "CROSS",
            "PARTITION",
        ):
            return ""
    leads_to = (
        _BEFORE.get(next_token.upper, ()) if next_token is not None and previous_token.text not in (",", "(") else ()
    )
    if candidate := next((lead for lead in leads_to if is_near(word, lead)), ""):
        return candidate
    if _is_column_type(sql_tokens, place, previous_token):
        return next((type_ for type_ in TYPES if len(type_) > 3 and is_near(word, type_)), "")
    ends_thing = (
        previous_token.kind in ("name", "value")
        or previous_token.text in ("*", ")")
        or previous_token.upper in ("NULL", "END", "ASC", "DESC")
    )
    starts_thing = next_token is not None and (
        next_token.kind in ("name", "value")
        or next_token.text in ("(", "*")
        or next_token.upper
        in ("SELECT", "NOT", "NULL", "CASE", "DISTINCT", "BY", "KEY", "JOIN", "EXISTS", "TABLE", "DEFAULT", "LIKE")
    )
    if ends_thing and starts_thing:
        return _find_clause(sql_tokens, place, word)
    if (
        ends_thing
        and (next_token is None or next_token.text in (")", ";", ","))
        and _has_earlier_keyword(sql_tokens, place, "ORDER")
    ):
        return next((item for item in ("DESC",) if is_near(word, item)), "")
    if previous_token.upper in ("NOT", "IS") and is_near(word, "NULL"):
        return "NULL"
    return ""


def _find_clause(sql_tokens: Sequence[Token], place: int, word: str) -> str:
    for clause in CLAUSES:
        if not is_near(word, clause):
            continue
        if clause in ("FROM", "WHERE", "SET", "VALUES") and _has_earlier_keyword(sql_tokens, place, clause):
            continue
        return clause
    return ""


def _has_earlier_keyword(sql_tokens: Sequence[Token], place: int, keyword: str) -> bool:
    """Whether the keyword occurs earlier in the same statement, at the same or a lower parenthesis depth."""
    depth = 0
    for token in reversed(sql_tokens[:place]):
        if token.text == ";":
            return False
        depth += (token.text == ")") - (token.text == "(")
        if depth < 0:
            depth = 0
        if depth == 0 and token.upper == keyword:
            return True
    return False


def _is_column_type(sql_tokens: Sequence[Token], place: int, previous_token: Token) -> bool:
    """Whether the word is in the place of a column type in a new table."""
    if previous_token.kind != "name" or place < 2 or sql_tokens[place - 2].text not in ("(", ","):
        return False
    return any(item.upper == "CREATE" for item in sql_tokens[:3])
