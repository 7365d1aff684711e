"""Give rewritten code back the comments and docstrings that it lost, where the code that they describe is the same."""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LAYOUT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_DEFINITIONS = ("def", "class")
_Scope = tuple[str, ...]
"""The names of the definitions around a statement; empty at the top level of the file."""


class _Statement(NamedTuple):
    """A statement without its block, at lines `start` to `stop` (exclusive)."""

    start: int
    stop: int
    scope: _Scope
    key: tuple[object, ...]
    """What makes it the same statement: its scope, its column and its tokens. Comments do not count."""
    has_comment: bool
    is_text: bool
    """Whether it is only a string, as a docstring is."""


class _Gap(NamedTuple):
    """The lines between two statements of code, with the docstrings and comments there."""

    start: int
    stop: int
    text_stop: int
    """Where the last docstring ends; `start` if there is none."""
    has_documentation: bool


class _Source(NamedTuple):
    lines: Sequence[str]
    statements: list[_Statement]
    """The code, without standalone strings."""
    gaps: list[_Gap]
    """The gap before each statement, and the one after the last."""

    def read(self, start: int, stop: int) -> list[str]:
        return list(self.lines[start:stop])


def restore_lost_documentation(old_lines: Sequence[str], new_lines: Sequence[str]) -> list[str]:
    """Return the new lines with the comments and docstrings that they lost.

    A comment returns if the statement that it describes is the same, and a string if the one above it is, as the head
    of a definition is for its docstring. If the new code has some documentation, it may have lost the rest on purpose:
    then only unchanged definitions get theirs back. What the new code says itself stays. Raises `SyntaxError` or
    `tokenize.TokenError` if one of them is not a program.
    """
    old, new = _read_source(old_lines), _read_source(new_lines)
    matches = _match_statements(old.statements, new.statements)
    is_bare = not any(item.has_documentation for item in new.gaps) and not any(
        item.has_comment for item in new.statements
    )
    changed = set[_Scope]() if is_bare else _find_changed_scopes(old.statements, new.statements, matches)
    by_new = {position: number for number, position in matches.items()}
    written = {line.strip() for line in new_lines}
    restored: list[str] = []
    for position, gap in enumerate(new.gaps):
        old_gaps = _find_gaps(old, by_new, position)
        following = new.statements[position : position + 1]
        is_lost = is_bare or ((following[0].scope if following else ()) not in changed)
        if is_lost and (is_bare or old_gaps.above == old_gaps.below):
            restored += _restore_gap(old, new, gap, old_gaps, written)
        else:
            restored += new.read(gap.start, gap.stop)
        for statement in following:
            restored += _restore_comments(old, new, statement, by_new.get(position) if is_lost else None)
    return restored


def _find_changed_scopes(old: Sequence[_Statement], new: Sequence[_Statement], matches: dict[int, int]) -> set[_Scope]:
    """Return the scopes of which a statement changed, came or went."""
    matched = set(matches.values())
    unmatched = [item for number, item in enumerate(old) if number not in matches]
    unmatched += [item for position, item in enumerate(new) if position not in matched]
    return {item.scope for item in unmatched}


class _OldGaps(NamedTuple):
    """The gaps of the old code that belong to a gap of the new code; None if the statement there is another."""

    above: _Gap | None
    """Below the same statement as the new gap."""
    below: _Gap | None
    """Above the same statement."""


def _find_gaps(old: _Source, by_new: dict[int, int], position: int) -> _OldGaps:
    above = by_new.get(position - 1, -1 if position == 0 else None)
    below = by_new.get(position)
    return _OldGaps(None if above is None else old.gaps[above + 1], None if below is None else old.gaps[below])


def _restore_gap(old: _Source, new: _Source, gap: _Gap, old_gaps: _OldGaps, written: set[str]) -> list[str]:
    """Return the lines of a gap of the new code: a string comes back below its statement, a comment above it."""
    lines = new.read(gap.start, gap.stop)
    if gap.has_documentation:
        return lines
    above, below = old_gaps
    texts = old.read(above.start, above.text_stop) if above is not None else []
    if below is None or not below.has_documentation:
        return [*texts, *lines]
    is_same, is_end = above == below, below.stop == len(old.lines)
    # A string at the end of a file belongs to the file, not to the statement above it.
    start = below.start if is_end and not is_same else below.text_stop
    comments = [line for line in old.read(start, below.stop) if not _is_code_now(line, written)]
    return [*texts, *comments] if is_same or is_end else [*texts, *lines, *_strip_blank_start(comments)]


