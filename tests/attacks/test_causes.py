"""The run reports the right cause for each crafted program, for root and other users, with and without cgroups."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import redstart
from redstart.ports.sandbox.stage import is_reachable

HERE = Path(__file__).parent
PROGRAMS = sorted(path.name for path in (HERE / "causes").iterdir())
SOMEBODY = 60599
SYSTEM_PYTHON = "/usr/bin/python3"
AT_ONCE = "4"

TIERS = {"root": ("full", "ungrouped"), "user": ("full", "unstaged")}
"""For another user, `full` means without cgroups, unless that user may create some."""


def build_interpreter_command(user: str) -> list[str]:
    """Build the command that starts Python as the user, who may have no access to ours. Skips if that is impossible."""
    paths = [str(Path(redstart.__file__).parents[1]), sysconfig.get_path("purelib")]
    if user == "root":
        if os.geteuid() != 0:
            pytest.skip("requires root")
        return [sys.executable]
    if os.geteuid() != 0:
        return [sys.executable]
    if not all(map(is_reachable, [*paths, str(HERE)])):
        pytest.skip("no other user can read this checkout")
    python = sys.executable if is_reachable(sys.executable) and is_reachable(sys.base_prefix) else SYSTEM_PYTHON
    return ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", "--", python]


@functools.cache
def run_all_programs(user: str, tier: str) -> dict[str, Any]:
    """Run all programs with `run_causes.py` and return its report."""
    paths = [str(Path(redstart.__file__).parents[1]), sysconfig.get_path("purelib")]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*build_interpreter_command(user), str(HERE / "run_causes.py"), tier, AT_ONCE]
    completed = subprocess.run(command, env=variables, cwd="/", capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return json.loads(completed.stdout.splitlines()[-1])


def read_expected_cause(program: str) -> str:
    return (HERE / "causes" / program).read_text().splitlines()[0].removeprefix("# cause: ")


def test_every_cause_has_programs() -> None:
    causes = [read_expected_cause(program) for program in PROGRAMS]
    assert len(causes) >= 40
    kinds = {"ok", "failed", "cpu", "memory", "processes", "file_size", "disk", "output", "timeout", "signal"}
    assert {cause: causes.count(cause) >= 3 for cause in causes} == dict.fromkeys(kinds, True)


def iter_users_and_tiers() -> Iterator[Any]:
    """Yield each user with each tier; all tiers but the usual one take minutes and run with --soak."""
    for user, tiers in TIERS.items():
        for tier in tiers:
            yield pytest.param(user, tier, marks=() if tier == "full" else pytest.mark.soak)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(("user", "tier"), [*iter_users_and_tiers()])
def test_reported_cause_is_correct(user: str, tier: str, program: str) -> None:
    outcome = run_all_programs(user, tier)["ends"][program]
    assert outcome["cause"] == read_expected_cause(program), outcome


@pytest.mark.parametrize(("user", "tier"), [*iter_users_and_tiers()])
def test_nothing_is_left_behind(user: str, tier: str) -> None:
    assert run_all_programs(user, tier)["left"] == []
