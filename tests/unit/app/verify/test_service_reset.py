"""The command that resets the services which the tests share."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from redstart.app.verify import service_reset
from redstart.app.verify.service_reset import ServicesNotReset, describe_services, reset_services


async def test_command_runs_in_the_repo_without_a_shell_and_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PGPORT", "5433")
    monkeypatch.setenv("API_KEY", "secret")
    script = "import os, sys; open('seen', 'w').write(f'{sys.argv[1:]} {sorted(os.environ)}')"
    await reset_services(f'"{sys.executable}" -c "{script}" $HOME', tmp_path)
    seen = (tmp_path / "seen").read_text()
    assert ("['$HOME']" in seen, "PGPORT" in seen, "API_KEY" in seen) == (True, True, False)


@pytest.mark.parametrize(
    ("command", "problem", "remedy"),
    [
        (f"{sys.executable} -c \"print('no such table'); exit(4)\"", "exited with 4", "no such table"),
        ("surely-missing-program", "cannot be started", "correct the setting"),
        (f'{sys.executable} -c "import time; time.sleep(60)"', "did not finish within", "choose a faster command"),
    ],
    ids=["fails", "missing", "too slow"],
)
async def test_failure_names_the_command_and_the_reason(
    command: str, problem: str, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if "sleep" in command:
        monkeypatch.setattr(service_reset, "TIMEOUT_SECONDS", 0.5)
    with pytest.raises(ServicesNotReset, match=problem) as caught:
        await reset_services(command, tmp_path)
    assert caught.value.remedy == remedy
    assert f"`{command}` (sandbox.services_reset)" in str(caught.value)


async def test_server_that_the_command_starts_may_keep_its_output_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(service_reset, "TIMEOUT_SECONDS", 20)
    script = "import subprocess; open('pid', 'w').write(str(subprocess.Popen(['sleep', '60']).pid))"
    try:
        await reset_services(f'"{sys.executable}" -c "{script}"', tmp_path)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_report_says_whether_the_services_were_reset():
    services = ("127.0.0.1:5432",)
    assert describe_services((), "make reset") == ""
    assert describe_services(services, "make reset").endswith("and `make reset` ran before each suite")
    assert describe_services(services, "").endswith("and nothing reset them between the suites")
