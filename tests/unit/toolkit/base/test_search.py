from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.toolkit.base.code_files import MAX_BYTES
from redstart.toolkit.base.search import COMMON, Search, WordHit, ripgrep_search, walk_search

TREE = {
    "src/cart.py": b"class Cart:\n    async def total(self):\n        return total(self, total)\n",
    "src/odd.py": b"def totals(): ...\nsubtotal = 1\r\n# total\xc3\xa9 total\xff\x0c total",
    "build/gen.py": b"total = Cart",
    ".github/notes.md": b"the total of a Cart",
    ".gitignore": b"build/\n*.md\n",
    "data.bin": b"total",
    "photo.txt": b"total\0\0",
    "huge.json": b"total " * (MAX_BYTES // 6 + 1),
    "edge.json": b" " * (MAX_BYTES - 6) + b" total",
    "wide.cfg": "total Cart".encode("utf-16"),
    "main.go": b"func total() {}\n",
    "mark.txt": b"\xff\xfetotal!",
    "says.md": b"# def total\n",
    "a b:c.toml": b"\n\nCart = 'x-Cart-y'\n",
    "empty.py": b"",
}
EXPECTED = [
    WordHit(".github/notes.md", 1, "Cart", False),
    WordHit(".github/notes.md", 1, "total", False),
    WordHit("a b:c.toml", 3, "Cart", False),
    WordHit("build/gen.py", 1, "Cart", False),
    WordHit("build/gen.py", 1, "total", False),
    WordHit("edge.json", 1, "total", False),
    WordHit("main.go", 1, "total", False),
    WordHit("mark.txt", 1, "total", False),
    WordHit("says.md", 1, "total", False),
    WordHit("src/cart.py", 1, "Cart", True),
    WordHit("src/cart.py", 2, "total", True),
    WordHit("src/cart.py", 3, "total", False),
    WordHit("src/odd.py", 3, "total", False),
]


def written(folder: Path, tree: Mapping[str, bytes]) -> Path:
    for path, data in tree.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return folder


@pytest.fixture(params=["walk", "ripgrep", "ripgrep missing"])
def search(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    if request.param == "walk":
        return walk_search(TREE, TREE.get)
    folder = written(tmp_path, TREE)
    (folder / "link.py").symlink_to("src/cart.py")
    written(folder, {".git/total.txt": b"total"})
    if request.param == "ripgrep":
        if shutil.which("rg") is None:
            pytest.skip("no ripgrep here")
    else:
        monkeypatch.setenv("PATH", os.devnull)
    return ripgrep_search(folder)


@pytest.mark.slow
def test_every_way_gives_the_same_hits(search: Search) -> None:
    assert search(["total", "Cart", "total"]) == EXPECTED


def test_what_is_no_identifier_is_passed_over(search: Search) -> None:
    assert search(["", "x-y", "a.b", "*", "--help", "é"]) == []
    assert search([]) == []


@pytest.mark.slow
def test_ripgrep_itself_is_used_where_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("rg") is None:
        pytest.skip("no ripgrep here")
    calls: list[list[str]] = []
    run = subprocess.run

    def recorded(command: list[str], **options: object) -> object:
        calls.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", recorded)
    assert ripgrep_search(written(tmp_path, TREE))(["Cart", "total"]) == EXPECTED
    assert len(calls) == 1


@pytest.mark.parametrize("count", [COMMON, COMMON + 1])
def test_a_word_that_is_everywhere_is_not_given(count: int) -> None:
    tree = {f"m{number}.py": b"common()\n" for number in range(count)} | {"rare.py": b"rare()\n"}
    hits = walk_search(tree, tree.get)(["common", "rare"])
    assert len(hits) == (COMMON + 1 if count == COMMON else 1)
    assert WordHit("rare.py", 1, "rare", False) in hits


def test_each_file_is_read_once_however_often_one_asks() -> None:
    reads: list[str] = []

    def read(path: str) -> bytes | None:
        reads.append(path)
        return TREE.get(path)

    search = walk_search([*TREE, "gone.py"], read)
    assert search(["total"]) == search(["total"]) != []
    assert len(reads) == len(set(reads))


WORDS = ["total", "tot", "Cart", "_x", "al"]
PIECES = st.sampled_from([*WORDS, "def ", "class ", "async def ", " ", "\n", "\r\n", "_", "(", ".", "é", "\x0c", "\t"])


@settings(deadline=None, max_examples=60)
@given(texts=st.lists(st.lists(PIECES, max_size=25).map("".join), min_size=1, max_size=3))
def test_hits_are_what_a_reader_would_find(texts: list[str]) -> None:
    tree = {f"f{number}.py": text.encode() for number, text in enumerate(texts)}
    expected: set[tuple[str, int, str]] = set()
    for path, data in tree.items():
        for number, line in enumerate(data.split(b"\n"), 1):
            ascii_only = "".join(chr(byte) if byte < 128 else " " for byte in line)
            tokens = "".join(item if item.isalnum() or item == "_" else " " for item in ascii_only).split()
            expected |= {(path, number, word) for word in WORDS if word in tokens}
    assert {hit[:3] for hit in walk_search(tree, tree.get)(WORDS)} == expected
