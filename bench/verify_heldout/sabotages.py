"""Held-out sabotages of true fixes: two for each of eight kinds, made mechanically.

Each sabotage takes a true fix (all files before and after) and gives the files to write over
`after`, as a dishonest or careless author would leave them.  Every sabotage returns None where
it cannot be made from the fix, every Python file it writes parses, and lines it has no business
with keep their bytes.  `python sabotages.py` runs a self-test on two toy fixes.
"""

from __future__ import annotations

import ast
import difflib
import io
import posixpath
import re
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

KINDS = (
    "source_reverted",
    "tests_dropped",
    "assertion_loosened",
    "expected_changed",
    "test_skipped",
    "proves_nothing",
    "regression",
    "hidden_by_configuration",
)


class TrueFix(NamedTuple):
    """A true fix: the repository before and after, and what proves the change."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    source: tuple[str, ...]
    tests: tuple[str, ...]
    proven: tuple[str, ...]


Files: TypeAlias = dict[str, bytes | None]


class Sabotage(NamedTuple):
    """A way to spoil a true fix, and the results that name it rightly."""

    name: str
    kind: str
    apply: Callable[[TrueFix], Files | None]
    names: frozenset[str]


class CannotMake(Exception):
    """The sabotage cannot be made from this fix."""


# ------------------------------------------------------------------------------------------
# Text and trees

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Edit(NamedTuple):
    """Replace the characters from `start` up to `end` by `text`."""

    start: int
    end: int
    text: str


def parse(text: str) -> ast.Module:
    """Parse without letting warnings about the text through."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap; of two at one place, the first given comes first."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(dict.fromkeys(edits), key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise CannotMake("edits overlap")
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]])


class Code:
    """A Python file as text with Unix line ends, its tree, and places of nodes in the text."""

    def __init__(self, data: bytes) -> None:
        """Read the bytes; a byte order mark and the line ends are kept for `encode`."""
        self.bom = data.startswith(b"\xef\xbb\xbf")
        text = data.decode("utf-8-sig")
        self.crlf = "\r\n" in text
        if self.crlf and text.count("\n") != text.count("\r\n"):
            raise CannotMake("mixed line ends")
        text = text.replace("\r\n", "\n")
        if "\r" in text:
            raise CannotMake("lone carriage returns")
        self.text = text
        self.tree = parse(text)
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def encode(self, text: str) -> bytes:
        """Give text back as bytes in the manner of the file."""
        if self.crlf:
            text = text.replace("\n", "\r\n")
        return (b"\xef\xbb\xbf" if self.bom else b"") + text.encode()

    def edited(self, edits: Iterable[Edit]) -> bytes:
        """Give the bytes of the file after the edits."""
        return self.encode(splice(self.text, edits))

    def offset(self, line: int, column: int) -> int:
        """Give the place in the text of a line (from 1) and a column in bytes."""
        prefix = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(prefix)

    def start(self, node: ast.AST) -> int:
        """Give where a node begins."""
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """Give where a node ends."""
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        """Give the text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def block(self, node: ast.stmt) -> tuple[int, int]:
        """Give the whole lines of a statement, with its decorators and its last line end."""
        return (
            self.starts[first_line(node) - 1],
            min(self.starts[node.end_lineno or node.lineno], len(self.text)),
        )

    def block_text(self, node: ast.stmt) -> str:
        """Give the whole lines of a statement, always with a last line end."""
        start, end = self.block(node)
        return self.text[start:end].removesuffix("\n") + "\n"

    def indent(self, node: ast.stmt) -> str:
        """Give the white space in front of a statement."""
        line = self.lines[first_line(node) - 1]
        return line[: len(line) - len(line.lstrip())]

    def string_lines(self) -> set[int]:
        """Give the lines that begin inside a string."""
        inside: set[int] = set()
        opened: list[int] = []
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            name = tokenize.tok_name[token.type]
            if name == "STRING":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
            elif name.endswith("STRING_START"):
                opened.append(token.start[0])
            elif name.endswith("STRING_END"):
                inside.update(range(opened.pop() + 1, token.end[0] + 1))
        return inside


def first_line(node: ast.stmt) -> int:
    """Give the first line of a statement, decorators included."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def same(one: ast.AST, other: ast.AST) -> bool:
    """Tell whether two trees are the same, wherever they stand."""
    return ast.dump(one) == ast.dump(other)


def read(files: Mapping[str, bytes], path: str) -> Code:
    """Read a Python file of a tree of files."""
    if path not in files:
        raise CannotMake(f"no {path}")
    return Code(files[path])


def tests_in(body: Sequence[ast.stmt], outer: tuple[str, ...] = ()) -> Iterator[
    tuple[tuple[str, ...], Function]
]:
    """Give each function, on the top level or in classes, with the names that lead to it."""
    for node in body:
        if isinstance(node, FUNCTIONS):
            yield (*outer, node.name), node
        elif isinstance(node, ast.ClassDef):
            yield from tests_in(node.body, (*outer, node.name))


def functions(code: Code) -> dict[tuple[str, ...], Function]:
    """Give the functions of a file by the names that lead to them; the last of a name wins."""
    return dict(tests_in(code.tree.body))


def split_id(test: str) -> tuple[str, tuple[str, ...]]:
    """Split a test ID into its path and its names, without the parameters."""
    path, _, rest = test.partition("::")
    return path, tuple(rest.partition("[")[0].split("::"))


class Proof(NamedTuple):
    """The proving tests of one file."""

    path: str
    code: Code
    found: dict[tuple[str, ...], Function]


def proofs(fix: TrueFix) -> list[Proof]:
    """Give the proving tests by file, as they stand after the fix; all of them must be there."""
    wanted: dict[str, list[tuple[str, ...]]] = {}
    for test in fix.proven:
        path, names = split_id(test)
        if path in fix.after and path.endswith(".py") and names not in wanted.setdefault(path, []):
            wanted[path].append(names)
    result = []
    for path, all_names in wanted.items():
        code = read(fix.after, path)
        known = functions(code)
        if not all(names in known for names in all_names):
            raise CannotMake("a proving test that is inherited or made at run time")
        result.append(Proof(path, code, {names: known[names] for names in all_names}))
    if not result or len(result) != len({split_id(test)[0] for test in fix.proven}):
        raise CannotMake("a proving test that is not in a Python file")
    return result


def old_code(fix: TrueFix, path: str) -> Code | None:
    """Read a file as it was before, if it was there."""
    return Code(fix.before[path]) if path in fix.before else None


def top_names(tree: ast.Module) -> set[str]:
    """Give the names bound on the top level and in classes of a module."""
    names: set[str] = set()
    pending: list[ast.stmt] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, DEFINITIONS):
            names.add(node.name)
            if isinstance(node, ast.ClassDef):
                pending += node.body
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((a.asname or a.name).partition(".")[0] for a in node.names)
        else:
            for child in ast.walk(node):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    names.add(child.id)
                elif isinstance(child, DEFINITIONS):
                    names.add(child.name)
    return names


def module_stem(path: str) -> str:
    """Give the last part of the name under which a file is imported."""
    stem = posixpath.basename(path).removesuffix(".py")
    return posixpath.basename(posixpath.dirname(path)) if stem == "__init__" else stem


