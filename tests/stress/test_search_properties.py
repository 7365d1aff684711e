"""Search finds what a naive reading finds, in any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.toolkit.base.search import walk_search

WORDS = ["total", "tot", "Cart", "_x", "al"]
PIECES = st.sampled_from([*WORDS, "def ", "class ", "async def ", " ", "\n", "\r\n", "_", "(", ".", "é", "\x0c", "\t"])


@settings(deadline=None, max_examples=60)
@given(texts=st.lists(st.lists(PIECES, max_size=25).map("".join), min_size=1, max_size=3))
def test_hits_match_a_naive_reading(texts: list[str]) -> None:
    tree = {f"f{number}.py": text.encode() for number, text in enumerate(texts)}
    expected: set[tuple[str, int, str]] = set()
    for path, data in tree.items():
        for number, line in enumerate(data.split(b"\n"), 1):
            ascii_only = "".join(chr(byte) if byte < 128 else " " for byte in line)
            tokens = "".join(item if item.isalnum() or item == "_" else " " for item in ascii_only).split()
            expected |= {(path, number, word) for word in WORDS if word in tokens}
    assert {hit[:3] for hit in walk_search(tree, tree.get)(WORDS)} == expected
