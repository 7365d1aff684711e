"""The text of the profile for macOS's sandbox, which has not been run on a Mac yet."""

from __future__ import annotations

import re

import pytest

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Environment
from redstart.ports.sandbox.seatbelt import find_seatbelt, profile


def made(**fields: object) -> list[str]:
    environment = Environment(mount="/srv/me/repo", python="/p", read_only=("/srv/me/repo/.venv",), **fields)  # type: ignore[arg-type]
    return profile(environment, writable=("/w/files", "/w/out"), readable=("/w/in",)).splitlines()


def test_all_is_forbidden_but_what_is_named() -> None:
    lines = made()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert all(line.count("(") == line.count(")") for line in lines)


def test_only_the_given_folders_can_be_written_to() -> None:
    allowed = [line for line in made() if line.startswith("(allow file-write*")]
    assert allowed == ['(allow file-write* (subpath "/w/files"))', '(allow file-write* (subpath "/w/out"))']


def test_what_is_read_only_stays_so_within_a_folder_that_is_not() -> None:
    lines = made()
    denied = lines.index('(deny file-write* (subpath "/srv/me/repo/.venv"))')
    assert denied > max(n for n, line in enumerate(lines) if line.startswith("(allow file-write*"))
    assert '(deny file-write* (subpath "/w/in"))' in lines


def test_nothing_of_a_home_can_be_read_but_what_is_named() -> None:
    opened = re.findall(r'allow file-read\*[^"]*"([^"]*)"', "\n".join(made(git_objects="/srv/me/repo/.git/objects")))
    assert [path for path in opened if path.startswith("/srv")] == [
        "/srv/me/repo/.venv",
        "/srv/me/repo/.git/objects",
    ]
    assert not {"/private/var", "/private/etc", "/private/tmp", "/private"} & set(opened)


def test_there_is_no_network_but_the_services() -> None:
    assert not [line for line in made() if "ip" in line and "network" in line]
    lines = made(services=("127.0.0.1:5432",))
    assert [line for line in lines if " ip " in line] == ['(allow network-outbound (remote ip "localhost:5432"))']


def test_a_socket_file_only_within_the_own_folders() -> None:
    sockets = [line for line in made() if "unix-socket" in line]
    assert len(sockets) == 4
    assert all('subpath "/w/' in line for line in sockets)


def test_no_device_and_no_borrowed_rights() -> None:
    assert {"(deny file-write-setugid)", "(deny file-mknod)"} <= set(made())


def test_a_path_cannot_add_a_rule() -> None:
    evil = '/w") (allow default) ("'
    text = profile(Environment(mount="/m", python="/p"), writable=(evil,))
    assert '(subpath "/w\\") (allow default) (\\"")' in text
    with pytest.raises(ValueError, match="control character"):
        profile(Environment(mount="/m", python="/p"), writable=("/w\n(allow default)",))


def test_elsewhere_there_is_none(tmp_path) -> None:
    with pytest.raises(SandboxUnavailable, match="macOS"):
        find_seatbelt("linux")
    with pytest.raises(SandboxUnavailable, match="is missing"):
        find_seatbelt("darwin", str(tmp_path / "none"))
