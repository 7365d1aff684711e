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

from support.sample import short_form

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
        with yard(Path(folder)) as made:
            yield made


def parameters(attack: Attack, short: bool, *before: str) -> object:
    return pytest.param(*before, attack, id="-".join((attack.name, *before)), marks=() if short else pytest.mark.soak)


def held() -> list[object]:
    """List each attack with each sandbox."""
    first = [name for name in sorted(FIRST_OF_ITS_KIND) if name not in ALWAYS]
    short = dict.fromkeys(BACKENDS, FIRST_OF_ITS_KIND)
    for backend, count in IN_CONTAINERS.items():
        short[backend] = ALWAYS | {name for name in short_form(first, count) if isinstance(name, str)}
    return [parameters(attack, attack.name in short[backend], backend) for attack in ATTACKS for backend in BACKENDS]


def bare() -> list[object]:
    quick = {attack.name for attack in ATTACKS if attack.evidence not in SLOW_BARE} & FIRST_OF_ITS_KIND
    return [parameters(attack, attack.name in quick) for attack in ATTACKS if attack.bare != "untried"]


def words(outcome: Outcome) -> str:
    printed = outcome.completed.output[-1000:] if outcome.completed else ""
    return f"{outcome.attack.name} on {outcome.backend}: {outcome.evidence}\n{printed}"


def test_there_are_enough_of_every_kind():
    assert len(ATTACKS) >= 80
    assert {attack.path.suffix for attack in ATTACKS} == {".py", ".mjs", ".sh"}
    assert {attack.evidence for attack in ATTACKS} == set(EVIDENCE)
    assert sum(attack.bare == "works" for attack in ATTACKS) >= 80


@pytest.mark.parametrize(("backend", "attack"), held())
def test_it_is_held(attack: Attack, backend: str, ground: Yard, usable: Callable[[str], None]):
    usable(backend)
    outcome = play(attack, backend, ground)
    assert not outcome.in_vain, words(outcome)
    assert not outcome.escaped, words(outcome)


@pytest.mark.skipif(not may_bound(), reason="only root can limit a program without a sandbox")
@pytest.mark.parametrize("attack", bare())
def test_it_works_without_a_sandbox(attack: Attack, ground: Yard):
    outcome = play(attack, BARE, ground)
    assert not outcome.in_vain, words(outcome)
    if attack.bare == "works":
        assert attack.evidence in outcome.kinds, words(outcome)
    elif attack.bare == "refused":
        assert attack.evidence not in outcome.kinds, words(outcome)


@pytest.mark.skipif(not may_bound(), reason="only root can limit a program without a sandbox")
def test_what_was_run_without_a_sandbox_is_gone(ground: Yard):
    daemon = next(attack for attack in ATTACKS if attack.name == "survivors/disguised")
    assert play(daemon, BARE, ground).survivors == 1
    assert not list(ground.disk.glob("bare-*"))
    assert not list(Path("/sys/fs/cgroup/pids").glob("**/redstart-attacks-*"))


@pytest.mark.parametrize(
    "attack", [attack for attack in ATTACKS if attack.bare == "untried"], ids=lambda each: each.name
)
def test_what_could_touch_others_is_refused_without_a_sandbox(attack: Attack, ground: Yard):
    with pytest.raises(ValueError, match="must not be run"):
        play(attack, BARE, ground)


def test_a_header_that_says_nothing_is_refused(tmp_path: Path):
    program = tmp_path / "silent.py"
    program.write_text("# does something\n# evidence: none\n# bare: works\n")
    with pytest.raises(ValueError, match="header"):
        read(program)
