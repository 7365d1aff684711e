"""What a new project holds before its program: how it is called, installed, started and tested."""

from __future__ import annotations

import json
import re
from textwrap import shorten
from typing import NamedTuple

from redstart.core.wishes import Kind

ABOUT = 200
LONGEST_NAME = 40
"""Letters of a directory that is named after a goal."""
_NO_NAME = frozenset({"a", "an", "the", "please", "create", "make", "write", "build", "implement", "develop"})
"""Words at the beginning of a goal that name nothing."""
_NO_END = frozenset({"a", "an", "the", "and", "or", "that", "which", "to", "of", "in", "into", "for", "from", "with"})
"""Words that no name ends with."""
_PYTHON_IGNORED = ("__pycache__/", ".venv/", ".pytest_cache/", ".hypothesis/", "*.egg-info/", "build/", "dist/")
_NODE_IGNORED = ("node_modules/", "coverage/", "*.log")


class Ground(NamedTuple):
    """What is known of a new project."""

    package: str
    goal: str
    kind: Kind | None = None
    node: bool = False
    offers: tuple[str, ...] = ()
    """Packages besides the runner's that its tests may import."""


def package_name(folder: str) -> str:
    """A name that can be imported, from the name of a folder."""
    name = re.sub(r"\W+", "_", folder.lower()).strip("_")
    return name if name.isidentifier() else f"p_{name}"


def folder_name(goal: str) -> str:
    """A directory name from the first words of a goal: `word-counter` for `Write a word counter`."""
    words = re.findall(r"[a-z0-9]+", goal.casefold())
    while len(words) > 1 and words[0] in _NO_NAME:
        del words[0]
    while len("-".join(words)) > LONGEST_NAME and len(words) > 1:
        words.pop()
    while len(words) > 1 and words[-1] in _NO_END:
        words.pop()
    return "-".join(words)[:LONGEST_NAME] or "new-program"


def skeleton(package: str, goal: str) -> dict[str, bytes | None]:
    """The files of a project in Python of which nothing more is known."""
    return files_of(Ground(package, goal))


def files_of(ground: Ground) -> dict[str, bytes | None]:
    """By path. The same project is described alike each time."""
    ignored = _NODE_IGNORED if ground.node else _PYTHON_IGNORED
    described = ("package.json", _package_json(ground)) if ground.node else ("pyproject.toml", _pyproject(ground))
    return {
        described[0]: described[1].encode(),
        "README.md": _readme(ground).encode(),
        ".gitignore": "".join(f"{one}\n" for one in ignored).encode(),
    }


def _title(ground: Ground) -> str:
    return ground.package.replace("_", "-")


def _about(ground: Ground) -> str:
    return shorten(ground.goal, ABOUT, placeholder=" ...")


def _pyproject(ground: Ground) -> str:
    tests = ", ".join(json.dumps(one) for one in ("pytest", *ground.offers))
    lines = [
        "[build-system]",
        'requires = ["setuptools>=61"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[project]",
        f'name = "{_title(ground)}"',
        'version = "0.1.0"',
        # A text in JSON is one in TOML.
        f"description = {json.dumps(_about(ground))}",
        'readme = "README.md"',
        'requires-python = ">=3.11"',
        "dependencies = []",
        "",
        "[project.optional-dependencies]",
        f"test = [{tests}]",
        "",
    ]
    if ground.kind is Kind.cli_tool:
        lines += ["[project.scripts]", f'{_title(ground)} = "{ground.package}.cli:main"', ""]
    lines += ["[tool.pytest.ini_options]", 'pythonpath = ["."]', 'testpaths = ["tests"]', ""]
    return "\n".join(lines)


def _package_json(ground: Ground) -> str:
    described: dict[str, object] = {
        "name": _title(ground).strip("-"),
        "version": "0.1.0",
        "description": _about(ground),
        "type": "module",
        "main": "src/index.js",
    }
    if ground.kind is Kind.cli_tool:
        described["bin"] = "src/cli.js"
    described |= {"scripts": {"test": "node --test"}, "engines": {"node": ">=18"}}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _readme(ground: Ground) -> str:
    install, test = ("npm install", "npm test") if ground.node else ("pip install .", "pip install '.[test]'\npytest")
    parts = (f"# {ground.package}", ground.goal.strip(), _code("Install", install), _use(ground), _code("Test", test))
    return "\n\n".join(parts) + "\n"


def _use(ground: Ground) -> str:
    title, package = _title(ground), ground.package
    ways = {
        Kind.cli_tool: f"npx {title} --help" if ground.node else f"{title} --help",
        Kind.web_app: "node src/index.js" if ground.node else f"python -m {package}",
    }
    imported = f'import * as {package} from "{title}";' if ground.node else f"import {package}"
    return _code("Use", ways.get(ground.kind, imported) if ground.kind else imported)


def _code(title: str, text: str) -> str:
    return f"## {title}\n\n```\n{text}\n```"
