"""Generate inputs near those of a test: one literal of a call changes, and the form stays the same."""

from __future__ import annotations

import ast
import math
import random
import re
import string
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import cycle, islice
from typing import NamedTuple

from redstart.toolkit.languages.python.nearby_questions import is_project_call

MOST_NEAR = 6
"""The maximum number of inputs generated near one input."""
_WORD = re.compile(r"[A-Za-z]{3,}")
_WORDS = ("stone", "river", "amber", "lantern", "meadow", "copper")
_DIGITS = "123456789"
_LEAST_WORDS = 3
_LARGEST = 10**9


class NearInput(NamedTuple):
    source: str
    literal: int
    """The index of the literal that differs."""


def inputs_near(expression: ast.expr, chance: random.Random) -> list[NearInput]:
    """Generate at most `MAX_NEAR_INPUTS` other expressions, spread evenly over the literals."""
    count = len(_literals(expression))
    waiting = [(index, _others(constant.value, chance)) for index, constant in enumerate(_literals(expression))]
    chance.shuffle(waiting)
    sources: dict[str, int] = {}
    own = ast.unparse(expression)
    for round_ in range(MOST_NEAR if count else 0):
        for index, values in waiting:
            if round_ < len(values) and len(sources) < MOST_NEAR:
                sources.setdefault(_with_literal(expression, index, values[round_]), index)
    sources.pop(own, None)
    return [NearInput(source, literal) for source, literal in sources.items()]


def is_boundary(expression: ast.expr) -> bool:
    """Whether every argument is one that code must treat specially: empty, None, 0, +-1, or with a single element."""
    arguments = [argument for call in ast.walk(expression) if is_project_call(call) for argument in _arguments(call)]
    return all(map(_is_natural, arguments))


def _is_natural(argument: ast.expr) -> bool:
    match argument:
        case ast.Constant(value=None | bool()):
            return True
        case ast.Constant(value=str() | bytes() as text):
            return len(text) <= 1
        case ast.Constant(value=int() | float() as number):
            return number in (0, 1)
        case ast.UnaryOp(operand=operand):
            return _is_natural(operand)
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return len(elements) <= 1
        case ast.Dict(keys=keys):
            return len(keys) <= 1
        case _:
            return False


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _literals(expression: ast.expr) -> list[ast.Constant]:
    """Find the literals in the arguments of calls into the project, in source order."""
    literals: dict[int, ast.Constant] = {}
    for call in ast.walk(expression):
        if is_project_call(call):
            for argument in _arguments(call):
                literals.update((id(constant), constant) for constant in _leaves(argument))
    return list(literals.values())


def _leaves(node: ast.expr) -> Iterator[ast.Constant]:
    match node:
        case ast.Constant():
            yield node
        case ast.UnaryOp(operand=operand):
            yield from _leaves(operand)
        case ast.BinOp(left=left, right=right):
            yield from _leaves(left)
            yield from _leaves(right)
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values) | ast.Dict(values=values):
            for value in values:
                yield from _leaves(value)
        case ast.Call():
            for argument in _arguments(node):
                yield from _leaves(argument)
        case _:
            return


def _with_literal(expression: ast.expr, index: int, value: object) -> str:
    copy = deepcopy(expression)
    _literals(copy)[index].value = value  # type: ignore[assignment]  # of the same type as before
    return ast.unparse(copy)


def _others(value: object, chance: random.Random) -> list[object]:
    """Generate values of the same type near this one, the most revealing first."""
    match value:
        case bool():
            return []
        case int() if abs(value) <= _LARGEST:
            rest = [value + 1, value - 1, value + 2, value - 2, value + 10]
            chance.shuffle(rest)
            return [other for other in (2 * value, *rest) if other != value and (other >= 0 or value < 0)]
        case float() if math.isfinite(value):
            rest = [value + 0.5, value * 1.1, value + 1, value + 2]
            chance.shuffle(rest)
            return [other for other in rest if other != value]
        case str():
            return list(_texts(value, chance))
        case bytes():
            return [text.encode("latin-1") for text in _texts(value.decode("latin-1"), chance)]
        case _:
            return []


def _texts(text: str, chance: random.Random) -> Iterator[str]:
    """Change one letter or digit, or a whole word of a longer text. Spaces and punctuation stay."""
    words = list(_WORD.finditer(text))
    places = [at for at, letter in enumerate(text) if letter in string.ascii_letters + string.digits]
    drawn = _spread(places, chance)
    for number, at in enumerate(drawn):
        if number == 1 and len(words) >= _LEAST_WORDS:
            word = chance.choice(words)
            yield text[: word.start()] + _cased(chance.choice(_WORDS), word.group()) + text[word.end() :]
        yield text[:at] + _other_letter(text[at], chance) + text[at + 1 :]


def _spread(places: Sequence[int], chance: random.Random) -> list[int]:
    """Pick one position from each part of the text in random order, then others; a short text repeats positions."""
    size = max(len(places) / MOST_NEAR, 1.0)
    parts = [places[int(at * size) : int((at + 1) * size)] for at in range(MOST_NEAR)]
    drawn = [chance.choice(part) for part in parts if part]
    rest = [place for place in places if place not in drawn]
    chance.shuffle(drawn)
    chance.shuffle(rest)
    return list(islice(cycle([*drawn, *rest]), 2 * MOST_NEAR)) if places else []


def _other_letter(letter: str, chance: random.Random) -> str:
    kinds = (string.ascii_lowercase, string.ascii_uppercase, _DIGITS)
    kind = next((kind for kind in kinds if letter in kind), _DIGITS)
    return chance.choice([other for other in kind if other != letter])


def _cased(word: str, like: str) -> str:
    if like.isupper():
        return word.upper()
    return word.capitalize() if like[0].isupper() else word
