"""The public sets: each row becomes a small repo with a program, part of its tests visible, and all tests for grading.

The data is not shipped; docs/benchmarks.md lists the source of each set.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from redstart.evals.task import Base, Task, TaskChange, TaskLanguage


def halve_asserts(text: str, function: str) -> str:
    """Remove every second plain `assert` of this function. A function with fewer than two stays unchanged.

    Raises `SyntaxError` if the text is not Python.
    """
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            asserts = [statement for statement in node.body if isinstance(statement, ast.Assert)]
            return _remove_nodes(text, asserts[1::2])
    return text


def halve_tests(text: str) -> str:
    """Remove every second test function or method. A text with fewer than two stays unchanged.

    Raises `SyntaxError` if the text is not Python.
    """
    tests: list[ast.stmt] = []
    for node in ast.parse(text).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        tests += [item for item in inside if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]
    return _remove_nodes(text, tests[1::2])


def halve_lines(text: str) -> str:
    """Keep every second line, starting with the first."""
    return "".join(text.splitlines(keepends=True)[::2])


def _remove_nodes(text: str, nodes: Sequence[ast.stmt]) -> str:
    removed_lines = {
        line for node in nodes for line in range(_find_first_line(node), (node.end_lineno or node.lineno) + 1)
    }
    # Count lines as the parser does: a form feed does not end a line.
    return "\n".join(line for number, line in enumerate(text.split("\n"), 1) if number not in removed_lines)


def _find_first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
    return min([node.lineno, *(item.lineno for item in decorators)])


_PYTHON = (32, 51, 64, 81, 82, 89, 90, 92, 99, 138, 140, 141, 149, 157)
_JAVASCRIPT = (51, 64, 81, 89, 91, 92, 108, 112, 125, 127, 136, 138, 141, 149, 157)

FULLY_SHOWN_TASKS = frozenset(
    (
        "quixbugs/quicksort",
        *(f"humanevalfix/Python/{number}" for number in _PYTHON),
        *(f"humanevalfix/JavaScript/{number}" for number in _JAVASCRIPT),
    )
)
"""Tasks that show all their tests: as `redstart eval check-tasks` reports, part of them pass on the program with the
bug, so a part might show no failing test."""


Row = dict[str, Any]

_PROGRAM, _TESTS = "python_programs/{}.py", "python_testcases/test_{}.py"
INI = "[pytest]\npythonpath = .\n"
_CONFTEST = '''"""A test that computes without an end is red."""

import signal

import pytest

{extra}
@pytest.fixture(autouse=True)
def ends():
    def too_long(number, frame):
        raise TimeoutError("the test did not end")

    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, {seconds})
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
'''
_CONFIGURES = """
def pytest_configure(config):
    pytest.use_correct = False
    pytest.run_slow = False

