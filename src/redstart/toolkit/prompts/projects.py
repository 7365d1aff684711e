"""What a question says of a program that is new: its language, its name, its kind, and how tests are written for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from redstart.core.run import RunSpec
from redstart.core.tasks import CreateTask
from redstart.core.wishes import Kind
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts.render import form_of_answer, section

_PIPELINE = (
    "A data pipeline: reading, transforming and writing are functions of their own, and each can be tested on a few "
    "lines of data."
)
_PYTHON_KINDS = {
    Kind.cli_tool: "A tool for the command line. It is started by the function `main` of the module `{name}.cli`: that "
    "takes no arguments, reads `sys.argv` and returns the exit code.",
    Kind.web_app: "An application that answers over HTTP, with `http.server` of the standard library; `python -m "
    "{name}` starts it. Its tests start it on a free port of 127.0.0.1 inside their own process, ask it over HTTP and "
    "stop it again.",
    Kind.data_pipeline: _PIPELINE,
    Kind.library: "A library: what it offers can be imported from the package `{name}` itself.",
}
_NODE_KINDS = {
    Kind.cli_tool: "A tool for the command line. It is started by `src/cli.js`, which begins with the line "
    "`#!/usr/bin/env node`.",
    Kind.web_app: "An application that answers over HTTP, with `node:http`. Its tests start it on a free port of "
    "127.0.0.1 inside their own process, ask it over HTTP and stop it again.",
    Kind.data_pipeline: _PIPELINE,
    Kind.library: "A library: what it offers can be imported from `src/index.js`.",
}
_HTTP = (
    "An application that answers over HTTP{started}. Its tests use the test client of its framework, or start it on a "
    "free port of 127.0.0.1 inside their own process, ask it over HTTP and stop it again."
)
"""A web application where the plan may choose, or has chosen, what it is made with."""
_PYTHON = "It is written in Python, as the package `{name}` in a folder of that name{made_with}."
_NODE = (
    "It is written in JavaScript for Node.js, as ES modules (`import`, not `require`) in the folder `src`{made_with}. "
    "Its main module is `src/index.js`."
)
_ALONE = {False: ", with the standard library alone", True: ", with the modules of Node.js alone"}
_TOGETHER = {False: "the standard library", True: "the modules of Node.js"}
_PYTHON_RULES = (
    "Use pytest. Import the program by its package name. Files are called `tests/test_*.py`; nothing can be imported "
    "besides pytest, the standard library and the program{offers}."
)
_HYPOTHESIS = (
    " Where something holds for all input of a kind, a property with Hypothesis says so better than examples; give it "
    "`@settings(derandomize=True, deadline=None)`."
)
_NODE_RULES = (
    "Use node:test and node:assert/strict, as ES modules. Import the program by its relative path, such as "
    "`../src/index.js`. Files are called `test/*.test.js`; nothing can be imported besides the modules of Node.js and "
    "the program{offers}."
)
_ANSWER = """Answer with one block for each file, without code fences, the SEARCH part empty:

{path}
<<<<<<< SEARCH
=======
the whole file
>>>>>>> REPLACE"""


def project(spec: RunSpec, packages: Sequence[str] = (), *, planned: bool = True) -> str:
    """Language, name and kind of a new program, and the packages it is made with; a plan may still choose those."""
    is_node, kind = spec.suite.is_node, spec.task_of(CreateTask).kind
    made_with = _ALONE[is_node] if planned else ""
    if packages:
        made_with = f", with {_TOGETHER[is_node]} and these packages, which are installed: {', '.join(packages)}"
    words = [(_NODE if is_node else _PYTHON).format(name=spec.repo, made_with=made_with)]
    if kind is Kind.web_app and (packages or not planned):
        words.append(_HTTP.format(started="" if is_node else f"; `python -m {spec.repo}` starts it"))
    elif kind is not None:
        words.append((_NODE_KINDS if is_node else _PYTHON_KINDS)[kind].format(name=spec.repo))
    return section("The project", *words, "Its name:", data("user", spec.repo, 100))


def rules_of_tests(spec: RunSpec, packages: Sequence[str] = ()) -> str:
    """How tests of it are written."""
    offers = spec.task_of(CreateTask).offers
    named = "".join(f", {name}" for name in (*packages, *offers))
    if spec.suite.is_node:
        return _NODE_RULES.format(offers=named)
    return _PYTHON_RULES.format(offers=named) + (_HYPOTHESIS if "hypothesis" in offers else "")


def names_that_are_taken(spec: RunSpec, files: Iterable[str]) -> str:
    """Of a part of a program: what is there already, and how the files of its tests are to be called."""
    if not spec.whole:
        return ""
    words = "_".join(re.findall(r"[a-z0-9]+", spec.goal.casefold()))[:40].strip("_") or f"part_{spec.errand}"
    begins = f"test/{words}" if spec.suite.is_node else f"tests/test_{words}"
    listed = "\n".join(sorted(files))
    told = f"They stay as they are. Begin the name of each new file with `{begins}`: so it is nobody else's."
    return section("Files that are there", data("files", listed, 4000), told)


def answer_with_tests(spec: RunSpec) -> str:
    """The form of the answer that holds them."""
    return _ANSWER.format(path="test/name.test.js" if spec.suite.is_node else "tests/test_name.py")


def brief_answer_with_tests(spec: RunSpec) -> str:
    """The same for a small model, which takes an example at its word and does not find the end of a long list."""
    form = form_of_answer("brief_tests").replace("{language}", _language(spec))
    if spec.suite.is_node:
        named = {"runner": "node:test and node:assert/strict", "main": "../src/index.js", "path": "test/first.test.js"}
    else:
        named = {"runner": "pytest", "main": spec.repo, "path": f"tests/test_{spec.repo}.py"}
    for hole, text in named.items():
        form = form.replace(f"{{{hole}}}", text)
    return form


def brief_answer_with_program(spec: RunSpec) -> str:
    """The form of the answer that holds a small program: one file."""
    path = "src/index.js" if spec.suite.is_node else f"{spec.repo}/__init__.py"
    return form_of_answer("brief_new").replace("{path}", path).replace("{language}", _language(spec))


def _language(spec: RunSpec) -> str:
    return "js" if spec.suite.is_node else "python"
