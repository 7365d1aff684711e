"""Tasks in families: the same kind of bug in different code, with what there is to learn from one for the next.

A file of `families/` begins with the family's lesson. Each of its tasks is a small module with tests that are shown and
tests that only grading sees; of the module's lines, those that begin with `-` are there before the true fix alone, and
those with `+` after it.
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
"""In the order in which they are taken where not all are wanted."""


class Example(NamedTuple):
    """One module of a family."""

    name: str
    before: str
    after: str
    shown: str
    """Tests, of which one at least is red before the fix."""
    hidden: str


class Family(NamedTuple):
    name: str
    when: str
    advice: str
    """The key fact: it is about every task of the family and about no other."""
    examples: tuple[Example, ...]


class Known(NamedTuple):
    """A task, and what it is about."""

    task: Task
    family: Family


def read_family(name: str) -> Family:
    """Raises `ValueError` or `KeyError` for a file that is no family."""
    head, *parts = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split(":: task ")
    said = dict(line.split(": ", 1) for line in head.splitlines() if line)
    return Family(name, said["when"], said["advice"], tuple(map(_example, parts)))


def _example(part: str) -> Example:
    name, _, rest = part.partition("\n")
    code, _, tests = rest.partition(":: tests\n")
    shown, _, hidden = tests.partition(":: hidden\n")
    before, after = _side(code, "-"), _side(code, "+")
    header = f"from {name} import {', '.join(_defined(after))}\n\n\n"
    return Example(name, before, after, f"{header}{shown.strip()}\n", f"{header}{hidden.strip()}\n")


def _side(code: str, mark: str) -> str:
    kept = (line.removeprefix(mark) for line in code.splitlines() if line[:1] not in {"-", "+"} - {mark})
    return "\n".join(kept).strip() + "\n"


def _defined(code: str) -> list[str]:
    return [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def task_of(family: Family, example: Example) -> Task:
    module, tests = f"{example.name}.py", f"test_{example.name}.py"
    return Task(
        id=f"{family.name}/{example.name}",
        base=Base(change=TaskChange(files={module: example.before, tests: example.shown})),
        hidden=TaskChange(files={f"test_{example.name}_more.py": example.hidden}),
        fix=TaskChange(files={module: example.after}),
        tags=(family.name,),
        licence="MIT",
    )


def stream(families: int, each: int, seed: int) -> list[Known]:
    """So many tasks of each of so many families, in an order of chance that is the same for the same seed."""
    chosen = [read_family(name) for name in FAMILIES[:families]]
    tasks = [Known(task_of(family, example), family) for family in chosen for example in family.examples[:each]]
    random.Random(f"learning/{seed}").shuffle(tasks)
    return tasks
