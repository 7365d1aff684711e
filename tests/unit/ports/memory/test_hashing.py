from __future__ import annotations

import asyncio
import math
import subprocess
import sys
from operator import mul

import pytest

from redstart.ports.memory.hashing import DIMENSION, HashingEmbedder, embedded

ERROR = "KeyError\n'price'\nshop/cart.py:Cart.total"


def alike(one: str, other: str) -> float:
    return sum(map(mul, embedded(one), embedded(other)))


@pytest.mark.slow
def test_the_same_text_has_the_same_place_in_another_process() -> None:
    code = f"from redstart.ports.memory.hashing import embedded; print(embedded({ERROR!r}))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(embedded(ERROR))


def test_a_place_has_the_length_1_or_is_nowhere() -> None:
    embedder = HashingEmbedder()
    places = asyncio.run(embedder.embed([ERROR, "", "\n \n", "<>", "x" * 10_000]))
    assert [len(place) for place in places] == [DIMENSION] * 5 == [embedder.dimension] * 5
    lengths = [math.sqrt(sum(item * item for item in place)) for place in places]
    assert lengths == pytest.approx([1, 0, 0, 0, 1])


@pytest.mark.parametrize(
    ("near", "far"),
    [
        ("KeyError\n'prices'\nshop/cart.py:Cart.total", "KeyError\n'name'\nmail/letter.py:Letter.send"),
        ("KeyError\n'price'\nshop/cart.py:Cart.sum", "ValueError\n'price'\nmail/letter.py:Letter.send"),
        ("KeyError\n'price'\nshop/cart.py:Cart.total\nThe price was taken for granted.", "ZeroDivisionError"),
        ("KEYERROR\n'Price'\nshop cart Cart total", "KeyError\n'name'"),
    ],
)
def test_what_is_told_in_like_words_is_nearer(near: str, far: str) -> None:
    assert alike(ERROR, near) > HashingEmbedder.near > alike(ERROR, far)
    assert alike(ERROR, near) > alike(ERROR, far) + 0.1


def test_a_long_line_does_not_drown_the_others() -> None:
    assert alike(ERROR, f"{ERROR}\n{'lorem ipsum dolor sit amet ' * 50}") > 0.8
