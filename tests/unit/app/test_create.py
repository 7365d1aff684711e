"""The first files of a new project, and the task of the run that creates it."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.app.create import NewProgram, begin_create, can_import, write_project
from redstart.app.runs import RunRequest
from redstart.app.settings import Settings
from redstart.app.skeleton import files_of, folder_name, package_name
from redstart.app.wire import AppContext, open_house
from redstart.cli.create import KindName, goal_of
from redstart.core.change import ApplyResult
from redstart.core.errors import ConfigError
from redstart.core.run import GOAL_LIMIT, Limits, Result, RunState
from redstart.core.wishes import ProgramKind
from redstart.toolkit.languages.new_program import NewProject

ASKED = RunRequest(Limits())


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    with open_house(Settings(home=tmp_path / "home")) as made:
        yield made


def text_of(project: NewProject, path: str) -> str:
    return (files_of(project)[path] or b"").decode()


def begun(house: AppContext, out: Path, wanted: NewProgram | None = None, goal: str = "a shop") -> RunState:
    return asyncio.run(begin_create(house, goal, out, ASKED, wanted))


@pytest.mark.parametrize(("folder", "name"), [("My Shop", "my_shop"), ("2do", "p_2do"), ("a-b.c", "a_b_c")])
def test_a_folder_names_a_package(folder, name):
    assert package_name(folder) == name


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ("Create a Flask REST API for todos with SQLite", "flask-rest-api-for-todos-with-sqlite"),
        ("a tool that turns CSV files into Markdown tables", "tool-that-turns-csv-files-into-markdown"),
        ("a command line tool that converts CSV to Markdown tables", "command-line-tool-that-converts-csv"),
        ("Make the", "the"),
        ("日本語", "new-program"),
        ("x" * 90, "x" * 40),
    ],
)
def test_a_directory_is_named_after_the_goal(goal, name):
    assert folder_name(goal) == name


@pytest.mark.parametrize("goal", ['say "hi"\n\\ and more', "ünïcode ✓", "x" * 4000])
def test_any_goal_makes_a_project_that_can_be_read(goal):
    project = tomllib.loads(
        text_of(NewProject("my_shop", goal, ProgramKind.cli_tool, offers=("hypothesis",)), "pyproject.toml")
    )
    assert project["project"]["name"] == "my-shop"
    assert project["project"]["scripts"] == {"my-shop": "my_shop.cli:main"}
    assert project["project"]["optional-dependencies"]["test"] == ["pytest", "hypothesis"]
    assert len(project["project"]["description"]) <= 200
    package = json.loads(text_of(NewProject("my_shop", goal, ProgramKind.cli_tool, language="node"), "package.json"))
    assert (package["name"], package["bin"], package["type"]) == ("my-shop", "src/cli.js", "module")
    assert package["scripts"]["test"] == "node --test"


@pytest.mark.parametrize("language", ["python", "node"])
@pytest.mark.parametrize("kind", [None, *ProgramKind])
def test_the_readme_says_what_it_is_and_how_to_install_use_and_test_it(kind, language):
    text = text_of(NewProject("my_shop", "Sells things.", kind, language), "README.md")
    assert text.startswith("# my_shop\n\nSells things.\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Install", "## Use", "## Test"]
    assert ("npm test" if language == "node" else "pytest") in text


def test_only_a_tool_has_a_command():
    assert "scripts" not in text_of(NewProject("a", "b", ProgramKind.library), "pyproject.toml")
    assert "bin" not in json.loads(text_of(NewProject("a", "b", ProgramKind.library, language="node"), "package.json"))


def test_the_kinds_of_the_command_are_the_kinds():
    assert [name.value for name in KindName] == [kind.value for kind in ProgramKind]


@pytest.mark.slow
def test_a_run_of_python_and_one_of_node(house, tmp_path):
    python = begun(house, tmp_path / "shop", NewProgram(kind=ProgramKind.library))
    assert (python.spec.suite.runner, python.spec.task.kind, python.spec.repo) == (
        "pytest",
        ProgramKind.library,
        "shop",
    )
    assert python.spec.task.offers == (("hypothesis",) if can_import(sys.executable, "hypothesis") else ())
    node = begun(house, tmp_path / "web", NewProgram(language="node"))
    assert (node.spec.suite.runner, node.spec.task.offers) == ("node", ())
    assert house.trees.files(node.spec.base) == [".gitignore", "README.md", "package.json"]


@pytest.mark.slow
def test_the_users_own_tests_are_in_the_base(house, tmp_path):
    given = tmp_path / "given"
    (given / "data").mkdir(parents=True)
    (given / "test_shop.py").write_text("def test_a():\n    assert False\n")
    (given / "data" / "a.csv").write_text("a\n")
    (given / "__pycache__").mkdir()
    (given / "__pycache__" / "x.pyc").write_bytes(b"x")
    state = begun(house, tmp_path / "shop", NewProgram(tests=given))
    assert state.spec.task.own_tests == ("tests/test_shop.py",)
    assert {"tests/test_shop.py", "tests/data/a.csv"} < set(house.trees.files(state.spec.base))
    assert not [path for path in house.trees.files(state.spec.base) if "pycache" in path]
    alone = begun(house, tmp_path / "other", NewProgram(tests=given / "test_shop.py"))
    assert alone.spec.task.own_tests == ("tests/test_shop.py",)


@pytest.mark.slow
def test_what_cannot_be_begun_is_said(house, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.py").write_text("x = 1\n")
    for out, wanted, goal, words in (
        (tmp_path / "full", None, "a shop", "is not empty"),
        (tmp_path / "new", None, "  ", "the goal is empty"),
        (tmp_path / "new", None, "x" * (GOAL_LIMIT + 1), "the goal has 4,001 characters; the limit is 4,000"),
        (tmp_path / "new", NewProgram(tests=tmp_path / "none.py"), "a shop", "does not exist"),
        (tmp_path / "new", NewProgram(language="node", tests=tmp_path / "full"), "a shop", "contains no test file"),
        (tmp_path / "new", NewProgram(language="lua"), "a shop", "no program can be created in lua"),
    ):
        with pytest.raises(ConfigError, match=words):
            begun(house, out, wanted, goal)
    assert asyncio.run(house.adapters.store.runs()) == []


@pytest.mark.slow
def test_a_project_is_written_only_when_it_is_verified_and_never_over_something_else(house, tmp_path):
    out = tmp_path / "shop"
    state = begun(house, out)
    assert not write_project(house, state, out)
    applied = state.now.model_copy(update={"apply": ApplyResult(ok=True, snapshot=state.spec.base)})
    made = state.model_copy(update={"result": Result.verified, "now": applied})
    assert write_project(house, made, out)
    assert sorted(path.name for path in out.iterdir()) == [".git", ".gitignore", "README.md", "pyproject.toml"]
    assert write_project(house, made, out)
    (out / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="changed during the run and is not empty"):
        write_project(house, made, out)
    assert (out / "README.md").read_text() == "mine"


def test_the_goal_is_said_in_one_of_four_ways(tmp_path, monkeypatch):
    file = tmp_path / "goal.txt"
    file.write_text("  a shop\n")
    assert goal_of("a shop", None, somebody_there=False) == "a shop"
    assert goal_of(None, file, somebody_there=False) == "a shop"
    monkeypatch.setattr("sys.stdin", io.StringIO(" a shop\n"))
    assert goal_of("-", None, somebody_there=False) == "a shop"
    monkeypatch.setattr("sys.stdin", io.StringIO(" a shop \n"))
    assert goal_of(None, None, somebody_there=True) == "a shop"
    for given, path in ((None, None), ("a", file), (None, tmp_path / "none.txt")):
        with pytest.raises(ConfigError):
            goal_of(given, path, somebody_there=False)
