from __future__ import annotations

import math
import subprocess
import sys
from operator import mul

import pytest

from redstart.ports.memory.hashing import DIMENSION, HashingEmbedder, embed_text

ERROR = "KeyError\n'price'\nshop/cart.py:Cart.total"


def compute_similarity(text: str, other_text: str) -> float:
    return sum(map(mul, embed_text(text), embed_text(other_text)))


@pytest.mark.slow
def test_embedding_is_the_same_in_another_process() -> None:
    code = f"from redstart.ports.memory.hashing import embed_text; print(embed_text({ERROR!r}))"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == str(embed_text(ERROR))


async def test_embedding_has_unit_length_or_is_zero() -> None:
    embedder = HashingEmbedder()
    places = await embedder.embed([ERROR, "", "\n \n", "<>", "x" * 10_000])
    assert [len(place) for place in places] == [DIMENSION] * 5 == [embedder.dimension] * 5
    lengths = [math.sqrt(sum(item * item for item in place)) for place in places]
    assert lengths == pytest.approx([1, 0, 0, 0, 1])


@pytest.mark.parametrize(
    ("near_text", "far_text"),
    [
        ("KeyError\n'prices'\nshop/cart.py:Cart.total", "KeyError\n'name'\nmail/letter.py:Letter.send"),
        ("KeyError\n'price'\nshop/cart.py:Cart.sum", "ValueError\n'price'\nmail/letter.py:Letter.send"),
        ("KeyError\n'price'\nshop/cart.py:Cart.total\nThe price was taken for granted.", "ZeroDivisionError"),
        ("KEYERROR\n'Price'\nshop cart Cart total", "KeyError\n'name'"),
    ],
)
def test_similar_texts_have_nearer_embeddings(near_text: str, far_text: str) -> None:
    assert compute_similarity(ERROR, near_text) > HashingEmbedder.near > compute_similarity(ERROR, far_text)
    assert compute_similarity(ERROR, near_text) > compute_similarity(ERROR, far_text) + 0.1


def test_long_line_does_not_outweigh_the_others() -> None:
    assert compute_similarity(ERROR, f"{ERROR}\n{'lorem ipsum dolor sit amet ' * 50}") > 0.8
