"""Judge edited files with Python's own parser: whether they parse, and where their definitions are."""

from __future__ import annotations

import ast
import builtins
import difflib
import io
import textwrap
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from redstart.toolkit.languages.python.documentation import dump_code, restore_lost_documentation
from redstart.toolkit.patching.edited_code import SyntaxFlaw
from redstart.toolkit.patching.hunks import LineReplacement

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Import = ast.Import | ast.ImportFrom


class _Named(NamedTuple):
    name: str
    """The qualified name, with the enclosing classes and functions joined by dots."""
    node: _Definition


@lru_cache(maxsize=32)
def find_syntax_flaw(source: bytes | str) -> SyntaxFlaw | None:
    """Return the first syntax error; None if the source parses."""
    parsed = _parse_source(source)
    return parsed if isinstance(parsed, SyntaxFlaw) else None


@lru_cache(maxsize=4)
def list_indent_widths(source: str) -> frozenset[int]:
    """Return the indentation widths of blocks, relative to the line that opens them; empty if it does not parse."""
    widths: set[int] = set()
    depth = [0]
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.INDENT:
                widths.add(len(token.string) - depth[-1])
                depth.append(len(token.string))
            elif token.type == tokenize.DEDENT:
                depth.pop()
    except (tokenize.TokenError, SyntaxError):
        return frozenset()
    return frozenset(widths)


