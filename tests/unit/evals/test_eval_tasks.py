"""Tasks and where they come from."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

from redstart.core.errors import ConfigError
from redstart.evals.public import halve_asserts, halve_lines, halve_tests
from redstart.evals.sets import PUBLIC, load_set
from redstart.evals.task import Base, Task, TaskChange, TaskLanguage, read_tasks, write_tasks

SIZES = {"quixbugs": 40, "humanevalfix_py": 164, "humanevalfix_js": 164, "humaneval": 164, "mbpp": 427, "exercism": 140}

needs_data = pytest.mark.skipif("REDSTART_DATA" not in os.environ, reason="REDSTART_DATA names no folder")


def get_data_dir() -> Path:
    return Path(os.environ["REDSTART_DATA"])


def test_change_lists_every_path_it_touches() -> None:
    diff = "--- a/one.py\n+++ b/one.py\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+z\n"
    assert TaskChange(files={"two.py": None}, diff=diff).paths == ("new.py", "one.py", "two.py")
    assert not TaskChange()
    assert TaskChange(files={"a": None})


def test_different_task_has_a_different_digest_and_directory() -> None:
    task = Task(id="a/b c", base=Base(change=TaskChange(files={"x.py": "1"})))
    other_task = task.model_copy(update={"goal": "else"})
    assert task.digest != other_task.digest
    assert task.slug.startswith("a-b-c-")
    assert task.slug != other_task.slug
    assert "/" not in Task(id="../..", base=Base()).slug.replace("..", "/")[:2]


def test_written_tasks_can_be_read_back(tmp_path: Path) -> None:
    tasks = [Task(id=name, base=Base(repo="somewhere", commit="c" * 40), tags=("t",)) for name in "ab"]
    write_tasks(tasks, tmp_path / "deep" / "tasks.jsonl")
    assert load_set(str(tmp_path / "deep" / "tasks.jsonl")) == tasks
    with pytest.raises(ConfigError, match="line 2, is not a task"):
        read_tasks(f"{tasks[0].model_dump_json()}\n{{}}\n", "here")


def test_duplicate_task_is_an_error(tmp_path: Path) -> None:
    write_tasks([Task(id="a", base=Base()), Task(id="a", base=Base(), goal="else")], tmp_path / "tasks.jsonl")
    with pytest.raises(ConfigError, match="two tasks with the ID a"):
        load_set(str(tmp_path / "tasks.jsonl"))


def test_unknown_set_error_lists_the_known_sets() -> None:
    with pytest.raises(ConfigError, match="there is no set 'nowhere'") as caught:
        load_set("nowhere")
    assert all(name in caught.value.remedy for name in PUBLIC)
    with pytest.raises(ConfigError, match="the set mbpp is not available") as caught:
        load_set("mbpp", data=None)
    assert "REDSTART_DATA" in caught.value.remedy


def test_directory_of_repos_gives_one_task_per_repo(tmp_path: Path) -> None:
    for name in ("one", "two", "empty", ".hidden"):
        (tmp_path / name).mkdir()
        if name != "empty":
            (tmp_path / name / "code.py").write_text("1\n")
    tasks = load_set(str(tmp_path))
    assert [task.id for task in tasks] == ["one", "two"]
    assert tasks[0].base == Base(repo=str(tmp_path / "one"))
    assert not tasks[0].fix
    (tmp_path / "one" / ".git").mkdir()
    assert [task.id for task in load_set(str(tmp_path / "one"))] == ["one"]
    with pytest.raises(ConfigError, match="contains no repo"):
        load_set(str(tmp_path / "empty"))


def build_swe_row(**overrides: Any) -> dict[str, Any]:
    defaults = {
        "instance_id": "a__b-1",
        "repo": "a/b",
        "base_commit": "c" * 40,
        "patch": "--- a/x.py\n+++ b/x.py\n",
        "test_patch": "--- a/t.py\n+++ b/t.py\n",
        "problem_statement": "it is broken",
        "FAIL_TO_PASS": '["t.py::test_x"]',
    }
    return {**defaults, **overrides}


def test_swe_bench_rows_hide_their_tests(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(build_swe_row()) + "\n")
    with pytest.raises(ConfigError, match="no clone of a/b"):
        load_set(str(tmp_path / "rows.jsonl"), repos=tmp_path)
    (tmp_path / "a__b").mkdir()
    (task,) = load_set(str(tmp_path / "rows.jsonl"), repos=tmp_path)
    assert (task.goal, task.shows_red, task.red) == ("it is broken", False, ("t.py::test_x",))
    assert (task.hidden.paths, task.fix.paths) == (("t.py",), ("x.py",))
    assert task.base == Base(repo=str(tmp_path / "a__b"), commit="c" * 40)
    row = build_swe_row()
    del row["test_patch"]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ConfigError, match="has no test_patch"):
        load_set(str(tmp_path / "rows.jsonl"), repos=tmp_path)


def test_half_of_the_tests_are_shown() -> None:
    text = "import x\n\n\n@x.mark\ndef test_a():\n    pass\n\n\n@x.mark\ndef test_b():\n    pass\n\n\ndef helper(): 1\n"
    assert [statement.name for statement in ast.parse(halve_tests(text)).body[1:]] == ["test_a", "helper"]
    assert halve_tests(text).count("@x.mark") == 1
    methods = "class T:\n    def test_1(self): pass\n    def test_2(self): pass\n    def test_3(self): pass\n"
    assert halve_tests(methods).count("def") == 2
    asserts = "def check(f):\n    assert f(1)\n    assert (\n        f(2)\n    )\n    assert f(3)\n"
    assert halve_asserts(asserts, "check") == "def check(f):\n    assert f(1)\n    assert f(3)\n"
    assert halve_asserts(asserts, "other") == asserts
    assert halve_lines("1\n2\n3\n") == "1\n3\n"


@needs_data
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_sets_load(name: str) -> None:
    tasks = load_set(name, data=get_data_dir())
    assert len(tasks) == SIZES[name]
    for task in tasks:
        files, (changed, fixed) = task.base.change.files, next(iter(task.fix.files.items()))
        assert files[changed] != fixed, task.id
        # Files that only grading may see are not among the shown files.
        assert set(task.hidden.files) <= set(files) or name == "quixbugs", task.id
        for path, text in {**files, **task.hidden.files, **task.fix.files}.items():
            if path.endswith(".py"):
                ast.parse(text or "")
        assert task.language is (TaskLanguage.javascript if name == "humanevalfix_js" else TaskLanguage.python)


@needs_data
@pytest.mark.parametrize(
    ("name", "max_share"), [("humaneval", 0.15), ("mbpp", 0), ("exercism", 0.05), ("quixbugs", 0.25)]
)
def test_most_tasks_show_fewer_tests_than_they_are_graded_by(name: str, max_share: float) -> None:
    tasks = load_set(name, data=get_data_dir())
    fully_shown = [
        item
        for item in tasks
        if all(item.base.change.files.get(path) == text for path, text in item.hidden.files.items())
    ]
    assert len(fully_shown) <= max_share * len(tasks), [task.id for task in fully_shown]


@needs_data
def test_task_with_a_slow_solution_has_a_longer_time_limit() -> None:
    def read_time_limits(name: str) -> dict[str, float]:
        conftests = {task.id: task.base.change.files["conftest.py"] for task in load_set(name, data=get_data_dir())}
        return {
            id_: float((text or "").partition("ITIMER_VIRTUAL, ")[2].partition(")")[0])
            for id_, text in conftests.items()
        }

    quixbugs, exercism = read_time_limits("quixbugs"), read_time_limits("exercism")
    assert {quixbugs.pop("quixbugs/levenshtein"), *quixbugs.values()} == {20, 1}
    assert {exercism.pop("exercism-python/killer-sudoku-helper"), *exercism.values()} == {30, 5}


@needs_data
def test_javascript_tests_can_import_every_exported_function() -> None:
    tasks = {task.id.rpartition("/")[2]: task for task in load_set("humanevalfix_js", data=get_data_dir())}
    for number, names in (("0", "hasCloseElements"), ("32", "poly, findZero"), ("114", "minSubArraySum")):
        assert f"const {{ {names} }} = require" in (tasks[number].hidden.files["solution.test.js"] or "")
        for change in (tasks[number].base.change, tasks[number].fix):
            assert f"module.exports = {{ {names} }}" in (change.files["solution.js"] or "")
