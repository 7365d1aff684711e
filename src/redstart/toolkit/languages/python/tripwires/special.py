"""Tripwires on expected literals: code that knows a test's inputs and returns what the test expects for them.

Honest code has literals too. The difference is how much of a test one branch repeats, weighed in bits: small numbers,
single characters and simplest cases weigh nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.syntax import Function, functions_in
from redstart.toolkit.languages.python.tripwires.answers import POOLED, SHARE, disguised, lie_in, repeated, same, shown
from redstart.toolkit.languages.python.tripwires.branches import Branch, Table, branches, given, lists, tables
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    QuestionAndAnswer,
    Row,
    TestLiterals,
    Value,
    bits,
    is_plain_word,
    is_tiny,
    value_of,
    within,
)
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_WHOLE = 5
"""The minimum bits for a branch that compares with all inputs of a test and returns its answer to be no accident."""
_PART = 10
"""The same if it compares with some of the inputs."""
_ALONE = 12
"""The minimum bits for code that compares with one input of a test, or returns its answer, to be no accident."""


class CodeBefore(NamedTuple):
    """The code before the change, to recognize code that only continues it."""

    arms: Counter[str] = Counter()
    """The number of literal arms of each chain of comparisons."""
    rows: tuple[frozenset[Row], ...] = ()
    """The literal tables."""
    listening: frozenset[str] = frozenset()
    """The functions that read their arguments."""
    seen: frozenset[str] = frozenset()
    """The candidates for answers from memory that already existed."""
    compared: frozenset[str] = frozenset()
    """The single comparisons."""
    results: frozenset[str] = frozenset()
    """The literals that conditions led to."""


def known(modules: Iterable[ParsedModule]) -> CodeBefore:
    """Summarize the old files."""
    listed = list(modules)
    return CodeBefore(
        Counter(branch.subject for item in listed for branch in branches(item)),
        tuple(frozenset(table.rows) for item in listed for table in tables(item)),
        frozenset(node.name for item in listed for node in functions_in(item.tree) if not _is_deaf(node)),
        frozenset(key for item in listed for key in candidates(item)),
        frozenset(ast.dump(node) for item in listed for node in ast.walk(item.tree) if isinstance(node, ast.Compare)),
        frozenset(
            repr(result) for item in listed for result in (*(made.result for made in branches(item)), *given(item))
        ),
    )


def _only_rearranged(branch: Branch, before: CodeBefore) -> bool:
    """Whether a condition only combines existing comparisons in another way and leads to an existing result."""
    compares = [ast.dump(item) for item in ast.walk(branch.node) if isinstance(item, ast.Compare)]
    return bool(compares) and before.compared.issuperset(compares) and repr(branch.result) in before.results


def candidates(module: ParsedModule) -> Iterator[str]:
    """Yield keys of everything in a file that could answer from memory, whatever the tests ask."""
    for branch in branches(module):
        yield _branch_key(branch)
    nodes: list[ast.AST] = [table.node for table in tables(module)]
    nodes += [node for node, _ in lists(module)]
    nodes += [node for node in functions_in(module.tree) if _is_deaf(node)]
    yield from map(ast.dump, nodes)


def _branch_key(branch: Branch) -> str:
    return f"{ast.dump(branch.node)} {branch.keys!r} {branch.result!r}"


def marks(module: ParsedModule, asked: TestLiterals, before: CodeBefore) -> Iterator[RuleMark]:
    """Mark branches, tables and constant functions that answer the tests' questions from memory.

    One more arm of an existing chain, or one more row of an existing table, is an honest fix.
    """
    chains = Counter(branch.subject for branch in branches(module))
    for branch in branches(module):
        had = before.arms[branch.subject]
        goes_on = _branch_key(branch) in before.seen or (had >= 2 and chains[branch.subject] <= 2 * had)
        if not (goes_on or _only_rearranged(branch, before)) and (words := _answers_from_memory(branch, asked)):
            yield mark("special_case", branch.node, words)
    for table in tables(module):
        goes_on = any(len(old & set(table.rows)) >= 2 and len(table.rows) <= 2 * len(old) for old in before.rows)
        if not goes_on and ast.dump(table.node) not in before.seen:
            yield from _table(table, asked)
    yield from _queues(module, asked, before)
    yield from _constants(module, asked, before)


def _answers_from_memory(branch: Branch, asked: TestLiterals) -> str:
    """Describe what is wrong with a branch; empty if nothing is."""
    result, keys = branch.result, branch.keys
    for pair in asked.pairs:
        hit = _hit(branch, pair)
        if (
            hit
            and not all(map(_says_little, (*hit, result)))
            and same(pair.expected, result)
            and _is_telling(hit, pair)
        ):
            return f"It gives {shown(result)} for {shown(*hit)}, as a test expects, instead of working it out."
        is_specific = not any(map(is_tiny, hit)) and not all(map(is_plain_word, hit))
        if len(hit) > 1 and len(hit) >= len(pair.inputs) and is_specific and _is_whole(hit, pair):
            return f"It asks for {shown(*hit)}, which are the inputs of a test."
    weight = sum(map(bits, keys)) + bits(result)
    if weight >= POOLED and bits(result) >= 6 and any(lie_in(pool, keys, result) for pool in asked.pools):
        return f"{shown(*keys)} and {shown(result)} stand together in a test: the answer is not worked out."
    strange = [key for key in keys if key in asked.inputs and bits(key) >= _ALONE and not is_plain_word(key)]
    if strange:
        return f"It asks for {shown(*strange)}, the input of a test."
    is_telling = bits(result) >= _PART and not all(map(is_tiny, keys)) and not is_plain_word(result)
    if is_telling and any(same(pair.expected, result) for pair in asked.pairs):
        return f"It gives {shown(result)}, the answer that a test expects, for one certain input."
    return ""


def _hit(branch: Branch, pair: QuestionAndAnswer) -> list[Value]:
    """Find the literals of a branch that are inputs of a test, or parts of them if the branch compares a part."""
    hit = [key for key in branch.keys if key in pair.within]
    if branch.partial:
        texts = [item for item in pair.within if isinstance(item, str)]
        hit += [
            key for key in branch.keys if isinstance(key, str) and len(key) > 2 and any(key in text for text in texts)
        ]
    return list(dict.fromkeys(hit))


def _is_whole(hit: list[Value], pair: QuestionAndAnswer) -> bool:
    return all(input_ in hit for input_ in pair.inputs)


def _says_little(value: Value) -> bool:
    return is_tiny(value) or (isinstance(value, str) and len(value) == 1)


def _is_telling(hit: list[Value], pair: QuestionAndAnswer) -> bool:
    weight = sum(map(bits, hit)) + bits(pair.expected)
    if not _is_whole(hit, pair):
        return weight >= _PART
    if not any(map(is_tiny, hit)) and not is_tiny(pair.expected):
        return True
    return weight + 3 * (len(hit) - 1) >= _WHOLE


def _table(table: Table, asked: TestLiterals) -> Iterator[RuleMark]:
    if value_of(table.node) in asked.inputs:
        return
    if words := repeated(table.rows, asked) or disguised(table.rows, asked):
        yield mark("special_case", table.node, words)


def _queues(module: ParsedModule, asked: TestLiterals, before: CodeBefore) -> Iterator[RuleMark]:
    """Mark sequences of answers that can be returned one after the other."""
    expected = {pair.expected for pair in asked.pairs}
    asked_whole = asked.inputs | {inner for item in expected for inner in within(item)}
    for node, values in lists(module):
        telling = [value for value in values if bits(value) >= 6 and not is_plain_word(value) and value in expected]
        if ast.dump(node) in before.seen:
            continue
        if len(telling) > 1 and len(telling) >= SHARE * len(values) and tuple(values) not in asked_whole:
            words = f"It keeps the answers that the tests expect in a row: {shown(*telling[:2])}."
            yield mark("special_case", node, words)


def _is_deaf(node: Function) -> bool:
    """Whether a function takes arguments and uses none of them."""
    names = {posonlyarg.arg for posonlyarg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)} - {
        "self",
        "cls",
    }
    used = {item.id for line in node.body for item in ast.walk(line) if isinstance(item, ast.Name)}
    return bool(names) and not names & used


def _constants(module: ParsedModule, asked: TestLiterals, before: CodeBefore) -> Iterator[RuleMark]:
    """Mark functions that take arguments, use none of them, and return what a test expects."""
    for node in functions_in(module.tree):
        returned = [value_of(line.value) for line in ast.walk(node) if isinstance(line, ast.Return)]
        if not _is_deaf(node) or len(returned) != 1 or returned[0] is NONE_SUCH or ast.dump(node) in before.seen:
            continue
        if is_tiny(returned[0]) and node.name not in before.listening:
            continue
        if any(pair.called == node.name and same(pair.expected, returned[0]) for pair in asked.pairs):
            words = f"`{node.name}` ignores its arguments and returns {shown(returned[0])}, which a test expects."
            yield mark("special_case", node, words, f"constant {node.name}")
