"""The second stream of a container comes from the command, so it is read as untrusted."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from redstart.core.change import Snapshot
from redstart.core.shell import Environment, Execution
from redstart.ports.sandbox.docker.inside import handed, handing_out, job, keep
from redstart.ports.sandbox.docker.spec import User
from redstart.ports.sandbox.mounts import OUTWARD

ROOMY = b"D5 10 5\n"


@pytest.mark.parametrize(
    ("stream", "files"),
    [
        (b"", {}),
        (ROOMY, {}),
        (ROOMY + b"F./a\x003\0one", {"a": b"one"}),
        (b"F./a\x00  3\0oneF./sub/b c\x000\0", {"a": b"one", "sub/b c": b""}),
        (b"F./a\x003\0oneF./b\x009\0short", {"a": b"one"}),
        (b"F./a\x003\0one nonsense F./b\x001\0x", {"a": b"one"}),
        (b"nonsense F./b\x001\0x", {}),
        (b"F./a\x00-1\0x", {}),
        (b"F./a\x00\0x", {}),
    ],
)
def test_files_that_are_handed_out(stream: bytes, files: dict[str, bytes]) -> None:
    assert handed(stream).files == files


@pytest.mark.parametrize(
    ("stream", "full"),
    [(ROOMY, False), (ROOMY + b"D0 10 5\n", True), (b"D5 10 0\n" + ROOMY, True), (b"D5 0 0\n", False)],
)
def test_whether_a_file_system_is_full(stream: bytes, full: bool) -> None:
    assert handed(stream).full is full


def test_the_time_that_it_took() -> None:
    assert handed(b"0m0.01s 0m0.00s\n1m2.50s 0m0.25s\n" + ROOMY + b"F./a\x001\0x") == ({"a": b"x"}, False, 62.75)
    assert handed(b"0m0.01s\n1m2.50s").cpu == 0


def test_only_what_was_asked_for_is_kept(tmp_path: Path) -> None:
    inside, outside = tmp_path / "kept", tmp_path / "x"
    inside.mkdir()
    keep({"sub/a": b"a", "b": b"b", "../x": b"x", str(outside): b"x"}, ("sub//a", "missing"), inside)
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "kept",
        "kept/sub",
        "kept/sub/a",
    ]


@pytest.mark.slow
def test_files_are_found_by_their_exact_names(tmp_path: Path) -> None:
    """Run the same command as in a container on a folder of the host."""
    names = ("plain", "a*b", "sub/[x]", "link/secret", "hard", "un'quoted")
    (tmp_path / "sub").mkdir()
    for name in ("plain", "a*b", "axb", "sub/[x]", "sub/x", "hard", "un'quoted", "other"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    (tmp_path / "sub/secret").touch()
    (tmp_path / "second").hardlink_to(tmp_path / "hard")
    script = handing_out(Environment(mount=str(tmp_path), python="/usr/bin/python3"), names)
    command = ["/bin/sh", "-c", f"exec 4>&1 >/dev/null; {script.replace(OUTWARD, shlex.quote(str(tmp_path)))}"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    assert set(handed(printed).files) == {"plain", "a*b", "sub/[x]", "un'quoted"}


def test_nothing_is_fetched_where_nothing_is_collected() -> None:
    nothing = Snapshot(tree="", base="", pack="", diff="")
    environment = Environment(mount="/repo", python="/usr/bin/python3")
    made = job(Execution(argv=("true",), snapshot=nothing, environment=environment), User(1000, 1001))
    assert (made.fetch, made.user) == ((), "1000:1001")
