"""Check whether rows of a table, in the code or in a data file, are the tests' own questions and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from redstart.toolkit.languages.python.tripwires.literals import (
    NONE_SUCH,
    QuestionAndAnswer,
    Row,
    TestLiterals,
    Value,
    estimate_bits,
    is_tiny,
)

POOLED = 18
"""The minimum bits for a question and an answer that both occur in one test to be no accident."""
SHARE = 0.75
"""The minimum share of a table's rows for it to be made for the tests; an honest table has more than they ask for."""
_TABLE_BITS = 16
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|[^\W\d]\w*")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{6,}", re.IGNORECASE)


def explain_repeated_table(rows: tuple[Row, ...], test_literals: TestLiterals) -> str:
    """Describe what is wrong with a table whose rows repeat the tests; empty if nothing is."""
    matches = [
        row
        for row in rows
        if any(_is_answer(row, pair) for pair in test_literals.pairs) or _in_a_pool(row, test_literals)
    ]
    weight = sum(estimate_bits(key) + estimate_bits(item) for key, item in matches if not is_tiny(item))
    if len(matches) >= SHARE * len(rows) and weight >= _TABLE_BITS:
        return f"The table holds the tests' own questions and answers, {format_values(matches[0][0])} for example."
    return ""


def explain_disguised_table(rows: tuple[Row, ...], test_literals: TestLiterals) -> str:
    """Do the same for a table whose keys are hashes of the tests' inputs, or the inputs written as one text."""
    hashed_results = [item for key, item in rows if is_hash_like(key) and is_expected(item, test_literals)]
    if hashed_results and len(hashed_results) >= SHARE * len(rows):
        return f"The table finds {format_values(hashed_results[0])}, which a test expects, by a hash of the input."
    written_rows = [row for row in rows if any(_is_written_out(row, pair) for pair in test_literals.pairs)]
    if written_rows and len(written_rows) >= SHARE * len(rows):
        return (
            f"The table finds {format_values(written_rows[0][1])} by the text "
            f"{format_values(written_rows[0][0])}, the inputs of a test."
        )
    return ""


def is_expected(value: Value, test_literals: TestLiterals) -> bool:
    return any(is_same(pair.expected, value) for pair in test_literals.pairs)


def is_same(expected: Value, result: Value) -> bool:
    return result is not NONE_SUCH and expected == result and isinstance(expected, bool) == isinstance(result, bool)


def is_in_pool(pool: frozenset[Value], keys: tuple[Value, ...], result: Value) -> bool:
    return result in pool and all(key in pool for key in keys)


def is_hash_like(key: Value) -> bool:
    if isinstance(key, str):
        return bool(_HEX.fullmatch(key)) and (len(key) >= 8 or key.startswith("0x"))
    return isinstance(key, int) and abs(key) > 10**7


def format_values(*values: Value) -> str:
    return ", ".join(text if len(text := repr(value)) <= 40 else text[:37] + "..." for value in values)


def _is_answer(row: Row, pair: QuestionAndAnswer) -> bool:
    key, result = row
    if not is_same(pair.expected, result):
        return False
    return key == pair.inputs or (len(pair.inputs) == 1 and key == pair.inputs[0])


def _in_a_pool(row: Row, test_literals: TestLiterals) -> bool:
    lookup_key, result = row
    keys = cast("tuple[Value, ...]", lookup_key) if isinstance(lookup_key, tuple) else (lookup_key,)
    return sum(map(estimate_bits, keys)) + estimate_bits(result) >= POOLED and any(
        is_in_pool(pool, keys, result) for pool in test_literals.pools
    )


def _is_written_out(row: Row, pair: QuestionAndAnswer) -> bool:
    """Whether the key is a text of all inputs, of several words, in their order: `([(2.5, 4)], 0)`, `1000,5,2`."""
    key, result = row
    if not isinstance(key, str) or not is_same(pair.expected, result) or pair.inputs == (key,):
        return False
    key_tokens, inputs = list(_tokenize(key)), [token for input_ in pair.inputs for token in _tokenize(repr(input_))]
    starts = range(len(key_tokens) - len(inputs) + 1)
    return len(inputs) > 1 and any(key_tokens[start : start + len(inputs)] == inputs for start in starts)


def _tokenize(text: str) -> Iterator[str | float]:
    for token in _TOKEN.findall(text):
        yield float(token) if token[-1].isdigit() and token[0] in "-0123456789" else token
