"""How runners of Node.js are found, started and read."""

from __future__ import annotations

import json

import pytest

from redstart.core.report import Outcome
from redstart.core.run import Suite
from redstart.core.shell import Completed, ExitCause, Variation
from redstart.toolkit.languages.node.detect import find_named_suite, find_suite, find_suites, from_script, is_node_test
from redstart.toolkit.languages.node.problems import classify_case
from redstart.toolkit.languages.node.runners import CASES, build_node_request, find_runner_start, read_node
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.detection.suite_locations import list_suites
from redstart.toolkit.suites.problems.project import create_project_view

NODE_TEST = b"const test = require('node:test')\n"


def create_completed(cases: list[dict[str, object]], code: int = 0) -> Completed:
    cause = ExitCause.failed if code else ExitCause.ok
    return Completed(exit_code=code, cause=cause, output="", files={CASES: json.dumps({"cases": cases, "whole": True})})


def create_tree(files: dict[str, str | bytes]):
    data = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return sorted(data), data.get


def build_package_json(test: str = "", **extra_fields: object) -> str:
    return json.dumps({"name": "p", **({"scripts": {"test": test}} if test else {}), **extra_fields})


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
def test_test_files_are_recognized(path, expected):
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
def test_runner_command_is_read_from_a_script(script, expected):
    assert from_script(script, {"unit": "tsx --test t.ts"}) == expected


def test_script_that_calls_itself_does_not_loop():
    assert from_script("npm test", {"test": "npm test"}) == ()


@pytest.mark.parametrize(
    ("files", "runner_name"),
    [
        ({"package.json": build_package_json(devDependencies={"vitest": "1"}), "a.test.js": ""}, "vitest"),
        ({"package.json": build_package_json(jest={}), "a.test.js": ""}, "jest"),
        ({"package.json": build_package_json(), ".mocharc.yml": "", "test/a.js": ""}, "mocha"),
        ({"package.json": build_package_json(), "test/a.js": NODE_TEST}, "node"),
        ({"package.json": build_package_json("jest"), "src/a.js": ""}, None),
        ({"package.json": "{", "a.test.js": ""}, None),
        ({"a.test.js": NODE_TEST}, None),
    ],
)
def test_runner_of_a_directory_is_detected(files, runner_name):
    suite = find_suite("", *create_tree(files))
    assert (suite.runner if suite else None) == runner_name


def test_globs_of_the_node_runner_are_expanded():
    files = {
        "package.json": build_package_json("node --test 'test/**/*.test.js'"),
        "test/a.test.js": "",
        "test/b/c.test.js": "",
        "test/d.js": "",
    }
    suite = find_suite("", *create_tree(files))
    assert suite is not None
    assert suite.command == ("node", "--test", "test/a.test.js", "test/b/c.test.js")


def test_workspaces_are_separate_suites():
    files = {
        "package.json": build_package_json("npm test --workspaces", workspaces=["packages/*"]),
        "packages/a/package.json": build_package_json("jest"),
        "packages/a/a.test.js": "",
        "packages/b/package.json": build_package_json(),
        "packages/b/test/b.js": NODE_TEST,
        "packages/b/test/fixtures/package.json": build_package_json("jest"),
        "packages/b/test/fixtures/x.test.js": "",
        "node_modules/x/package.json": build_package_json("jest"),
        "node_modules/x/x.test.js": "",
    }
    assert [(suite.folder, suite.runner) for suite in find_suites(*create_tree(files))] == [
        ("packages/a", "jest"),
        ("packages/b", "node"),
    ]


def test_python_at_the_root_comes_first():
    files = {
        "tests/test_a.py": "def test_a(): pass\n",
        "web/package.json": build_package_json("jest"),
        "web/a.test.js": "",
    }
    assert [(suite.folder, suite.runner) for suite in list_suites(*create_tree(files))] == [("", "pytest")]


def test_user_command_is_resolved_to_its_runner():
    paths, read = create_tree({"package.json": build_package_json("vitest"), "a.test.js": ""})
    suite = find_named_suite("", paths, read, ("npm", "test"))
    assert suite is not None
    assert (suite.runner, suite.command) == ("vitest", ("vitest",))
    assert find_named_suite("", paths, read, ("make", "test")) is None


@pytest.mark.parametrize("name", ["node", "jest", "vitest", "mocha"])
def test_tests_are_selected_by_file_and_title(name):
    ids = ["test/a.js::suite > it's (a) test", "test/b.js"]
    selected_request = build_node_request(Suite(runner=name), ids=ids[:1])
    assert selected_request.argv[-1].endswith("a.js")
    assert any("suite" in argument and r"\(a\)" in argument for argument in selected_request.argv) or name == "node"
    assert selected_request.files_in["ids.txt"] == f"{ids[0]}\n"
    full_request = build_node_request(Suite(runner=name), ids=ids)
    assert not any(r"\(a\)" in argument for argument in full_request.argv), (
        "a whole file is asked for, so titles do not narrow"
    )
    assert runner.can_select_tests(Suite(runner=name))


def test_options_that_hide_tests_are_removed():
    suite = Suite(runner="jest", command=("jest", "--coverage", "--bail", "--reporters", "x", "--env=node", "src"))
    argv = build_node_request(suite).argv
    assert argv[:3] == ("jest", "--env=node", "src")
    assert "x" not in argv


def test_test_order_is_varied():
    reversed_order = Variation(order="reversed", seed=3)
    assert any(
        "testSequencer" in argument
        for argument in build_node_request(Suite(runner="jest"), variation=reversed_order).argv
    )
    assert "--sequence.seed=3" in build_node_request(Suite(runner="vitest"), variation=reversed_order).argv
    assert build_node_request(Suite(runner="mocha"), ids=["a.js", "b.js"], variation=reversed_order).argv[-2:] == (
        "b.js",
        "a.js",
    )


def test_case_ids_combine_file_and_titles():
    cases = read_node(
        create_completed(
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
    assert cases is not None
    assert [case.id for case in cases] == ["a.js::s > t u", "a.js::s > t u [#2]", "b.js"]
    assert [case.outcome for case in cases] == [Outcome.passed, Outcome.failed, Outcome.error]
    assert cases[1].message == "Error: x\ny"


@pytest.mark.parametrize("text", ["", "{", '{"cases": [{"file": 1}]}', '{"cases": [], "whole": false}'])
def test_invalid_report_yields_none(text):
    result = Completed(exit_code=1, cause=ExitCause.failed, output="", files={CASES: text})
    assert read_node(result) is None


def test_failing_report_with_exit_code_zero_is_a_contradiction():
    result = create_completed([{"file": "a.js", "titles": ["t"], "outcome": "failed"}])
    suite = Suite(runner="node")
    assert "exit code is 0" in runner.find_contradiction(suite, runner.read(suite, result).cases, result)


@pytest.mark.parametrize("argv", [("npx", "mocha"), ("env", "A=1", "jest"), ("node", "--import", "tsx", "--test")])
def test_runner_start_is_found_in_a_command(argv):
    assert find_runner_start(argv) is not None


def test_missing_declared_package_is_an_environment_problem():
    case = read_node(
        create_completed([{"file": "a.js", "outcome": "error", "message": "Error: Cannot find module 'left-pad'"}], 1)
    )
    assert case is not None
    package = {"package.json": b'{"dependencies": {"left-pad": "1"}}'}
    problem = classify_case(case[0], create_project_view(package, package.get))
    assert problem is not None
    assert problem.kind == "missing_module"
    assert classify_case(case[0], create_project_view((), lambda _: None)) is None
