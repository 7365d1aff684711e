"""A new program in JavaScript for Node.js."""

from __future__ import annotations

import json

from redstart.core.run_preferences import ProgramKind
from redstart.toolkit.languages.new_program import PIPELINE, NewProject, ProgramWords, ProjectFiles
from redstart.toolkit.languages.node.detect import is_node_test

_DESCRIPTION = (
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
    test_packages = ()
    texts = ProgramWords(
        description=_DESCRIPTION,
        no_packages=", with the modules of Node.js alone",
        standard_modules="the modules of Node.js",
        kinds=_KINDS,
        starts="",
        test_rules=_RULES,
        offer_rules={},
        part_tests="test/{words}",
        test_example="test/name.test.js",
        runner="node:test and node:assert/strict",
        imported_module="../src/index.js",
        first_test="test/first.test.js",
        main="src/index.js",
        fence="js",
    )

    def build_files(self, project: NewProject) -> ProjectFiles:
        usages = {ProgramKind.cli_tool: f"npx {project.title} --help", ProgramKind.web_app: "node src/index.js"}
        import_line = f'import * as {project.package} from "{project.title}";'
        return ProjectFiles(
            manifest="package.json",
            description=_format_package_json(project),
            ignored=("node_modules/", "coverage/", "*.log"),
            install="npm install",
            test="npm test",
            use=(project.kind and usages.get(project.kind)) or import_line,
        )

    def is_test(self, path: str) -> bool:
        return is_node_test(path)


def _format_package_json(project: NewProject) -> str:
    manifest: dict[str, object] = {
        "name": project.title.strip("-"),
        "version": "0.1.0",
        "description": project.about,
        "type": "module",
        "main": "src/index.js",
    }
    if project.kind is ProgramKind.cli_tool:
        manifest["bin"] = "src/cli.js"
    manifest |= {"scripts": {"test": "node --test"}, "engines": {"node": ">=18"}}
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
