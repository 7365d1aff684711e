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


def recorded_on_page() -> str:
    found = re.search(r"<!-- session -->\n```console\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_a_few_commands_lead_from_the_installation_to_the_applied_patch() -> None:
    lines = recorded_on_page().splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    applied = next(number for number, line in enumerate(lines) if line.startswith("Applied."))
    until_applied = [line for line in lines[:applied] if line.startswith("$ ")]
    assert len(until_applied) <= 5
    assert "install" in commands[0]
    assert commands[-1].startswith("pytest")


def test_the_page_names_no_place_of_the_machine_that_recorded_it() -> None:
    paths = set(re.findall(r"(?<![\w.~])/[\w./-]+", recorded_on_page()))
    assert {path for path in paths if not path.startswith("/usr/bin/")} == set()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
@pytest.mark.soak
def test_the_session_comes_out_as_the_page_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "session.py")], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = {load["name"]: load["value"] for load in json.loads(done.stdout.splitlines()[-1])["figures"]}
    assert figures["page_is_true"] == 1, done.stdout
