"""What the demo says about the machine it runs on."""

from __future__ import annotations

import pytest

from redstart.app.settings import Models, SandboxSettings, Settings
from redstart.cli.demo import NO_SANDBOX, DemoStage
from redstart.ports.world.system import NumberedWorld

pytestmark = pytest.mark.slow


def test_demo_without_a_sandbox_prints_a_notice(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    sandbox = SandboxSettings(backend="docker")
    settings = Settings(home=tmp_path / "home", models=Models(strong="recorded:demo"), sandbox=sandbox)
    DemoStage(settings, tmp_path / "repo", NumberedWorld("demo"), json=False, verbose=False).warn_if_no_sandbox()
    assert " ".join(capsys.readouterr().out.split()) == NO_SANDBOX
