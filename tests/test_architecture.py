"""The structure of the code: import contracts that really break, short files, and no machine-specific paths."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from redstart.toolkit.languages.registry import list_languages

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "redstart"
MAX_FILE = 600
LONG_FUNCTION = 60

# Files that the planted imports need. Existing modules keep their content; the planted line is appended.
SKELETON = [
    *(f"{layer}/__init__.py" for layer in ("app", "cli", "engines", "flow", "steps")),
    *("app/settings.py", "engines/langgraph.py", "engines/inline.py", "flow/route.py"),
    *("ports/model/providers.py", "ports/model/prices.py", "ports/sql/store.py", "toolkit/suites/reading/junit.py"),
]

# The contract's name, and the file that gets a forbidden line together with that line.
PLANTED = {
    "Imports go one way": ("engines/inline.py", "from redstart.app import settings"),
    "Kits import their base and the languages, not one another, but that the checks of a green run suites": (
        "toolkit/suites/__init__.py",
        "from redstart.toolkit import patching",
    ),
    "Only the registry reaches the package of a language": (
        "steps/patch/__init__.py",
        "from redstart.toolkit.languages.node import runners",
    ),
    "Languages do not import one another": (
        "toolkit/languages/node/__init__.py",
        "from redstart.toolkit.languages.python import pytest",
    ),
    "Steps do not import one another": ("steps/patch/__init__.py", "from redstart.steps import plan"),
    "Ports do not import one another": ("ports/world/port.py", "from redstart.ports.model import port"),
    "Steps, flow and toolkit name no adapter": ("steps/patch/__init__.py", "from redstart.ports.model import prices"),
    "LangGraph only in engines/langgraph.py": ("engines/inline.py", "import langgraph.graph"),
    "Temporal only in engines/temporal": ("app/settings.py", "import temporalio"),
    "Model clients only in ports/model/providers.py": ("ports/model/prices.py", "import pydantic_ai"),
    "SQL only in ports/sql": ("engines/inline.py", "import sqlalchemy"),
    "Neo4j's driver only in ports/memory/neo4j.py": ("ports/memory/hashing.py", "import neo4j"),
    "Prices only in ports/model/prices.py": ("engines/inline.py", "import genai_prices"),
    "JUnit XML only in toolkit/suites/reading/junit.py": ("toolkit/checks/__init__.py", "import junitparser"),
    "The terminal only in cli": ("app/settings.py", "import rich"),
    "Configuration only in app/settings.py": ("cli/__init__.py", "import pydantic_settings"),
}
ALLOWED = {
    "ports/sql/store.py": "import sqlalchemy\nfrom redstart.ports.store import port",
    "ports/model/providers.py": "import pydantic_ai\nfrom redstart.ports.model import port",
    "ports/model/prices.py": "import genai_prices",
    "ports/memory/neo4j.py": "import neo4j",
    "engines/langgraph.py": "import langgraph.graph\nfrom redstart.ports.sql import store",
    "engines/temporal/client.py": "import temporalio",
    "toolkit/suites/reading/junit.py": "import junitparser",
    "toolkit/checks/__init__.py": "from redstart.toolkit.base import tracebacks",
    "app/settings.py": "import pydantic_settings",
    "cli/__init__.py": "import rich, typer",
    "steps/patch/__init__.py": "from redstart.ports.store import port\nfrom redstart.ports import bundle",
}


def copy_tree_with(folder: Path, lines: dict[str, str]) -> Path:
    """Copy the source into the folder and append these lines."""
    package = folder / "src" / "redstart"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "repos"))
    shutil.copy(ROOT / ".importlinter", folder)
    for name in SKELETON:
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    for name, line in lines.items():
        with (package / name).open("a") as file:
            file.write(f"\n{line}\n")
    return folder


def list_broken_contracts(folder: Path) -> list[str]:
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    completed = subprocess.run(
        [sys.executable, "-c", script, "--no-cache", "--no-logo"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "COLUMNS": "200", "NO_COLOR": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = completed.stdout.splitlines()
    assert any(line.startswith("Contracts: ") for line in lines), completed.stdout + completed.stderr
    contracts = [match[1] for line in lines if (match := re.match(r"(.+) BROKEN\b", line))]
    assert completed.returncode == (1 if contracts else 0)
    return contracts


def test_every_contract_has_a_planted_violation() -> None:
    names = re.findall(r"^name = (.+)$", (ROOT / ".importlinter").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(PLANTED)


def test_contracts_hold_and_allow_intended_imports(tmp_path: Path) -> None:
    assert list_broken_contracts(copy_tree_with(tmp_path, ALLOWED)) == []


@pytest.mark.parametrize("name", PLANTED)
def test_planted_import_breaks_exactly_its_contract(name: str, tmp_path: Path) -> None:
    file, line = PLANTED[name]
    assert list_broken_contracts(copy_tree_with(tmp_path, {file: line})) == [name]


def test_base_of_the_kits_imports_no_kit(tmp_path: Path) -> None:
    line = "from redstart.toolkit.suites import junit"
    contracts = list_broken_contracts(copy_tree_with(tmp_path, {"toolkit/base/__init__.py": line}))
    assert contracts == [
        "Kits import their base and the languages, not one another, but that the checks of a green run suites"
    ]


def list_modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if "repos" not in path.parts]


PARTICIPLES = (
    "Advanced Aligned Altered Asked Begun Broken Budgeted Built Changed Climbed Compared Done Drawn "
    "Edited Ended Examined Exported Fitted Forgotten Found Gathered Given Gone Got Handed Happened Heard "
    "Imported Judged Kept Known Made Masked Measured Mined Mirrored Monitored Noticed Offered Opened "
    "Parsed Placed Prepared Pruned Put Raised Ran Reached Read Recalled Reflected Refused Remembered "
    "Resolved Reused Reviewed Said Scrubbed Seen Shown Shrunk Stored Supervised Swept Taken Taped Told "
    "Touched Traced Tried Tripped Used Verified Wanted Watched Weighed Withheld Written "
)
METAPHORS = (
    "Advisor Bets Box Bridge Chance Coin Desk Errand Ground House Lab Lane Noun Play Post Reaper Room "
    "Roster Rung Shelf Site Stage Watchman Wires "
)


def list_own_modules() -> list[Path]:
    """List all modules except those that run inside the sandbox; replays compare the bytes of those."""
    return [path for path in list_modules() if "inside" not in path.parts]


def list_public_classes() -> list[tuple[str, str]]:
    """List every public class of the package with the file that defines it."""
    return [
        (node.name, path.relative_to(SOURCE).as_posix())
        for path in list_own_modules()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_public_class_names_are_unique_and_specific() -> None:
    files: dict[str, list[str]] = {}
    for name, file in list_public_classes():
        files.setdefault(name, []).append(file)
    assert len(files) > 500
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}
    assert sorted(files.keys() & {*PARTICIPLES.split(), *METAPHORS.split()}) == []


def find_vague_loops(source: str) -> list[int]:
    """Find the lines on which a loop variable is called `one`."""
    loops = (ast.For, ast.AsyncFor, ast.comprehension)
    targets = [node.target for node in ast.walk(ast.parse(source)) if isinstance(node, loops)]
    names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return sorted(name.lineno for name in names if name.id == "one")


def test_loop_variables_have_specific_names() -> None:
    paths = [*list_own_modules(), *sorted((ROOT / "tests").rglob("*.py"))]
    loops = {
        path.relative_to(ROOT).as_posix(): find_vague_loops(path.read_text())
        for path in paths
        if "repos" not in path.parts
    }
    assert {path: lines for path, lines in loops.items() if lines} == {}


@pytest.mark.parametrize(
    "line", ["for one in range(3): pass", "found = [one for one in []]", "for number, one in enumerate([]): pass"]
)
def test_vague_loop_variable_is_detected(line: str) -> None:
    assert find_vague_loops(line) == [1]
    assert find_vague_loops("for case in []: one = case") == []


def find_long_functions(source: str) -> list[str]:
    """Find functions whose length a reviewer should see; a long function is not an error."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, functions)]
    lengths = [(node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in nodes]
    return [f"{node.lineno} {node.name}: {length} lines" for node, length in lengths if length >= LONG_FUNCTION]


def test_files_stay_short() -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in list_modules()}
    for name, text in texts.items():
        for function in find_long_functions(text):
            print(f"long function: {name}:{function}")
    assert texts
    assert [name for name, text in texts.items() if len(text.splitlines()) >= MAX_FILE] == []


