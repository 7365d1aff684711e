"""Find strings that are built from outside values and then run: as SQL, by a shell, or as Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from redstart.core.finding import Finding, FindingKind, Risk
from redstart.toolkit.languages.python.checks.known_values import VALUE_MARK, KnownText
from redstart.toolkit.languages.python.checks.module_reader import Reader
from redstart.toolkit.languages.python.checks.source import PythonSource, get_argument, get_keyword, is_constant
from redstart.toolkit.languages.python.checks.string_parts import FunctionScope

TOOL = "rules"
SQL, SHELL, CODE = "sql-built-from-strings", "shell-command-built-from-strings", "runs-built-code"

_WORTH_READING = re.compile(
    r"execute|read_sql|mogrify|\braw\b|RawSQL|\bextra\b|\beval\b|\bexec\b|\bsystem\b|popen|shell|getoutput|exec_command"
    r"|copy_expert|\bfetch|\b(?:SELECT|select|INSERT|insert into|UPDATE|DELETE|delete from)\b"
)
_RUN_SQL = frozenset(
    {"execute", "executemany", "executescript", "exec_driver_sql", "mogrify", "read_sql", "read_sql_query", "fetchrow",
     "fetchval", "fetch_all", "fetch_one", "fetchall", "fetchone", "copy_expert", "raw", "RawSQL", "execute_sql",
     "execute_query", "run_query", "execute_async", "text", "scalar", "scalars", "fetch", "query", "sql", "run_sql",
     "read_database", "iterdump", "stream", "execute_many", "from_statement", "DDL", "read_sql_table", "extra"}
)  # fmt: skip
_NAMES = ("sql", "query", "statement", "operation", "stmt", "command", "where", "select")
_STARTS = re.compile(
    r"\s*\(?\s*(select|insert|update|delete|replace|create|drop|alter|with|truncate|merge|pragma|call|exec|grant|revoke"
    r"|explain|attach|set|use|vacuum|show|describe|copy|lock|analyze|reindex|declare)\b",
    re.IGNORECASE,
)
_SQL_CLAUSE = re.compile(
    r"\b(where|from|into|values|order\s+by|group\s+by|union|join|having|limit|and|or|set)\b", re.IGNORECASE
)
_SURELY = re.compile(
    r"\s*\(?\s*(?:(?:SELECT|WITH)\b[\s\S]+\b(?:FROM|SELECT)\b|INSERT\s+(?:OR\s+\w+\s+)?INTO\b|REPLACE\s+INTO\b|"
    r"UPDATE\s+\S+\s+SET\b|DELETE\s+FROM\b|DROP\s+(?:TABLE|INDEX|VIEW|DATABASE|SCHEMA|USER)\b|"
    r"ALTER\s+(?:TABLE|USER|ROLE)\b|TRUNCATE\s+TABLE\b|CREATE\s+(?:TABLE|USER|DATABASE|INDEX|VIEW|ROLE)\b|"
    r"select\s+[\s\S]+\sfrom\s+\S+\s+(?:where|join|order\s+by|limit|group\s+by)\b|insert\s+into\s+\S+\s*(?:\(|values)|"
    r"delete\s+from\s+\S+\s+where\b|update\s+\S+\s+set\s+\S+\s*=|drop\s+table\s+)"
)
_MESSAGE_FUNCTIONS = frozenset(
    {"debug", "info", "warning", "error", "exception", "critical", "log", "print", "warn", "fail", "echo", "secho",
     "add_argument", "fatal", "skip", "xfail", "compile", "search", "match", "sub", "findall", "deprecated", "note",
     "set_description", "startswith", "endswith", "assertEqual", "assertIn", "write_text", "writelines", "Option"}
)  # fmt: skip
_SHELLS = frozenset(
    {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput",
     "commands.getstatusoutput", "asyncio.create_subprocess_shell", "asyncio.subprocess.create_subprocess_shell",
     "popen2.popen2", "os.popen2", "os.popen3"}
)  # fmt: skip
_MAY_BE_SHELLS = frozenset(f"subprocess.{item}" for item in ("run", "call", "Popen", "check_call", "check_output"))
_RUNS_CODE = frozenset({"eval", "exec"})


@dataclass
class _Found:
    source: PythonSource
    lines: dict[tuple[str, int], Finding] = field(default_factory=dict[tuple[str, int], Finding])

    def call(self, node: ast.Call, scope: FunctionScope) -> None:
        name = self.source.names.get_called_name(node)
        method_name = node.func.attr if isinstance(node.func, ast.Attribute) else name.rpartition(".")[2]
        if name in _RUNS_CODE:
            self._check_code(node, scope, name)
        elif _is_shell_call(node, name, method_name):
            self._check_shell(node, scope)
        elif method_name in _RUN_SQL:
            self._query(node, scope, method_name)
        elif method_name not in _MESSAGE_FUNCTIONS and not method_name.endswith(("Error", "Exception", "Warning")):
            for item in (*node.args, *(part.value for part in node.keywords if part.arg != "help")):
                if isinstance(item, ast.JoinedStr | ast.BinOp | ast.Call):
                    self._check_certain_sql(item, scope, node.lineno)

    def visit_value(self, node: ast.expr, scope: FunctionScope) -> None:
        if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call | ast.Name):
            self._check_certain_sql(node, scope, 0)

    def _query(self, node: ast.Call, scope: FunctionScope, method_name: str) -> None:
        query = get_argument(node, 0, *_NAMES)
        if method_name == "extra":
            query = get_keyword(node, "where") or get_keyword(node, "select")
        if query is None:
            return
        value = scope.read(query)
        text = (value.items.text or "") if value.text is None and value.items else value.text
        outside_line = value.items.outside_line if value.items and not value.outside_line else value.outside_line
        if not outside_line or text is None:
            return
        if method_name in ("query", "text", "sql", "fetch", "raw", "scalar", "scalars", "stream"):
            is_certain = _SURELY.match(text) or (
                VALUE_MARK in text and _STARTS.match(text) and _SQL_CLAUSE.search(text)
            )
        else:
            is_certain = _STARTS.match(text) or _SQL_CLAUSE.search(text)
        if is_certain or method_name == "extra":
            self._add_sql(outside_line, node.lineno)

    def _check_certain_sql(self, node: ast.expr, scope: FunctionScope, used: int) -> None:
        value = scope.read(node)
        if value.outside_line > 0 and value.text is not None and _SURELY.match(value.text):
            self._add_sql(value.outside_line, used)

    def _add_sql(self, line: int, used: int) -> None:
        message = "SQL is put together from values; pass them as parameters"
        self._add(SQL, line, message, FindingKind.sql_injection, used)

    def _check_shell(self, node: ast.Call, scope: FunctionScope) -> None:
        value = scope.read(get_argument(node, 0, "args", "cmd", "command"))
        if _has_outside_value(value):
            message = "a shell runs a command that is put together from values; pass a list of arguments instead"
            self._add(SHELL, node.lineno, message, FindingKind.dangerous_call, 0)

    def _check_code(self, node: ast.Call, scope: FunctionScope, name: str) -> None:
        if node.args and _has_outside_value(scope.read(node.args[0])):
            message = f"{name} runs whatever it is given as code"
            self._add(CODE, node.lineno, message, FindingKind.dangerous_call, 0)

    def _add(self, rule: str, line: int, message: str, kind: FindingKind, used: int) -> None:
        previous = self.lines.get((rule, line))
        used = used or (previous.reaches if previous else 0)
        self.lines[rule, line] = self.source.build_finding(TOOL, rule, line, message, kind, Risk.high, reaches=used)


def _has_outside_value(value: KnownText) -> bool:
    return value.outside_line != 0 or (value.items is not None and value.items.outside_line != 0)


def _is_shell_call(node: ast.Call, name: str, method_name: str) -> bool:
    if name in _SHELLS or method_name == "exec_command":
        return True
    if name == "functools.partial":
        return False
    shell = get_keyword(node, "shell")
    return name in _MAY_BE_SHELLS and shell is not None and not is_constant(shell, False, None)


def find_built_strings(sources: Sequence[PythonSource]) -> list[Finding]:
    """Find every place in these files where a string is built from loose parts and then run."""
    findings: list[Finding] = []
    for source in sources:
        if source.tree is None or not _WORTH_READING.search(source.text):
            continue
        collector = _Found(source)
        with suppress(RecursionError):  # nested too deeply: keep the findings so far
            Reader(source, collector).read()
        findings += collector.lines.values()
    return findings
