"""Misspelled SQL."""

from __future__ import annotations

import pytest

from redstart.core.finding import FindingKind
from redstart.toolkit.checks.source import Source
from redstart.toolkit.languages.python.checks.source import PythonSource
from redstart.toolkit.languages.python.checks.sql_spelling import find_misspelled_sql

SCHEMA = PythonSource(
    "schema.py",
    b'S = """CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, email TEXT);\n'
    b'CREATE TABLE orders (id INTEGER, user_id INTEGER, total REAL, form TEXT)"""\n',
)


def list_misspelt_words(query: str, *other_sources: Source) -> list[list[str]]:
    source = PythonSource("a.py", f'cur.execute("""{query}""")\n'.encode())
    return [
        item.message.split(" in this SQL is probably meant as ")
        for item in find_misspelled_sql([source], other_sources)
    ]


@pytest.mark.parametrize(
    ("query", "word", "suggestion"),
    [
        ("SELCT * FROM users", "SELCT", "SELECT"),
        ("SELECT * FORM users WHERE id = ?", "FORM", "FROM"),
        ("SELECT id FROM users WHER id = ?", "WHER", "WHERE"),
        ("SELECT id FROM users GROUP YB id", "YB", "BY"),
        ("SELECT id FROM users ODER BY id", "ODER", "ORDER"),
        ("INSERT INOT users (id) VALUES (?)", "INOT", "INTO"),
        ("INSERT INTO users (id) VALEUS (?)", "VALEUS", "VALUES"),
        ("UPDATE users STE name = ?", "STE", "SET"),
        ("DELETE FORM users WHERE id = 1", "FORM", "FROM"),
        ("SELECT id FROM users LIMT 5", "LIMT", "LIMIT"),
        ("SELECT DISTINT name FROM users", "DISTINT", "DISTINCT"),
        ("SELECT 1 FROM users u LEFT JION orders o ON o.user_id = u.id", "JION", "JOIN"),
        ("SELECT id FROM users WHERE id BETWEN 1 AND 2", "BETWEN", "BETWEEN"),
        ("SELECT id FROM users WHERE id = 1 ADN name = 2", "ADN", "AND"),
        ("CREATE TABEL x (id INTEGER)", "TABEL", "TABLE"),
        ("CREATE TABLE x (id INTEGR PRIMARY KEY)", "INTEGR", "INTEGER"),
        ("selct id from users where id = ?", "selct", "SELECT"),
        ("SELECT nmae FROM users", "nmae", "name"),
        ("SELECT id FROM usres", "usres", "users"),
        ("INSERT INTO users (id, emial) VALUES (?, ?)", "emial", "email"),
    ],
)
def test_misspelled_word_is_found(query: str, word: str, suggestion: str) -> None:
    assert list_misspelt_words(query, SCHEMA) == [[word, suggestion]]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT form FROM orders",
        "SELECT o.form, total AS totals FROM orders o ORDER BY totals DESC",
        "SELECT name, form FROM survey WHERE form = 3",
        "SELECT count(*) cnt FROM users",
        "WITH recent AS (SELECT id FROM orders) SELECT * FROM recent",
        "INSERT INTO users (id) VALUES (?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
        "SELECT max(total) mx FROM orders GROUP BY user_id HAVING count(*) > 1 LIMIT 3 OFFSET 2",
        "Select a form from the list",
        "DELETE statement expected to delete 3 rows; 2 were matched (see the list)",
        "Insert the disk into drive A",
        "SELECT 'SELCT FORM' FROM users -- WHER",
    ],
)
def test_correct_sql_has_no_finding(query: str) -> None:
    assert list_misspelt_words(query, SCHEMA) == []


def test_names_are_checked_only_with_a_known_schema() -> None:
    assert list_misspelt_words("SELECT nmae FROM users") == []


def test_models_count_as_a_schema() -> None:
    models = PythonSource("models.py", b'class User(Base):\n    __tablename__ = "users"\n    name = Column(String)\n')
    assert list_misspelt_words("SELECT nmae FROM users", models) == [["nmae", "name"]]


def test_sql_files_are_read_and_findings_name_their_lines() -> None:
    text = b"SELECT id\nFROM users\nWHER id = 1;\n\nSELECT id FORM users;\n"
    findings = find_misspelled_sql([Source("a.sql", text)])
    assert [(item.line, item.kind) for item in findings] == [
        (3, FindingKind.sql_misspelt),
        (5, FindingKind.sql_misspelt),
    ]


def test_docstrings_are_not_checked() -> None:
    assert find_misspelled_sql([PythonSource("a.py", b'"""SELCT id FROM users WHERE id = 1"""\n')]) == []
