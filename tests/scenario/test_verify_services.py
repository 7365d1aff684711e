"""`redstart verify` with tests that share a service: the user's command resets it before each suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.git_repo import make_repo, write
from support.user import User


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    files = {"shop.py": "SIZE = 1\n", "test_shop.py": "import shop\n\n\ndef test_size():\n    assert shop.SIZE\n"}
    folder = make_repo(tmp_path / "shop", files)
    write(folder, {"shop.py": "SIZE = 2\n"})
    return folder


def test_command_runs_before_each_suite_and_the_result_says_so(user: User, repo: Path, tmp_path: Path):
    counter = tmp_path / "counter"
    counter.write_text("1")
    command = f"truncate --size=+1 {counter}"
    user.environ |= {
        "REDSTART_SANDBOX__SERVICES": '["127.0.0.1:54321"]',
        "REDSTART_SANDBOX__SERVICES_RESET": command,
    }
    result = json.loads(user.redstart("verify", repo, "--json").out)
    assert (result["end"], len(result["matrix"]), counter.stat().st_size) == ("unproven", 2, 3)
    assert result["notes"] == [
        f"the tests share 127.0.0.1:54321: the suites ran one after another, and `{command}` ran before each suite"
    ]


def test_command_that_fails_is_an_environment_problem(user: User, repo: Path):
    user.environ |= {
        "REDSTART_SANDBOX__SERVICES": '["127.0.0.1:54321"]',
        "REDSTART_SANDBOX__SERVICES_RESET": "false",
    }
    result = json.loads(user.redstart("verify", repo, "--json").out)
    assert (result["end"], result["exit_code"]) == ("environment", 3)
    assert result["reason"] == "`false` (sandbox.services_reset) exited with 1"
