"""The second stream of a container comes from the command, so it is read as untrusted."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from redstart.core.change import Snapshot
from redstart.core.shell import Environment, Execution
from redstart.ports.sandbox.docker.inside import build_command, build_handout_script, keep, parse_files
from redstart.ports.sandbox.docker.spec import User
from redstart.ports.sandbox.mounts import OUTPUT_FOLDER

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
def test_output_files_are_parsed(stream: bytes, files: dict[str, bytes]) -> None:
    assert parse_files(stream).files == files


@pytest.mark.parametrize(
    ("stream", "full"),
    [(ROOMY, False), (ROOMY + b"D0 10 5\n", True), (b"D5 10 0\n" + ROOMY, True), (b"D5 0 0\n", False)],
)
def test_full_file_system_is_detected(stream: bytes, full: bool) -> None:
    assert parse_files(stream).full is full


def test_processor_time_is_parsed() -> None:
    assert parse_files(b"0m0.01s 0m0.00s\n1m2.50s 0m0.25s\n" + ROOMY + b"F./a\x001\0x") == ({"a": b"x"}, False, 62.75)
    assert parse_files(b"0m0.01s\n1m2.50s").cpu == 0


def test_only_requested_files_are_kept(tmp_path: Path) -> None:
    inside, outside = tmp_path / "kept", tmp_path / "x"
    inside.mkdir()
    keep({"sub/a": b"a", "b": b"b", "../x": b"x", str(outside): b"x"}, ("sub//a", "missing"), inside)
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "kept",
        "kept/sub",
        "kept/sub/a",
    ]


@pytest.mark.slow
def test_files_are_matched_by_exact_name(tmp_path: Path) -> None:
    """Run the same command as in a container on a folder of the host."""
    names = ("plain", "a*b", "sub/[x]", "link/secret", "hard", "un'quoted")
    (tmp_path / "sub").mkdir()
    for name in ("plain", "a*b", "axb", "sub/[x]", "sub/x", "hard", "un'quoted", "other"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    (tmp_path / "sub/secret").touch()
    (tmp_path / "second").hardlink_to(tmp_path / "hard")
    script = build_handout_script(Environment(mount=str(tmp_path), python="/usr/bin/python3"), names)
    command = ["/bin/sh", "-c", f"exec 4>&1 >/dev/null; {script.replace(OUTPUT_FOLDER, shlex.quote(str(tmp_path)))}"]
    printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    assert set(parse_files(printed).files) == {"plain", "a*b", "sub/[x]", "un'quoted"}


def test_nothing_is_fetched_when_nothing_is_collected() -> None:
    empty_snapshot = Snapshot(tree="", base="", pack="", diff="")
    environment = Environment(mount="/repo", python="/usr/bin/python3")
    container_job = build_command(
        Execution(argv=("true",), snapshot=empty_snapshot, environment=environment), User(1000, 1001)
    )
    assert (container_job.fetch, container_job.user) == ((), "1000:1001")
