"""What a sandbox lacks on a machine is reported with the text and the remedy that the user needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redstart.app.doctor import checks
from redstart.app.doctor.checks import examine
from redstart.app.doctor.results import Health
from redstart.cli.words import sandbox_in_words
from redstart.ports.sandbox import bwrap
from redstart.ports.sandbox.bwrap import APPARMOR, Bubblewrap, lacking
from redstart.ports.sandbox.choose import LACKS, lacks_of
from redstart.ports.sandbox.port import SandboxLack
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.stage import ProcessRights
from redstart.testing.sandbox import FolderWorkspaces


class Poor:
    """A sandbox that lacks everything."""

    @property
    def lacks(self) -> tuple[SandboxLack, ...]:
        return lacking(ProcessRights(), None, None)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("as_root")
def test_each_lack_has_its_words_and_its_remedy(tmp_path: Path) -> None:
    lacks = lacks_of(Poor(), restricted=tmp_path / "missing")
    assert lacks == tuple(LACKS[lack] for lack in SandboxLack)
    assert all(lack.remedy and len(lack.short) < 30 for lack in lacks)
    assert all(APPARMOR not in lack.remedy for lack in lacks)


def test_where_apparmor_forbids_it_the_remedy_says_so(tmp_path: Path) -> None:
    setting = tmp_path / "restricted"
    setting.write_text("1\n")
    told = {lack: text.remedy for lack, text in zip(Poor().lacks, lacks_of(Poor(), restricted=setting), strict=True)}
    assert told[SandboxLack.bounded_disk] == APPARMOR
    assert APPARMOR not in told[SandboxLack.memory_limit]
    setting.write_text("0\n")
    assert APPARMOR not in {lack.remedy for lack in lacks_of(Poor(), restricted=setting)}


def test_one_that_does_not_know_lacks_nothing(tmp_path: Path) -> None:
    assert lacks_of(Process(FolderWorkspaces(tmp_path), tmp_path)) == ()
    assert lacks_of(None) == ()


def test_the_short_words_stand_beside_the_tier() -> None:
    assert sandbox_in_words("bwrap") == "sandbox bwrap"
    lacks = [lack.short for lack in lacks_of(Poor())]
    assert sandbox_in_words("bwrap", lacks[:2]) == "sandbox bwrap (no common memory limit, disk watched)"


@pytest.mark.slow
def test_the_doctor_says_it_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    monkeypatch.setattr(bwrap, "own_tree", lambda: None)
    monkeypatch.setattr(
        checks, "lacks_of", lambda sandbox: lacks_of(sandbox) if isinstance(sandbox, Bubblewrap) else ()
    )
    examination = examine()
    [lack] = [check for check in examination.checks if check.name == "limits" and "memory" in check.detail]
    assert lack.health is Health.warn
    assert lack.detail == "bwrap lacks a common limit on memory and number of processes"
    assert "systemd" in lack.remedy
    assert examination.ok, "a lack is only a warning"
