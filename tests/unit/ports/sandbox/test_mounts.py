"""What is visible inside the sandbox, and in which order it is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.core.shell import Environment, SandboxLimits
from redstart.ports.sandbox.mounts import generate_etc_files, mount_arguments


def build_arguments(tmp_path: Path, *, sized: bool = True, **fields: object) -> list[str]:
    environment = Environment.model_validate({"mount": "/repo", "python": "/usr/bin/python3", **fields})
    limits = SandboxLimits(memory=1 << 20)
    folders = {"/run/in": (tmp_path / "in", False), "/run/out": (tmp_path / "out", True)}
    return mount_arguments(
        environment, limits, workspace=tmp_path / "copy", folders=folders, etc={"passwd": 7}, bounded_tmpfs=sized
    )


def find_binds(argv: list[str]) -> list[tuple[str, str, str]]:
    return [(a, b, c) for a, b, c in zip(argv, argv[1:], argv[2:], strict=False) if a in ("--bind", "--ro-bind")]


def test_host_root_is_never_bound(tmp_path: Path) -> None:
    sources = [source for _, source, _ in find_binds(build_arguments(tmp_path))]
    assert "/usr" in sources
    assert not {"/", "/etc", "/home", "/root", "/var", "/run", "/tmp", "/etc/passwd", "/etc/shadow"} & set(sources)


def test_host_users_are_not_exposed(tmp_path: Path) -> None:
    argv = build_arguments(tmp_path)
    place = argv.index("/etc/passwd")
    assert argv[place - 4 : place] == ["--perms", "0444", "--file", "7"]
    names = [line.split(":")[0] for line in generate_etc_files("/home/redstart")["passwd"].splitlines()]
    assert names == ["app", "nobody"]


@pytest.mark.parametrize("path", ["/", "//", "relative", "/a/..", "."])
def test_path_that_would_expose_the_host_is_rejected(tmp_path: Path, path: str) -> None:
    for fields in ({"mount": path}, {"home": path}, {"read_only": (path,)}):
        with pytest.raises(ConfigError):
            build_arguments(tmp_path, **fields)


def test_only_the_workspace_and_the_output_directory_are_writable(tmp_path: Path) -> None:
    writable_paths = [triple[2] for triple in find_binds(build_arguments(tmp_path)) if triple[0] == "--bind"]
    assert sorted(writable_paths) == ["/repo", "/run/out"]


def test_directory_is_mounted_before_its_contents(tmp_path: Path) -> None:
    outer, inner, sibling = tmp_path / "r", tmp_path / "r/repo/.venv", tmp_path / "other"
    for folder in (inner, sibling):
        folder.mkdir(parents=True)
    argv = build_arguments(
        tmp_path,
        mount=str(outer / "repo"),
        home=str(tmp_path / "r/home"),
        read_only=(str(inner), str(outer), str(sibling)),
    )
    places = [argv.index(str(path)) for path in (outer, tmp_path / "r/home", inner)]
    assert places == sorted(places)
    assert argv.index(str(outer)) < argv.index(str(tmp_path / "copy")) < argv.index(str(inner))
    assert argv[-4:] == ["--remount-ro", "/dev", "--remount-ro", "/"]


def test_missing_or_already_mounted_path_is_not_bound(tmp_path: Path) -> None:
    read_only = ("/usr", "/usr/lib", "/bin", str(tmp_path / "nothing"), "/repo")
    assert find_binds(build_arguments(tmp_path, read_only=read_only)) == find_binds(build_arguments(tmp_path))


def test_temporary_file_systems_are_limited_where_possible(tmp_path: Path) -> None:
    assert build_arguments(tmp_path).count("--size") == build_arguments(tmp_path).count("--tmpfs") == 4
    assert "--size" not in build_arguments(tmp_path, sized=False)
    assert "1048576" in build_arguments(tmp_path)
