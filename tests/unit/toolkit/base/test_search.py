from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from redstart.toolkit.base.code_files import MAX_BYTES
from redstart.toolkit.base.search import MAX_FILES_PER_WORD, Search, WordHit, ripgrep_search, walk_search

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


def write_tree(folder: Path, tree: Mapping[str, bytes]) -> Path:
    for path, data in tree.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return folder


@pytest.fixture(params=["walk", "ripgrep", "ripgrep missing"])
def search(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    if request.param == "walk":
        return walk_search(TREE, TREE.get)
    folder = write_tree(tmp_path, TREE)
    (folder / "link.py").symlink_to("src/cart.py")
    write_tree(folder, {".git/total.txt": b"total"})
    if request.param == "ripgrep":
        if shutil.which("rg") is None:
            pytest.skip("no ripgrep here")
    else:
        monkeypatch.setenv("PATH", os.devnull)
    return ripgrep_search(folder)


@pytest.mark.slow
def test_every_search_method_gives_the_same_hits(search: Search) -> None:
    assert search(["total", "Cart", "total"]) == EXPECTED


def test_words_that_are_not_identifiers_are_skipped(search: Search) -> None:
    assert search(["", "x-y", "a.b", "*", "--help", "é"]) == []
    assert search([]) == []


@pytest.mark.slow
def test_ripgrep_is_used_if_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("rg") is None:
        pytest.skip("no ripgrep here")
    calls: list[list[str]] = []
    run = subprocess.run

    def record_command(command: list[str], **options: object) -> object:
        calls.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", record_command)
    assert ripgrep_search(write_tree(tmp_path, TREE))(["Cart", "total"]) == EXPECTED
    assert len(calls) == 1


@pytest.mark.parametrize("count", [MAX_FILES_PER_WORD, MAX_FILES_PER_WORD + 1])
def test_very_common_word_is_omitted(count: int) -> None:
    tree = {f"m{number}.py": b"common()\n" for number in range(count)} | {"rare.py": b"rare()\n"}
    hits = walk_search(tree, tree.get)(["common", "rare"])
    assert len(hits) == (MAX_FILES_PER_WORD + 1 if count == MAX_FILES_PER_WORD else 1)
    assert WordHit("rare.py", 1, "rare", False) in hits


def test_each_file_is_read_only_once() -> None:
    reads: list[str] = []

    def read(path: str) -> bytes | None:
        reads.append(path)
        return TREE.get(path)

    search = walk_search([*TREE, "gone.py"], read)
    assert search(["total"]) == search(["total"]) != []
    assert len(reads) == len(set(reads))
