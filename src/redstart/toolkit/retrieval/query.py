"""What the failing tests ask about."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.base.code_files import PYTHON
from redstart.toolkit.languages.node.trees import is_script
from redstart.toolkit.retrieval.modules import Modules, script_of
from redstart.toolkit.retrieval.scripts import read_test
from redstart.toolkit.retrieval.sources import Sources

MAX_WORDS = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef

_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_IDLE = frozenset(
    """
    self cls args kwargs name value data result expected actual path text key
    pytest unittest mock raises mark parametrize fixture monkeypatch tmp_path capsys
    assertEqual assertTrue assertFalse assertRaises assertIn TestCase setUp tearDown
    append join split get items keys values update strip startswith endswith
    the this that where should when has object attribute are was
    """.split()  # noqa: SIM905  a list of sixty strings is no easier to read
).union(dir(builtins), keyword.kwlist, keyword.softkwlist)
"""Words that nearly every test and every message has."""


class Place(NamedTuple):
    path: str
    start: int
    end: int


class Query(NamedTuple):
    words: list[str]
    """Identifiers to look for, the most telling first."""
    imports: list[str]
    """Files that the failing tests import from."""
    tests: list[Place]
    """The failing test functions, in the order of the cases."""
    helpers: list[Place]
    """What they use of their own files."""


def ask(cases: Sequence[Case], goal: str, tests: Sequence[str], sources: Sources) -> Query:
    """Reads the failing tests: what they call, import and complain of is what the search is for."""
    modules = Modules(sources) if cases else None
    told: dict[str, None] = {}
    used: dict[str, None] = {}
    imports: dict[str, None] = {}
    places: dict[Place, None] = {}
    helpers: dict[Place, None] = {}
    bindings: dict[str, dict[str, str]] = {}
    for case in cases:
        told |= dict.fromkeys(_IDENTIFIER.findall(case.message))
        path, names = locate(case.id, tests)
        tree = sources.tree(path)
        if tree is None or modules is None:
            if script := read_test(path, sources.data(path), names):
                places[Place(path, script.start, script.end)] = None
                meant = {word: script_of(one, path, sources.files) for word, one in script.imports.items()}
                imports |= dict.fromkeys(one for one in meant.values() if one)
                used |= dict.fromkeys(sorted(script.words, key=lambda word: not meant.get(word)))
            elif sources.lines(path):
                places[Place(path, 1, len(sources.lines(path)))] = None
            continue
        nodes = _chain(tree, names)
        subject = nodes[-1] if nodes else tree
        places[_place(path, subject, sources)] = None
        around = _helpers(tree, nodes)
        helpers |= dict.fromkeys(_place(path, node, sources) for node in around)
        words = [word for node in (subject, *around) for word in _words(node)]
        if path not in bindings:
            bindings[path] = _imported(tree, path, modules)
        bound = bindings[path]
        imports |= dict.fromkeys(bound[word] for word in (words if nodes else bound) if word in bound)
        used |= dict.fromkeys(sorted(words, key=lambda word: word not in bound))
    wanted = {**told, **used, **dict.fromkeys(_IDENTIFIER.findall(goal))}
    words = [word for word in wanted if len(word) > 2 and word not in _IDLE and not word.startswith("__")]
    alone = [place for place in helpers if place not in places]
    return Query(words[:MAX_WORDS], list(imports), list(places), alone)


def locate(test_id: str, tests: Sequence[str]) -> tuple[str, list[str]]:
    """The file of a test id and the names inside it: `a/test_b.py::C::test_d[1]` or `a.test_b.C.test_d`."""
    bare = test_id.partition("[")[0]
    path, *names = bare.split("::")
    if is_script(path):
        return path, [name for one in test_id.split("::")[1:] for name in one.split(" > ")]
    if path.endswith(PYTHON):
        return path, names
    dotted = bare.replace("::", ".")
    for known in sorted(tests, key=lambda one: (-len(one), one)):
        module = known.removesuffix(PYTHON).replace("/", ".")
        while module:
            if dotted == module or dotted.startswith(module + "."):
                return known, [name for name in dotted[len(module) + 1 :].split(".") if name]
            module = module.partition(".")[2]
    return "", []


def _chain(tree: ast.Module, names: Sequence[str]) -> list[Function | ast.ClassDef]:
    """The nodes of `C`, `test_d`: as far as they are there."""
    found: list[Function | ast.ClassDef] = []
    body: list[ast.stmt] = tree.body
    for name in names:
        node = next((one for one in _defined(body) if one.name == name), None)
        if node is None:
            break
        found.append(node)
        body = node.body
    return found


def _defined(body: Iterable[ast.stmt]) -> Iterable[Function | ast.ClassDef]:
    return (node for node in body if isinstance(node, Function | ast.ClassDef))


def _helpers(tree: ast.Module, nodes: Sequence[Function | ast.ClassDef]) -> list[Function | ast.ClassDef]:
    """Fixtures, helpers and set-up methods of the same file that the test function uses."""
    if not nodes:
        return []
    names = set(_words(nodes[-1])) | {"setUp", "setup_method"}
    scopes: list[list[ast.stmt]] = [tree.body, *(node.body for node in nodes[:-1])]
    return [node for body in scopes for node in _defined(body) if node.name in names and node not in nodes]


def _words(node: ast.AST) -> list[str]:
    """Names in the order of the text: called, read, given as keyword or as a string that is a name."""
    own: set[str] = set()
    found: dict[str, None] = {}
    for one in ast.walk(node):
        match one:
            case ast.Name(id=name, ctx=ast.Load()):
                found[name] = None
            case ast.Name(id=name):
                own.add(name)
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
                found[name] = None
            case ast.Constant(value=str(text)) if len(text) < 60 and text.isidentifier():
                found[text] = None
            case _:
                pass
    return [name for name in found if name not in own]


def _imported(tree: ast.Module, path: str, modules: Modules) -> dict[str, str]:
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= modules.imported(node, path)
    return bound


def _place(path: str, node: Function | ast.ClassDef | ast.Module, sources: Sources) -> Place:
    if isinstance(node, ast.Module):
        return Place(path, 1, max(len(sources.lines(path)), 1))
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    return Place(path, first, node.end_lineno or node.lineno)
