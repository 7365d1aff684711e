"""A new program in JavaScript for Node.js."""

from __future__ import annotations

import json

from redstart.core.wishes import ProgramKind
from redstart.toolkit.languages.new_program import PIPELINE, NewProject, ProgramWords, ProjectFiles
from redstart.toolkit.languages.node.detect import is_node_test

_ABOUT = (
    "It is written in JavaScript for Node.js, as ES modules (`import`, not `require`) in the folder `src`{made_with}. "
    "Its main module is `src/index.js`."
)
_KINDS = {
    ProgramKind.cli_tool: "A tool for the command line. It is started by `src/cli.js`, which begins with the line "
    "`#!/usr/bin/env node`.",
    ProgramKind.web_app: "An application that answers over HTTP, with `node:http`. Its tests start it on a free port "
    "of 127.0.0.1 inside their own process, ask it over HTTP and stop it again.",
    ProgramKind.data_pipeline: PIPELINE,
    ProgramKind.library: "A library: what it offers can be imported from `src/index.js`.",
}
_RULES = (
    "Use node:test and node:assert/strict, as ES modules. Import the program by its relative path, such as "
    "`../src/index.js`. Files are called `test/*.test.js`; nothing can be imported besides the modules of Node.js and "
    "the program{offers}."
)


class NodePrograms:
    runner = "node"
    test_folder = "test"
    offers = ()
    words = ProgramWords(
        about=_ABOUT,
        alone=", with the modules of Node.js alone",
        together="the modules of Node.js",
        kinds=_KINDS,
        starts="",
        test_rules=_RULES,
        offer_rules={},
        part_tests="test/{words}",
        test_example="test/name.test.js",
        runner="node:test and node:assert/strict",
        imported="../src/index.js",
        first_test="test/first.test.js",
        main="src/index.js",
        fence="js",
    )

    def files(self, project: NewProject) -> ProjectFiles:
        ways = {ProgramKind.cli_tool: f"npx {project.title} --help", ProgramKind.web_app: "node src/index.js"}
        imported = f'import * as {project.package} from "{project.title}";'
        return ProjectFiles(
            manifest="package.json",
            description=_package_json(project),
            ignored=("node_modules/", "coverage/", "*.log"),
            install="npm install",
            test="npm test",
            use=(project.kind and ways.get(project.kind)) or imported,
        )

    def is_test(self, path: str) -> bool:
        return is_node_test(path)


def _package_json(project: NewProject) -> str:
    described: dict[str, object] = {
        "name": project.title.strip("-"),
        "version": "0.1.0",
        "description": project.about,
        "type": "module",
        "main": "src/index.js",
    }
    if project.kind is ProgramKind.cli_tool:
        described["bin"] = "src/cli.js"
    described |= {"scripts": {"test": "node --test"}, "engines": {"node": ">=18"}}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