def test_long_function_is_printed() -> None:
    body = "    pass\n"
    assert find_long_functions(f"def f():\n{body * (LONG_FUNCTION - 2)}") == []
    assert find_long_functions(f"def f():\n{body * (LONG_FUNCTION - 1)}") == ["1 f: 60 lines"]


RUNNERS = {name for language in list_languages() for name in language.runners}
SUFFIXES = {suffix for language in list_languages() for suffix in language.suffixes}


def find_language_checks(source: str) -> list[int]:
    """Find lines that check the language: a literal suffix, a comparison with a runner's name, or `is_node`."""
    lines: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute | ast.Name):
            is_check = (node.attr if isinstance(node, ast.Attribute) else node.id) == "is_node"
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            literals = {
                part.value for operand in operands for part in ast.walk(operand) if isinstance(part, ast.Constant)
            }
            names = [ast.unparse(operand).rpartition(".")[2] for operand in operands]
            is_about_runner = names[0].endswith("runner") and bool(RUNNERS & literals)
            is_check = is_about_runner or any(name.endswith("RUNNERS") or name in ("PYTHON", "NODE") for name in names)
        else:
            is_check = isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in SUFFIXES
        if is_check:
            lines.append(node.lineno)
    return lines


ASKS_LANGUAGE = {
    "core/secret_names.py": "names of files that hold no secrets, whatever the language",
}
"""Files that check the language, each with its reason. Remove a file that no longer does: the list may only shrink."""


