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
_SAMPLE_WORDS = ("stone", "river", "amber", "lantern", "meadow", "copper")
_NONZERO_DIGITS = "123456789"
_MIN_WORDS = 3
_MAX_INTEGER = 10**9


class NearInput(NamedTuple):
    source: str
    literal: int
    """The index of the literal that differs."""


def generate_near_inputs(expression: ast.expr, chance: random.Random) -> list[NearInput]:
    """Generate at most `MAX_NEAR_INPUTS` other expressions, spread evenly over the literals."""
    count = len(_find_literals(expression))
    waiting = [
        (index, _generate_values(constant.value, chance)) for index, constant in enumerate(_find_literals(expression))
    ]
    chance.shuffle(waiting)
    sources: dict[str, int] = {}
    own_source = ast.unparse(expression)
    for round_ in range(MOST_NEAR if count else 0):
        for index, values in waiting:
            if round_ < len(values) and len(sources) < MOST_NEAR:
                sources.setdefault(_with_literal(expression, index, values[round_]), index)
    sources.pop(own_source, None)
    return [NearInput(source, literal) for source, literal in sources.items()]


def is_boundary(expression: ast.expr) -> bool:
    """Whether every argument is one that code must treat specially: empty, None, 0, +-1, or with a single element."""
    arguments = [
        argument for call in ast.walk(expression) if is_project_call(call) for argument in _list_arguments(call)
    ]
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


def _list_arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _find_literals(expression: ast.expr) -> list[ast.Constant]:
    """Find the literals in the arguments of calls into the project, in source order."""
    literals: dict[int, ast.Constant] = {}
    for call in ast.walk(expression):
        if is_project_call(call):
            for argument in _list_arguments(call):
                literals.update((id(constant), constant) for constant in _walk_literals(argument))
    return list(literals.values())


def _walk_literals(node: ast.expr) -> Iterator[ast.Constant]:
    match node:
        case ast.Constant():
            yield node
        case ast.UnaryOp(operand=operand):
            yield from _walk_literals(operand)
        case ast.BinOp(left=left, right=right):
            yield from _walk_literals(left)
            yield from _walk_literals(right)
        case ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values) | ast.Dict(values=values):
            for value in values:
                yield from _walk_literals(value)
        case ast.Call():
            for argument in _list_arguments(node):
                yield from _walk_literals(argument)
        case _:
            return


def _with_literal(expression: ast.expr, index: int, value: object) -> str:
    copy = deepcopy(expression)
    _find_literals(copy)[index].value = value  # type: ignore[assignment]  # of the same type as before
    return ast.unparse(copy)


def _generate_values(value: object, chance: random.Random) -> list[object]:
    """Generate values of the same type near this one, the most revealing first."""
    match value:
        case bool():
            return []
        case int() if abs(value) <= _MAX_INTEGER:
            candidates = [value + 1, value - 1, value + 2, value - 2, value + 10]
            chance.shuffle(candidates)
            return [
                candidate
                for candidate in (2 * value, *candidates)
                if candidate != value and (candidate >= 0 or value < 0)
            ]
        case float() if math.isfinite(value):
            candidates = [value + 0.5, value * 1.1, value + 1, value + 2]
            chance.shuffle(candidates)
            return [candidate for candidate in candidates if candidate != value]
        case str():
            return list(_change_text(value, chance))
        case bytes():
            return [text.encode("latin-1") for text in _change_text(value.decode("latin-1"), chance)]
        case _:
            return []


def _change_text(text: str, chance: random.Random) -> Iterator[str]:
    """Change one letter or digit, or a whole word of a longer text. Spaces and punctuation stay."""
    word_matches = list(_WORD.finditer(text))
    places = [position for position, letter in enumerate(text) if letter in string.ascii_letters + string.digits]
    positions = _pick_positions(places, chance)
    for number, position in enumerate(positions):
        if number == 1 and len(word_matches) >= _MIN_WORDS:
            match = chance.choice(word_matches)
            yield text[: match.start()] + _match_case(chance.choice(_SAMPLE_WORDS), match.group()) + text[match.end() :]
        yield text[:position] + _pick_other_letter(text[position], chance) + text[position + 1 :]


def _pick_positions(places: Sequence[int], chance: random.Random) -> list[int]:
    """Pick one position from each part of the text in random order, then others; a short text repeats positions."""
    size = max(len(places) / MOST_NEAR, 1.0)
    parts = [places[int(index * size) : int((index + 1) * size)] for index in range(MOST_NEAR)]
    picked = [chance.choice(part) for part in parts if part]
    remaining = [place for place in places if place not in picked]
    chance.shuffle(picked)
    chance.shuffle(remaining)
    return list(islice(cycle([*picked, *remaining]), 2 * MOST_NEAR)) if places else []


def _pick_other_letter(letter: str, chance: random.Random) -> str:
    kinds = (string.ascii_lowercase, string.ascii_uppercase, _NONZERO_DIGITS)
    kind = next((kind for kind in kinds if letter in kind), _NONZERO_DIGITS)
    return chance.choice([candidate for candidate in kind if candidate != letter])


def _match_case(word: str, original: str) -> str:
    if original.isupper():
        return word.upper()
    return word.capitalize() if original[0].isupper() else word
