"""Strings that are built and then run."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from redstart.core.finding import FindingKind
from redstart.toolkit.languages.python.checks.injection import find_built_strings
from redstart.toolkit.languages.python.checks.source import PythonSource

HEAD = """
import asyncio, io, os, shlex, subprocess, textwrap
from enum import Enum
from string import Template
import pandas as pd
from sqlalchemy import text
ALLOWED = {"name", "age"}
TABLES = ("people", "pets")
COLUMNS = {"n": "name"}
class Order(Enum):
    up = "ASC"
    down = "DESC"
class Repo:
    table = "people"
    base = "SELECT * FROM people"
    def __init__(self, given):
        self.given = given
def where(name):
    return f"SELECT * FROM people WHERE name = '{name}'"
def fixed():
    return "SELECT * FROM people"
"""

BUILT = {
    "plus": "cur.execute(\"SELECT * FROM people WHERE name = '\" + name + \"'\")",
    "percent": "cur.execute(\"SELECT * FROM people WHERE name = '%s'\" % name)",
    "percent by name": "cur.execute(\"SELECT * FROM people WHERE name = '%(n)s'\" % {'n': name})",
    "format": "cur.execute(\"SELECT * FROM people WHERE name = '{}'\".format(name))",
    "f-string": "cur.execute(f\"SELECT * FROM people WHERE name = '{name}'\")",
    "join": "cur.execute(' '.join(['SELECT * FROM people WHERE name =', name]))",
    "in a loop": "q = 'SELECT * FROM people WHERE 1=1'\nfor key in name:\n    q += ' AND ' + key\ncur.execute(q)",
    "by a variable": "q = f'SELECT * FROM {name}'\nr = q\ncur.execute(r)",
    "by a class attribute": "cur.execute(Repo.base + ' WHERE ' + name)",
    "by an attribute that was given": "cur.execute('SELECT * FROM people WHERE name = ' + repo.given)",
    "template": "cur.execute(Template('SELECT * FROM people WHERE name = $n').substitute(n=name))",
    "dedent": "cur.execute(textwrap.dedent(f'''SELECT * FROM people\n    WHERE name = {name}'''))",
    "text of sqlalchemy": "cur.execute(text(f'SELECT * FROM people WHERE name = {name}'))",
    "pandas": "pd.read_sql('SELECT * FROM people WHERE name = ' + name, cur)",
    "many": "cur.executemany('INSERT INTO people VALUES (' + name + ')', [])",
    "a list that grows": "p = ['SELECT * FROM people']\np.append('WHERE n = ' + name)\ncur.execute(' '.join(p))",
    "replace": "cur.execute('SELECT * FROM people WHERE name = :n'.replace(':n', name))",
    "a buffer": "out = io.StringIO()\nout.write('SELECT * FROM ')\nout.write(name)\ncur.execute(out.getvalue())",
    "in a branch": "q = 'SELECT * FROM people'\nif name:\n    q = q + ' WHERE name = ' + name\ncur.execute(q)",
    "an allow-list without effect": "if name in ALLOWED:\n    pass\ncur.execute(f'SELECT a FROM b ORDER BY {name}')",
    "returned": "return f'DELETE FROM people WHERE name = {name}'",
    "given to a helper": "run_it(f'DELETE FROM people WHERE name = {name}')",
    "a lambda": "return lambda n: cur.execute(f'SELECT * FROM people WHERE name = {n}')",
    "a comprehension": "return [cur.execute(f'SELECT * FROM people WHERE name = {n}') for n in name]",
}  # fmt: skip

FIXED = {
    "parameters": "cur.execute('SELECT * FROM people WHERE name = ?', (name,))",
    "constants": "cur.execute('SELECT * FROM ' + 'people')",
    "a constant table": "cur.execute(f'SELECT * FROM {Repo.table}')",
    "a function without values": "cur.execute(fixed() + ' ORDER BY name')",
    "marks": "marks = ','.join('?' for _ in name)\ncur.execute(f'SELECT * FROM people WHERE id IN ({marks})', name)",
    "marks by number": "cur.execute('SELECT * FROM people WHERE id IN (%s)' % ','.join(['?'] * len(name)), name)",
    "an allow-list": "if name not in ALLOWED:\n    raise ValueError\ncur.execute(f'SELECT * FROM a ORDER BY {name}')",
    "inside an allow-list": "if name in ALLOWED:\n    cur.execute(f'SELECT * FROM people ORDER BY {name}')",
    "an assert": "assert name in ALLOWED\ncur.execute(f'SELECT * FROM people ORDER BY {name}')",
    "a constant table of names": "cur.execute(f'SELECT * FROM people ORDER BY {COLUMNS[name]}')",
    "a table with a fallback": "cur.execute(f\"SELECT * FROM people ORDER BY {COLUMNS.get(name, 'id')}\")",
    "constants in a loop": "for table in TABLES:\n    cur.execute(f'DELETE FROM {table}')",
    "clauses": "c = []\nfor k in COLUMNS:\n    c.append(f'{k} = ?')\ncur.execute('SELECT a FROM t ' + ' '.join(c))",
    "a number": "cur.execute(f'SELECT * FROM people LIMIT {int(name)}')",
    "a clamped number": "n = max(1, min(int(name), 9))\ncur.execute(f'SELECT * FROM people LIMIT {n}')",
    "a number by form": "cur.execute('SELECT * FROM people LIMIT %d' % name)",
    "an enumeration": "cur.execute(f'SELECT * FROM people ORDER BY id {Order.up.value}')",
    "one of two": "way = 'ASC' if name else 'DESC'\ncur.execute('SELECT * FROM people ORDER BY id ' + way)",
    "a log": "log.info(f'SELECT * FROM {name} took long')",
    "a message": "raise ValueError(f'DELETE FROM {name} failed')",
    "prose": "show(f'Select {name} from the list')",
    "a wrapper": "cur.execute(name, ())",
    "another execute": "task.execute(f'run {name}')",
}  # fmt: skip


def find_built_lines(body: str) -> list[tuple[int, FindingKind]]:
    text = f"{HEAD}def f(cur, name, repo, log, task):\n{indent(dedent(body), '    ')}\n"
    first_line = HEAD.count("\n") + 1
    return [
        (string.line - first_line, string.kind)
        for string in find_built_strings([PythonSource("a.py", text.encode())])
        if string.line > first_line
    ]


@pytest.mark.parametrize("body", BUILT.values(), ids=BUILT)
def test_sql_built_from_values_is_found(body: str) -> None:
    (finding,) = find_built_lines(body)
    assert finding[1] is FindingKind.sql_injection


@pytest.mark.parametrize("body", FIXED.values(), ids=FIXED)
def test_sql_without_external_input_is_not_found(body: str) -> None:
    assert find_built_lines(body) == []


def test_finding_in_a_helper_names_where_it_builds_and_where_it_is_used() -> None:
    text = HEAD + "def f(cur, name):\n    cur.execute(where(name))\n"
    (built_string,) = find_built_strings([PythonSource("a.py", text.encode())])
    assert text.split("\n")[built_string.line - 1].startswith("    return f")
    assert text.split("\n")[built_string.reaches - 1].startswith("    cur.execute")


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("os.system('ls ' + name)", 1),
        ("os.system('clear')", 0),
        ("subprocess.run(f'ls {name}', shell=True)", 1),
        ("subprocess.run(name, shell=True)", 1),
        ("subprocess.run(['ls', name])", 0),
        ("subprocess.run('ls ' + shlex.quote(name), shell=True)", 0),
        ("subprocess.run('ls | wc -l', shell=True)", 0),
        ("subprocess.run(f'ls {name}', shell=False)", 0),
        ("asyncio.create_subprocess_shell('ls ' + name)", 1),
        ("eval(name)", 1),
        ("eval('1 + 1')", 0),
        ("task.eval(name)", 0),
        ("exec(name)", 1),
    ],
)
def test_built_commands_and_code_are_found(body: str, count: int) -> None:
    assert [kind for _, kind in find_built_lines(body)] == [FindingKind.dangerous_call] * count


def test_function_shadows_a_builtin_but_a_method_does_not() -> None:
    method = b"class A:\n    def eval(self, x): return x\ndef f(x):\n    return eval(x)\n"
    function = b"def eval(x): return x\ndef f(x):\n    return eval(x)\n"
    assert [string.line for string in find_built_strings([PythonSource("a.py", method)])] == [4]
    assert find_built_strings([PythonSource("a.py", function)]) == []


def test_deep_nesting_does_not_stall_the_check() -> None:
    deep_code = "def f(cur, x):\n    cur.execute(" + "+".join(["'SELECT a FROM b WHERE '", *["x"] * 400]) + ")\n"
    broken_code = b"cur.execute(" + b"(" * 3000 + b")" * 3000 + b")\n"
    sources = [
        PythonSource("broken.py", broken_code),
        PythonSource("no.py", b"def f(:\n"),
        PythonSource("deep.py", deep_code.encode()),
    ]
    assert {string.path for string in find_built_strings(sources)} <= {"deep.py"}
