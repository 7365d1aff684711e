"""Hostile programs in every sandbox: the host must see no effect afterwards.

One attack of each kind runs by default, some of them in containers; all run with --soak. Where possible, an attack is
shown to work without a sandbox.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backends import BACKENDS, BARE
from catalogue import EVIDENCE, Attack, attacks, read
from harness import Outcome, play
from yard import Yard, may_bound, yard

from support.sample import sample_parameters

ATTACKS = attacks()
KINDS = {(attack.group, attack.evidence): attack.name for attack in reversed(ATTACKS)}
FIRST_OF_ITS_KIND = set(KINDS.values())
IN_CONTAINERS = {"docker+runc": 4, "docker+runsc": 2}
"""How many attacks run in containers by default, besides `ALWAYS`, where sandboxes differ most."""
ALWAYS = {"resources/disk_files", "resources/inodes"}
SLOW_BARE = {"time", "output", "inodes"}
"""Evidence of attacks that, without a sandbox, never end by themselves or take much of our memory."""


@pytest.fixture(scope="module")
def ground() -> Iterator[Yard]:
    # Not below pytest's own folder, which is private: attacks that run as an ordinary user need access.
    with tempfile.TemporaryDirectory(prefix="ra-") as folder:
        Path(folder).chmod(0o755)
        with yard(Path(folder)) as testbed:
            yield testbed


def make_parameters(attack: Attack, in_short_form: bool, *before: str) -> object:
    return pytest.param(
        *before, attack, id="-".join((attack.name, *before)), marks=() if in_short_form else pytest.mark.soak
    )


def list_sandboxed_cases() -> list[object]:
    """List each attack with each sandbox."""
    candidates = [name for name in sorted(FIRST_OF_ITS_KIND) if name not in ALWAYS]
    short_names = dict.fromkeys(BACKENDS, FIRST_OF_ITS_KIND)
    for backend, count in IN_CONTAINERS.items():
        short_names[backend] = ALWAYS | {name for name in sample_parameters(candidates, count) if isinstance(name, str)}
    return [
        make_parameters(attack, attack.name in short_names[backend], backend)
        for attack in ATTACKS
        for backend in BACKENDS
    ]


def list_bare_cases() -> list[object]:
    quick = {attack.name for attack in ATTACKS if attack.evidence not in SLOW_BARE} & FIRST_OF_ITS_KIND
    return [make_parameters(attack, attack.name in quick) for attack in ATTACKS if attack.bare != "untried"]


def describe_outcome(outcome: Outcome) -> str:
    printed = outcome.completed.output[-1000:] if outcome.completed else ""
    return f"{outcome.attack.name} on {outcome.backend}: {outcome.evidence}\n{printed}"


def test_every_kind_has_enough_attacks():
    assert len(ATTACKS) >= 80
    assert {attack.path.suffix for attack in ATTACKS} == {".py", ".mjs", ".sh"}
    assert {attack.evidence for attack in ATTACKS} == set(EVIDENCE)
    assert sum(attack.bare == "works" for attack in ATTACKS) >= 80


@pytest.mark.parametrize(("backend", "attack"), list_sandboxed_cases())
def test_sandbox_contains_the_attack(attack: Attack, backend: str, ground: Yard, usable: Callable[[str], None]):
    usable(backend)
    outcome = play(attack, backend, ground)
    assert not outcome.in_vain, describe_outcome(outcome)
    assert not outcome.escaped, describe_outcome(outcome)


@pytest.mark.skipif(not may_bound(), reason="only root can limit a program without a sandbox")
@pytest.mark.parametrize("attack", list_bare_cases())
def test_attack_works_without_a_sandbox(attack: Attack, ground: Yard):
    outcome = play(attack, BARE, ground)
    assert not outcome.in_vain, describe_outcome(outcome)
    if attack.bare == "works":
        assert attack.evidence in outcome.kinds, describe_outcome(outcome)
    elif attack.bare == "refused":
        assert attack.evidence not in outcome.kinds, describe_outcome(outcome)


@pytest.mark.skipif(not may_bound(), reason="only root can limit a program without a sandbox")
def test_attack_without_a_sandbox_leaves_nothing_behind(ground: Yard):
    daemon = next(attack for attack in ATTACKS if attack.name == "survivors/disguised")
    assert play(daemon, BARE, ground).survivors == 1
    assert not list(ground.disk.glob("bare-*"))
    assert not list(Path("/sys/fs/cgroup/pids").glob("**/redstart-attacks-*"))


@pytest.mark.parametrize(
    "attack", [attack for attack in ATTACKS if attack.bare == "untried"], ids=lambda each: each.name
)
def test_attack_that_could_affect_others_needs_a_sandbox(attack: Attack, ground: Yard):
    with pytest.raises(ValueError, match="must not be run"):
        play(attack, BARE, ground)


def test_incomplete_attack_header_is_rejected(tmp_path: Path):
    program = tmp_path / "silent.py"
    program.write_text("# does something\n# evidence: none\n# bare: works\n")
    with pytest.raises(ValueError, match="header"):
        read(program)
