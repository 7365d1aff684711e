"""The first files of a new project, and the task of the run that creates it."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.app.create import NewProgram, can_import, create_program_run, write_project
from redstart.app.project_files import build_project_files, make_folder_name, make_package_name
from redstart.app.runs import RunRequest
from redstart.app.settings import Settings
from redstart.app.wire import AppContext, open_app
from redstart.cli.create import KindName, read_goal
from redstart.core.change import ApplyResult
from redstart.core.errors import ConfigError
from redstart.core.run import GOAL_LIMIT, Limits, Result, RunState
from redstart.core.run_preferences import ProgramKind
from redstart.toolkit.languages.new_program import NewProject

ASKED = RunRequest(Limits())


@pytest.fixture
def house(tmp_path: Path) -> Iterator[AppContext]:
    with open_app(Settings(home=tmp_path / "home")) as app:
        yield app


def read_text(project: NewProject, path: str) -> str:
    return (build_project_files(project)[path] or b"").decode()


async def begin_program(
    house: AppContext, out: Path, program: NewProgram | None = None, goal: str = "a shop"
) -> RunState:
    return await create_program_run(house, goal, out, ASKED, program)


@pytest.mark.parametrize(("folder", "name"), [("My Shop", "my_shop"), ("2do", "p_2do"), ("a-b.c", "a_b_c")])
def test_directory_name_becomes_a_package_name(folder, name):
    assert make_package_name(folder) == name


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
def test_directory_is_named_after_the_goal(goal, name):
    assert make_folder_name(goal) == name


@pytest.mark.parametrize("goal", ['say "hi"\n\\ and more', "ünïcode ✓", "x" * 4000])
def test_any_goal_makes_a_readable_project_file(goal):
    project = tomllib.loads(
        read_text(NewProject("my_shop", goal, ProgramKind.cli_tool, test_packages=("hypothesis",)), "pyproject.toml")
    )
    assert project["project"]["name"] == "my-shop"
    assert project["project"]["scripts"] == {"my-shop": "my_shop.cli:main"}
    assert project["project"]["optional-dependencies"]["test"] == ["pytest", "hypothesis"]
    assert len(project["project"]["description"]) <= 200
    package = json.loads(read_text(NewProject("my_shop", goal, ProgramKind.cli_tool, language="node"), "package.json"))
    assert (package["name"], package["bin"], package["type"]) == ("my-shop", "src/cli.js", "module")
    assert package["scripts"]["test"] == "node --test"


@pytest.mark.parametrize("language", ["python", "node"])
@pytest.mark.parametrize("kind", [None, *ProgramKind])
def test_readme_describes_the_project_and_how_to_install_use_and_test_it(kind, language):
    text = read_text(NewProject("my_shop", "Sells things.", kind, language), "README.md")
    assert text.startswith("# my_shop\n\nSells things.\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## Install", "## Use", "## Test"]
    assert ("npm test" if language == "node" else "pytest") in text


def test_only_a_tool_has_a_command():
    assert "scripts" not in read_text(NewProject("a", "b", ProgramKind.library), "pyproject.toml")
    assert "bin" not in json.loads(
        read_text(NewProject("a", "b", ProgramKind.library, language="node"), "package.json")
    )


def test_command_offers_every_program_kind():
    assert [name.value for name in KindName] == [kind.value for kind in ProgramKind]


@pytest.mark.slow
async def test_python_and_node_runs_begin_with_their_own_suites(house, tmp_path):
    python = await begin_program(house, tmp_path / "shop", NewProgram(kind=ProgramKind.library))
    assert (python.spec.suite.runner, python.spec.task.kind, python.spec.repo) == (
        "pytest",
        ProgramKind.library,
        "shop",
    )
    assert python.spec.task.offers == (("hypothesis",) if can_import(sys.executable, "hypothesis") else ())
    node = await begin_program(house, tmp_path / "web", NewProgram(language="node"))
    assert (node.spec.suite.runner, node.spec.task.offers) == ("node", ())
    assert house.trees.list_files(node.spec.base) == [".gitignore", "README.md", "package.json"]


@pytest.mark.slow
async def test_users_own_tests_are_in_the_base(house, tmp_path):
    tests_folder = tmp_path / "given"
    (tests_folder / "data").mkdir(parents=True)
    (tests_folder / "test_shop.py").write_text("def test_a():\n    assert False\n")
    (tests_folder / "data" / "a.csv").write_text("a\n")
    (tests_folder / "__pycache__").mkdir()
    (tests_folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    state = await begin_program(house, tmp_path / "shop", NewProgram(tests=tests_folder))
    assert state.spec.task.own_tests == ("tests/test_shop.py",)
    assert {"tests/test_shop.py", "tests/data/a.csv"} < set(house.trees.list_files(state.spec.base))
    assert not [path for path in house.trees.list_files(state.spec.base) if "pycache" in path]
    second_state = await begin_program(house, tmp_path / "other", NewProgram(tests=tests_folder / "test_shop.py"))
    assert second_state.spec.task.own_tests == ("tests/test_shop.py",)


@pytest.mark.slow
async def test_invalid_request_is_rejected_with_the_reason(house, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.py").write_text("x = 1\n")
    for out, program, goal, message in (
        (tmp_path / "full", None, "a shop", "is not empty"),
        (tmp_path / "new", None, "  ", "the goal is empty"),
        (tmp_path / "new", None, "x" * (GOAL_LIMIT + 1), "the goal has 4,001 characters; the limit is 4,000"),
        (tmp_path / "new", NewProgram(tests=tmp_path / "none.py"), "a shop", "does not exist"),
        (tmp_path / "new", NewProgram(language="node", tests=tmp_path / "full"), "a shop", "contains no test file"),
        (tmp_path / "new", NewProgram(language="lua"), "a shop", "no program can be created in lua"),
    ):
        with pytest.raises(ConfigError, match=message):
            await begin_program(house, out, program, goal)
    assert await house.adapters.store.list_runs() == []


@pytest.mark.slow
async def test_project_is_written_only_when_verified_and_overwrites_nothing(house, tmp_path):
    out = tmp_path / "shop"
    state = await begin_program(house, out)
    assert not write_project(house, state, out)
    applied = state.now.model_copy(update={"apply": ApplyResult(ok=True, snapshot=state.spec.base)})
    verified_state = state.model_copy(update={"result": Result.verified, "now": applied})
    assert write_project(house, verified_state, out)
    assert sorted(path.name for path in out.iterdir()) == [".git", ".gitignore", "README.md", "pyproject.toml"]
    assert write_project(house, verified_state, out)
    (out / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="changed during the run and is not empty"):
        write_project(house, verified_state, out)
    assert (out / "README.md").read_text() == "mine"


def test_goal_comes_from_one_of_four_sources(tmp_path, monkeypatch):
    file = tmp_path / "goal.txt"
    file.write_text("  a shop\n")
    assert read_goal("a shop", None, can_ask=False) == "a shop"
    assert read_goal(None, file, can_ask=False) == "a shop"
    monkeypatch.setattr("sys.stdin", io.StringIO(" a shop\n"))
    assert read_goal("-", None, can_ask=False) == "a shop"
    monkeypatch.setattr("sys.stdin", io.StringIO(" a shop \n"))
    assert read_goal(None, None, can_ask=True) == "a shop"
    for goal_text, path in ((None, None), ("a", file), (None, tmp_path / "none.txt")):
        with pytest.raises(ConfigError):
            read_goal(goal_text, path, can_ask=False)