def test_only_language_packages_check_the_language() -> None:
    outside = {path.relative_to(SOURCE).as_posix(): path for path in list_modules() if "inside" not in path.parts}
    checking_files = {name for name, path in outside.items() if find_language_checks(path.read_text())}
    checking_files = {name for name in checking_files if not name.startswith("toolkit/languages/")}
    assert sorted(checking_files) == sorted(ASKS_LANGUAGE)
    assert all(ASKS_LANGUAGE.values())


@pytest.mark.parametrize(
    "line",
    [
        'path.endswith(".py")',
        'path.endswith((".js", ".md"))',
        "suite.is_node",
        'suite.runner == "pytest"',
        'suite.runner in ("node", "jest")',
        "runner in NODE_RUNNERS",
        "language == PYTHON",
    ],
)
def test_language_check_is_detected(line: str) -> None:
    assert find_language_checks(line)
    assert find_language_checks('name.endswith(".md") or suite.runner == other') == []


# Each pattern is spelled so that it does not match itself. An example such as `/home/shop` is not a real path. A dot
# folder in a home, this checkout and the home of the user who runs the tests are real.
HERE = [re.escape(str(path).encode()) + rb"\b" for path in (ROOT, Path.home()) if len(path.parts) > 2]
MACHINE = re.compile(
    rb"(?<![\w.~}])(?:"
    + b"|".join(
        [
            *HERE,
            rb"/wor[k]/(?:main|shared|scratch)\b",
            rb"/hom[e]/(?!redstart\b)\w+/\.\w+",
            rb"/User[s]/\w+",
            rb"/roo[t]/(?!\.(?:ssh|aws|netrc)\b)[\w.]+",
            rb"/op[t]/(?:wheels|pypi)",
        ]
    )
    + rb")"
)
REGISTRY = re.compile(
    rb"pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|yarnpkg\.com|(?:deb|security)\.debian\.org|anaconda\.org"
    rb"|crates\.io|proxy\.golang\.org|rubygems\.org|maven\.(?:apache\.)?org|(?:docker|ghcr|quay)\.io|huggingface\.co"
)