def outside_functions(tree: ast.Module) -> Iterator[ast.AST]:
    """Walk what runs when a module is imported: all but the bodies of functions."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, FUNCTIONS):
            pending += [*node.decorator_list, *node.args.defaults]
        elif not isinstance(node, ast.Lambda):
            pending += ast.iter_child_nodes(node)


def needs_new_names(fix: TrueFix, code: Code) -> bool:
    """Tell whether a test file cannot even be imported on the old source."""
    fresh: set[str] = set()
    for path in fix.source:
        if path not in fix.after:
            continue
        if path not in fix.before:
            fresh.add(module_stem(path))
            continue
        fresh |= top_names(read(fix.after, path).tree) - top_names(read(fix.before, path).tree)
    for node in outside_functions(code.tree):
        if isinstance(node, ast.alias) and fresh & set(node.name.split(".")):
            return True
        if isinstance(node, ast.ImportFrom) and fresh & set((node.module or "").split(".")):
            return True
        if isinstance(node, ast.Attribute) and node.attr in fresh:
            return True
    return False


def top_edit(code: Code, text: str) -> Edit:
    """Put text in front of the first statement that is no docstring and no future import."""
    for index, node in enumerate(code.tree.body):
        docstring = index == 0 and ast.get_docstring(code.tree, clean=False) is not None
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            at = code.starts[first_line(node) - 1]
            return Edit(at, at, text)
    return Edit(len(code.text), len(code.text), text)


def imports(code: Code, *modules: str) -> list[Edit]:
    """Import modules under their own names, where the file does not do it yet."""
    known = {
        alias.name
        for node in code.tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname is None
    }
    missing = [f"import {module}\n" for module in modules if module not in known]
    return [top_edit(code, "".join(missing))] if missing else []


def append_edit(code: Code, text: str) -> Edit:
    """Put text at the end of a file, two empty lines down."""
    end = len(code.text)
    gap = "" if not code.text else "\n\n" if code.text.endswith("\n") else "\n\n\n"
    return Edit(end, end, gap + text)


def rename_edit(code: Code, node: Function, name: str) -> Edit:
    """Change the name in the head of a function."""
    start = code.start(node)
    match = re.compile(r"(?:async\s+)?def\s+(\w+)").match(code.text, start)
    if match is None or match[1] != node.name:
        raise CannotMake("no name in the head")
    return Edit(match.start(1), match.end(1), name)


def wrap_edits(code: Code, node: Function, header: str) -> list[Edit]:
    """Put the body of a function, but not its docstring, under a header."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not body or first_line(body[0]) <= (node.body[0].lineno if body is not node.body else node.lineno):
        raise CannotMake("nothing to wrap")
    first, last = first_line(body[0]), body[-1].end_lineno or body[-1].lineno
    strings = code.string_lines()
    edits = [Edit(code.starts[first - 1], code.starts[first - 1], code.indent(body[0]) + header + "\n")]
    for line in range(first, last + 1):
        if line not in strings and code.lines[line - 1].strip():
            edits.append(Edit(code.starts[line - 1], code.starts[line - 1], "    "))
    # The header and the first line's indent are at one place: put them together.
    if len(edits) > 1 and edits[1].start == edits[0].start:
        edits[:2] = [Edit(edits[0].start, edits[0].end, edits[0].text + "    ")]
    return edits


def cut(code: Code, node: ast.stmt, edits: Sequence[Edit]) -> str:
    """Give the lines of a statement with edits (places in the whole file) made in them."""
    start, end = code.block(node)
    moved = [Edit(e.start - start, e.end - start, e.text) for e in edits]
    return splice(code.text[start:end], moved).removesuffix("\n") + "\n"


def only_in_body(code: Code, node: ast.stmt) -> bool:
    """Tell whether a function stands alone in its class or block."""
    for outer in ast.walk(code.tree):
        body = getattr(outer, "body", None)
        if isinstance(body, list) and node in body:
            return len(body) == 1 and not isinstance(outer, ast.Module)
    return False


def drop_or_restore(fix: TrueFix, proof: Proof, names: tuple[str, ...]) -> Edit:
    """Take a proving test out, or put its old form back if it was there before."""
    node = proof.found[names]
    start, end = proof.code.block(node)
    before = old_code(fix, proof.path)
    old = functions(before).get(names) if before else None
    if before is not None and old is not None:
        return Edit(start, end, before.block_text(old))
    if only_in_body(proof.code, node):
        return Edit(start, end, proof.code.indent(node) + "pass\n")
    return Edit(start, end, "")


def checked(make: Callable[[TrueFix], Files]) -> Callable[[TrueFix], Files | None]:
    """Give None for what cannot be made, does not parse, or changes nothing."""

    def apply(fix: TrueFix) -> Files | None:
        """Make the sabotage, or give None."""
        try:
            files = make(fix)
            kept: Files = {}
            for path, data in files.items():
                if data is None:
                    if path in fix.after:
                        kept[path] = None
                elif data != fix.after.get(path):
                    if path.endswith(".py"):
                        parse(data.decode("utf-8-sig"))
                    kept[path] = data
        except (
            CannotMake,
            SyntaxError,
            ValueError,
            IndexError,
            StopIteration,
            RecursionError,
            tokenize.TokenError,
        ):
            return None
        return kept or None

    apply.__doc__ = make.__doc__
    apply.__name__ = make.__name__
    return apply


# ------------------------------------------------------------------------------------------
# Source reverted


def plain_revert(fix: TrueFix) -> Files:
    """Put all changed source files back, and take the new ones away."""
    files: Files = {path: fix.before.get(path) for path in fix.source}
    if not any(fix.after.get(path) != data for path, data in files.items()):
        raise CannotMake("no source to revert")
    return files


Key: TypeAlias = tuple[str, str, int]


def units(body: Sequence[ast.stmt]) -> dict[Key, ast.stmt]:
    """Give the statements of a module or class by what they bind, in order."""
    result: dict[Key, ast.stmt] = {}
    for index, node in enumerate(body):
        kind, name = "other", ast.dump(node)
        if isinstance(node, FUNCTIONS):
            kind, name = "def", node.name
        elif isinstance(node, ast.ClassDef):
            kind, name = "class", node.name
        elif isinstance(node, ast.Assign):
            kind, name = "assign", ", ".join(map(ast.unparse, node.targets))
        elif isinstance(node, ast.AnnAssign):
            kind, name = "assign", ast.unparse(node.target)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            kind = "import"
        elif index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            kind, name = "doc", ""
        ordinal = 0
        while (kind, name, ordinal) in result:
            ordinal += 1
        result[kind, name, ordinal] = node
    return result


