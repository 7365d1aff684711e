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
    build_delegation_command,
    find_own_tree,
    list_candidates,
    sweep,
)
from redstart.ports.sandbox.leftovers import mark

LIMITS = SandboxLimits(memory=1600, processes=7, cpus=1.5)
FIRST = "36 29 0:33 {root} {place}/{name} rw,relatime shared:1 - cgroup cgroup rw,{name}\n"
SECOND = "30 29 0:26 {root} {place} rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def format_v1_mounts(place: Path, root: str = "/") -> str:
    names = ("memory", "pids", "cpu,cpuacct", "devices")
    return "".join(FIRST.format(root=root, place=place, name=name) for name in names)


def create_cgroup(folder: Path, text: str = "cpuset cpu io memory pids") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(text)
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return folder


def test_cgroup_v1_is_found(tmp_path: Path) -> None:
    membership = "9:memory:/a/b\n8:pids:/a\n4:cpu,cpuacct:/\n3:devices:/x\n0::/\n"
    private_tree, shared_tree = list_candidates(format_v1_mounts(tmp_path), membership)
    assert private_tree == CgroupTree(
        {
            "memory": tmp_path / "memory/a/b",
            "pids": tmp_path / "pids/a",
            "cpu": tmp_path / "cpu,cpuacct",
            "cpuacct": tmp_path / "cpu,cpuacct",
        },
        unified=False,
    )
    assert shared_tree.folders["pids"] == tmp_path / "pids" / "redstart"


def test_cgroup_v1_in_a_container_sees_only_its_subtree(tmp_path: Path) -> None:
    membership = "9:memory:/docker/c1/inner\n8:pids:/docker/c1\n"
    private_tree = list_candidates(format_v1_mounts(tmp_path, root="/docker/c1"), membership)[0]
    assert private_tree.folders == {"memory": tmp_path / "memory/inner", "pids": tmp_path / "pids"}


def test_cgroup_v2_is_found(tmp_path: Path) -> None:
    create_cgroup(tmp_path)
    scope = create_cgroup(tmp_path / "user.slice/app.scope")
    private_tree, shared_tree = list_candidates(SECOND.format(root="/", place=tmp_path), "0::/user.slice/app.scope\n")
    assert (private_tree.unified, set(private_tree.folders.values())) == (True, {scope})
    assert set(shared_tree.folders.values()) == {tmp_path / "redstart"}


def test_process_moved_to_the_supervisor_group_still_finds_its_scope(tmp_path: Path) -> None:
    scope = create_cgroup(tmp_path / "app.scope")
    trees = list_candidates(SECOND.format(root="/", place=tmp_path), f"0::/app.scope/{cgroups.SUPERVISOR}\n")
    assert [set(tree.folders.values()) for tree in trees] == [{scope}]


@pytest.mark.parametrize("controller_names", ["hugetlb", "memory", "cpu pids", ""])
def test_cgroup_v2_without_needed_controllers_is_unusable(tmp_path: Path, controller_names: str) -> None:
    create_cgroup(tmp_path, controller_names)
    assert list_candidates(SECOND.format(root="/", place=tmp_path), "0::/\n") == []


def test_host_without_cgroups_has_no_candidates() -> None:
    assert list_candidates("22 1 0:20 / /proc rw - proc proc rw\n", "") == []