def list_repo_files() -> list[Path]:
    """List all files that are or could be committed."""
    completed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = [ROOT / name for name in completed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout to list its files")
@pytest.mark.parametrize("pattern", [MACHINE, REGISTRY], ids=["path_of_a_machine", "registry_host"])
def test_repo_contains_no_machine_path_or_registry_host(pattern: re.Pattern[bytes]) -> None:
    files = list_repo_files()
    hits = [
        f"{path.relative_to(ROOT)}: {match.group().decode()}"
        for path in files
        for match in pattern.finditer(path.read_bytes())
    ]
    assert Path(__file__) in files
    assert hits == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (MACHINE, "path = '/wor" + "k/shared/x.py'"),
        (MACHINE, "(/hom" + "e/ann/.local/bin)"),
        (MACHINE, '"/roo' + 't/.pyenv/bin"'),
        (REGISTRY, "--index-url https://pyp" + "i.org/simple"),
    ],
)
def test_machine_path_or_registry_host_is_detected(pattern: re.Pattern[bytes], text: str) -> None:
    assert pattern.search(text.encode())


def lock_names(text: str) -> set[str]:
    return {match.lower() for match in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}


@pytest.mark.parametrize("name", ["base.txt", "fleet.txt", "neo4j.txt", "dev.txt", "tools.txt"])
def test_locks_have_hashes_and_name_no_source(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    pins = re.split(r"\n(?=\S)", text.replace("\\\n", " "))
    lines = [pin for pin in pins if not pin.startswith("#")]
    assert len(lines) >= 2
    assert [line for line in lines if not re.match(r"[\w.-]+==\S+( ; [^@]+?)?\s+--hash=sha256:", line)] == []
    assert re.findall(r"://|file:|--find-links|--(?:extra-)?index-url|(?<![\w.])/\w+/", text) == []


def test_locks_contain_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    base = lock_names((ROOT / "requirements" / "base.txt").read_text())
    dev = lock_names((ROOT / "requirements" / "dev.txt").read_text())

    def parse_names(requirements: list[str]) -> set[str]:
        return {re.split(r"[^\w.-]", item, maxsplit=1)[0].lower() for item in requirements}

    assert parse_names(project["project"]["dependencies"]) <= base
    assert parse_names(project["dependency-groups"]["dev"]) | base <= dev


MODE_WORDS = {"fix", "create", "improve", "audit"}
TELLS_MODES_APART = {"core/run.py", "core/tasks.py"}
"""The spec itself. All other code below `app` uses a table by mode or asks the task."""


def find_mode_checks(source: str) -> list[int]:
    """Find lines that check the mode of a run: a comparison with a mode, or the type of its task."""

    def is_mode(node: ast.AST) -> bool:
        if isinstance(node, ast.Tuple | ast.Set | ast.List):
            return any(map(is_mode, node.elts))
        return bool(re.fullmatch(r"(.+\.)?Mode\.\w+(\.value)?", ast.unparse(node)))

    lines: list[int] = []
    for node in ast.walk(ast.parse(source)):
        checked: list[ast.AST] | list[str] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            names_mode = any(re.search(r"\bmode\b", ast.unparse(operand)) for operand in operands)
            has_mode_word = any(
                isinstance(operand, ast.Constant) and operand.value in MODE_WORDS for operand in operands
            )
            checked = operands if any(map(is_mode, operands)) or (names_mode and has_mode_word) else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            checked = re.findall(r"\b(?:Fix|Create|Improve|Audit)Task\b", ast.unparse(node.args[1]))
        elif isinstance(node, ast.MatchValue | ast.MatchClass):
            checked = re.findall(r"\bMode\.\w+|\b(?:Fix|Create|Improve|Audit)Task\b", ast.unparse(node))
        lines += [node.lineno] if checked else []
    return lines


def test_modes_are_distinguished_in_tables() -> None:
    layers = ("core", "ports", "toolkit", "steps", "flow", "engines")
    files = {path.relative_to(SOURCE).as_posix(): path for layer in layers for path in (SOURCE / layer).rglob("*.py")}
    hits = {name: lines for name, path in files.items() if (lines := find_mode_checks(path.read_text()))}
    assert set(hits) == TELLS_MODES_APART & set(hits), hits
    assert "core/run.py" in hits


@pytest.mark.parametrize(
    "line",
    [
        "if run.spec.mode is Mode.create: ...",
        "grows = spec.mode is not Mode.fix and draft",
        "found = state.spec.mode in (Mode.create, Mode.improve)",
        'is_new = run.spec.mode == "create"',
        "is_new = isinstance(run.spec.task, CreateTask)",
        "match mode:\n    case Mode.audit: ...",
        "match task:\n    case tasks.FixTask(): ...",
    ],
)
def test_mode_check_is_detected(line: str) -> None:
    assert find_mode_checks(line)
    assert not find_mode_checks(
        "STEPS = {Mode.fix: fix.plan}\ntask = run.spec.task_of(CreateTask)\nErrand(mode=Mode.create)"
    )


def find_handwritten_figures(source: str) -> list[int]:
    """Find the lines of dictionaries that spell out a figure or a bench."""
    lines: list[int] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            lines += [node.lineno] if {"name", "value"} <= keys or "bench" in keys else []
    return lines


def test_every_bench_prints_its_figures_the_same_way() -> None:
    assert find_handwritten_figures('print({"bench": "x", "right": 48})\n[{"name": "n", "value": 1}]') == [1, 2]
    files = sorted((ROOT / "bench").rglob("*.py"))
    handwritten = [(file.name, line) for file in files for line in find_handwritten_figures(file.read_text())]
    assert {name for name, _ in handwritten} == {"_figures.py"}, handwritten
    scripts = {file.name: file.read_text() for file in (ROOT / "bench").glob("*.py") if not file.name.startswith("_")}
    assert [name for name, text in scripts.items() if '"--quick"' in text and "print_figures(" not in text] == []


SCREEN = "output.py"
"""The module of `cli` that prints everything: it filters terminal control sequences."""
WRITERS = re.compile(
    r"(typer|click)\.(echo|secho|echo_via_pager|confirm|prompt|style)|print|input|os\.write"
    r"|sys\.(__)?std(out|err)(__)?\.(write|writelines|buffer)|.*\b_?console\.(print|out|input|log)"
)
MADE_THERE = ("Console", "Text", "Panel", "Table", "Markdown", "Syntax", "Prompt", "Confirm")
"""Classes of rich that take a text. Only calls count, since type annotations may name them anywhere."""


def find_bypasses(source: str) -> list[str]:
    """Find expressions in the source of a command that write to the terminal, or prompt on it, past that module."""
    expressions: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute | ast.Name) and WRITERS.fullmatch(spelled := ast.unparse(node)):
            expressions.append(spelled)
        elif isinstance(node, ast.Call) and (created := ast.unparse(node.func).rpartition(".")[2]) in MADE_THERE:
            expressions.append(created)
        elif isinstance(node, ast.ImportFrom) and node.module in ("typer", "click"):
            expressions += [name for alias in node.names if WRITERS.fullmatch(name := f"{node.module}.{alias.name}")]
    return expressions


def test_commands_print_through_one_filter() -> None:
    bypassing_files = {
        path.name: found_bypasses
        for path in (SOURCE / "cli").glob("*.py")
        if (found_bypasses := find_bypasses(path.read_text()))
    }
    assert bypassing_files.pop(SCREEN)
    assert bypassing_files == {"display.py": ["self._console.print"]}  # `style_line` makes the text that it prints


@pytest.mark.parametrize(
    "line",
    [
        "typer.echo(x)",
        "call(typer.echo)",
        "click.secho(x)",
        "print(x)",
        "sys.stdout.write(x)",
        "sys.stderr.buffer.write(x)",
        "from typer import echo",
        "typer.confirm(x)",
        "input(x)",
        "rich.console.Console().print(x)",
        "Text(x)",
        "self._console.print(x)",
    ],
)
def test_line_that_bypasses_the_filter_is_detected(line: str) -> None:
    assert find_bypasses(line)
