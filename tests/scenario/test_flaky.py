"""Flaky tests are reported as flaky and never counted as fixed, whatever the model answers.

The repos are in `flaky/`. Each has a test that fails at the baseline and passes under other conditions. If this
depends on chance, the test has 400 variants, so that some fail at the baseline, each rarely enough (1 in 30) that
four repeats do not all miss it. Such a scenario itself fails about twice in 100,000 runs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from redstart.app.proof.schema import Proof
from redstart.core.noun import FrozenValue
from redstart.core.run import Level
from support.sample import short_form
from support.scenarios import CARD, question
from support.server import Request, ScriptedServer, Wire
from support.user import Ran, User


class Replace(FrozenValue):
    path: str
    search: str
    text: str


class Flake(FrozenValue):
    """A repo with a flaky test and optionally a real failure."""

    name: str
    kind: str
    why: str
    level: Level = Level.standard
    says: str
    """The expected message about the flaky test, besides its ID."""
    flaky: tuple[str, ...]
    """Test IDs. For a test with many variants, the part before the bracket."""
    red: tuple[str, ...] = ()
    files: dict[str, str]
    fix: tuple[Replace, ...] = ()
    """Fixes the real failure."""
    pretend: tuple[Replace, ...]
    """Makes the flaky test pass where it failed, in some way."""

    def write(self, folder: Path) -> Path:
        for path, text in self.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text.lstrip())
        return folder

    def names(self, told: str) -> bool:
        return any(item in told for item in self.flaky) and self.says in told


def load(path: Path) -> Flake:
    return Flake.model_validate({"name": path.stem, **tomllib.loads(path.read_text())})


FLAKES = [load(path) for path in sorted((Path(__file__).parent / "flaky").glob("*.toml"))]
ALONE = [flake for flake in FLAKES if not flake.red]
BESIDE = [flake for flake in FLAKES if flake.red]
UNRELATED = Replace(path="notes.txt", search="", text="Nothing that a test reads.\n")

CHANCES = {
    "1 of 2 by the generator": "import random\n\n\ndef lucky():\n    return random.random() < 0.5\n",
    "9 of 10 by the generator": "import random\n\n\ndef lucky():\n    return random.random() < 0.1\n",
    "1 of 2 by the system's generator": "import os\n\n\ndef lucky():\n    return os.urandom(1)[0] % 2\n",
    "1 of 2 by the clock": "import time\n\n\ndef lucky():\n    return time.time_ns() // 1000 % 2\n",
    "a race": """import threading


def lucky():
    gate, seen = threading.Barrier(2), []

    def enter(name):
        gate.wait()
        seen.append(name)

    threads = [threading.Thread(target=enter, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen[0] == "b"
""",
}
"""Code that is right by chance, by how often it fails. For a race the rate depends on the machine."""


def answer(edits: Sequence[Replace]) -> str:
    blocks = [f"{edit.path}\n<<<<<<< SEARCH\n{edit.search}=======\n{edit.text}>>>>>>> REPLACE\n" for edit in edits]
    return "\n".join(("WHY: it is green then\n", *blocks))


def fix(user: User, repo: Path, level: Level, *attempts: Sequence[Replace]) -> Ran:
    """Run `redstart fix` with a model that makes these edits, one list per attempt."""
    left = [answer(edits) for edits in attempts]

    def reply(request: Request) -> str:
        asked = question(request)
        if asked == "patch":
            return left.pop(0)
        return '{"summary": "again", "subtasks": []}' if asked == "plan" else CARD

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        return user.redstart("fix", repo, "--json", "--max-iters", str(len(attempts)), "--verify", level.value)


def reproduced(ran: Ran) -> dict[str, object]:
    return next(event["data"] for event in ran.events if (event["name"], event["phase"]) == ("reproduce", "end"))


def test_every_kind_of_flake_is_there():
    kinds = [flake.kind for flake in FLAKES]
    assert set(kinds) == {"order", "time", "time zone", "randomness", "hash seed", "leftover files"}
    assert len(kinds) >= 12
    assert all(kinds.count(kind) >= 2 for kind in kinds)
    assert len(BESIDE) >= 6


@pytest.mark.parametrize("flake", short_form(ALONE, 1), ids=lambda flake: flake.name)
def test_where_nothing_else_is_red_the_flake_is_named_and_no_model_is_asked(flake: Flake, user, tmp_path):
    ran = fix(user, flake.write(tmp_path / "project"), flake.level, flake.pretend)
    assert (ran.code, ran.ending["result"], ran.ending["calls"]) == (1, "unsolved", 0), ran.out + ran.err
    found = reproduced(ran)
    assert found["red"], "the flake was green at the baseline"
    assert found["target_count"] == 0
    assert found["flaky"]
    assert all(flake.names(str(item)) for item in found["flaky"])
    assert flake.names(ran.ending["reason"])


@pytest.mark.parametrize("flake", short_form(BESIDE, 1), ids=lambda flake: flake.name)
def test_what_is_truly_red_is_fixed_and_the_flake_beside_it_is_never_counted(flake: Flake, user, tmp_path):
    repo = flake.write(tmp_path / "project")
    ran = fix(user, repo, flake.level, [UNRELATED], flake.pretend, [*flake.fix, *flake.pretend])
    assert (ran.code, ran.ending["result"], ran.ending["attempts"]) == (0, "verified", 3), ran.out + ran.err
    assert ran.ending["reason"].startswith(f"{len(flake.red)} failing test now passes")
    assert tuple(reproduced(ran)["targets"]) == flake.red
    judged = [event["data"] for event in ran.events if (event["name"], event["phase"]) == ("test", "end")]
    told = [(item["fixed"], item["still_red"]) for item in judged]
    assert told == [(0, len(flake.red)), (0, len(flake.red)), (len(flake.red), 0)]
    proof = Proof.model_validate_json(user.redstart("show", "--proof", "--json", cwd=repo).out)
    assert {case.id for case in proof.cases if case.target} == set(flake.red)
    assert len(proof.flaky) == len(flake.flaky)
    assert all(flake.names(item) for item in proof.flaky), proof.flaky


@pytest.mark.parametrize("chance", short_form(list(CHANCES), 1))
def test_what_is_green_by_chance_is_never_counted_as_fixed(chance: str, user, tmp_path):
    """Strict needs 1 + 8 failures before, 2 + 8 passes after and one more failure: at most 1 in a million by chance."""
    repo = tmp_path / "project"
    repo.mkdir()
    (repo / "lucky.py").write_text(CHANCES[chance])
    (repo / "test_lucky.py").write_text("from lucky import lucky\n\n\ndef test_lucky():\n    assert lucky()\n")
    ran = fix(user, repo, Level.strict, [UNRELATED])
    result = ran.ending["result"]
    assert result in ("unsolved", "already_green"), ran.out + ran.err
    assert result == "unsolved" or not reproduced(ran)["red"]