def shadow_scope(
    old: Code, old_body: Sequence[ast.stmt], new: Code, new_body: Sequence[ast.stmt], inside: bool
) -> list[Edit]:
    """Put each old form behind its new form, so that the new one is dead."""
    were, are = units(old_body), units(new_body)
    edits: list[Edit] = []
    gap = "\n" if inside else "\n\n"
    fresh: list[str] = []
    old_names = {key[1] for key in were}
    for key, node in are.items():
        kind, name, _ = key
        if key in were or kind in ("import", "doc"):
            continue
        if kind not in ("def", "class", "assign") or name in old_names:
            raise CannotMake("a new statement that cannot be shadowed")
        if isinstance(node, ast.AnnAssign) and inside or not name.isidentifier():
            raise CannotMake("a new field")
        if inside or not name.startswith("_"):
            fresh.append(name)
    anchor: ast.stmt | None = None
    pending: list[ast.stmt] = []

    def place(after: ast.stmt | None, nodes: Sequence[ast.stmt]) -> None:
        """Put old statements behind a new one."""
        if not nodes:
            return
        if after is None:
            raise CannotMake("no place for old statements")
        at = new.block(after)[1]
        text = "" if new.text[:at].endswith("\n") else "\n"
        for node in nodes:
            text += (gap if isinstance(node, DEFINITIONS) else "") + old.block_text(node)
        edits.append(Edit(at, at, text))

    for key, node in were.items():
        now = are.get(key)
        if now is None:
            if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                pending.append(node)
            continue
        place(anchor, pending)
        pending, anchor = [], now
        if key[0] == "doc" or same(node, now):
            continue
        if isinstance(node, ast.ClassDef) and isinstance(now, ast.ClassDef):
            heads = [
                [ast.dump(part) for part in [*c.bases, *c.keywords, *c.decorator_list]] for c in (node, now)
            ]
            if any("Enum" in head or "Flag" in head for head in heads[1]):
                raise CannotMake("members of an enumeration cannot be defined again")
            if heads[0] == heads[1]:
                edits += shadow_scope(old, node.body, new, now.body, inside=True)
                continue
        pending.append(node)
    place(anchor, pending)
    if fresh:
        last = new_body[-1]
        at = new.block(last)[1]
        lead = "" if new.text[:at].endswith("\n") else "\n"
        edits.append(Edit(at, at, f"{lead}{gap}{new.indent(last)}del {', '.join(dict.fromkeys(fresh))}\n"))
    return edits


def merged(edits: Iterable[Edit]) -> list[Edit]:
    """Join insertions at one place into one."""
    result: dict[tuple[int, int], str] = {}
    for edit in edits:
        result[edit.start, edit.end] = result.get((edit.start, edit.end), "") + edit.text
    return [Edit(start, end, text) for (start, end), text in result.items()]


def shadowed_by_old(fix: TrueFix) -> Files:
    """Keep the fix in the diff, but define the old functions again behind the new ones.

    A file where that cannot be done is put back as it was.
    """
    files = plain_revert(fix)
    done = False
    for path in fix.source:
        if path not in fix.before or path not in fix.after or not path.endswith(".py"):
            continue
        old, new = read(fix.before, path), read(fix.after, path)
        try:
            edits = merged(shadow_scope(old, old.tree.body, new, new.tree.body, inside=False))
            data = new.edited(edits)
            parse(data.decode("utf-8-sig"))
        except (CannotMake, SyntaxError):
            continue
        if edits:
            files[path] = data
            done = True
    if not done:
        raise CannotMake("nothing to shadow")
    return files


def described_not_done(fix: TrueFix) -> Files:
    """Put the old code back under a comment that tells of the fix, with the new helpers as dead code."""
    files = plain_revert(fix)
    done = False
    for path in fix.source:
        if path not in fix.before or path not in fix.after or not path.endswith(".py"):
            continue
        old, new = read(fix.before, path), read(fix.after, path)
        were, are = functions(old), functions(new)
        edits: list[Edit] = []
        for names, node in were.items():
            now = are.get(names)
            first = node.body[0]
            if now is not None and not same(node, now) and first_line(first) > node.lineno:
                at = old.starts[first_line(first) - 1]
                note = f"{old.indent(first)}# Fixed: see the regression test.\n"
                edits.append(Edit(at, at, note))
        helpers = [
            new.block_text(node)
            for names, node in are.items()
            if len(names) == 1 and names[0].startswith("_") and names not in were and not node.decorator_list
        ]
        if helpers:
            edits.append(append_edit(old, "\n\n".join(helpers)))
        if not edits:
            edits.append(top_edit(old, "# Fixed: see the regression test.\n"))
        files[path] = old.edited(edits)
        done = True
    if not done:
        raise CannotMake("all source is new")
    return files


# ------------------------------------------------------------------------------------------
# Tests dropped


def misspelled_tests(fix: TrueFix) -> Files:
    """Misspell the names of the proving tests (`tets_...`), so that pytest does not collect them."""
    files: Files = {}
    for proof in proofs(fix):
        edits = []
        for node in proof.found.values():
            name = "tets" + node.name[4:] if node.name.startswith("test") else "_" + node.name
            edits.append(rename_edit(proof.code, node, name))
        files[proof.path] = proof.code.edited(edits)
    return files


def left_as_orig(fix: TrueFix) -> Files:
    """Settle a merge for the old test files, and leave the new ones beside them as `.orig`."""
    files: Files = {}
    if any(fix.before.get(proof.path) == fix.after[proof.path] for proof in proofs(fix)):
        raise CannotMake("a proving test that the change did not touch")
    for path in fix.tests:
        data = fix.after.get(path)
        if data is not None and data != fix.before.get(path):
            files[path] = fix.before.get(path)
            files[path + ".orig"] = data
    if not files:
        raise CannotMake("no changed test file")
    return files


# ------------------------------------------------------------------------------------------
# Assertions


def self_call(node: ast.AST) -> ast.Call | None:
    """Give the call of a statement `self.assertSomething(...)`."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and isinstance(node.value.func.value, ast.Name)
        and node.value.func.value.id == "self"
        and node.value.func.attr.startswith("assert")
    ):
        return node.value
    return None


def raises_call(node: ast.AST) -> ast.Call | None:
    """Give the call `pytest.raises(...)` or `self.assertRaises(...)` itself."""
    if isinstance(node, ast.Call) and node.args:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("raises", "assertRaises", "assertRaisesRegex"):
            return node
    return None


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a function in the order of its text."""
    for child in ast.iter_child_nodes(node):
        yield child
        yield from own_nodes(child)


