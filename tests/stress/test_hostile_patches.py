"""Answers that try to write to forbidden places: none succeeds, from the text to the working tree."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


def import_bench_module(name: str) -> Any:
    """Import a module of `bench/`, which is no package and imports its neighbors by their bare names."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


player = import_bench_module("hostile")
HALVES = {"held out": player.HELD_OUT, "own": player.OWN}
EVERY = [pytest.param(item, id=f"{group}: {item.name}") for group, cases in HALVES.items() for item in cases]


def test_corpus_is_large_enough_and_its_ids_are_distinct():
    assert len(EVERY) >= 60
    assert all(len(cases) >= 32 for cases in HALVES.values())
    assert len({param.id for param in EVERY}) == len(EVERY)
    assert all(item.forbidden for cases in HALVES.values() for item in cases)


@pytest.mark.slow
@pytest.mark.parametrize("hostile", EVERY)
def test_hostile_answer_writes_to_no_forbidden_place(hostile, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "top").mkdir()
    outcome = player.play(hostile, tmp_path / "top")
    assert not outcome.harm, outcome.why
    assert not list((tmp_path / "elsewhere").iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "top"}


@pytest.mark.slow
def test_player_applies_a_good_patch_end_to_end(tmp_path):
    """Otherwise the tests above would pass for a player that applies nothing."""
    edit = "<<<<<<< SEARCH\n    return sum(items) + 1\n=======\n    return sum(items)\n>>>>>>> REPLACE\n"
    good_patch = player.Hostile("good", "none", f"shop/prices.py\n{edit}".encode(), ())
    outcome = player.play(good_patch, tmp_path)
    assert (outcome.result, outcome.wrote, outcome.harm) == ("verified", ("ws/shop/prices.py",), ())
    assert b"+ 1" not in (tmp_path / "parent" / "ws" / "shop" / "prices.py").read_bytes()


@pytest.mark.parametrize(
    ("path", "phrase"),
    [
        ("outside/keep.py", "outside"),
        ("escaped.txt", "outside"),
        ("ws/.git/hooks/pre-commit", "git"),
        ("ws/shop/.GIT/config", "git"),
        ("ws/tests/test_prices.py", "test"),
        ("ws/conftest.py", "tests"),
        ("ws/.github/workflows/ci.yml", "tests"),
    ],
)
def test_player_recognizes_forbidden_paths(path, phrase):
    assert phrase in player.explain_prohibition(path)


def test_player_detects_every_kind_of_change(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("one")
    (tmp_path / "l").symlink_to("a")
    states = [player.hash_files(tmp_path)]
    for change in (
        lambda: (tmp_path / "a" / "f").write_text("two"),
        lambda: (tmp_path / "a" / "f").chmod(0o755),
        lambda: (tmp_path / "empty").mkdir(),
        lambda: ((tmp_path / "l").unlink(), (tmp_path / "l").symlink_to("b")),
        lambda: (tmp_path / "a" / "f").unlink(),
    ):
        change()
        states.append(player.hash_files(tmp_path))
        assert states[-1] != states[-2]
