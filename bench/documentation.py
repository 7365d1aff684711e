"""What becomes of comments and docstrings that a model leaves out of a rewritten file, on real fixes of Python files.

    python bench/documentation.py
    python bench/documentation.py --without    # the same if nothing is put back: what the rule is worth

Each fix of `fix_diffs.jsonl` (`REDSTART_DATA`, see docs/benchmarks.md) is answered twice as a whole file: as its author
wrote it, and without any comment or docstring. `undone` counts the first answers that did not give the author's file.
`lost` counts the second answers whose result lacks documentation that both versions of the file have, and `changed`
those whose result has other code than the author's. `refused` second answers were not taken as the file. `--quick`
takes every tenth fix.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import sys
import tokenize
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from _figures import Figure, expect_at_most, expect_equal, print_figures, report_value
from redstart.core.change import Edit, EditKind
from redstart.toolkit.languages.python import edited_code
from redstart.toolkit.patching.ladder import put

PATH = "code.py"
EVERY = 10


def load_fixes() -> list[tuple[str, str]]:
    """Load the files before and after each fix; both parse."""
    folder = os.environ.get("REDSTART_DATA")
    if not folder or not (file := Path(folder) / "fix_diffs.jsonl").is_file():
        sys.exit("REDSTART_DATA is not a folder with fix_diffs.jsonl: see docs/benchmarks.md")
    rows = map(json.loads, file.read_text().splitlines())
    return [(row["old"], row["new"]) for row in rows if _parses(row["old"]) and _parses(row["new"])]


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def read_documentation(text: str) -> Counter[str]:
    """Count the comments and standalone strings of a program, without their indentation."""
    comments = [token.string for token in _tokens(text) if token.type == tokenize.COMMENT]
    return Counter(comments + [str(ast.literal_eval(node.value)) for node in _list_texts(ast.parse(text))])


def remove_documentation(text: str) -> str:
    """Return the program without comments, standalone strings and the lines that held nothing else."""
    lines: list[str | None] = list(text.split("\n"))
    for token in _tokens(text):
        if token.type == tokenize.COMMENT:
            rest = (lines[token.start[0] - 1] or "")[: token.start[1]].rstrip()
            lines[token.start[0] - 1] = rest or None
    for block in _list_blocks(ast.parse(text)):
        for node in _list_texts_of(block):
            is_only = len(block) == 1
            indent = " " * node.col_offset
            lines[node.lineno - 1 : node.end_lineno] = [f"{indent}pass" if is_only else None] * (
                (node.end_lineno or node.lineno) - node.lineno + 1
            )
    return "\n".join(line for line in lines if line is not None)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _list_blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    blocks = [getattr(node, field, None) for node in ast.walk(tree) for field in ("body", "orelse", "finalbody")]
    return [block for block in blocks if isinstance(block, list)]


def _list_texts_of(block: list[ast.stmt]) -> list[ast.Expr]:
    return [
        node
        for node in block
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


def _list_texts(tree: ast.Module) -> list[ast.Expr]:
    return [node for block in _list_blocks(tree) for node in _list_texts_of(block)]


def apply_whole(old: str, answer: str) -> str | None:
    """Return the file after this answer; None if it is refused or changes nothing."""
    edit = Edit(kind=EditKind.whole, path=PATH, text=answer, number=1)
    data = put([edit], {PATH: old.encode()}.get, [PATH]).files.get(PATH)
    return None if data is None else data.decode()


def count(fixes: list[tuple[str, str]]) -> list[Figure]:
    undone = lost = missing_before = changed = refused = answered = 0
    for old, new in fixes:
        as_written = apply_whole(old, new)
        undone += as_written is not None and as_written != new
        bare = remove_documentation(new)
        result = apply_whole(old, bare)
        if not _parses(bare) or result is None:
            refused += 1
            continue
        answered += 1
        common = read_documentation(old) & read_documentation(new)
        missing_before += common.total()
        lost += (common - read_documentation(result)).total()
        changed += remove_documentation(result).split() != bare.split()
    return [
        report_value("fixes", len(fixes)),
        report_value("answered", answered),
        report_value("refused", refused),
        expect_equal("undone", undone, 0),
        expect_equal("changed", changed, 0),
        report_value("documentation", missing_before),
        expect_at_most("lost_share", lost / max(missing_before, 1), 0.05),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"only every {EVERY}th fix")
    parser.add_argument("--without", action="store_true", help="put nothing back")
    args = parser.parse_args()
    fixes = load_fixes()[:: EVERY if args.quick else 1]
    if args.without:
        with patch.object(edited_code, "restore_documentation", lambda _, new_lines: list(new_lines)):
            return 0 if print_figures("documentation", count(fixes)) else 1
    return 0 if print_figures("documentation", count(fixes)) else 1


if __name__ == "__main__":
    sys.exit(main())