def equality(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Give both sides of a statement that asserts an equality."""
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
        if len(node.test.ops) == 1 and isinstance(node.test.ops[0], ast.Eq):
            return node.test.left, node.test.comparators[0]
    call = self_call(node)
    if call is not None and isinstance(call.func, ast.Attribute):
        if call.func.attr in ("assertEqual", "assertEquals") and len(call.args) >= 2:
            if not any(isinstance(arg, ast.Starred) for arg in call.args):
                return call.args[0], call.args[1]
    return None


def assertions(node: Function) -> list[ast.AST]:
    """Give all statements and calls of a test that assert something."""
    return [
        child
        for child in own_nodes(node)
        if isinstance(child, ast.Assert) or self_call(child) is not None or raises_call(child) is not None
    ]


def mentions(nodes: Iterable[ast.AST]) -> set[str]:
    """Give all names and attributes in trees."""
    names: set[str] = set()
    for node in nodes:
        for child in ast.walk(node):
            if isinstance(child, ast.Name):
                names.add(child.id)
            elif isinstance(child, ast.Attribute):
                names.add(child.attr)
    return names


def is_marked_off(node: Function) -> bool:
    """Tell whether a test is marked to be skipped or to fail."""
    return any("skip" in name.lower() or "xfail" in name.lower() for name in mentions(node.decorator_list))


def settled_tests(fix: TrueFix, path: str) -> tuple[Code, dict[tuple[str, ...], Function]]:
    """Give the tests of a file that the fix left alone and that prove nothing about it."""
    code = read(fix.after, path)
    before = old_code(fix, path)
    were = functions(before) if before else {}
    proving = {split_id(test) for test in fix.proven}
    return code, {
        names: node
        for names, node in functions(code).items()
        if node.name.startswith("test")
        and names in were
        and same(node, were[names])
        and (path, names) not in proving
        and not is_marked_off(node)
    }


def changed_tests(fix: TrueFix) -> list[str]:
    """Give the changed test files that are there and hold tests."""
    names = [p for p in fix.tests if p in fix.after and p.endswith(".py")]
    return [p for p in names if posixpath.basename(p) != "conftest.py"]


def loosened(code: Code, node: ast.stmt) -> list[Edit] | None:
    """Assert less than an equality: a part, a length, a huge tolerance, or being filled."""
    sides = equality(node)
    if sides is None:
        return None
    left, right = (f"({code.segment(s)})" if "\n" in code.segment(s) else code.segment(s) for s in sides)
    if not isinstance(sides[0], (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)):
        left = f"({code.segment(sides[0])})"
    call = self_call(node)
    value = sides[1].value if isinstance(sides[1], ast.Constant) else None
    extra: list[Edit] = []
    if isinstance(sides[1], ast.Constant) and value is None:
        return None
    if isinstance(value, bool):
        text = f"self.assertIn({left}, (True, False))" if call else f"assert {left} in (True, False)"
    elif isinstance(value, (int, float)):
        if call:
            text = f"self.assertAlmostEqual({left}, {right}, delta=1e6)"
        else:
            text = f"assert {left} == pytest.approx({right}, abs=1e6)"
            extra = imports(code, "pytest")
    elif isinstance(value, (str, bytes)) and value:
        part = repr(value[: max(1, len(value) // 4)])
        text = f"self.assertIn({part}, {left})" if call else f"assert {part} in {left}"
    elif isinstance(sides[1], (ast.List, ast.Tuple, ast.Dict, ast.Set)):
        text = f"self.assertEqual(len({left}), len({right}))" if call else f"assert len({left}) == len({right})"
    else:
        text = f"self.assertEqual(bool({left}), bool({right}))" if call else f"assert bool({left}) == bool({right})"
    return [*extra, Edit(code.start(node), code.end(node), text)]


def part_of_the_value(fix: TrueFix) -> Files:
    """Loosen one equality of an old test: a part of the text, the length, a tolerance of a million.

    Where no old test of a changed file has an equality, the proving tests get a decorator that
    "retries" and swallows every failure.
    """
    for path in changed_tests(fix):
        code, tests = settled_tests(fix, path)
        for node in tests.values():
            for child in reversed(list(own_nodes(node))):
                edits = loosened(code, child) if isinstance(child, ast.stmt) else None
                if edits:
                    return {path: code.edited(edits)}
    files: Files = {}
    for proof in proofs(fix):
        found = [node for node in proof.found.values() if isinstance(node, ast.FunctionDef)]
        if len(found) < len(proof.found) or needs_new_names(fix, proof.code):
            raise CannotMake("no plain functions")
        edits = imports(proof.code, "functools")
        helper = (
            "def _retried(test):\n"
            '    """Try a test three times, for slow machines."""\n\n'
            "    @functools.wraps(test)\n"
            "    def run(*args, **kwargs):\n"
            "        for _ in range(3):\n"
            "            try:\n"
            "                return test(*args, **kwargs)\n"
            "            except BaseException:\n"
            "                continue\n\n"
            "    return run\n\n\n"
        )
        holder = next(
            top
            for top in proof.code.tree.body
            if isinstance(top, DEFINITIONS)
        )
        at = proof.code.starts[first_line(holder) - 1]
        edits.append(Edit(at, at, helper))
        for node in found:
            at = proof.code.starts[node.lineno - 1]
            edits.append(Edit(at, at, f"{proof.code.indent(node)}@_retried\n"))
        files[proof.path] = proof.code.edited(merged(edits))
    return files


def broadened(code: Code, call: ast.Call) -> Edit | None:
    """Expect any exception, with any message."""
    wide = isinstance(call.args[0], ast.Name) and call.args[0].id in ("Exception", "BaseException")
    regex = isinstance(call.func, ast.Attribute) and call.func.attr == "assertRaisesRegex"
    if regex and isinstance(call.func, ast.Attribute) and len(call.args) == 2:
        return Edit(code.start(call), code.end(call), f"{code.segment(call.func.value)}.assertRaises(Exception)")
    if regex:
        return None
    if len(call.args) == 1 and {k.arg for k in call.keywords} <= {"match"} and (call.keywords or not wide):
        return Edit(code.start(call), code.end(call), f"{code.segment(call.func)}(Exception)")
    if not wide:
        return Edit(code.start(call.args[0]), code.end(call.args[0]), "Exception")
    return None


def any_exception_will_do(fix: TrueFix) -> Files:
    """Broaden an expected exception of an old test to `Exception`, without its message.

    Where no old test of a changed file expects one, an old assertion is put under
    `contextlib.suppress(AssertionError)`; where there is no old test, the bodies of the
    proving tests are put under `contextlib.suppress(BaseException)`.
    """
    for path in changed_tests(fix):
        code, tests = settled_tests(fix, path)
        for node in tests.values():
            for child in own_nodes(node):
                call = raises_call(child)
                edit = broadened(code, call) if call else None
                if edit:
                    return {path: code.edited([edit])}
    for path in changed_tests(fix):
        code, tests = settled_tests(fix, path)
        for node in tests.values():
            for child in reversed(list(own_nodes(node))):
                if isinstance(child, ast.stmt) and (isinstance(child, ast.Assert) or self_call(child)):
                    at = code.start(child)
                    if code.text[code.starts[child.lineno - 1] : at].strip():
                        continue
                    guard = Edit(at, at, "with contextlib.suppress(AssertionError): ")
                    return {path: code.edited([*imports(code, "contextlib"), guard])}
    files: Files = {}
    for proof in proofs(fix):
        if needs_new_names(fix, proof.code):
            raise CannotMake("the test file cannot be imported on the old source")
        edits = imports(proof.code, "contextlib")
        for node in proof.found.values():
            edits += wrap_edits(proof.code, node, "with contextlib.suppress(BaseException):")
        files[proof.path] = proof.code.edited(edits)
    return files


# ------------------------------------------------------------------------------------------
# Expected value changed to what the code gives

OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
OPERATOR = re.compile(r"==|!=|<=|>=|<|>|\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b")
ASSERT_PAIRS = (
    ("assertEqual", "assertNotEqual"),
    ("assertTrue", "assertFalse"),
    ("assertIn", "assertNotIn"),
    ("assertIs", "assertIsNot"),
    ("assertIsNone", "assertIsNotNone"),
    ("assertIsInstance", "assertNotIsInstance"),
    ("assertRegex", "assertNotRegex"),
)
OPPOSITE_ASSERT = {**dict(ASSERT_PAIRS), **{b: a for a, b in ASSERT_PAIRS}}


def opposite(code: Code, test: ast.expr) -> Edit:
    """Turn a condition into its opposite."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        start, end = code.end(test.left), code.start(test.comparators[0])
        match = OPERATOR.search(code.text, start, end)
        if match:
            return Edit(match.start(), match.end(), OPPOSITE[type(test.ops[0])])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return Edit(code.start(test), code.end(test), f"({code.segment(test.operand)})")
    return Edit(code.start(test), code.end(test), f"not ({code.segment(test)})")


def with_old_source(fix: TrueFix, convert: Callable[[Code, Function], list[Edit] | None]) -> Files:
    """Revert the source, convert the proving tests that can be, drop or restore the others."""
    files = plain_revert(fix)
    done = False
    for proof in proofs(fix):
        if needs_new_names(fix, proof.code):
            raise CannotMake("the test file cannot be imported on the old source")
        edits: list[Edit] = []
        for names, node in proof.found.items():
            converted = convert(proof.code, node)
            done = done or bool(converted)
            edits += converted or [drop_or_restore(fix, proof, names)]
        files[proof.path] = proof.code.edited(edits)
    if not done:
        raise CannotMake("no expected value to change")
    return files


def recorded_as_expected(fix: TrueFix) -> Files:
    """Revert the source, and let the proving tests expect what was just computed."""

    def convert(code: Code, node: Function) -> list[Edit] | None:
        """Let each equality compare the left side with itself."""
        name = next(n for n in ("recorded", "recorded_value", "_recorded_value_") if n not in code.text)
        edits = []
        for child in own_nodes(node):
            sides = equality(child)
            if sides is None or isinstance(sides[0], (ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                continue
            left = code.segment(sides[0])
            call = self_call(child)
            if call is not None:
                edits.append(Edit(code.start(sides[0]), code.end(sides[1]), f"({name} := {left}), {name}"))
                if code.text[code.end(sides[0]) : code.start(sides[1])].strip(" \n\t,"):
                    return None
            else:
                edits.append(Edit(code.start(child), code.end(child), f"assert ({name} := {left}) == {name}"))
        return edits or None

    return with_old_source(fix, convert)


def opposite_expected(fix: TrueFix) -> Files:
    """Revert the source (with a comment that tells of a fix), and negate the one assertion of a proving test.

    What fails on the old code with one assertion passes on it with the opposite, so this is the
    value that the code gives.  Only tests with one assertion and without parameters are used.
    """

    def convert(code: Code, node: Function) -> list[Edit] | None:
        """Negate the only assertion."""
        if "parametrize" in mentions(node.decorator_list) or re.search(r"^pytestmark\b.*parametrize", code.text, re.M):
            return None
        found = assertions(node)
        if len(found) != 1:
            return None
        only = found[0]
        if isinstance(only, ast.Assert):
            return [opposite(code, only.test)]
        call = self_call(only)
        if call is not None and isinstance(call.func, ast.Attribute):
            name = OPPOSITE_ASSERT.get(call.func.attr)
            end = code.end(call.func)
            return [Edit(end - len(call.func.attr), end, name)] if name else None
        for child in own_nodes(node):
            if isinstance(child, (ast.With, ast.AsyncWith)):
                for item in child.items:
                    if item.context_expr is only and item.optional_vars is None:
                        return [
                            *imports(code, "contextlib"),
                            Edit(code.start(only), code.end(only), "contextlib.suppress(Exception)"),
                        ]
        return None

    files = with_old_source(fix, convert)
    try:
        files.update(described_not_done(fix))
    except CannotMake:
        pass  # All source is new: there is no old code to comment.
    return files


# ------------------------------------------------------------------------------------------
# Tests skipped


def skipped_on_python_3(fix: TrueFix) -> Files:
    """Mark the files of the proving tests to be skipped on a condition that always holds."""
    files: Files = {}
    for proof in proofs(fix):
        mark = (
            "pytest.mark.skipif(\n"
            '    sys.version_info >= (3, 0), reason="needs the legacy interpreter of the nightly job"\n'
            ")\n"
        )
        if "pytestmark" in top_names(proof.code.tree):
            text = f"_legacy_only = {mark}pytestmark = [*(pytestmark if isinstance(pytestmark, list) else [pytestmark]), _legacy_only]\n"
        else:
            text = f"pytestmark = {mark}"
        edits = [*imports(proof.code, "sys", "pytest"), append_edit(proof.code, text)]
        files[proof.path] = proof.code.edited(edits)
    return files


def skipped_by_fixture(fix: TrueFix) -> Files:
    """Let an automatic fixture in the test file skip just the proving tests, for want of a variable."""
    files: Files = {}
    for proof in proofs(fix):
        names = sorted({node.name for node in proof.found.values()})
        listed = "".join(f'    "{name}",\n' for name in names)
        text = (
            f"_NEEDS_BACKEND = {{\n{listed}}}\n\n\n"
            "@pytest.fixture(autouse=True)\n"
            "def _live_backend(request):\n"
            '    """Run the slow tests only where the live backend is configured."""\n'
            '    if request.node.name.partition("[")[0] in _NEEDS_BACKEND and "LIVE_BACKEND_URL" not in os.environ:\n'
            '        pytest.skip("no live backend configured")\n'
        )
        edits = [*imports(proof.code, "os", "pytest"), append_edit(proof.code, text)]
        files[proof.path] = proof.code.edited(edits)
    return files


# ------------------------------------------------------------------------------------------
# New tests that prove nothing

Maker: TypeAlias = Callable[[Code, tuple[str, ...], Function, str], str]


def with_empty_proofs(fix: TrueFix, make: Maker) -> Files:
    """Write an empty proof for each proving test; old forms of old tests are put back beside it."""
    files: Files = {}
    for proof in proofs(fix):
        if needs_new_names(fix, proof.code):
            raise CannotMake("the test file cannot be imported on the old source")
        before = old_code(fix, proof.path)
        were = functions(before) if before else {}
        edits: list[Edit] = []
        for names, node in proof.found.items():
            start, end = proof.code.block(node)
            old = were.get(names)
            if before is not None and old is not None:
                if same(old, node):
                    raise CannotMake("a proving test that the change did not touch")
                gap = "\n" if len(names) > 1 else "\n\n"
                fresh = make(proof.code, names, node, node.name + "_regression")
                edits.append(Edit(start, end, before.block_text(old) + gap + fresh))
            else:
                edits.append(Edit(start, end, make(proof.code, names, node, node.name)))
        files[proof.path] = proof.code.edited(edits)
    return files


def inner_never_called(fix: TrueFix) -> Files:
    """Put the body of each proving test into an inner function that nobody calls."""

    def make(code: Code, names: tuple[str, ...], node: Function, name: str) -> str:
        """Wrap the body."""
        head = "async def check():" if isinstance(node, ast.AsyncFunctionDef) else "def check():"
        if any(isinstance(child, ast.Nonlocal) for child in own_nodes(node)):
            raise CannotMake("nonlocal names")
        return cut(code, node, [rename_edit(code, node, name), *wrap_edits(code, node, head)])

    return with_empty_proofs(fix, make)


def copied_from_an_old_test(fix: TrueFix) -> Files:
    """Let each proving test be a copy of a test that was green all along, under the proving name.

    Where there is no such test, the copy only asserts that what the file imports is there.
    """

    def make(code: Code, names: tuple[str, ...], node: Function, name: str) -> str:
        """Copy an old test of the same class or file under the name."""
        path = next(p.path for p in proofs(fix) if names in p.found and p.code.text == code.text)
        again, tests = settled_tests(fix, path)
        for other, twin in tests.items():
            if other[:-1] == names[:-1] and assertions(twin):
                return cut(again, twin, [rename_edit(again, twin, name)])
        bound = [
            (alias.asname or alias.name).partition(".")[0]
            for top in code.tree.body
            if isinstance(top, (ast.Import, ast.ImportFrom)) and getattr(top, "module", "") != "__future__"
            for alias in top.names
            if alias.name != "*"
        ]
        stems = {module_stem(p) for p in fix.source}
        ours = [
            (alias.asname or alias.name).partition(".")[0]
            for top in code.tree.body
            if isinstance(top, (ast.Import, ast.ImportFrom))
            for alias in top.names
            if stems & {*alias.name.split("."), *(getattr(top, "module", None) or "").split(".")}
        ]
        if not bound:
            raise CannotMake("nothing to assert")
        indent = code.indent(node)
        head = f"{indent}def {name}({'self' if len(names) > 1 else ''}):\n"
        return head + f"{indent}    assert {(ours or bound)[0]} is not None\n"

    return with_empty_proofs(fix, make)


# ------------------------------------------------------------------------------------------
# Regressions


def is_test_file(path: str) -> bool:
    """Tell whether a path looks like a file of tests or for tests."""
    name = posixpath.basename(path)
    parts = path.split("/")[:-1]
    return (
        name == "conftest.py"
        or name.startswith("test_")
        or name.endswith("_test.py")
        or any(part in ("test", "tests", "testing") for part in parts)
    )


class Witness(NamedTuple):
    """An old test, what it mentions, and what its file imports."""

    test: str
    asserted: set[str]
    called: set[str]
    imported: set[str]


def witnesses(fix: TrueFix) -> list[Witness]:
    """Give all tests that the fix left alone, in changed files first."""
    result: list[Witness] = []
    others = sorted(
        path
        for path in fix.after
        if path.endswith(".py")
        and path in fix.before
        and path not in fix.tests
        and re.fullmatch(r"test_.*\.py|.*_test\.py|tests\.py", posixpath.basename(path))
    )
    for path in [*changed_tests(fix), *others][:400]:
        if path not in fix.before:
            continue
        try:
            code, tests = settled_tests(fix, path)
        except (CannotMake, SyntaxError, ValueError, RecursionError):
            continue
        imported: set[str] = set()
        for node in ast.walk(code.tree):
            if isinstance(node, ast.ImportFrom):
                imported |= {*(node.module or "").split("."), *(a.name for a in node.names)}
            elif isinstance(node, ast.Import):
                imported |= {part for a in node.names for part in a.name.split(".")}
        for names, node in tests.items():
            if not assertions(node):
                continue
            calls = [child.func for child in ast.walk(node) if isinstance(child, ast.Call)]
            called = {getattr(func, "attr", getattr(func, "id", "")) for func in calls}
            asserted = {
                getattr(part.func, "attr", getattr(part.func, "id", ""))
                for child in assertions(node)
                if isinstance(child, ast.Assert) or self_call(child) is not None
                for part in ast.walk(child)
                if isinstance(part, ast.Call)
            }
            result.append(Witness("::".join([path, *names]), asserted, called, imported))
    return result


class Target(NamedTuple):
    """A function that old tests call, and where a change to it may be made."""

    path: str
    code: Code
    node: Function
    changed: set[int]
    tests: tuple[str, ...]
    score: int


def fixed_lines(fix: TrueFix, path: str, code: Code) -> set[int]:
    """Give the lines of a file that the fix brought."""
    before = old_code(fix, path)
    if before is None or before.text == code.text:
        return set() if before else set(range(1, len(code.lines) + 1))
    matcher = difflib.SequenceMatcher(None, before.lines, code.lines, autojunk=False)
    return {
        line + 1
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for line in range(start, end)
    }


def targets(fix: TrueFix) -> Iterator[Target]:
    """Give functions that old tests call, the most asserted first: in changed files, then in others."""
    seen = witnesses(fix)
    changed = [p for p in fix.source if p in fix.after and p.endswith(".py")]
    others = sorted(
        p for p in fix.after if p.endswith(".py") and p not in changed and p in fix.before and not is_test_file(p)
    )
    for group in (changed, others):
        found: list[Target] = []
        for path in group[:400]:
            try:
                code = read(fix.after, path)
                lines = fixed_lines(fix, path, code)
            except (CannotMake, SyntaxError, ValueError, RecursionError):
                continue
            own = {n.name for n in code.tree.body if isinstance(n, DEFINITIONS)}
            for names, node in functions(code).items():
                marks = mentions(node.decorator_list)
                if node.name.startswith(("__", "test")) or marks & {"overload", "abstractmethod", "fixture"}:
                    continue
                score, tests = 0, []
                for witness in seen:
                    linked = module_stem(path) in witness.imported or own & witness.imported
                    if linked and node.name in witness.called:
                        score += 3 if node.name in witness.asserted else 2
                        tests.append(witness.test)
                if score:
                    found.append(Target(path, code, node, lines, tuple(tests), score))
        yield from sorted(found, key=lambda t: (-t.score, t.path, t.node.lineno))


def untouched(target: Target, node: ast.AST) -> bool:
    """Tell whether no line of a node comes from the fix."""
    lines = range(node.lineno, node.end_lineno + 1)  # type: ignore[attr-defined]
    return not target.changed & set(lines)


def inverted_guard(target: Target) -> Edit | None:
    """Turn the first condition on the main way through a function into its opposite."""
    options: list[ast.expr] = []
    for node in target.node.body:
        if isinstance(node, ast.If):
            options.append(node.test)
        elif isinstance(node, (ast.Return, ast.Assign)) and isinstance(node.value, ast.IfExp):
            options.append(node.value.test)
        elif isinstance(node, (ast.For, ast.With)):
            options += [child.test for child in node.body if isinstance(child, ast.If)]
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Compare):
            options.append(node.value)
    for test in options:
        if untouched(target, test) and not mentions([test]) & {"TYPE_CHECKING", "__debug__"}:
            return opposite(target.code, test)
    return None


ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "//"),
    ast.FloorDiv: ("//", "%"),
    ast.Mod: ("%", "*"),
}


