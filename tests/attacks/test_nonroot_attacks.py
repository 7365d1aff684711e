"""Attacks on bubblewrap by a user who is not root and has no cgroup are contained too.

Some run by default, all with --soak. If the tests do not run as root, `test_attacks.py` covers this.
As a program, run as that user, this plays the attacks named on standard input and prints the outcome of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogue import attacks
from harness import play
from yard import DISK, INODES, may_bound, mount_tmpfs, unmount, yard

import redstart
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.stage import is_reachable
from support.sample import sample_parameters

HERE = Path(__file__).parent
ATTACKS = {attack.name: attack for attack in attacks()}
PATHS = [str(Path(redstart.__file__).parents[1]), str(HERE.parent), sysconfig.get_path("purelib")]
SOMEBODY = 60_598
SYSTEM_PYTHON = "/usr/bin/python3"
GREEDY = [
    f"resources/{name}"
    for name in ("fork_bomb", "memory_six", "memory_descriptor", "memory_shared", "disk_files", "inodes", "thread_bomb")
]
"""Attacks that a cgroup would stop and that must be stopped without one."""
OTHERS = [name for name in ATTACKS if name not in GREEDY]

Outcome = dict[str, Any]
Play = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def as_somebody() -> Iterator[Play]:
    """Return a function that plays an attack by its name as another user with a small disk."""
    if not may_bound():
        pytest.skip("only root can become another user")
    if not all(map(is_reachable, [*PATHS, str(HERE)])):
        pytest.skip("no other user can read this checkout")
    with tempfile.TemporaryDirectory(prefix="rn-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder, "disk")
        disk.mkdir()
        assert mount_tmpfs(disk, DISK, INODES)
        try:
            os.chown(disk, SOMEBODY, SOMEBODY)
            with _start_player(disk) as player:
                yield lambda name: _ask_player(player, name)
        finally:
            unmount(disk)


def _start_player(disk: Path) -> subprocess.Popen[str]:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(PATHS), "PYTHONDONTWRITEBYTECODE": "1"}
    user_prefix = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", "--inh-caps=-all", "--"]
    return subprocess.Popen(
        [*user_prefix, SYSTEM_PYTHON, __file__],
        env={**variables, "TMPDIR": str(disk), "HOME": str(disk)},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ask_player(player: subprocess.Popen[str], name: str) -> Outcome:
    assert player.stdin is not None
    assert player.stdout is not None
    player.stdin.write(f"{name}\n")
    player.stdin.flush()
    return json.loads(player.stdout.readline())


@pytest.mark.parametrize("name", [*GREEDY, *sample_parameters(OTHERS, 4)])
def test_sandbox_contains_the_attack(name: str, as_somebody: Play) -> None:
    outcome = as_somebody(name)
    assert outcome["user"] == SOMEBODY
    assert not outcome["in_vain"], outcome
    assert [item for item in outcome["evidence"] if not is_declared(item, outcome)] == [], outcome
    assert outcome["survivors"] == 0, outcome


def is_declared(evidence: str, outcome: Outcome) -> bool:
    """Check whether the sandbox itself declares this gap: without cgroups, total memory is watched, not bounded, and
    on a busy machine the check may come late. The sandbox must still end the attack."""
    declares_memory = any("memory" in gap for gap in outcome["lacks"])
    return declares_memory and evidence.startswith("memory: ") and outcome["cause"] in ("memory", "timeout")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rn-") as folder:
        Path(folder).chmod(0o755)
        with yard(Path(folder)) as testbed:
            for name in map(str.strip, sys.stdin):
                played_outcome = play(ATTACKS[name], "bwrap", testbed)
                report = {
                    "user": os.geteuid(),
                    "evidence": played_outcome.evidence,
                    "in_vain": played_outcome.in_vain,
                    "survivors": played_outcome.survivors,
                    "lacks": Bubblewrap(testbed.trees, testbed.scratch).lacks,
                    "printed": played_outcome.completed.output[-1000:] if played_outcome.completed else "",
                    "cause": played_outcome.completed.cause if played_outcome.completed else "",
                }
                print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
