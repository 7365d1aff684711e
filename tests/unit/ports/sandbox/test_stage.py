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
    SHARED,
    TEMPORARY,
    TOOLS,
    WORKSPACE,
    ProcessRights,
    StagedExecution,
    bounded,
    found_rights,
    own_rights,
    reachable,
)

SMALL = SandboxLimits(disk=4 << 20, inodes=100)
ROOT, USER, NOBODY = ProcessRights(mounts=True, drops=True), ProcessRights(mounts=True), ProcessRights()


def test_with_nothing_to_do_nothing_is_done(tmp_path: Path) -> None:
    stage = StagedExecution(NOBODY, SMALL)
    assert stage.argv(["bwrap", "--x"], tmp_path) == ["bwrap", "--x"]
    assert (stage.user, stage.temporary("/home/x"), stage.source("/no/such")) == (None, {}, "/no/such")


@pytest.mark.slow
def test_groups_are_entered_first(tmp_path: Path) -> None:
    door = tmp_path / "a group" / "cgroup.procs"
    door.parent.mkdir()
    argv = StagedExecution(NOBODY, SMALL, [str(door)]).argv(["/bin/echo", "one two"], tmp_path)
    ran = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert (ran.stdout, door.read_text()) == ("one two\n", "0\n")


@pytest.mark.slow
def test_a_group_that_cannot_be_entered_ends_it(tmp_path: Path) -> None:
    argv = StagedExecution(NOBODY, SMALL, [str(tmp_path / "no" / "group")]).argv(["/bin/echo", "started"], tmp_path)
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ran.returncode != 0, ran.stdout) == (True, "")


def test_root_becomes_a_user_of_its_own_each_time() -> None:
    users = [StagedExecution(ROOT, SMALL).user for _ in range(3)]
    assert len(set(users)) == 3
    assert all(user is not None and 60000 < user < 61184 for user in users)
    assert StagedExecution(USER, SMALL).user is None


def test_what_others_cannot_reach_is_brought_to_where_they_can(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    hidden = tmp_path / "it's hidden"
    hidden.mkdir()
    stage = StagedExecution(ROOT, SMALL)
    place = stage.source(str(hidden))
    assert place.startswith(f"{PLACE}/")
    assert (stage.source(str(hidden)), stage.source("/usr"), stage.source(OUTWARD)) == (place, "/usr", OUTWARD)
    script = stage.argv(["bwrap"], tmp_path)[-3]
    assert f"--rbind '{tmp_path}/it'\"'\"'s hidden' {place}" in script
    assert StagedExecution(USER, SMALL).source(str(hidden)) == str(hidden)


def test_reachable(tmp_path: Path) -> None:
    assert reachable("/usr/bin")
    assert not reachable(str(tmp_path / "missing"))
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o600)
    assert not reachable(str(file))


def test_what_is_written_counts_as_memory_and_so_is_less() -> None:
    assert bounded(SandboxLimits(disk=10, memory=100)) == 10
    assert bounded(SandboxLimits(disk=90, memory=100)) == 50


def test_without_the_tools_there_are_no_rights() -> None:
    asked: list[str] = []
    assert found_rights(root=True, tool=lambda name: asked.append(name)) == NOBODY
    assert asked == ["unshare"]


@pytest.fixture
def lower(tmp_path: Path) -> Path:
    if not own_rights().mounts:
        pytest.skip("this user cannot mount anything here")
    lower = tmp_path / "a, strange: name"
    (lower / "folder").mkdir(parents=True)
    (lower / "folder" / "inner").write_text("inner")
    (lower / "file").write_text("of the snapshot")
    return lower


def on_stage(lower: Path, script: str) -> subprocess.CompletedProcess[str]:
    stage = StagedExecution(own_rights(), SMALL)
    stage.own(lower)
    argv = stage.argv(["/bin/sh", "-c", script], lower)
    return subprocess.run(argv, env={"PATH": TOOLS}, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_lower_layer_is_never_changed(lower: Path) -> None:
    ran = on_stage(lower, f"cd {WORKSPACE}; cat file; echo new >file; rm -r folder; mkdir other; cat file; ls")
    assert (ran.stdout, ran.stderr) == ("of the snapshotnew\nfile\nother\n", "")
    assert (lower / "file").read_text() == "of the snapshot"
    assert sorted(path.name for path in lower.iterdir()) == ["file", "folder"]


@pytest.mark.slow
def test_a_folder_of_the_lower_layer_can_be_renamed(lower: Path) -> None:
    ran = on_stage(lower, f"cd {WORKSPACE}; mv folder renamed && cat renamed/inner")
    assert (ran.returncode, ran.stdout) == (0, "inner")


@pytest.mark.slow
@pytest.mark.parametrize("place", [WORKSPACE, OUTWARD, TEMPORARY, SHARED, HOME])
def test_every_place_is_bounded(lower: Path, place: str) -> None:
    ran = on_stage(lower, f"cd {place}; head -c 5000000 /dev/zero >big; echo $?; ls -l big | cut -d' ' -f5")
    assert "No space left on device" in ran.stderr
    code, size = ran.stdout.split()
    assert (code, int(size) <= SMALL.disk) == ("1", True)
    many = on_stage(lower, f"cd {place}; n=0; while [ $n -lt 200 ]; do : >f$n || exit 9; n=$((n + 1)); done")
    assert many.returncode != 0


@pytest.mark.slow
def test_it_is_seen_by_nobody_else(lower: Path) -> None:
    on_stage(lower, "true")
    mounts = Path("/proc/self/mountinfo").read_text()
    assert WORKSPACE not in mounts
    assert "redstart" not in [line.split(" - ")[1].split()[1] for line in mounts.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to drop")
def test_root_gives_up_its_rights(lower: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    ran = on_stage(lower, f"id -u; id -G; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status; cat {secret}")
    user, groups, *rest = ran.stdout.split("\n")
    assert (int(user) >= 60600, groups) == (True, user)
    assert "CapEff:\t0000000000000000" in rest
    assert "NoNewPrivs:\t1" in rest
    assert "Permission denied" in ran.stderr
