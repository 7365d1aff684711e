"""Tiny repositories with a bug, made from the evaluation data, and the true fix of each."""

from __future__ import annotations

import ast
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SEED = 5
MUTANTS = 3
"""How many mutations of one program are offered; the first that its tests notice is the one that counts."""

# A program that loops for ever is a red test, not a lost run. Its own processor time counts, not the machine's load.
CONFTEST = """import signal

import pytest

pytest.use_correct = False
pytest.run_slow = False


def _stop(*_):
    raise TimeoutError("the program does not end")


@pytest.fixture(autouse=True)
def _ends():
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, 5)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
"""


class Honest(NamedTuple):
    """One bug and its true fix; of patches with the same `group` one is enough."""

    name: str
    group: str
    repo: dict[str, str]
    fix: dict[str, str]


def find_data_folder() -> Path | None:
    """Where the evaluation data lies; None where it is not there."""
    value = os.environ.get("REDSTART_DATA", "")
    return Path(value) if value and Path(value).is_dir() else None


def load_honest_patches(data: Path) -> Iterator[Honest]:
    """True fixes first, then the mutations."""
    yield from load_quixbugs(data)
    yield from load_humaneval(data)
    yield from load_exercism(data)


def load_quixbugs(data: Path) -> Iterator[Honest]:
    """Forty one-line bugs."""
    support = json.loads((data / "quixbugs_support.json").read_text())
    for row in _read_rows(data / "quixbugs_py.jsonl"):
        name, path = row["name"], f"python_programs/{row['name']}.py"
        repo = {
            path: _end_with_newline(row["buggy"]),
            "python_programs/__init__.py": "",
            "node.py": support["node.py"],
            "tests/load_testdata.py": support["load_testdata.py"],
            "tests/conftest.py": CONFTEST,
            f"tests/test_{name}.py": row["test"],
        }
        if row["cases"]:
            repo[f"json_testcases/{name}.json"] = row["cases"]
        yield Honest(f"quixbugs/{name}", f"quixbugs/{name}", repo, {path: _end_with_newline(row["fixed"])})


def load_humaneval(data: Path) -> Iterator[Honest]:
    """The 164 small functions of HumanEvalFix."""
    for row in _read_rows(data / "humanevalfix_py.jsonl"):
        check_code = row["test"].rstrip().rpartition("\n")[0]
        test = (
            f"from solution import *\n\n{check_code}\n\n\ndef test_{row['entry_point']}():\n    "
            f"check({row['entry_point']})\n"
        )
        repo = {
            "solution.py": _end_with_newline(row["prompt"] + row["buggy_solution"]),
            "tests/conftest.py": CONFTEST,
            "tests/test_solution.py": test,
        }
        fix = {"solution.py": _end_with_newline(row["prompt"] + row["canonical_solution"])}
        yield Honest(f"humanevalfix/{row['task_id']}", row["task_id"], repo, fix)


def load_exercism(data: Path) -> Iterator[Honest]:
    """Mutations of the example solutions of Exercism's Python track, whose tests are `unittest` cases."""
    for row in _read_rows(data / "exercism_python.jsonl"):
        if len(row["stub"]) != 1 or len(row["example"]) != 1:
            continue
        (path,), (program,) = row["stub"], row["example"].values()
        correct = ast.unparse(ast.parse(program)) + "\n"
        for number, mutated in enumerate(generate_mutations(correct, f"{SEED} {row['id']}")):
            repo = {path: mutated, **row["editor"], **row["tests"], "conftest.py": CONFTEST}
            yield Honest(f"{row['id']}/{number}", row["id"], repo, {path: correct})


def generate_mutations(program: str, seed: str) -> Iterator[str]:
    """The program with one small bug, a few times over."""
    chance = random.Random(seed)
    places = [place for place, node in enumerate(ast.walk(ast.parse(program))) if _mutate_node(node) is not None]
    for place in chance.sample(places, min(MUTANTS, len(places))):
        tree = ast.parse(program)
        node = list(ast.walk(tree))[place]
        mutated_fields = _mutate_node(node)
        assert mutated_fields is not None
        for name, value in mutated_fields.items():
            setattr(node, name, value)
        yield ast.unparse(tree) + "\n"


_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def _mutate_node(node: ast.AST) -> dict[str, Any] | None:
    """The fields of a node in which it is subtly wrong; None for a node that is left alone."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        opposite = _OPPOSITES.get(type(node.op))
        return {"op": opposite()} if opposite else None
    if isinstance(node, ast.Compare):
        opposite = _OPPOSITES.get(type(node.ops[0]))
        return {"ops": [opposite(), *node.ops[1:]]} if opposite else None
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return {"value": node.value + 1}
    if isinstance(node, ast.If):
        return {"test": ast.UnaryOp(ast.Not(), node.test)}
    return None


def _read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _end_with_newline(text: str) -> str:
    return text.rstrip("\n") + "\n"
