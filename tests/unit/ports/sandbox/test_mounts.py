"""What is visible inside the sandbox, and in which order it is mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.core.shell import Environment, SandboxLimits
from redstart.ports.sandbox.mounts import etc_files, mount_arguments


def arguments(tmp_path: Path, *, sized: bool = True, **fields: object) -> list[str]:
    environment = Environment.model_validate({"mount": "/repo", "python": "/usr/bin/python3", **fields})
    limits = SandboxLimits(memory=1 << 20)
    folders = {"/run/in": (tmp_path / "in", False), "/run/out": (tmp_path / "out", True)}
    return mount_arguments(
        environment, limits, workspace=tmp_path / "copy", folders=folders, etc={"passwd": 7}, sized=sized
    )


def triples(given: list[str]) -> list[tuple[str, str, str]]:
    return [(a, b, c) for a, b, c in zip(given, given[1:], given[2:], strict=False) if a in ("--bind", "--ro-bind")]


def test_the_root_of_the_host_is_never_bound(tmp_path: Path) -> None:
    sources = [source for _, source, _ in triples(arguments(tmp_path))]
    assert "/usr" in sources
    assert not {"/", "/etc", "/home", "/root", "/var", "/run", "/tmp", "/etc/passwd", "/etc/shadow"} & set(sources)


def test_people_of_the_host_are_not_named(tmp_path: Path) -> None:
    given = arguments(tmp_path)
    place = given.index("/etc/passwd")
    assert given[place - 4 : place] == ["--perms", "0444", "--file", "7"]
    names = [line.split(":")[0] for line in etc_files("/home/redstart")["passwd"].splitlines()]
    assert names == ["app", "nobody"]


@pytest.mark.parametrize("path", ["/", "//", "relative", "/a/..", "."])
def test_a_path_that_would_open_the_host(tmp_path: Path, path: str) -> None:
    for fields in ({"mount": path}, {"home": path}, {"read_only": (path,)}):
        with pytest.raises(ConfigError):
            arguments(tmp_path, **fields)


def test_only_the_workspace_and_the_way_out_can_be_written(tmp_path: Path) -> None:
    writable = [triple[2] for triple in triples(arguments(tmp_path)) if triple[0] == "--bind"]
    assert sorted(writable) == ["/repo", "/run/out"]


def test_a_folder_comes_before_what_lies_in_it(tmp_path: Path) -> None:
    outer, inner, beside = tmp_path / "r", tmp_path / "r/repo/.venv", tmp_path / "other"
    for folder in (inner, beside):
        folder.mkdir(parents=True)
    given = arguments(
        tmp_path,
        mount=str(outer / "repo"),
        home=str(tmp_path / "r/home"),
        read_only=(str(inner), str(outer), str(beside)),
    )
    places = [given.index(str(each)) for each in (outer, tmp_path / "r/home", inner)]
    assert places == sorted(places)
    assert given.index(str(outer)) < given.index(str(tmp_path / "copy")) < given.index(str(inner))
    assert given[-4:] == ["--remount-ro", "/dev", "--remount-ro", "/"]


def test_what_is_not_there_or_there_already_is_not_bound(tmp_path: Path) -> None:
    read_only = ("/usr", "/usr/lib", "/bin", str(tmp_path / "nothing"), "/repo")
    assert triples(arguments(tmp_path, read_only=read_only)) == triples(arguments(tmp_path))


def test_temporary_file_systems_are_bounded_where_that_is_possible(tmp_path: Path) -> None:
    assert arguments(tmp_path).count("--size") == arguments(tmp_path).count("--tmpfs") == 4
    assert "--size" not in arguments(tmp_path, sized=False)
    assert "1048576" in arguments(tmp_path)
