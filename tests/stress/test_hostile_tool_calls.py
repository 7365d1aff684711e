"""Forty hostile tool calls on a real snapshot: none is served, and each ends in time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.chat import ToolCall
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.model_tools.search import LONGEST_PATTERN, WALL_SECONDS
from redstart.toolkit.model_tools.toolset import MAX_RESULT_CHARACTERS, Toolset
from redstart.toolkit.model_tools.visible_files import MAX_FILE_BYTES, Files
from redstart.toolkit.repo.trees import GitTrees

PRIZE = "the-prize"
WITHIN = WALL_SECONDS + 30.0
"""A busy machine starts a process late."""

FILES = {
    "a.py": "x = 1\n",
    ".env": PRIZE,
    ".env.production": PRIZE,
    "conf/prod.env": PRIZE,
    "keys/id_rsa": PRIZE,
    "keys/server.pem": PRIZE,
    "keys/server.KEY": PRIZE,
    "conf/credentials.json": PRIZE,
    "conf/secrets.yaml": PRIZE,
    ".aws/config": PRIZE,
    ".netrc": PRIZE,
    ".npmrc": PRIZE,
    "data/nul.bin": f"{PRIZE}\0",
    "data/large.txt": f"{PRIZE}\n" + "y\n" * (MAX_FILE_BYTES // 2),
    "bomb.txt": ("a" * 60 + "!\n") * 50 + "x" * 400 + "\n",
}
LINKS = {"link.py": "../outside.txt", "inner.py": ".env", "folder": "..", "absolute.py": "/etc/passwd"}

READS = {
    "outside": "../outside.txt",
    "outside through a folder": "keys/../../outside.txt",
    "absolute": "/etc/passwd",
    "of the machine": "/proc/self/environ",
    "home": "~/.ssh/id_rsa",
    "backslashes": "..\\outside.txt",
    "a drive": "C:/windows/win.ini",
    "an address": "file:///etc/passwd",
    "link out": "link.py",
    "link to a secret": "inner.py",
    "below a linked folder": "folder/outside.txt",
    "link to an absolute path": "absolute.py",
    "git": ".git/config",
    "git in other letters": ".GIT/config",
    "git with a dot": ".git./config",
    "git by its short name": "git~1/config",
    "git with a hidden letter": ".g\u200cit/config",
    "env": ".env",
    "env by a detour": "./././.env",
    "env of production": ".env.production",
    "env as suffix": "conf/prod.env",
    "a private key": "keys/id_rsa",
    "a certificate": "keys/server.pem",
    "a key in capitals": "keys/server.KEY",
    "credentials": "conf/credentials.json",
    "secrets": "conf/secrets.yaml",
    "a cloud's folder": ".aws/config",
    "netrc": ".netrc",
    "npmrc": ".npmrc",
    "binary": "data/nul.bin",
    "large": "data/large.txt",
    "a zero byte": "a.py\0.txt",
    "a line break": "a.py\n/etc/passwd",
}
OTHERS = {
    "a range without end": ("read", {"path": "a.py", "start": 1, "end": 10**18}),
    "a range of nothing": ("read", {"path": "a.py", "start": -5, "end": 3}),
    "a range beyond": ("read", {"path": "a.py", "start": 10**8, "end": 10**8 + 5}),
    "history outside": ("history", {"path": "../../etc"}),
    "outline of git": ("outline", {"path": ".git"}),
}
BOMBS = {
    "nested": r"(a+)+$",
    "alternatives": r"(a|a)*$",
    "three stars": r"(a*)*(a*)*(a*)*b$",
    "of words": r"^(([a-z])+.)+[A-Z]([a-z])+$",
    "counted twice": r"(x{1,400}){1,400}y",
    "back references": r"(a*)\1*\1*\1*\1*b$",
    "counted thrice": r"((a{1,9999}){1,9999}){1,9999}b$",
    "many brackets": "(" * (LONGEST_PATTERN - 10) + "a",
    "too long": "a?" * LONGEST_PATTERN,
}
HOSTILE = (
    {name: ("read", {"path": path}) for name, path in READS.items()}
    | OTHERS
    | {f"bomb: {name}": ("search", {"text": text, "regex": True, "path": "bomb.txt"}) for name, text in BOMBS.items()}
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toolset]:
    """Provide a toolset over a real snapshot of a folder with all of these files."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "outside.txt").write_text(PRIZE)
    repo = folder / "repo"
    for path, text in FILES.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    for path, to in LINKS.items():
        (repo / path).symlink_to(to)
    trees = GitTrees(folder / "snapshots", DirectoryBlobs(folder / "blobs"))
    snapshot = trees.take(repo)
    present_paths = set(trees.list_files(snapshot))
    # No snapshot holds such paths. Even if they were listed, they would not be shown.
    hidden_paths = {path for path in READS.values() if not path.startswith("folder/")} - present_paths

    def read(path: str) -> bytes | None:
        return trees.read(snapshot, path) if path in present_paths else PRIZE.encode()

    files = Files([*present_paths, *hidden_paths], read)
    assert set(LINKS) <= present_paths
    yield Toolset(files, walk_search(files.list_paths(""), read), lambda: "", lambda path: PRIZE)
    trees.close()