"""
QUICK, LONG = 1, 5
"""Seconds of processor time that a test may take."""
SLOW_TASK_SECONDS = {"quixbugs/levenshtein": 20, "exercism-python/killer-sudoku-helper": 30}
"""The same limit for tasks whose true solution takes longer: 3 and 4 seconds on an idle machine."""
TASK_TIMEOUT_SECONDS = 60.0
"""Seconds that all tests of a task may take: Node.js has no timeout for a test that never yields."""
_DECLARATION = re.compile(r"^(?:const|let|var|function)\s+(\w+)", re.MULTILINE)
NODE_PACKAGE = json.dumps({"name": "task", "version": "0.0.0", "scripts": {"test": "node --test"}}, indent=2) + "\n"


def make_quixbugs_task(row: Row, data: Path) -> Task:
    """Make a task of a program with a one-line bug. Every second line of its data file, if it has one, is shown."""
    name, cases = str(row["name"]), str(row["cases"] or "")
    support = _load_support(data / "quixbugs_support.json")
    files = {
        _PROGRAM.format(name): str(row["buggy"]).lstrip("\n"),
        _TESTS.format(name): str(row["test"]),
        "python_testcases/load_testdata.py": support["load_testdata.py"],
        "python_testcases/node.py": support["node.py"],
        "conftest.py": _CONFTEST.format(extra=_CONFIGURES, seconds=SLOW_TASK_SECONDS.get(str(row["id"]), QUICK)),
        "pytest.ini": "[pytest]\npythonpath = . python_testcases\n",
    }
    hidden = {f"json_testcases/{name}.json": cases} if cases else {}
    visible = {path: text if row["id"] in FULLY_SHOWN_TASKS else halve_lines(text) for path, text in hidden.items()}
    return _make_task(row["id"], files, visible, hidden, {_PROGRAM.format(name): str(row["fixed"]).lstrip("\n")})


def make_humanevalfix_py_task(row: Row, data: Path) -> Task:
    """Make a task of a function with a bug. The examples of its docstring are shown as tests."""
    del data
    name, entry, prompt = f"humanevalfix/{row['task_id']}", str(row["entry_point"]), str(row["prompt"])
    visible_test = _get_visible_test(row, name)
    return _make_task(
        name,
        {"solution.py": prompt + str(row["buggy_solution"]), **_make_pytest_files()},
        {"test_solution.py": _wrap_check(visible_test, entry)},
        {"test_solution.py": _wrap_check(str(row["test"]), entry)},
        {"solution.py": prompt + str(row["canonical_solution"])},
        tags=(f"bug: {row['bug_type']}",),
    )


def make_humanevalfix_js_task(row: Row, data: Path) -> Task:
    """Make the same task in JavaScript, with the test runner of Node.js."""
    del data
    name, prompt = f"humanevalfix/{row['task_id']}", str(row["prompt"])
    visible_test = _get_visible_test(row, name)
    # Export more than the entry point: some tests call its helpers, and one row spells its name differently.
    names = _DECLARATION.findall(prompt)
    exports = f"\nmodule.exports = {{ {', '.join(names)} }};\n"
    return _make_task(
        name,
        {"solution.js": prompt + str(row["buggy_solution"]) + exports, "package.json": NODE_PACKAGE},
        {"solution.test.js": _wrap_asserts(visible_test, names)},
        {"solution.test.js": _wrap_asserts(str(row["test"]), names)},
        {"solution.js": prompt + str(row["canonical_solution"]) + exports},
        tags=(f"bug: {row['bug_type']}",),
        language=TaskLanguage.javascript,
    )


def make_humaneval_task(row: Row, data: Path) -> Task:
    """Make a task of a function to write. Its signature, docstring and every second assertion are shown."""
    del data
    entry, prompt, test = str(row["entry_point"]), str(row["prompt"]), str(row["test"])
    return _make_task(
        str(row["task_id"]).lower(),
        {"solution.py": f"{prompt}    raise NotImplementedError\n", **_make_pytest_files()},
        {"test_solution.py": _wrap_check(halve_asserts(test, "check"), entry)},
        {"test_solution.py": _wrap_check(test, entry)},
        {"solution.py": prompt + str(row["canonical_solution"])},
        tags=("stub",),
    )


def make_mbpp_task(row: Row, data: Path) -> Task:
    """Make a task of a function to write from a sentence. Its first assertion is shown."""
    del data
    goal, code, asserts = str(row["prompt"]), str(row["code"]), [str(item) for item in row["test_list"]]
    functions, modules = _find_called(code, asserts)
    imports = "".join(f"{line}\n" for line in (*row["test_imports"], *(f"import {name}" for name in modules)))
    # Import inside each test, so that pytest does not collect a program's function named `test_...`.
    start = f"    from solution import {', '.join(function.name for function in functions)}\n\n"

    def format_tests(assertions: list[str]) -> str:
        test_functions = (
            f"def test_{number}():\n{start}    {_indent_lines(item)}\n" for number, item in enumerate(assertions, 1)
        )
        return "\n\n".join((*([imports] if imports else []), *test_functions))

    return _make_task(
        f"mbpp/{row['task_id']}",
        {"solution.py": "\n\n".join((f'"""{goal}"""\n', *map(_format_stub, functions))), **_make_pytest_files()},
        {"test_solution.py": format_tests(asserts[:1])},
        {"test_solution.py": format_tests(asserts)},
        {"solution.py": code.replace("\r\n", "\n").rstrip() + "\n"},
        tags=("stub",),
        goal=goal,
    )


def make_exercism_task(row: Row, data: Path) -> Task:
    """Make a task of an exercise with its text and stub. Every second test is shown."""
    del data
    goal, stub, tests = str(row["instructions"]), dict(row["stub"]), dict(row["tests"])
    (solution,) = stub
    (example,) = row["example"].values()
    visible = {path: halve_tests(text) for path, text in tests.items()}
    files = {**stub, "INSTRUCTIONS.md": goal, **_make_pytest_files(SLOW_TASK_SECONDS.get(str(row["id"]), LONG))}
    return _make_task(str(row["id"]), files, visible, tests, {solution: str(example)}, tags=("stub",), goal=goal)


def _make_task(
    name: str,
    files: dict[str, str],
    visible: dict[str, str],
    hidden: dict[str, str],
    fixed: dict[str, str],
    *,
    tags: tuple[str, ...] = (),
    goal: str = "",
    language: TaskLanguage = TaskLanguage.python,
) -> Task:
    return Task(
        id=name,
        language=language,
        seconds=TASK_TIMEOUT_SECONDS,
        base=Base(change=TaskChange(files={**files, **visible})),
        goal=goal,
        hidden=TaskChange(files={**hidden}),
        fix=TaskChange(files={**fixed}),
        tags=(name.partition("/")[0], *tags),
    )


def _make_pytest_files(seconds: int = LONG) -> dict[str, str]:
    return {"conftest.py": _CONFTEST.format(extra="", seconds=seconds), "pytest.ini": INI}


@cache
def _load_support(file: Path) -> dict[str, str]:
    return json.loads(file.read_text(encoding="utf-8"))


def _get_visible_test(row: Row, name: str) -> str:
    """Return the examples of the docstring if there are any and they show the bug; else the whole test."""
    examples = str(row["example_test"])
    return str(row["test"]) if name in FULLY_SHOWN_TASKS or not examples.strip() else examples


def _wrap_check(test: str, entry: str) -> str:
    """Turn a `check` function into a pytest test. A final call of it is removed."""
    body = "\n".join(line for line in test.strip("\n").split("\n") if line.strip() != f"check({entry})")
    head = "import solution as program\nfrom solution import *"
    return f"{head}\n\n\n{body.strip()}\n\n\ndef test_{entry}():\n    check(program.{entry})\n"


def _wrap_asserts(test: str, names: list[str]) -> str:
    """Wrap a test so that `console.assert`, which only prints, fails it."""
    body = "\n".join(f"  {line}".rstrip() for line in test.strip("\n").split("\n"))
    return (
        'const test = require("node:test");\n'
        'const assert = require("node:assert");\n'
        f'const {{ {", ".join(names)} }} = require("./solution.js");\n\n'
        f'test("{names[-1]}", () => {{\n'
        '  const console = { assert: (held) => assert.ok(held, "an assertion does not hold"), log: () => {} };\n'
        f"{body}\n}});\n"
    )


def _indent_lines(statement: str) -> str:
    return statement.replace("\r\n", "\n").replace("\n", "\n    ")


class _Called(NamedTuple):
    functions: list[ast.FunctionDef]
    modules: list[str]


def _find_called(code: str, asserts: list[str]) -> _Called:
    """Find the functions of a program that the assertions call, or else its last one, and the modules they use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of these programs are older than the rules for escapes
        tree = ast.parse(code)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    called_names = {
        item.id for text in asserts for item in ast.walk(ast.parse(text.strip())) if isinstance(item, ast.Name)
    }
    imported_modules = [name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names]
    selected = [function for function in functions if function.name in called_names] or functions[-1:]
    return _Called(selected, [name for name in imported_modules if name in called_names])


def _format_stub(function: ast.FunctionDef) -> str:
    return f"def {function.name}({ast.unparse(function.args)}):\n    raise NotImplementedError\n"
