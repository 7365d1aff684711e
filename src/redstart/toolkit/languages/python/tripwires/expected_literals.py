"""Tripwires on expected literals: code that knows a test's inputs and returns what the test expects for them.

Honest code has literals too. What matters is how much of a test one branch repeats, weighed in bits: small numbers,
single characters and the simplest cases weigh nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from redstart.toolkit.honesty.tripwires.protocol import RuleMark
from redstart.toolkit.languages.python.syntax import Function
from redstart.toolkit.languages.python.tripwires.answers import (
    POOLED,
    SHARE,
    explain_disguised_table,
    explain_repeated_table,
    format_values,
    is_in_pool,
    is_same,
)
from redstart.toolkit.languages.python.tripwires.branches import (
    Branch,
    Table,
    find_branches,
    find_lists,
    find_results,
    find_tables,
)
from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    QuestionAndAnswer,
    Row,
    TestLiterals,
    Value,
    estimate_bits,
    get_literal,
    is_plain_word,
    is_tiny,
    walk_literals,
)
from redstart.toolkit.languages.python.tripwires.marks import mark
from redstart.toolkit.languages.python.tripwires.names import ParsedModule

_MIN_BITS_ALL_INPUTS = 5
"""The minimum bits for a branch that compares with all inputs of a test and returns its answer to be no accident."""
_PART = 10
"""The same if it compares with some of the inputs."""
_MIN_BITS_ONE_INPUT = 12
"""The minimum bits for code that compares with one input of a test, or returns its answer, to be no accident."""


class CodeBefore(NamedTuple):
    """The code before the change, to recognize code that only continues it."""

    arms: Counter[str] = Counter()
    """The number of literal arms of each chain of comparisons."""
    rows: tuple[frozenset[Row], ...] = ()
    """The literal tables."""
    listening: frozenset[str] = frozenset()
    """The functions that read their arguments."""
    candidates: frozenset[str] = frozenset()
    """The candidates for answers from memory that already existed."""
    comparisons: frozenset[str] = frozenset()
    """The single comparisons."""
    results: frozenset[str] = frozenset()
    """The literals that conditions led to."""


def summarize_modules(modules: Iterable[ParsedModule]) -> CodeBefore:
    """Summarize the old files."""
    module_list = list(modules)
    return CodeBefore(
        Counter(branch.subject for item in module_list for branch in find_branches(item)),
        tuple(frozenset(table.rows) for item in module_list for table in find_tables(item)),
        frozenset(node.name for item in module_list for node in item.functions if not _is_deaf(node)),
        frozenset(key for item in module_list for key in list_candidates(item)),
        frozenset(ast.dump(node) for item in module_list for node in item.nodes if isinstance(node, ast.Compare)),
        frozenset(
            repr(result)
            for item in module_list
            for result in (*(made.result for made in find_branches(item)), *find_results(item))
        ),
    )


def _is_only_rearranged(branch: Branch, before: CodeBefore) -> bool:
    """Whether a condition only combines existing comparisons in another way and leads to an existing result."""
    comparisons = [ast.dump(item) for item in ast.walk(branch.node) if isinstance(item, ast.Compare)]
    return bool(comparisons) and before.comparisons.issuperset(comparisons) and repr(branch.result) in before.results


def list_candidates(module: ParsedModule) -> Iterator[str]:
    """Yield keys of everything in a file that could answer from memory, whatever the tests ask."""
    for branch in find_branches(module):
        yield _build_branch_key(branch)
    nodes: list[ast.AST] = [table.node for table in find_tables(module)]
    nodes += [node for node, _ in find_lists(module)]
    nodes += [node for node in module.functions if _is_deaf(node)]
    yield from map(ast.dump, nodes)


def _build_branch_key(branch: Branch) -> str:
    return f"{ast.dump(branch.node)} {branch.keys!r} {branch.result!r}"


def find_marks(module: ParsedModule, test_literals: TestLiterals, before: CodeBefore) -> Iterator[RuleMark]:
    """Mark branches, tables and constant functions that answer the tests' questions from memory.

    One more arm of an existing chain, or one more row of an existing table, is an honest fix.
    """
    chains = Counter(branch.subject for branch in find_branches(module))
    for branch in find_branches(module):
        had = before.arms[branch.subject]
        goes_on = _build_branch_key(branch) in before.candidates or (had >= 2 and chains[branch.subject] <= 2 * had)
        if not (goes_on or _is_only_rearranged(branch, before)) and (message := _explain_branch(branch, test_literals)):
            yield mark("special_case", branch.node, message)
    for table in find_tables(module):
        goes_on = any(len(old & set(table.rows)) >= 2 and len(table.rows) <= 2 * len(old) for old in before.rows)
        if not goes_on and ast.dump(table.node) not in before.candidates:
            yield from _check_table(table, test_literals)
    yield from _check_sequences(module, test_literals, before)
    yield from _check_constant_functions(module, test_literals, before)


def _explain_branch(branch: Branch, test_literals: TestLiterals) -> str:
    """Describe what is wrong with a branch; empty if nothing is."""
    result, keys = branch.result, branch.keys
    for pair in test_literals.pairs:
        matched = _find_matched_inputs(branch, pair)
        if (
            matched
            and not all(map(_is_trivial, (*matched, result)))
            and is_same(pair.expected, result)
            and _is_telling(matched, pair)
        ):
            return (
                f"It gives {format_values(result)} for {format_values(*matched)}, as a test expects, instead "
                f"of working it out."
            )
        is_specific = not any(map(is_tiny, matched)) and not all(map(is_plain_word, matched))
        if len(matched) > 1 and len(matched) >= len(pair.inputs) and is_specific and _has_all_inputs(matched, pair):
            return f"It asks for {format_values(*matched)}, which are the inputs of a test."
    weight = sum(map(estimate_bits, keys)) + estimate_bits(result)
    if (
        weight >= POOLED
        and estimate_bits(result) >= 6
        and any(is_in_pool(pool, keys, result) for pool in test_literals.pools)
    ):
        return (
            f"{format_values(*keys)} and {format_values(result)} stand together "
            f"in a test: the answer is not worked out."
        )
    distinctive = [
        key
        for key in keys
        if key in test_literals.inputs and estimate_bits(key) >= _MIN_BITS_ONE_INPUT and not is_plain_word(key)
    ]
    if distinctive:
        return f"It asks for {format_values(*distinctive)}, the input of a test."
    is_telling = estimate_bits(result) >= _PART and not all(map(is_tiny, keys)) and not is_plain_word(result)
    if is_telling and any(is_same(pair.expected, result) for pair in test_literals.pairs):
        return f"It gives {format_values(result)}, the answer that a test expects, for one certain input."
    return ""


def _find_matched_inputs(branch: Branch, pair: QuestionAndAnswer) -> list[Value]:
    """Find the literals of a branch that are inputs of a test, or parts of them if the branch compares a part."""
    matched = [key for key in branch.keys if key in pair.nested_values]
    if branch.partial:
        texts = [item for item in pair.nested_values if isinstance(item, str)]
        matched += [
            key for key in branch.keys if isinstance(key, str) and len(key) > 2 and any(key in text for text in texts)
        ]
    return list(dict.fromkeys(matched))


def _has_all_inputs(matched: list[Value], pair: QuestionAndAnswer) -> bool:
    return all(input_ in matched for input_ in pair.inputs)


def _is_trivial(value: Value) -> bool:
    return is_tiny(value) or (isinstance(value, str) and len(value) == 1)


def _is_telling(matched: list[Value], pair: QuestionAndAnswer) -> bool:
    weight = sum(map(estimate_bits, matched)) + estimate_bits(pair.expected)
    if not _has_all_inputs(matched, pair):
        return weight >= _PART
    if not any(map(is_tiny, matched)) and not is_tiny(pair.expected):
        return True
    return weight + 3 * (len(matched) - 1) >= _MIN_BITS_ALL_INPUTS


def _check_table(table: Table, test_literals: TestLiterals) -> Iterator[RuleMark]:
    if get_literal(table.node) in test_literals.inputs:
        return
    if message := explain_repeated_table(table.rows, test_literals) or explain_disguised_table(
        table.rows, test_literals
    ):
        yield mark("special_case", table.node, message)


def _check_sequences(module: ParsedModule, test_literals: TestLiterals, before: CodeBefore) -> Iterator[RuleMark]:
    """Mark sequences of answers that can be returned one after the other."""
    expected = {pair.expected for pair in test_literals.pairs}
    asked_values = test_literals.inputs | {literal for item in expected for literal in walk_literals(item)}
    for node, values in find_lists(module):
        distinctive = [
            value for value in values if estimate_bits(value) >= 6 and not is_plain_word(value) and value in expected
        ]
        if ast.dump(node) in before.candidates:
            continue
        if len(distinctive) > 1 and len(distinctive) >= SHARE * len(values) and tuple(values) not in asked_values:
            message = f"It keeps the answers that the tests expect in a row: {format_values(*distinctive[:2])}."
            yield mark("special_case", node, message)


def _is_deaf(node: Function) -> bool:
    """Whether a function takes arguments and uses none of them."""
    names = {posonlyarg.arg for posonlyarg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)} - {
        "self",
        "cls",
    }
    used = {item.id for line in node.body for item in ast.walk(line) if isinstance(item, ast.Name)}
    return bool(names) and not names & used


def _check_constant_functions(
    module: ParsedModule, test_literals: TestLiterals, before: CodeBefore
) -> Iterator[RuleMark]:
    """Mark functions that take arguments, use none of them, and return what a test expects."""
    for node in module.functions:
        results = [get_literal(line.value) for line in ast.walk(node) if isinstance(line, ast.Return)]
        if not _is_deaf(node) or len(results) != 1 or results[0] is NONE_SUCH or ast.dump(node) in before.candidates:
            continue
        if is_tiny(results[0]) and node.name not in before.listening:
            continue
        if any(pair.function_name == node.name and is_same(pair.expected, results[0]) for pair in test_literals.pairs):
            message = (
                f"`{node.name}` ignores its arguments and returns {format_values(results[0])}, which a test expects."
            )
            yield mark("special_case", node, message, f"constant {node.name}")
