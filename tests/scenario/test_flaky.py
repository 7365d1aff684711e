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
from redstart.core.frozen import FrozenValue
from redstart.core.run import Level
from support.sample import sample_parameters
from support.scenarios import CARD, parse_question
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

    def is_named_in(self, text: str) -> bool:
        return any(item in text for item in self.flaky) and self.says in text


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
    remaining_answers = [answer(edits) for edits in attempts]

    def reply(request: Request) -> str:
        question_name = parse_question(request)
        if question_name == "patch":
            return remaining_answers.pop(0)
        return '{"summary": "again", "subtasks": []}' if question_name == "plan" else CARD

    with ScriptedServer(reply) as server:
        user.uses(server, Wire.openai)
        return user.redstart("fix", repo, "--json", "--max-iters", str(len(attempts)), "--verify", level.value)


def find_reproduction(ran: Ran) -> dict[str, object]:
    return next(event["data"] for event in ran.events if (event["name"], event["phase"]) == ("reproduce", "end"))


def test_every_kind_of_flake_is_covered():
    kinds = [flake.kind for flake in FLAKES]
    assert set(kinds) == {"order", "time", "time zone", "randomness", "hash seed", "leftover files"}
    assert len(kinds) >= 12
    assert all(kinds.count(kind) >= 2 for kind in kinds)
    assert len(BESIDE) >= 6


@pytest.mark.parametrize("flake", sample_parameters(ALONE, 1), ids=lambda flake: flake.name)
def test_lone_flake_is_reported_and_no_model_is_asked(flake: Flake, user, tmp_path):
    result = fix(user, flake.write(tmp_path / "project"), flake.level, flake.pretend)
    assert (result.code, result.ending["result"], result.ending["calls"]) == (1, "unsolved", 0), result.out + result.err
    reproduction = find_reproduction(result)
    assert reproduction["red"], "the flake was green at the baseline"
    assert reproduction["target_count"] == 0
    assert reproduction["flaky"]
    assert all(flake.is_named_in(str(item)) for item in reproduction["flaky"])
    assert flake.is_named_in(result.ending["reason"])


@pytest.mark.parametrize("flake", sample_parameters(BESIDE, 1), ids=lambda flake: flake.name)
def test_real_failure_is_fixed_and_the_flake_beside_it_is_not_counted(flake: Flake, user, tmp_path):
    repo = flake.write(tmp_path / "project")
    result = fix(user, repo, flake.level, [UNRELATED], flake.pretend, [*flake.fix, *flake.pretend])
    assert (result.code, result.ending["result"], result.ending["attempts"]) == (0, "verified", 3), (
        result.out + result.err
    )
    assert result.ending["reason"].startswith(f"{len(flake.red)} failing test now passes")
    assert tuple(find_reproduction(result)["targets"]) == flake.red
    test_events = [event["data"] for event in result.events if (event["name"], event["phase"]) == ("test", "end")]
    outcomes = [(item["fixed"], item["still_red"]) for item in test_events]
    assert outcomes == [(0, len(flake.red)), (0, len(flake.red)), (len(flake.red), 0)]
    proof = Proof.model_validate_json(user.redstart("show", "--proof", "--json", cwd=repo).out)
    assert {case.id for case in proof.cases if case.target} == set(flake.red)
    assert len(proof.flaky) == len(flake.flaky)
    assert all(flake.is_named_in(item) for item in proof.flaky), proof.flaky


@pytest.mark.parametrize("chance", sample_parameters(list(CHANCES), 1))
def test_chance_pass_is_never_counted_as_fixed(chance: str, user, tmp_path):
    """Strict needs 1 + 8 failures before, 2 + 8 passes after and one more failure: at most 1 in a million by chance."""
    repo = tmp_path / "project"
    repo.mkdir()
    (repo / "lucky.py").write_text(CHANCES[chance])
    (repo / "test_lucky.py").write_text("from lucky import lucky\n\n\ndef test_lucky():\n    assert lucky()\n")
    fix_result = fix(user, repo, Level.strict, [UNRELATED])
    result = fix_result.ending["result"]
    assert result in ("unsolved", "already_green"), fix_result.out + fix_result.err
    assert result == "unsolved" or not find_reproduction(fix_result)["red"]
