"""Tasks in families: the same kind of bug in different code, with a lesson that carries from one task to the next.

A file of `families/` begins with the family's lesson. Each of its tasks is a small module with shown tests and hidden
tests that only grading sees. Lines of the module that begin with `-` exist only before the true fix, those with `+`
only after it.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import NamedTuple

from redstart.evals.task import Base, Task, TaskChange

FOLDER = Path(__file__).parent / "families"
FAMILIES = (
    *("missing_key", "none_value", "off_by_one", "mutable_default", "text_encoding", "letter_case"),
    *("empty_sequence", "integer_division", "ties_in_order", "unstripped_input", "inclusive_bounds", "rounding_halves"),
)
"""The families, in the order in which a shorter bench takes them."""


class Example(NamedTuple):
    """One module of a family."""

    name: str
    before: str
    after: str
    shown: str
    """Tests; at least one of them fails before the fix."""
    hidden: str


class Family(NamedTuple):
    name: str
    when: str
    advice: str
    """The key fact: it applies to every task of the family and to no other task."""
    examples: tuple[Example, ...]


class Known(NamedTuple):
    """A task and its family."""

    task: Task
    family: Family


def read_family(name: str) -> Family:
    """Read a family from its file. Raises `ValueError` or `KeyError` if the file is invalid."""
    head, *parts = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split(":: task ")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if line)
    return Family(name, fields["when"], fields["advice"], tuple(map(_parse_example, parts)))


def _parse_example(part: str) -> Example:
    name, _, rest = part.partition("\n")
    code, _, tests = rest.partition(":: tests\n")
    shown, _, hidden = tests.partition(":: hidden\n")
    before, after = _side(code, "-"), _side(code, "+")
    header = f"from {name} import {', '.join(_list_definitions(after))}\n\n\n"
    return Example(name, before, after, f"{header}{shown.strip()}\n", f"{header}{hidden.strip()}\n")


def _side(code: str, mark: str) -> str:
    lines = (line.removeprefix(mark) for line in code.splitlines() if line[:1] not in {"-", "+"} - {mark})
    return "\n".join(lines).strip() + "\n"


def _list_definitions(code: str) -> list[str]:
    return [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def create_task(family: Family, example: Example) -> Task:
    module, tests = f"{example.name}.py", f"test_{example.name}.py"
    return Task(
        id=f"{family.name}/{example.name}",
        base=Base(change=TaskChange(files={module: example.before, tests: example.shown})),
        hidden=TaskChange(files={f"test_{example.name}_more.py": example.hidden}),
        fix=TaskChange(files={module: example.after}),
        tags=(family.name,),
        licence="MIT",
    )


def stream(families: int, tasks_per_family: int, seed: int) -> list[Known]:
    """Return `tasks_per_family` tasks of each of the first `families` families, in a random order fixed by the seed."""
    selected = [read_family(name) for name in FAMILIES[:families]]
    tasks = [
        Known(create_task(family, example), family)
        for family in selected
        for example in family.examples[:tasks_per_family]
    ]
    random.Random(f"learning/{seed}").shuffle(tasks)
    return tasks