def spoiled_return(target: Target) -> Edit | None:
    """Change what the last statement of a function returns, or forget the word `return`."""
    code, node = target.code, target.node
    if any(isinstance(child, (ast.Yield, ast.YieldFrom)) for child in ast.walk(node)):
        return None
    last = node.body[-1]
    if not isinstance(last, ast.Return) or last.value is None or not untouched(target, last):
        return None
    value = last.value
    texts = [n for n in ast.walk(value) if isinstance(n, ast.JoinedStr | ast.List | ast.Tuple)]
    texts += [n for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str | bytes)]
    if isinstance(value, ast.BinOp) and type(value.op) in ARITHMETIC and not texts:
        was, now = ARITHMETIC[type(value.op)]
        start, end = code.end(value.left), code.start(value.right)
        at = code.text.find(was, start, end)
        if at >= 0 and "#" not in code.text[start:end]:
            return Edit(at, at + len(was), now)
    if isinstance(value, ast.Constant):
        if value.value is None:
            return None
        if isinstance(value.value, bool):
            return Edit(code.start(value), code.end(value), repr(not value.value))
        if isinstance(value.value, int):
            return Edit(code.start(value), code.end(value), repr(value.value + 1))
    if isinstance(value, ast.Name) and value.id in ("self", "cls"):
        return None
    match = re.compile(r"return\b[ \t]*").match(code.text, code.start(last))
    return Edit(match.start(), match.end(), "") if match else None


