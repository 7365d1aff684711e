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
from yard import DISK, INODES, may_bound, mounted, unmounted, yard

import redstart
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.stage import reachable
from support.sample import short_form

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
    if not all(map(reachable, [*PATHS, str(HERE)])):
        pytest.skip("no other user can read this checkout")
    with tempfile.TemporaryDirectory(prefix="rn-") as folder:
        Path(folder).chmod(0o755)
        disk = Path(folder, "disk")
        disk.mkdir()
        assert mounted(disk, DISK, INODES)
        try:
            os.chown(disk, SOMEBODY, SOMEBODY)
            with _player(disk) as player:
                yield lambda name: _asked(player, name)
        finally:
            unmounted(disk)


def _player(disk: Path) -> subprocess.Popen[str]:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(PATHS), "PYTHONDONTWRITEBYTECODE": "1"}
    become = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", "--inh-caps=-all", "--"]
    return subprocess.Popen(
        [*become, SYSTEM_PYTHON, __file__],
        env={**variables, "TMPDIR": str(disk), "HOME": str(disk)},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _asked(player: subprocess.Popen[str], name: str) -> Outcome:
    assert player.stdin is not None
    assert player.stdout is not None
    player.stdin.write(f"{name}\n")
    player.stdin.flush()
    return json.loads(player.stdout.readline())


@pytest.mark.parametrize("name", [*GREEDY, *short_form(OTHERS, 4)])
def test_it_is_held(name: str, as_somebody: Play) -> None:
    outcome = as_somebody(name)
    assert outcome["user"] == SOMEBODY
    assert not outcome["in_vain"], outcome
    assert [each for each in outcome["evidence"] if not is_declared(each, outcome)] == [], outcome
    assert outcome["survivors"] == 0, outcome


def is_declared(evidence: str, outcome: Outcome) -> bool:
    """Check whether the sandbox itself declares this gap: without cgroups, total memory is watched, not bounded, and
    on a busy machine the check may come late. The sandbox must still end the attack."""
    said = any("memory" in each for each in outcome["lacks"])
    return said and evidence.startswith("memory: ") and outcome["cause"] in ("memory", "timeout")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="rn-") as folder:
        Path(folder).chmod(0o755)
        with yard(Path(folder)) as ground:
            for name in map(str.strip, sys.stdin):
                played = play(ATTACKS[name], "bwrap", ground)
                told = {
                    "user": os.geteuid(),
                    "evidence": played.evidence,
                    "in_vain": played.in_vain,
                    "survivors": played.survivors,
                    "lacks": Bubblewrap(ground.trees, ground.scratch).lacks,
                    "printed": played.completed.output[-1000:] if played.completed else "",
                    "cause": played.completed.cause if played.completed else "",
                }
                print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
