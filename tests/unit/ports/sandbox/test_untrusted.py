"""A file that a command left is read only if it is a plain file within its folder."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from redstart.ports.sandbox import files
from redstart.ports.sandbox.files import open_beneath, read_untrusted

LARGEST = 100


@pytest.fixture(params=["in one step", "step by step"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    if request.param == "step by step":

        def fail_openat2(folder: int, path: str) -> int:
            raise OSError(errno.ENOSYS, "an old kernel")

        monkeypatch.setattr(files, "_openat2", fail_openat2)
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (inside / "plain").write_text("plain")
    (inside / "sub" / "deep").write_text("deep")
    (tmp_path / "secret").write_text("of the host")
    (inside / "link").symlink_to("plain")
    (inside / "out").symlink_to(tmp_path)
    (inside / "within").symlink_to("sub")
    (inside / "absolute").symlink_to(tmp_path / "secret")
    (inside / "magic").symlink_to("/proc/self/environ")
    os.mkfifo(inside / "fifo")
    (inside / "one").write_text("twice")
    (inside / "two").hardlink_to(inside / "one")
    (inside / "large").write_text("x" * (LARGEST + 1))
    (inside / "most").write_text("x" * LARGEST)
    with socket.socket(socket.AF_UNIX) as sock:
        monkeypatch.chdir(inside)
        sock.bind("socket")
        fd = os.open(inside, os.O_RDONLY | os.O_DIRECTORY)
        yield fd
        os.close(fd)


@pytest.mark.parametrize(("path", "text"), [("plain", "plain"), ("sub/deep", "deep"), ("most", "x" * LARGEST)])
def test_plain_files_are_read(folder: int, path: str, text: str) -> None:
    assert read_untrusted(folder, path.split("/"), LARGEST) == text.encode()


@pytest.mark.parametrize(
    "path",
    [
        *("link", "out/secret", "within/deep", "absolute", "magic", "fifo", "one", "two", "large", "sub", "socket"),
        *("missing", "plain/deep", "../secret", "sub/../plain/../../secret", "/etc/passwd"),
    ],
)
def test_everything_except_plain_files_is_rejected(folder: int, path: str) -> None:
    assert read_untrusted(folder, path.split("/"), LARGEST) is None


def test_directory_is_opened_beneath_its_parent(folder: int) -> None:
    fd = open_beneath(folder, ["sub"])
    try:
        assert read_untrusted(fd, ["deep"], LARGEST) == b"deep"
        assert read_untrusted(fd, ["..", "plain"], LARGEST) is None
    finally:
        os.close(fd)