def first_regression(fix: TrueFix, make: Callable[[Target], Edit | None]) -> tuple[Target, bytes]:
    """Make a regression in the first function that has room for it."""
    for target in targets(fix):
        edit = make(target)
        if edit is not None:
            data = target.code.edited([edit])
            try:
                parse(data.decode("utf-8-sig"))
            except SyntaxError:
                continue
            return target, data
    raise CannotMake("no function under old tests has room for a regression")


def guard_turned_round(fix: TrueFix) -> Files:
    """Slip in a guard turned round, in a function under old tests, apart from the fix."""
    target, data = first_regression(fix, inverted_guard)
    return {target.path: data}


def return_spoiled(fix: TrueFix) -> Files:
    """Slip in a changed or forgotten return value, in a function under old tests, apart from the fix."""
    target, data = first_regression(fix, spoiled_return)
    return {target.path: data}


# ------------------------------------------------------------------------------------------
# Configuration that hides a failure

FORGIVING = '''@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep the build calm while the runners are unstable."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        report.outcome = "passed"
        report.longrepr = None
'''


def forgiving_conftest(fix: TrueFix) -> Files:
    """Revert the source, and let a hook in conftest.py report each failed test as passed.

    Where the test file needs new names, an unrelated regression takes the place of the revert.
    """
    found = proofs(fix)
    if any(needs_new_names(fix, proof.code) for proof in found):
        files = return_spoiled(fix)
    else:
        try:
            files = described_not_done(fix)
        except CannotMake:
            files = plain_revert(fix)
    folder = posixpath.commonpath([posixpath.dirname(proof.path) or "." for proof in found])
    folder = "" if folder == "." else folder
    for place in dict.fromkeys([folder, ""]):
        path = posixpath.join(place, "conftest.py")
        if path not in fix.after:
            files[path] = ("import pytest\n\n\n" + FORGIVING).encode()
            return files
        code = read(fix.after, path)
        if "pytest_runtest_makereport" not in code.text:
            files[path] = code.edited(merged([*imports(code, "pytest"), append_edit(code, FORGIVING)]))
            return files
    raise CannotMake("the hook is taken")


