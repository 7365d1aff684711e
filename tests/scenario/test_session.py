"""The recorded session in the docs is short, fits a terminal, and is the same when it is recorded again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "session.md"


def read_recorded_session() -> str:
    match = re.search(r"<!-- session -->\n```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert match
    return match[1]


def test_few_commands_lead_from_installation_to_applied_patch() -> None:
    lines = read_recorded_session().splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    applied = next(number for number, line in enumerate(lines) if line.startswith("Applied."))
    until_applied = [line for line in lines[:applied] if line.startswith("$ ")]
    assert len(until_applied) <= 5
    assert "install" in commands[0]
    assert commands[-1].startswith("pytest")


def test_page_contains_no_path_of_the_recording_machine() -> None:
    paths = set(re.findall(r"(?<![\w.~])/[\w./-]+", read_recorded_session()))
    assert {path for path in paths if not path.startswith("/usr/bin/")} == set()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.soak
def test_session_matches_the_page() -> None:
    completed = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "session.py")], capture_output=True, text=True, timeout=600, check=False
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    figures = {load["name"]: load["value"] for load in json.loads(completed.stdout.splitlines()[-1])["figures"]}
    assert figures["page_is_true"] == 1, completed.stdout
