"""Set up a new program in Python."""

from __future__ import annotations

import json
from fnmatch import fnmatch
from pathlib import PurePosixPath

from redstart.core.run_preferences import ProgramKind
from redstart.toolkit.languages.new_program import PIPELINE, NewProject, ProgramWords, ProjectFiles

_KINDS = {
    ProgramKind.cli_tool: "A tool for the command line. It is started by the function `main` of the module "
    "`{name}.cli`: that takes no arguments, reads `sys.argv` and returns the exit code.",
    ProgramKind.web_app: "An application that answers over HTTP, with `http.server` of the standard library; "
    "`python -m {name}` starts it. Its tests start it on a free port of 127.0.0.1 inside their own process, ask it "
    "over HTTP and stop it again.",
    ProgramKind.data_pipeline: PIPELINE,
    ProgramKind.library: "A library: what it offers can be imported from the package `{name}` itself.",
}
_RULES = (
    "Use pytest. Import the program by its package name. Files are called `tests/test_*.py`; nothing can be imported "
    "besides pytest, the standard library and the program{offers}."
)
_HYPOTHESIS = (
    " Where something holds for all input of a kind, a property with Hypothesis says so better than examples; give it "
    "`@settings(derandomize=True, deadline=None)`."
)
_IGNORED = ("__pycache__/", ".venv/", ".pytest_cache/", ".hypothesis/", "*.egg-info/", "build/", "dist/")


class PythonPrograms:
    runner = "pytest"
    test_folder = "tests"
    test_packages = ("hypothesis",)
    texts = ProgramWords(
        description="It is written in Python, as the package `{name}` in a folder of that name{made_with}.",
        no_packages=", with the standard library alone",
        standard_modules="the standard library",
        kinds=_KINDS,
        starts="; `python -m {name}` starts it",
        test_rules=_RULES,
        offer_rules={"hypothesis": _HYPOTHESIS},
        part_tests="tests/test_{words}",
        test_example="tests/test_name.py",
        runner="pytest",
        imported_module="{name}",
        first_test="tests/test_{name}.py",
        main="{name}/__init__.py",
        fence="python",
    )

    def build_files(self, project: NewProject) -> ProjectFiles:
        name = project.package
        usages = {ProgramKind.cli_tool: f"{project.title} --help", ProgramKind.web_app: f"python -m {name}"}
        return ProjectFiles(
            manifest="pyproject.toml",
            description=_format_pyproject(project),
            ignored=_IGNORED,
            install="pip install .",
            test="pip install '.[test]'\npytest",
            use=(project.kind and usages.get(project.kind)) or f"import {name}",
        )

    def is_test(self, path: str) -> bool:
        return fnmatch(PurePosixPath(path).name, "test_*.py") or path.endswith("_test.py")


def _format_pyproject(project: NewProject) -> str:
    tests = ", ".join(json.dumps(offer) for offer in ("pytest", *project.test_packages))
    lines = [
        "[build-system]",
        'requires = ["setuptools>=61"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[project]",
        f'name = "{project.title}"',
        'version = "0.1.0"',
        # A JSON string is also a TOML string.
        f"description = {json.dumps(project.about)}",
        'readme = "README.md"',
        'requires-python = ">=3.11"',
        "dependencies = []",
        "",
        "[project.optional-dependencies]",
        f"test = [{tests}]",
        "",
    ]
    if project.kind is ProgramKind.cli_tool:
        lines += ["[project.scripts]", f'{project.title} = "{project.package}.cli:main"', ""]
    lines += ["[tool.pytest.ini_options]", 'pythonpath = ["."]', 'testpaths = ["tests"]', ""]
    return "\n".join(lines)