def test_corpus_has_at_least_forty_hostile_calls():
    assert len(HOSTILE) >= 40


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name.startswith("bomb") else ()) for name in HOSTILE]
)
def test_hostile_tool_call_is_not_served(name: str, desk: Toolset):
    tool_name, arguments = HOSTILE[name]
    began = time.monotonic()
    result = desk.serve(ToolCall(id="1", name=tool_name, arguments=json.dumps(arguments)))
    assert time.monotonic() - began < WITHIN
    assert PRIZE not in result.text
    assert len(result.text) <= MAX_RESULT_CHARACTERS
    assert result.refused


@pytest.mark.slow
@pytest.mark.parametrize("tool_name", ["search", "outline", "references"])
def test_no_other_tool_reveals_secrets(tool_name: str, desk: Toolset):
    arguments = {"search": {"text": "prize"}, "outline": {}, "references": {"name": "prize"}}[tool_name]
    result = desk.serve(ToolCall(id="1", name=tool_name, arguments=json.dumps(arguments)))
    assert PRIZE not in result.text
    assert not any(path in result.text for path in (".env", "id_rsa", "credentials", ".netrc"))


@pytest.mark.slow
def test_expensive_pattern_is_stopped_but_a_plain_pattern_is_not(desk: Toolset):
    bomb = {"text": BOMBS["nested"], "regex": True, "path": "bomb.txt"}
    result = desk.serve(ToolCall(id="1", name="search", arguments=json.dumps(bomb)))
    assert (result.refused, "takes too long" in result.text) == (True, True)
    safe_search = {"text": "^a+!$", "regex": True, "path": "bomb.txt"}
    assert "bomb.txt:1: aaa" in desk.serve(ToolCall(id="1", name="search", arguments=json.dumps(safe_search))).text


def test_gigabyte_file_is_not_read(tmp_path: Path):
    huge = tmp_path / "huge.txt"
    with huge.open("wb") as file:
        file.truncate(1 << 30)

    def read(path: str) -> bytes:
        raise AssertionError(f"{path} was read")

    toolset = Toolset(
        Files(["huge.txt"], read, lambda path: (tmp_path / path).stat().st_size),
        lambda terms: [],
        lambda: "",
        lambda path: "",
    )
    for tool_name, arguments in (("read", {"path": "huge.txt"}), ("read", {"path": "huge.txt", "start": 5, "end": 6})):
        result = toolset.serve(ToolCall(id="1", name=tool_name, arguments=json.dumps(arguments)))
        assert (result.refused, result.text) == (True, "huge.txt is too large")
    assert toolset.serve(ToolCall(id="1", name="search", arguments='{"text": "a"}')).text == "nothing was found"


@pytest.mark.parametrize(
    "path", ["secrets.py", "src/credentials.py", ".env.example", "tokens.md", "keyboard.py", "environment.py", "a.gitx"]
)
def test_file_that_only_sounds_secret_is_shown(path: str):
    files = Files([path], lambda _: b"fine\n")
    toolset = Toolset(files, lambda terms: [], lambda: "", lambda file: "")
    assert toolset.serve(ToolCall(id="1", name="read", arguments=json.dumps({"path": path}))).text == "fine"
