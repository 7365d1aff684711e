"""The text of the profile for macOS's sandbox, which has not been run on a Mac yet."""

from __future__ import annotations

import re

import pytest

from redstart.core.errors import SandboxUnavailable
from redstart.core.shell import Environment
from redstart.ports.sandbox.seatbelt import build_profile, find_seatbelt


def build_profile_lines(**fields: object) -> list[str]:
    environment = Environment(mount="/srv/me/repo", python="/p", read_only=("/srv/me/repo/.venv",), **fields)  # type: ignore[arg-type]
    return build_profile(environment, writable=("/w/files", "/w/out"), readable=("/w/in",)).splitlines()


def test_everything_is_denied_by_default() -> None:
    lines = build_profile_lines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert all(line.count("(") == line.count(")") for line in lines)


def test_only_the_given_directories_are_writable() -> None:
    write_rules = [line for line in build_profile_lines() if line.startswith("(allow file-write*")]
    assert write_rules == ['(allow file-write* (subpath "/w/files"))', '(allow file-write* (subpath "/w/out"))']


def test_read_only_path_stays_read_only_inside_a_writable_directory() -> None:
    lines = build_profile_lines()
    deny_index = lines.index('(deny file-write* (subpath "/srv/me/repo/.venv"))')
    assert deny_index > max(n for n, line in enumerate(lines) if line.startswith("(allow file-write*"))
    assert '(deny file-write* (subpath "/w/in"))' in lines


def test_only_named_paths_of_a_home_are_readable() -> None:
    readable_paths = re.findall(
        r'allow file-read\*[^"]*"([^"]*)"', "\n".join(build_profile_lines(git_objects="/srv/me/repo/.git/objects"))
    )
    assert [path for path in readable_paths if path.startswith("/srv")] == [
        "/srv/me/repo/.venv",
        "/srv/me/repo/.git/objects",
    ]
    assert not {"/private/var", "/private/etc", "/private/tmp", "/private"} & set(readable_paths)


def test_only_configured_services_are_reachable() -> None:
    assert not [line for line in build_profile_lines() if "ip" in line and "network" in line]
    lines = build_profile_lines(services=("127.0.0.1:5432",))
    assert [line for line in lines if " ip " in line] == ['(allow network-outbound (remote ip "localhost:5432"))']


def test_socket_files_are_allowed_only_in_own_directories() -> None:
    sockets = [line for line in build_profile_lines() if "unix-socket" in line]
    assert len(sockets) == 4
    assert all('subpath "/w/' in line for line in sockets)


def test_devices_and_setuid_files_are_denied() -> None:
    assert {"(deny file-write-setugid)", "(deny file-mknod)"} <= set(build_profile_lines())


def test_path_cannot_inject_a_rule() -> None:
    evil = '/w") (allow default) ("'
    text = build_profile(Environment(mount="/m", python="/p"), writable=(evil,))
    assert '(subpath "/w\\") (allow default) (\\"")' in text
    with pytest.raises(ValueError, match="control character"):
        build_profile(Environment(mount="/m", python="/p"), writable=("/w\n(allow default)",))


def test_seatbelt_is_unavailable_outside_macos(tmp_path) -> None:
    with pytest.raises(SandboxUnavailable, match="macOS"):
        find_seatbelt("linux")
    with pytest.raises(SandboxUnavailable, match="is missing"):
        find_seatbelt("darwin", str(tmp_path / "none"))