def replace_definitions(lines: Sequence[str], snippet: Sequence[str]) -> list[LineReplacement] | str:
    """Replace the file's definitions with those of the same names in `snippet`; return a reason if that is impossible.

    Each name must occur exactly once. A class must keep all its members; otherwise the snippet may be an excerpt.
    A snippet that looks like the file up to a truncation point is refused: part of a change is not a change. Imports
    that the file lacks are added; standalone strings are ignored.
    """
    before, after = _parse_source("\n".join(lines)), _parse_source(textwrap.dedent("\n".join(snippet)))
    if isinstance(before, SyntaxFlaw) or isinstance(after, SyntaxFlaw):
        return "it is no program by itself"
    nodes = [node for node in after.body if isinstance(node, _Definition)]
    imports = [node for node in after.body if isinstance(node, _Import)]
    texts = [node for node in after.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    if not nodes or len(nodes) + len(imports) + len(texts) != len(after.body):
        return "it is neither the whole file nor only definitions of it"
    definitions = list(_walk_definitions(before.body))
    replacements: list[LineReplacement] = []
    for node in nodes:
        matches = [item for item in definitions if item.name.rpartition(".")[2] == node.name]
        if len(matches) != 1:
            return f"{node.name} is there {len(matches)} times"
        old = matches[0].node
        if type(old) is not type(node) or _list_members(old) - _list_members(node):
            return f"{node.name} in the answer lacks parts of the one in the file"
        replacements.append(_replace_definition(lines, snippet, old, node))
    if reason := _cut_off(lines, snippet, before, nodes, replacements):
        return reason
    return _with_imports(replacements, _insert_imports(before, snippet, imports))


def _cut_off(
    lines: Sequence[str],
    snippet: Sequence[str],
    before: ast.Module,
    nodes: Sequence[_Definition],
    replacements: Sequence[LineReplacement],
) -> str:
    """Return why the snippet may be a truncated copy of the file or of a definition; empty if it is not.

    An answer with only the changes copies no definition unchanged. An answer that starts with the file's first line
    and lists its definitions in order, some unchanged, is the file: it must not end before the last definition.
    """
    last = replacements[-1]
    if _is_truncated(lines[last.start : last.stop], last.lines):
        return f"it ends in the middle of {nodes[-1].name}: the last lines of that are not in it"
    existing_names = [statement.name for statement in before.body if isinstance(statement, _Definition)]
    snippet_names = [node.name for node in nodes]
    from_the_top = snippet_names == existing_names[: len(snippet_names)] and _find_first_text(
        lines
    ) == _find_first_text(snippet)
    copied = any(tuple(lines[span.start : span.stop]) == span.lines for span in replacements)
    if from_the_top and copied and len(snippet_names) < len(existing_names):
        return f"it is the file up to {snippet_names[-1]}, and what follows in the file is not in it"
    return ""


def _is_truncated(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether the new lines match the old ones up to a line, or into one, and nothing replaces the remaining lines."""
    tag, a, b, c, d = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()[-1]
    in_a_line = tag == "replace" and b - a > 1 == d - c and old[a].startswith(new[c])
    # A line that only moved is not lost.
    missing_lines = Counter(old) - Counter(new)
    return (tag == "delete" or in_a_line) and any(line.strip() and line in missing_lines for line in old[a:b])


def _find_first_text(lines: Sequence[str]) -> str:
    return next((line for line in lines if line.strip()), "")


def _with_imports(replacements: list[LineReplacement], import_span: LineReplacement | None) -> list[LineReplacement]:
    """Add the imports. No two spans start at the same line: imports before a replaced definition join its span."""
    if import_span is None:
        return replacements
    index = next((number for number, span in enumerate(replacements) if span.start == import_span.start), None)
    if index is None:
        return [import_span, *replacements]
    merged = replacements[index]._replace(lines=(*import_span.lines, "", "", *replacements[index].lines))
    return [*replacements[:index], merged, *replacements[index + 1 :]]


def list_defined_names(source: str) -> frozenset[str]:
    """Return the names of top-level functions and classes; empty if the source does not parse."""
    tree = _parse_source(source)
    if isinstance(tree, SyntaxFlaw):
        return frozenset()
    return frozenset(node.name for node in tree.body if isinstance(node, _Definition))


def has_all_names(lines: Sequence[str], other_lines: Sequence[str]) -> bool:
    """Whether both parse and every top-level name of the first is also a top-level name of the other."""
    before, after = _parse_source("\n".join(lines)), _parse_source("\n".join(other_lines))
    if isinstance(before, SyntaxFlaw) or isinstance(after, SyntaxFlaw):
        return False
    return bool(_list_top_names(before)) and _list_top_names(before) <= _list_top_names(after)


def restore_documentation(lines: Sequence[str], new_lines: Sequence[str]) -> list[str]:
    """Return the new lines with the comments and docstrings that they lost; never with other code."""
    before, after = _parse_source("\n".join(lines)), _parse_source("\n".join(new_lines))
    if isinstance(before, SyntaxFlaw) or isinstance(after, SyntaxFlaw):
        return list(new_lines)
    try:
        restored = restore_lost_documentation(lines, new_lines)
    except (tokenize.TokenError, SyntaxError):
        return list(new_lines)
    result = _parse_source("\n".join(restored))
    is_same = not isinstance(result, SyntaxFlaw) and dump_code(result) == dump_code(after)
    return restored if is_same else list(new_lines)


def restore_imports(lines: Sequence[str], new_lines: Sequence[str]) -> list[str]:
    """Return the new lines with the file's imports that they lost but still need, and lost `__future__` imports."""
    before, after = _parse_source("\n".join(lines)), _parse_source("\n".join(new_lines))
    if isinstance(before, SyntaxFlaw) or isinstance(after, SyntaxFlaw):
        return list(new_lines)
    undefined = _list_undefined_names(after)
    existing = {ast.dump(node) for node in after.body if isinstance(node, _Import)}
    lost = [
        node
        for node in before.body
        if isinstance(node, _Import)
        and ast.dump(node) not in existing
        and (_is_future_import(node) or not undefined.isdisjoint(_list_imported_names(node)))
    ]
    if not lost:
        return list(new_lines)
    index = _find_import_index(after)
    below = next((statement for statement in after.body if _find_first_line(statement) == index + 1), None)
    blank = 0 if isinstance(below, _Import) else 2 if isinstance(below, _Definition) else 1
    text = [line for node in lost for line in lines[node.lineno - 1 : node.end_lineno]]
    return [*new_lines[:index], *text, *[""] * blank, *new_lines[index:]]


def _list_undefined_names(tree: ast.Module) -> set[str]:
    """Return the names that the code reads and nothing in it defines, in whatever scope; builtins do not count."""
    nodes = list(ast.walk(tree))
    defined = {name for node in nodes if isinstance(node, _Import) for name in _list_imported_names(node)}
    defined |= {node.name for node in nodes if isinstance(node, _Definition)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined |= {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    return {node.id for node in names} - defined - set(dir(builtins))


def _list_imported_names(node: ast.Import | ast.ImportFrom) -> set[str]:
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}


def _is_future_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _list_top_names(tree: ast.Module) -> set[str]:
    target_lists = (node.targets for node in tree.body if isinstance(node, ast.Assign))
    names = {target.id for targets in target_lists for target in targets if isinstance(target, ast.Name)}
    return names | {node.name for node in tree.body if isinstance(node, _Definition)}


def _insert_imports(
    before: ast.Module, snippet: Sequence[str], imports: Sequence[ast.Import | ast.ImportFrom]
) -> LineReplacement | None:
    """Insert the imports that the file lacks before its first statement other than a string or a __future__ import."""
    existing = {ast.dump(node) for node in ast.walk(before) if isinstance(node, _Import)}
    missing = [node for node in imports if ast.dump(node) not in existing]
    if not missing:
        return None
    index = _find_import_index(before)
    return LineReplacement(
        index, index, tuple(line for node in missing for line in snippet[node.lineno - 1 : node.end_lineno])
    )


def _find_import_index(tree: ast.Module) -> int:
    """Return the number of lines above the first statement other than a string or a `__future__` import."""
    return min((_find_first_line(node) for node in tree.body if not _can_precede_imports(node)), default=1) - 1


def _can_precede_imports(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or _is_future_import(node)


def _replace_definition(
    lines: Sequence[str], snippet: Sequence[str], old: _Definition, new: _Definition
) -> LineReplacement:
    start, stop = _find_first_line(old) - 1, old.end_lineno or old.lineno
    text = snippet[_find_first_line(new) - 1 : new.end_lineno]
    snippet_indent, want = _indent(text[0]), _indent(lines[start])
    reindented = (
        text
        if snippet_indent == want
        else [want + line.removeprefix(snippet_indent) if line.strip() else "" for line in text]
    )
    return LineReplacement(start, stop, tuple(reindented))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _find_first_line(node: ast.stmt) -> int:
    decorators = node.decorator_list if isinstance(node, _Definition) else ()
    return min([node.lineno, *(item.lineno for item in decorators)])


def _list_members(node: _Definition) -> set[str]:
    if not isinstance(node, ast.ClassDef):
        return set()
    names = {statement.name for statement in node.body if isinstance(statement, _Definition)}
    targets = (target for statement in node.body if isinstance(statement, ast.Assign) for target in statement.targets)
    return names | {target.id for target in targets if isinstance(target, ast.Name)}


def _walk_definitions(body: Sequence[ast.stmt], scope: str = "") -> Iterator[_Named]:
    for node in body:
        if isinstance(node, _Definition):
            name = f"{scope}.{node.name}" if scope else node.name
            yield _Named(name, node)
            yield from _walk_definitions(node.body, name)
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _walk_definitions(getattr(node, field, ()), scope)


def _parse_source(source: bytes | str) -> ast.Module | SyntaxFlaw:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        return SyntaxFlaw(error.lineno or 0, error.msg)
    except (ValueError, RecursionError, MemoryError) as error:
        return SyntaxFlaw(0, str(error) or type(error).__name__)
