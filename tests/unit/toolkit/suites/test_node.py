"""How runners of Node.js are found, started and read."""

from __future__ import annotations

import json

import pytest

from redstart.core.report import Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, ExitCause, Variation
from redstart.toolkit.languages.node.detect import from_script, is_node_test, named_suite, suite_in, suites_of
from redstart.toolkit.languages.node.problems import of_case
from redstart.toolkit.languages.node.runners import CASES, command, read_node, start_of
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.detection.places import suites_in
from redstart.toolkit.suites.problems.project import project_of

NODE_TEST = b"const test = require('node:test')\n"


def completed(cases: list[dict[str, object]], code: int = 0) -> Completed:
    cause = ExitCause.failed if code else ExitCause.ok
    return Completed(exit_code=code, cause=cause, output="", files={CASES: json.dumps({"cases": cases, "whole": True})})


def tree(files: dict[str, str | bytes]):
    data = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return sorted(data), data.get


def package(test: str = "", **more: object) -> str:
    return json.dumps({"name": "p", **({"scripts": {"test": test}} if test else {}), **more})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("test/a.js", True),
        ("src/a.test.ts", True),
        ("src/a.spec.tsx", True),
        ("src/__tests__/a.jsx", True),
        ("test-a.mjs", True),
        ("src/latest.js", False),
        ("src/testing.ts", False),
        ("test/data.json", False),
    ],
)
def test_test_files(path, expected):
    assert is_node_test(path) is expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("node --test", ("node", "--test")),
        ("jest --coverage", ("jest", "--coverage")),
        ("cross-env NODE_ENV=x npx jest", ("env", "NODE_ENV=x", "jest")),
        ("c8 --reporter=text mocha -r a", ("mocha", "-r", "a")),
        ("eslint . && tsc --noEmit && vitest run", ("vitest", "run")),
        ("tsc && mocha", ("sh", "-c", 'tsc && exec "$@"', "sh", "mocha")),
        ("npm run unit", ("tsx", "--test", "t.ts")),
        ("node node_modules/jest/bin/jest.js", ("node", "node_modules/jest/bin/jest.js")),
        ("echo nothing && exit 1", ()),
        ("node test.js", ()),
        ("pytest -k jest", ()),
    ],
)
def test_scripts(script, expected):
    assert from_script(script, {"unit": "tsx --test t.ts"}) == expected


def test_a_script_that_names_itself_ends():
    assert from_script("npm test", {"test": "npm test"}) == ()


@pytest.mark.parametrize(
    ("files", "runner_name"),
    [
        ({"package.json": package(devDependencies={"vitest": "1"}), "a.test.js": ""}, "vitest"),
        ({"package.json": package(jest={}), "a.test.js": ""}, "jest"),
        ({"package.json": package(), ".mocharc.yml": "", "test/a.js": ""}, "mocha"),
        ({"package.json": package(), "test/a.js": NODE_TEST}, "node"),
        ({"package.json": package("jest"), "src/a.js": ""}, None),
        ({"package.json": "{", "a.test.js": ""}, None),
        ({"a.test.js": NODE_TEST}, None),
    ],
)
def test_the_runner_of_a_folder(files, runner_name):
    found = suite_in("", *tree(files))
    assert (found.runner if found else None) == runner_name


def test_globs_of_nodes_own_runner_are_expanded():
    files = {
        "package.json": package("node --test 'test/**/*.test.js'"),
        "test/a.test.js": "",
        "test/b/c.test.js": "",
        "test/d.js": "",
    }
    found = suite_in("", *tree(files))
    assert found is not None
    assert found.command == ("node", "--test", "test/a.test.js", "test/b/c.test.js")


def test_workspaces_are_suites_of_their_own():
    files = {
        "package.json": package("npm test --workspaces", workspaces=["packages/*"]),
        "packages/a/package.json": package("jest"),
        "packages/a/a.test.js": "",
        "packages/b/package.json": package(),
        "packages/b/test/b.js": NODE_TEST,
        "packages/b/test/fixtures/package.json": package("jest"),
        "packages/b/test/fixtures/x.test.js": "",
        "node_modules/x/package.json": package("jest"),
        "node_modules/x/x.test.js": "",
    }
    assert [(suite.folder, suite.runner) for suite in suites_of(*tree(files))] == [
        ("packages/a", "jest"),
        ("packages/b", "node"),
    ]