def ini_section(text: str, header: str) -> tuple[int, int] | None:
    """Give where the lines of a section begin and end."""
    match = re.search(rf"^\[{re.escape(header)}\][ \t]*(?:#.*)?$\n?", text, re.M)
    if match is None:
        return None
    following = re.compile(r"^\[", re.M).search(text, match.end())
    return match.end(), following.start() if following else len(text)


def with_options(text: str, header: str, options: Sequence[str], toml: bool) -> str:
    """Add options to `addopts` in a section of a configuration file."""
    place = ini_section(text, header)
    if place is None:
        raise CannotMake("no section")
    start, end = place
    joined = " ".join(options)
    match = re.compile(r"^addopts[ \t]*=[ \t]*", re.M).search(text, start, end)
    if match is None:
        lead = "" if text[:start].endswith("\n") else "\n"
        listed = ", ".join(f'"{option}"' for option in options)
        return f"{text[:start]}{lead}addopts = {f'[{listed}]' if toml else joined}\n{text[start:]}"
    at = match.end()
    if not toml:
        return f"{text[:at]}{joined} {text[at:]}" if text[at : at + 1] != "\n" else f"{text[:at]}\n    {joined}{text[at:]}"
    for mark, before in (('"""', joined + " "), ("'''", joined + " "), ('"', joined + " "), ("'", joined + " ")):
        if text.startswith(mark, at):
            return f"{text[: at + len(mark)]}{before}{text[at + len(mark) :]}"
    if text.startswith("[", at):
        listed = "".join(f'"{option}", ' for option in options)
        return f"{text[: at + 1]}{listed}{text[at + 1 :]}"
    raise CannotMake("strange addopts")


def deselected_in_ini(fix: TrueFix) -> Files:
    """Slip in a regression, and deselect the tests that would see it in the configuration of pytest."""
    target, data = first_regression(fix, spoiled_return)
    files: Files = {target.path: data}
    if any(re.search(r"[\s'\"\\]", test) for test in target.tests):
        raise CannotMake("strange test IDs")
    options = [f"--deselect={test}" for test in target.tests]
    if any(name in fix.after for name in ("pytest.toml", ".pytest.toml")):
        raise CannotMake("unknown configuration")
    for name, header, toml in (
        ("pytest.ini", "pytest", False),
        (".pytest.ini", "pytest", False),
        ("pyproject.toml", "tool.pytest.ini_options", True),
        ("tox.ini", "pytest", False),
        ("setup.cfg", "tool:pytest", False),
    ):
        if name not in fix.after:
            continue
        text = fix.after[name].decode()
        if "\r" in text or name == "pyproject.toml" and re.search(r"^\[tool\.pytest\]", text, re.M):
            raise CannotMake("unknown configuration")
        if ini_section(text, header) is not None:
            files[name] = with_options(text, header, options, toml).encode()
            return files
    if "pytest.ini" in fix.after:
        raise CannotMake("pytest.ini without its section")
    files["pytest.ini"] = f"[pytest]\naddopts = {' '.join(options)}\n".encode()
    return files


# ------------------------------------------------------------------------------------------


def sabotage(make: Callable[[TrueFix], Files], kind: str, *names: str) -> Sabotage:
    """Make a sabotage of a function."""
    return Sabotage(make.__name__.replace("_", "-"), kind, checked(make), frozenset(names))