class Recorded:
    """Plain files in place of the kernel's, created with each folder; they record what is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
        make = Path.mkdir

        def with_files(folder: Path, *arguments: object, **keywords: object) -> None:
            make(folder)
            for file in files:
                (folder / file).touch()

        monkeypatch.setattr(Path, "mkdir", with_files)


SECOND_FILES = ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max", "cgroup.procs")


def test_cgroup_v2_limits_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert group.procs_files == [str(folder / "cgroup.procs")]


def test_cgroup_v2_usage_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded(monkeypatch, *SECOND_FILES)
    group = Cgroup(CgroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), unified=True), LIMITS)
    (folder,) = group.folders
    assert group.get_usage() == GroupUsage()
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (folder / "memory.peak").write_text("123\n")
    (folder / "memory.events").write_text("low 0\nmax 40\noom 2\noom_kill 3\noom_group_kill 1\n")
    (folder / "pids.events").write_text("max 5\n")
    assert group.get_usage() == GroupUsage(2.5, 123, 3, 5)


def test_cgroup_v2_kill_writes_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Recorded(monkeypatch, *SECOND_FILES, "cgroup.kill")
    group = Cgroup(CgroupTree(dict.fromkeys(("memory", "pids", "cpu"), tmp_path), unified=True), LIMITS)
    group.kill()
    assert (group.folders[0] / "cgroup.kill").read_text() == "1"


def test_cgroup_v1_limits_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert group.get_usage() == GroupUsage(1.5, 99, 2, 4)


def test_cgroup_v2_scope_delegates_its_controllers(tmp_path: Path) -> None:
    scope = create_cgroup(tmp_path / "app.scope")
    (scope / cgroups.SUPERVISOR).mkdir()
    cgroups._open_up(scope)  # pyright: ignore[reportPrivateUsage]
    assert (scope / cgroups.SUPERVISOR / "cgroup.procs").read_text() == "0"
    assert (scope / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"


def test_processes_of_others_are_not_moved(tmp_path: Path) -> None:
    scope = create_cgroup(tmp_path / "session.scope")
    (scope / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")
    cgroups._open_up(scope)  # pyright: ignore[reportPrivateUsage]
    assert not (scope / cgroups.SUPERVISOR).exists()


@pytest.mark.slow
def test_cgroups_of_dead_processes_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as dead_process:
        dead_folder = tmp_path / f"{PREFIX}{mark(dead_process.pid)}-0"
    own_folder, other_folder = tmp_path / f"{PREFIX}{mark()}-0", tmp_path / cgroups.SUPERVISOR
    for folder in (dead_folder, own_folder, other_folder):
        folder.mkdir()
    sweep(CgroupTree({"memory": tmp_path, "pids": tmp_path}, unified=True))
    assert sorted(tmp_path.iterdir()) == sorted([own_folder, other_folder])


SYSTEMD_RUN = """#!/bin/sh
{before}
while [ "$1" != -- ]; do shift; done
echo {offers}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("controller_names", "before", "helps"),
    [
        ("cpu memory pids", "", True),
        ("cpu pids", "", False),
        ("memory pids", "exit 1", False),
        ("memory pids", 'test "$XDG_RUNTIME_DIR" || exit 1', True),
    ],
)
def test_systemd_run_is_used_when_it_offers_the_controllers(
    tmp_path: Path, controller_names: str, before: str, helps: bool
) -> None:
    program = tmp_path / "systemd-run"
    program.write_text(SYSTEMD_RUN.format(before=before, offers=controller_names))
    program.chmod(0o755)
    (tmp_path / "1000/systemd").mkdir(parents=True)
    command = build_delegation_command(["redstart", "fix"], uid=1000, systemd_run=str(program), users=tmp_path)
    if not helps:
        assert command is None
        return
    options = ["--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"]
    assert command == [str(program), *options, "redstart", "fix"]


def test_systemd_run_is_not_called_without_a_user_systemd(tmp_path: Path) -> None:
    marker = tmp_path / "asked"
    program = tmp_path / "systemd-run"
    program.write_text(SYSTEMD_RUN.format(before=f"touch {marker}", offers="memory pids"))
    program.chmod(0o755)
    assert build_delegation_command(["redstart"], uid=1001, systemd_run=str(program), users=tmp_path) is None
    assert (
        build_delegation_command(["redstart"], uid=1001, systemd_run=str(tmp_path / "missing"), users=tmp_path) is None
    )
    assert not marker.exists()


@pytest.mark.slow
def test_real_cgroup_kills_its_processes() -> None:
    tree = find_own_tree()
    if tree is None:
        pytest.skip("this user cannot create groups here")
    group = Cgroup(tree, SandboxLimits(processes=5))
    try:
        enter_commands = "".join(f"echo 0 >{path}; " for path in group.procs_files)
        with subprocess.Popen(
            ["/bin/sh", "-c", f"{enter_commands}echo in; exec sleep 300"], stdout=subprocess.PIPE
        ) as sleeper:
            assert sleeper.stdout is not None
            assert sleeper.stdout.readline() == b"in\n"
            assert group.get_usage().peak_memory > 0
            group.kill()
            assert sleeper.wait(30) == -9
    finally:
        group.close()
    assert not any(folder.exists() for folder in group.folders)


@pytest.mark.slow
def test_orphans_in_cgroups_of_dead_processes_are_killed(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as dead_process:
        dead_folder = tmp_path / f"{PREFIX}{mark(dead_process.pid)}-0"
    dead_folder.mkdir()
    with subprocess.Popen(["/bin/sleep", "300"]) as orphan:
        (dead_folder / "cgroup.procs").write_text(f"{orphan.pid}\n")
        sweep(CgroupTree({"memory": tmp_path, "pids": tmp_path}, unified=True))
        assert orphan.wait(30) == -9
