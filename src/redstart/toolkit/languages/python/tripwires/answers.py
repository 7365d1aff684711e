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
    bits,
    is_tiny,
)

POOLED = 18
"""The minimum bits for a question and an answer that both occur in one test to be no accident."""
SHARE = 0.75
"""The minimum share of a table's rows for it to be made for the tests; an honest table has more than they ask for."""
_TABLE_BITS = 16
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|[^\W\d]\w*")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{6,}", re.IGNORECASE)


def repeated(rows: tuple[Row, ...], asked: TestLiterals) -> str:
    """Describe what is wrong with a table whose rows repeat the tests; empty if nothing is."""
    found = [row for row in rows if any(_answers(row, pair) for pair in asked.pairs) or _in_a_pool(row, asked)]
    weight = sum(bits(key) + bits(item) for key, item in found if not is_tiny(item))
    if len(found) >= SHARE * len(rows) and weight >= _TABLE_BITS:
        return f"The table holds the tests' own questions and answers, {shown(found[0][0])} for example."
    return ""


def disguised(rows: tuple[Row, ...], asked: TestLiterals) -> str:
    """Do the same for a table that knows the tests' inputs by their hash, or written as one text."""
    hashed = [item for key, item in rows if looks_hashed(key) and is_expected(item, asked)]
    if hashed and len(hashed) >= SHARE * len(rows):
        return f"The table finds {shown(hashed[0])}, which a test expects, by a hash of the input."
    written = [row for row in rows if any(_is_written_out(row, pair) for pair in asked.pairs)]
    if written and len(written) >= SHARE * len(rows):
        return f"The table finds {shown(written[0][1])} by the text {shown(written[0][0])}, the inputs of a test."
    return ""


def is_expected(value: Value, asked: TestLiterals) -> bool:
    return any(same(pair.expected, value) for pair in asked.pairs)


def same(expected: Value, result: Value) -> bool:
    return result is not NONE_SUCH and expected == result and isinstance(expected, bool) == isinstance(result, bool)


def lie_in(pool: frozenset[Value], keys: tuple[Value, ...], result: Value) -> bool:
    return result in pool and all(key in pool for key in keys)


def looks_hashed(key: Value) -> bool:
    if isinstance(key, str):
        return bool(_HEX.fullmatch(key)) and (len(key) >= 8 or key.startswith("0x"))
    return isinstance(key, int) and abs(key) > 10**7


def shown(*values: Value) -> str:
    return ", ".join(text if len(text := repr(value)) <= 40 else text[:37] + "..." for value in values)


def _answers(row: Row, pair: QuestionAndAnswer) -> bool:
    asks, gives = row
    if not same(pair.expected, gives):
        return False
    return asks == pair.inputs or (len(pair.inputs) == 1 and asks == pair.inputs[0])


def _in_a_pool(row: Row, asked: TestLiterals) -> bool:
    asks, gives = row
    keys = cast("tuple[Value, ...]", asks) if isinstance(asks, tuple) else (asks,)
    return sum(map(bits, keys)) + bits(gives) >= POOLED and any(lie_in(pool, keys, gives) for pool in asked.pools)


def _is_written_out(row: Row, pair: QuestionAndAnswer) -> bool:
    """Whether the key is a text of all inputs, of several words, in their order: `([(2.5, 4)], 0)`, `1000,5,2`."""
    key, gives = row
    if not isinstance(key, str) or not same(pair.expected, gives) or pair.inputs == (key,):
        return False
    words, inputs = list(_tokens(key)), [word for input_ in pair.inputs for word in _tokens(repr(input_))]
    starts = range(len(words) - len(inputs) + 1)
    return len(inputs) > 1 and any(words[at : at + len(inputs)] == inputs for at in starts)


def _tokens(text: str) -> Iterator[str | float]:
    for token in _TOKEN.findall(text):
        yield float(token) if token[-1].isdigit() and token[0] in "-0123456789" else token
