"""Control groups on trees of plain files: where they are searched, and what is written to and read from them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox import cgroups
from redstart.ports.sandbox.cgroups import (
    PREFIX,
    Cgroup,
    CgroupTree,
    GroupUsage,
    candidates,
    delegation,
    own_tree,
    sweep,
)
from redstart.ports.sandbox.leftovers import mark

LIMITS = SandboxLimits(memory=1600, processes=7, cpus=1.5)
FIRST = "36 29 0:33 {root} {place}/{name} rw,relatime shared:1 - cgroup cgroup rw,{name}\n"
SECOND = "30 29 0:26 {root} {place} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def first(place: Path, root: str = "/") -> str:
    names = ("memory", "pids", "cpu,cpuacct", "devices")
    return "".join(FIRST.format(root=root, place=place, name=name) for name in names)


def controllers(folder: Path, text: str = "cpuset cpu io memory pids") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(text)
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return folder


def test_the_first_version(tmp_path: Path) -> None:
    membership = "9:memory:/a/b\n8:pids:/a\n4:cpu,cpuacct:/\n3:devices:/x\n0::/\n"
    own, shared = candidates(first(tmp_path), membership)
    assert own == CgroupTree(
        {
            "memory": tmp_path / "memory/a/b",
            "pids": tmp_path / "pids/a",
            "cpu": tmp_path / "cpu,cpuacct",
            "cpuacct": tmp_path / "cpu,cpuacct",
        },
        unified=False,
    )
    assert shared.folders["pids"] == tmp_path / "pids" / "redstart"


def test_the_first_version_in_a_container_sees_only_its_part(tmp_path: Path) -> None:
    membership = "9:memory:/docker/c1/inner\n8:pids:/docker/c1\n"
    own = candidates(first(tmp_path, root="/docker/c1"), membership)[0]
    assert own.folders == {"memory": tmp_path / "memory/inner", "pids": tmp_path / "pids"}


def test_the_second_version(tmp_path: Path) -> None:
    controllers(tmp_path)
    scope = controllers(tmp_path / "user.slice/app.scope")
    own, shared = candidates(SECOND.format(root="/", place=tmp_path), "0::/user.slice/app.scope\n")
    assert (own.unified, set(own.folders.values())) == (True, {scope})
    assert set(shared.folders.values()) == {tmp_path / "redstart"}


def test_who_has_moved_down_still_knows_its_own(tmp_path: Path) -> None:
    scope = controllers(tmp_path / "app.scope")
    found = candidates(SECOND.format(root="/", place=tmp_path), f"0::/app.scope/{cgroups.SUPERVISOR}\n")
    assert [set(tree.folders.values()) for tree in found] == [{scope}]


@pytest.mark.parametrize("offered", ["hugetlb", "memory", "cpu pids", ""])
def test_the_second_version_without_what_is_needed(tmp_path: Path, offered: str) -> None:
    controllers(tmp_path, offered)
    assert candidates(SECOND.format(root="/", place=tmp_path), "0::/\n") == []


def test_no_groups_at_all() -> None:
    assert candidates("22 1 0:20 / /proc rw - proc proc rw\n", "") == []


class Recorded:
    """Plain files in place of the kernel's, created with each folder; they record what is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
        make = Path.mkdir

        def with_files(folder: Path, *arguments: object, **named: object) -> None:
            make(folder)
            for file in files:
                (folder / file).touch()

        monkeypatch.setattr(Path, "mkdir", with_files)


SECOND_FILES = ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max", "cgroup.procs")


def test_limits_of_the_second_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded(monkeypatch, *SECOND_FILES)
    group = Cgroup(CgroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), unified=True), LIMITS)
    (folder,) = group.folders
    assert folder.parent == tmp_path
    assert folder.name.startswith(f"{PREFIX}{mark()}-")
    assert {name: (folder / name).read_text() for name in SECOND_FILES} == {
        "memory.max": "1700",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
        "pids.max": "9",
        "cgroup.procs": "",
    }
    assert group.doors == [str(folder / "cgroup.procs")]


def test_what_the_second_version_has_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded(monkeypatch, *SECOND_FILES)
    group = Cgroup(CgroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), unified=True), LIMITS)
    (folder,) = group.folders
    assert group.usage() == GroupUsage()
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (folder / "memory.peak").write_text("123\n")
    (folder / "memory.events").write_text("low 0\nmax 40\noom 2\noom_kill 3\noom_group_kill 1\n")
    (folder / "pids.events").write_text("max 5\n")
    assert group.usage() == GroupUsage(2.5, 123, 3, 5)


def test_the_second_version_kills_by_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded(monkeypatch, *SECOND_FILES, "cgroup.kill")
    group = Cgroup(CgroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), unified=True), LIMITS)
    group.kill()
    assert (group.folders[0] / "cgroup.kill").read_text() == "1"


