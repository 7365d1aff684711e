"""Preparations before bubblewrap starts: run for real if this user can, otherwise checked as text."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from redstart.core.shell import SandboxLimits
from redstart.ports.sandbox.stage import (
    HOME,
    OUTWARD,
    PLACE,
    SHARED_MEMORY,
    TEMPORARY,
    TOOLS,
    WORKSPACE,
    ProcessRights,
    StagedExecution,
    find_rights,
    get_own_rights,
    get_writable_size,
    is_reachable,
)

SMALL = SandboxLimits(disk=4 << 20, inodes=100)
ROOT, USER, NOBODY = ProcessRights(mounts=True, drops=True), ProcessRights(mounts=True), ProcessRights()


def test_plain_execution_is_left_unchanged(tmp_path: Path) -> None:
    stage = StagedExecution(NOBODY, SMALL)
    assert stage.build_argv(["bwrap", "--x"], tmp_path) == ["bwrap", "--x"]
    assert (stage.user, stage.get_temporary_folders("/home/x"), stage.get_source("/no/such")) == (None, {}, "/no/such")


@pytest.mark.slow
def test_cgroups_are_entered_first(tmp_path: Path) -> None:
    group_file = tmp_path / "a group" / "cgroup.procs"
    group_file.parent.mkdir()
    argv = StagedExecution(NOBODY, SMALL, [str(group_file)]).build_argv(["/bin/echo", "one two"], tmp_path)
    completed = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert (completed.stdout, group_file.read_text()) == ("one two\n", "0\n")


@pytest.mark.slow
def test_unenterable_cgroup_stops_the_execution(tmp_path: Path) -> None:
    argv = StagedExecution(NOBODY, SMALL, [str(tmp_path / "no" / "group")]).build_argv(
        ["/bin/echo", "started"], tmp_path
    )
    completed = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (completed.returncode != 0, completed.stdout) == (True, "")


def test_root_gets_a_new_user_id_each_time() -> None:
    users = [StagedExecution(ROOT, SMALL).user for _ in range(3)]
    assert len(set(users)) == 3
    assert all(user is not None and 60000 < user < 61184 for user in users)
    assert StagedExecution(USER, SMALL).user is None


def test_private_source_is_bound_to_a_reachable_place(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    hidden_folder = tmp_path / "it's hidden"
    hidden_folder.mkdir()
    stage = StagedExecution(ROOT, SMALL)
    place = stage.get_source(str(hidden_folder))
    assert place.startswith(f"{PLACE}/")
    assert (stage.get_source(str(hidden_folder)), stage.get_source("/usr"), stage.get_source(OUTWARD)) == (
        place,
        "/usr",
        OUTWARD,
    )
    script = stage.build_argv(["bwrap"], tmp_path)[-3]
    assert f"--rbind '{tmp_path}/it'\"'\"'s hidden' {place}" in script
    assert StagedExecution(USER, SMALL).get_source(str(hidden_folder)) == str(hidden_folder)


def test_reachable_checks_access_by_other_users(tmp_path: Path) -> None:
    assert is_reachable("/usr/bin")
    assert not is_reachable(str(tmp_path / "missing"))
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o600)
    assert not is_reachable(str(file))


def test_disk_limit_is_reduced_because_writes_count_as_memory() -> None:
    assert get_writable_size(SandboxLimits(disk=10, memory=100)) == 10
    assert get_writable_size(SandboxLimits(disk=90, memory=100)) == 50


def test_missing_tools_mean_no_rights() -> None:
    tools: list[str] = []
    assert find_rights(root=True, tool=lambda name: tools.append(name)) == NOBODY
    assert tools == ["unshare"]


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    if not get_own_rights().mounts:
        pytest.skip("this user cannot mount anything here")
    lower = tmp_path / "a, strange: name"
    (lower / "folder").mkdir(parents=True)
    (lower / "folder" / "inner").write_text("inner")
    (lower / "file").write_text("of the snapshot")
    return lower


def on_stage(lower: Path, script: str) -> subprocess.CompletedProcess[str]:
    stage = StagedExecution(get_own_rights(), SMALL)
    stage.take_ownership(lower)
    argv = stage.build_argv(["/bin/sh", "-c", script], lower)
    return subprocess.run(argv, env={"PATH": TOOLS}, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_lower_layer_is_never_changed(lower: Path) -> None:
    completed = on_stage(lower, f"cd {WORKSPACE}; cat file; echo new >file; rm -r folder; mkdir other; cat file; ls")
    assert (completed.stdout, completed.stderr) == ("of the snapshotnew\nfile\nother\n", "")
    assert (lower / "file").read_text() == "of the snapshot"
    assert sorted(path.name for path in lower.iterdir()) == ["file", "folder"]


@pytest.mark.slow
def test_directory_of_the_lower_layer_can_be_renamed(lower: Path) -> None:
    completed = on_stage(lower, f"cd {WORKSPACE}; mv folder renamed && cat renamed/inner")
    assert (completed.returncode, completed.stdout) == (0, "inner")


@pytest.mark.slow
@pytest.mark.parametrize("place", [WORKSPACE, OUTWARD, TEMPORARY, SHARED_MEMORY, HOME])
def test_every_writable_place_is_limited(lower: Path, place: str) -> None:
    completed = on_stage(lower, f"cd {place}; head -c 5000000 /dev/zero >big; echo $?; ls -l big | cut -d' ' -f5")
    assert "No space left on device" in completed.stderr
    code, size = completed.stdout.split()
    assert (code, int(size) <= SMALL.disk) == ("1", True)
    files_result = on_stage(lower, f"cd {place}; n=0; while [ $n -lt 200 ]; do : >f$n || exit 9; n=$((n + 1)); done")
    assert files_result.returncode != 0


@pytest.mark.slow
def test_mounts_are_invisible_to_other_processes(lower: Path) -> None:
    on_stage(lower, "true")
    mounts = Path("/proc/self/mountinfo").read_text()
    assert WORKSPACE not in mounts
    assert "redstart" not in [line.split(" - ")[1].split()[1] for line in mounts.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")
def test_root_drops_its_privileges(lower: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    completed = on_stage(lower, f"id -u; id -G; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status; cat {secret}")
    user, groups, *rest = completed.stdout.split("\n")
    assert (int(user) >= 60600, groups) == (True, user)
    assert "CapEff:\t0000000000000000" in rest
    assert "NoNewPrivs:\t1" in rest
    assert "Permission denied" in completed.stderr
