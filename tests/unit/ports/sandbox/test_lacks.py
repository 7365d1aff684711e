"""What a sandbox lacks on a machine is reported with the text and the remedy that the user needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redstart.app.doctor import checks
from redstart.app.doctor.checks import examine
from redstart.app.doctor.results import Health
from redstart.cli.event_text import describe_sandbox
from redstart.ports.sandbox import bwrap
from redstart.ports.sandbox.bwrap import APPARMOR, Bubblewrap, list_missing_features
from redstart.ports.sandbox.port import SandboxLack
from redstart.ports.sandbox.process import Process
from redstart.ports.sandbox.selection import LACK_TEXTS, list_lack_texts
from redstart.ports.sandbox.stage import ProcessRights
from redstart.testing.sandbox import FolderWorkspaces


class Poor:
    """A sandbox that lacks everything."""

    @property
    def lacks(self) -> tuple[SandboxLack, ...]:
        return list_missing_features(ProcessRights(), None, None)


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("as_root")
def test_each_lack_has_its_words_and_its_remedy(tmp_path: Path) -> None:
    limitations = list_lack_texts(Poor(), restriction_file=tmp_path / "missing")
    assert limitations == tuple(LACK_TEXTS[lack] for lack in SandboxLack)
    assert all(lack.remedy and len(lack.short_description) < 30 for lack in limitations)
    assert all(APPARMOR not in lack.remedy for lack in limitations)


def test_remedy_names_apparmor_when_it_is_the_cause(tmp_path: Path) -> None:
    setting = tmp_path / "restricted"
    setting.write_text("1\n")
    remedies = {
        lack: text.remedy
        for lack, text in zip(Poor().lacks, list_lack_texts(Poor(), restriction_file=setting), strict=True)
    }
    assert remedies[SandboxLack.bounded_disk] == APPARMOR
    assert APPARMOR not in remedies[SandboxLack.memory_limit]
    setting.write_text("0\n")
    assert APPARMOR not in {lack.remedy for lack in list_lack_texts(Poor(), restriction_file=setting)}


def test_sandbox_without_reported_features_lacks_nothing(tmp_path: Path) -> None:
    assert list_lack_texts(Process(FolderWorkspaces(tmp_path), tmp_path)) == ()
    assert list_lack_texts(None) == ()


def test_short_descriptions_follow_the_sandbox_name() -> None:
    assert describe_sandbox("bwrap") == "sandbox bwrap"
    short_texts = [lack.short_description for lack in list_lack_texts(Poor())]
    assert describe_sandbox("bwrap", short_texts[:2]) == "sandbox bwrap (no common memory limit, disk watched)"


@pytest.mark.slow
def test_doctor_reports_missing_features_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("REDSTART_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
    monkeypatch.setattr(bwrap, "find_own_tree", lambda: None)
    monkeypatch.setattr(
        checks, "list_lack_texts", lambda sandbox: list_lack_texts(sandbox) if isinstance(sandbox, Bubblewrap) else ()
    )
    examination = examine()
    [lack] = [check for check in examination.checks if check.name == "limits" and "memory" in check.detail]
    assert lack.health is Health.warn
    assert lack.detail == "bwrap lacks a common limit on memory and number of processes"
    assert "systemd" in lack.remedy
    assert examination.ok, "a lack is only a warning"