def test_limits_of_the_first_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded(monkeypatch, "memory.limit_in_bytes", "pids.max", "cpu.cfs_quota_us", "cgroup.procs")
    names = ("memory", "pids", "cpu", "cpuacct")
    for name in names:
        (tmp_path / name).mkdir()
    group = Cgroup(CgroupTree({name: tmp_path / name for name in names}, unified=False), LIMITS)
    memory, pids, cpu, account = group.folders
    assert (memory / "memory.limit_in_bytes").read_text() == "1700"
    assert not (memory / "memory.memsw.limit_in_bytes").exists()
    assert (pids / "pids.max").read_text() == "9"
    assert (cpu / "cpu.cfs_quota_us").read_text() == "150000"
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    (memory / "memory.max_usage_in_bytes").write_text("99\n")
    (pids / "pids.events").write_text("max 4\n")
    (account / "cpuacct.usage").write_text("1500000000\n")
    assert group.usage() == GroupUsage(1.5, 99, 2, 4)


def test_a_folder_of_the_second_version_is_opened_up(tmp_path: Path) -> None:
    scope = controllers(tmp_path / "app.scope")
    (scope / cgroups.SUPERVISOR).mkdir()
    cgroups._open_up(scope)  # pyright: ignore[reportPrivateUsage]
    assert (scope / cgroups.SUPERVISOR / "cgroup.procs").read_text() == "0"
    assert (scope / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


def test_processes_of_others_are_not_moved(tmp_path: Path) -> None:
    scope = controllers(tmp_path / "session.scope")
    (scope / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    cgroups._open_up(scope)  # pyright: ignore[reportPrivateUsage]
    assert not (scope / cgroups.SUPERVISOR).exists()


@pytest.mark.slow
def test_groups_of_the_dead_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as dead:
        left = tmp_path / f"{PREFIX}{mark(dead.pid)}-0"
    mine, other = tmp_path / f"{PREFIX}{mark()}-0", tmp_path / cgroups.SUPERVISOR
    for folder in (left, mine, other):
        folder.mkdir()
    sweep(CgroupTree({"memory": tmp_path, "pids": tmp_path}, unified=True))
    assert sorted(tmp_path.iterdir()) == sorted([mine, other])


SYSTEMD_RUN = """#!/bin/sh
{before}
while [ "$1" != -- ]; do shift; done
echo {offers}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("offers", "before", "helps"),
    [
        ("cpu memory pids", "", True),
        ("cpu pids", "", False),
        ("memory pids", "exit 1", False),
        ("memory pids", 'test "$XDG_RUNTIME_DIR" || exit 1', True),
    ],
)
def test_systemd_is_asked_what_it_gives(tmp_path: Path, offers: str, before: str, helps: bool) -> None:
    program = tmp_path / "systemd-run"
    program.write_text(SYSTEMD_RUN.format(before=before, offers=offers))
    program.chmod(0o755)
    (tmp_path / "1000/systemd").mkdir(parents=True)
    given = delegation(["redstart", "fix"], uid=1000, systemd_run=str(program), users=tmp_path)
    if not helps:
        assert given is None
        return
    asked = ["--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"]
    assert given == [str(program), *asked, "redstart", "fix"]


def test_where_no_systemd_of_the_user_is_none_is_asked(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "systemd-run"
    program.write_text(SYSTEMD_RUN.format(before=f"touch {asked}", offers="memory pids"))
    program.chmod(0o755)
    assert delegation(["redstart"], uid=1001, systemd_run=str(program), users=tmp_path) is None
    assert delegation(["redstart"], uid=1001, systemd_run=str(tmp_path / "missing"), users=tmp_path) is None
    assert not asked.exists()


@pytest.mark.slow
def test_a_real_group_ends_what_is_in_it() -> None:
    tree = own_tree()
    if tree is None:
        pytest.skip("this user cannot create groups here")
    group = Cgroup(tree, SandboxLimits(processes=5))
    try:
        enter = "".join(f"echo 0 >{door}; " for door in group.doors)
        with subprocess.Popen(["/bin/sh", "-c", f"{enter}echo in; exec sleep 300"], stdout=subprocess.PIPE) as sleeper:
            assert sleeper.stdout is not None
            assert sleeper.stdout.readline() == b"in\n"
            assert group.usage().peak_memory > 0
            group.kill()
            assert sleeper.wait(30) == -9
    finally:
        group.close()
    assert not any(folder.exists() for folder in group.folders)


@pytest.mark.slow
def test_what_still_runs_in_a_group_of_the_dead_is_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as dead:
        left = tmp_path / f"{PREFIX}{mark(dead.pid)}-0"
    left.mkdir()
    with subprocess.Popen(["/bin/sleep", "300"]) as orphan:
        (left / "cgroup.procs").write_text(f"{orphan.pid}\n")
        sweep(CgroupTree({"memory": tmp_path, "pids": tmp_path}, unified=True))
        assert orphan.wait(30) == -9