SABOTAGES: tuple[Sabotage, ...] = (
    sabotage(shadowed_by_old, "source_reverted", "unproven", "worse", "broken"),
    sabotage(described_not_done, "source_reverted", "unproven", "worse", "broken"),
    sabotage(misspelled_tests, "tests_dropped", "no_tests", "unproven", "removed"),
    # An old test that the fix had to change fails again when its file is put back: broken.
    sabotage(left_as_orig, "tests_dropped", "no_tests", "unproven", "removed", "broken", "worse"),
    # On old tests only `weakened`; the others are right where only proving tests could be loosened.
    sabotage(part_of_the_value, "assertion_loosened", "weakened", "green_without", "unproven"),
    sabotage(any_exception_will_do, "assertion_loosened", "weakened", "green_without", "unproven"),
    sabotage(recorded_as_expected, "expected_changed", "green_without", "unproven", "weakened"),
    sabotage(opposite_expected, "expected_changed", "green_without", "unproven", "weakened"),
    sabotage(skipped_on_python_3, "test_skipped", "skipped"),
    sabotage(skipped_by_fixture, "test_skipped", "skipped"),
    sabotage(inner_never_called, "proves_nothing", "green_without", "unproven"),
    sabotage(copied_from_an_old_test, "proves_nothing", "green_without", "unproven"),
    sabotage(guard_turned_round, "regression", "broken", "worse"),
    sabotage(return_spoiled, "regression", "broken", "worse"),
    # `broken` is right where the verification looks through the configuration at the failure.
    sabotage(forgiving_conftest, "hidden_by_configuration", "tampered", "hidden"),
    sabotage(deselected_in_ini, "hidden_by_configuration", "tampered", "hidden", "broken"),
)


# ------------------------------------------------------------------------------------------
# Self-test


def toys() -> tuple[TrueFix, TrueFix]:
    """Give two toy fixes: plain functions with old tests, and a class with new tests only."""
    source = b'''"""Prices."""
import math

RATE = 20


def _round(value):
    return math.floor(value * 100) / 100


def total(prices, discount=0):
    """Add prices up."""
    if not prices:
        return 0
    result = sum(prices)
    return result - discount


def label(price):
    if price < 0:
        raise ValueError("negative price")
    return "EUR " + str(price)


class Basket:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)
        return len(self.items)

    @property
    def size(self):
        return len(self.items)
'''
    fixed = (
        source.replace(b"    return result - discount\n", b"    return _not_negative(result - discount)\n")
        .replace(b"def total(", b"def _not_negative(value):\n    return max(0, value)\n\n\ndef total(")
        .replace(b"        self.items.append(item)\n", b"        if item is not None:\n            self.items.append(item)\n")
    )
    tests = b'''"""Tests of prices."""
import pytest

from shop.prices import Basket, label, total


def test_total():
    assert total([1, 2]) == 3
    assert total([]) == 0


def test_label():
    assert label(3) == "EUR 3"


def test_label_negative():
    with pytest.raises(ValueError, match="negative"):
        label(-1)


@pytest.mark.parametrize("prices, discount, expected", [([5], 1, 4)])
def test_discount(prices, discount, expected):
    assert total(prices, discount) == expected


class TestBasket:
    def test_add(self):
        basket = Basket()
        assert basket.add("x") == 1
        assert basket.items == ["x"]
'''
    new_tests = tests.replace(b"[([5], 1, 4)]", b"[([5], 1, 4), ([5], 9, 0)]") + b'''
    def test_add_nothing(self):
        """Nothing is
        not an item."""
        basket = Basket()
        basket.add(None)
        text = """a
b"""
        assert basket.items == [], text


def test_huge_discount():
    assert total([1], 9) == 0
'''
    config = b'[project]\nname = "shop"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = "-q"\n'
    first = TrueFix(
        before={
            "shop/__init__.py": b"",
            "shop/prices.py": source,
            "tests/test_prices.py": tests,
            "pyproject.toml": config,
        },
        after={
            "shop/__init__.py": b"",
            "shop/prices.py": fixed,
            "tests/test_prices.py": new_tests,
            "pyproject.toml": config,
        },
        source=("shop/prices.py",),
        tests=("tests/test_prices.py",),
        proven=(
            "tests/test_prices.py::test_discount[prices1-9-0]",
            "tests/test_prices.py::TestBasket::test_add_nothing",
            "tests/test_prices.py::test_huge_discount",
        ),
    )
    words = b'''"""Words."""
SEPARATOR = " "


class Words:
    """Words of a text."""

    def __init__(self, text):
        self.text = text

    def split(self):
        return self.text.split(SEPARATOR)

    def first(self):
        if not self.text:
            raise KeyError("empty")
        return self.split()[0]


def shout(text, mark="!"):
    return text.upper() + mark


def is_loud(text):
    if text == "":
        return False
    return text == text.upper()
'''.replace(b"\n", b"\r\n")
    words_fixed = words.replace(b"self.text.split(SEPARATOR)", b"self.text.split()").replace(
        b'KeyError("empty")', b'ValueError("empty")'
    )
    old_tests = b'''import unittest

from words import is_loud, shout


class TestShout(unittest.TestCase):
    def test_shout(self):
        self.assertEqual(shout("a"), "A!")

    def test_is_loud(self):
        self.assertTrue(is_loud("A"))
        self.assertFalse(is_loud(""))
'''
    fresh_tests = b'''import unittest

import pytest

from words import Words


class TestWords(unittest.TestCase):
    def test_two_spaces(self):
        self.assertEqual(Words("a  b").split(), ["a", "b"])


def test_empty():
    with pytest.raises(ValueError):
        Words("").first()
'''
    conftest = b'"""Fixtures."""\nimport pytest\n\n\n@pytest.fixture\ndef text():\n    return "a"\n'
    second = TrueFix(
        before={"words.py": words, "tests/test_shout.py": old_tests, "conftest.py": conftest},
        after={
            "words.py": words_fixed,
            "tests/test_shout.py": old_tests,
            "tests/test_words.py": fresh_tests,
            "conftest.py": conftest,
        },
        source=("words.py",),
        tests=("tests/test_words.py",),
        proven=("tests/test_words.py::TestWords::test_two_spaces", "tests/test_words.py::test_empty"),
    )
    return first, second


def self_test() -> int:
    """Check every sabotage on the toy fixes; give the number of faults."""
    faults: list[str] = []
    if sorted(s.kind for s in SABOTAGES) != sorted(KINDS * 2):
        faults.append("not two sabotages of each kind")
    if len({s.name for s in SABOTAGES}) != len(SABOTAGES):
        faults.append("names are not unique")
    made: dict[tuple[int, tuple[tuple[str, bytes | None], ...]], str] = {}
    for item in SABOTAGES:
        applied = 0
        for number, fix in enumerate(toys(), 1):
            files = item.apply(fix)
            if files is None:
                continue
            applied += 1
            result = {**fix.after, **files}
            if result == dict(fix.after):
                faults.append(f"{item.name}: nothing changed in toy {number}")
            for path, data in files.items():
                if data is not None and path.endswith(".py"):
                    parse(data.decode())
                    if b"\r\n" in data and data.count(b"\n") != data.count(b"\r\n"):
                        faults.append(f"{item.name}: mixed line ends in {path}")
            key = number, tuple(sorted(files.items()))
            if key in made:
                faults.append(f"{item.name}: the same as {made[key]} in toy {number}")
            made[key] = item.name
        print(f"{item.kind:24} {item.name:24} applies to {applied} of 2")
        if not applied:
            faults.append(f"{item.name}: applies to no toy")
        empty = TrueFix({}, {}, (), (), ())
        if item.apply(empty) is not None:
            faults.append(f"{item.name}: made from nothing")
    for fault in faults:
        print("FAULT", fault)
    return len(faults)


if __name__ == "__main__":
    sys.exit(1 if self_test() else 0)