def test_python_at_the_root_comes_first():
    files = {"tests/test_a.py": "def test_a(): pass\n", "web/package.json": package("jest"), "web/a.test.js": ""}
    assert [(suite.folder, suite.runner) for suite in suites_in(*tree(files))] == [("", "pytest")]


def test_a_command_of_the_users():
    paths, read = tree({"package.json": package("vitest"), "a.test.js": ""})
    found = named_suite("", paths, read, ("npm", "test"))
    assert found is not None
    assert (found.runner, found.command) == ("vitest", ("vitest",))
    assert named_suite("", paths, read, ("make", "test")) is None


@pytest.mark.parametrize("name", ["node", "jest", "vitest", "mocha"])
def test_some_tests_are_chosen_by_file_and_title(name):
    ids = ["test/a.js::suite > it's (a) test", "test/b.js"]
    some = command(Suite(runner=name), ids=ids[:1])
    assert some.argv[-1].endswith("a.js")
    assert any("suite" in word and r"\(a\)" in word for word in some.argv) or name == "node"
    assert some.files_in["ids.txt"] == f"{ids[0]}\n"
    whole = command(Suite(runner=name), ids=ids)
    assert not any(r"\(a\)" in word for word in whole.argv), "a whole file is asked for, so titles do not narrow"
    assert runner.selects(Suite(runner=name))


def test_options_that_hide_tests_are_left_out():
    suite = Suite(runner="jest", command=("jest", "--coverage", "--bail", "--reporters", "x", "--env=node", "src"))
    words = command(suite).argv
    assert words[:3] == ("jest", "--env=node", "src")
    assert "x" not in words


def test_the_order_is_varied():
    reversed_order = Variation(order="reversed", seed=3)
    assert any("testSequencer" in word for word in command(Suite(runner="jest"), vary=reversed_order).argv)
    assert "--sequence.seed=3" in command(Suite(runner="vitest"), vary=reversed_order).argv
    assert command(Suite(runner="mocha"), ids=["a.js", "b.js"], vary=reversed_order).argv[-2:] == ("b.js", "a.js")


def test_cases_have_ids_by_file_and_titles():
    found = read_node(
        completed(
            [
                {"file": "a.js", "titles": ["s", "t\n  u"], "outcome": "passed"},
                {
                    "file": "a.js",
                    "titles": ["s", "t u"],
                    "outcome": "failed",
                    "message": "Error: x\n\ny",
                    "detail": "d",
                },
                {"file": "b.js", "outcome": "error"},
            ]
        )
    )
    assert found is not None
    assert [case.id for case in found] == ["a.js::s > t u", "a.js::s > t u [#2]", "b.js"]
    assert [case.outcome for case in found] == [Outcome.passed, Outcome.failed, Outcome.error]
    assert found[1].message == "Error: x\ny"


@pytest.mark.parametrize("text", ["", "{", '{"cases": [{"file": 1}]}', '{"cases": [], "whole": false}'])
def test_what_is_no_report_is_none(text):
    done = Completed(exit_code=1, cause=ExitCause.failed, output="", files={CASES: text})
    assert read_node(done) is None


def test_a_red_report_with_exit_code_zero_is_a_contradiction():
    done = completed([{"file": "a.js", "titles": ["t"], "outcome": "failed"}])
    suite = Suite(runner="node")
    assert "exit code is 0" in runner.contradiction(suite, runner.read(suite, done).cases, done)


@pytest.mark.parametrize("words", [("npx", "mocha"), ("env", "A=1", "jest"), ("node", "--import", "tsx", "--test")])
def test_starts(words):
    assert start_of(words) is not None


def test_a_package_that_is_declared_and_missing_is_no_bug():
    case = read_node(
        completed([{"file": "a.js", "outcome": "error", "message": "Error: Cannot find module 'left-pad'"}], 1)
    )
    assert case is not None
    package = {"package.json": b'{"dependencies": {"left-pad": "1"}}'}
    found = of_case(case[0], project_of(package, package.get))
    assert found is not None
    assert found.kind == "missing_module"
    assert of_case(case[0], project_of((), lambda _: None)) is None