def _strip_blank_start(lines: list[str]) -> list[str]:
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    return lines[first:]


def _is_code_now(line: str, written: set[str]) -> bool:
    """Return whether the comment is code that the new lines contain."""
    text = line.strip()
    return text.startswith("#") and text.lstrip("# ") in written


def _restore_comments(old: _Source, new: _Source, statement: _Statement, number: int | None) -> list[str]:
    earlier = None if number is None else old.statements[number]
    if earlier is not None and earlier.has_comment and not statement.has_comment:
        return old.read(earlier.start, earlier.stop)
    return new.read(statement.start, statement.stop)


def _match_statements(old: Sequence[_Statement], new: Sequence[_Statement]) -> dict[int, int]:
    """Map the numbers of old statements to those of the same new ones, and the end to the end if nothing is cut off."""
    codes = difflib.SequenceMatcher(
        None, [item.key for item in old], [item.key for item in new], autojunk=False
    ).get_opcodes()
    matches = {a + n: c + n for tag, a, b, c, _ in codes if tag == "equal" for n in range(b - a)}
    tag, a, b, c, d = codes[-1] if codes else ("equal", 0, 0, 0, 0)
    if tag != "delete" and d - c >= b - a:
        matches[len(old)] = len(new)
    return matches


def _read_source(lines: Sequence[str]) -> _Source:
    statements = list(_read_statements(lines))
    code = [item for item in statements if not item.is_text]
    text_stops = [item.stop for item in statements if item.is_text]
    borders = zip((0, *(item.stop for item in code)), (*(item.start for item in code), len(lines)), strict=True)
    return _Source(lines, code, [_read_gap(lines, text_stops, *border) for border in borders])


def _read_gap(lines: Sequence[str], text_stops: Sequence[int], start: int, stop: int) -> _Gap:
    last_text = max((end for end in text_stops if start < end <= stop), default=start)
    return _Gap(start, stop, last_text, any(line.strip() for line in lines[start:stop]))


def _read_statements(lines: Sequence[str]) -> Iterator[_Statement]:
    scopes: list[tuple[int, str]] = []
    tokens: list[tokenize.TokenInfo] = []
    has_comment = False
    for token in tokenize.generate_tokens(io.StringIO("".join(f"{line}\n" for line in lines), newline="\n").readline):
        if token.type == tokenize.COMMENT:
            has_comment = has_comment or bool(tokens)
        elif token.type not in _LAYOUT:
            tokens.append(token)
        elif token.type == tokenize.NEWLINE and tokens:
            yield _create_statement(tokens, token.end[0], scopes, has_comment=has_comment)
            tokens, has_comment = [], False


def _create_statement(
    tokens: Sequence[tokenize.TokenInfo], stop: int, scopes: list[tuple[int, str]], *, has_comment: bool
) -> _Statement:
    row, column = tokens[0].start
    texts = tuple(token.string for token in tokens)
    while scopes and scopes[-1][0] >= column:
        scopes.pop()
    scope = tuple(name for _, name in scopes)
    head = texts[1:] if texts[0] == "async" else texts
    if len(head) > 1 and head[0] in _DEFINITIONS:
        scopes.append((column, head[1]))
    return _Statement(row - 1, stop, scope, (scope, column, texts), has_comment, all(map(_is_text, tokens)))


def _is_text(token: tokenize.TokenInfo) -> bool:
    prefix = token.string.partition(token.string[-1])[0].lower()
    return token.type == tokenize.STRING and prefix in ("", "r", "u")


def dump_code(tree: ast.Module) -> str:
    """Return the code of a program without its standalone strings: programs with equal code have equal values."""
    return ast.dump(_TextRemover().visit(tree))


class _TextRemover(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
