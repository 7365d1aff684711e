"""Answers that try to write to forbidden places: none succeeds, from the text to the working tree."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[4] / "bench"


def of_bench(name: str) -> Any:
    """Import a module of `bench/`, which is no package and imports its neighbors by their bare names."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


player = of_bench("hostile")
HALVES = {"held out": player.HELD_OUT, "own": player.OWN}
EVERY = [pytest.param(item, id=f"{half}: {item.name}") for half, every in HALVES.items() for item in every]


def test_there_are_enough_and_each_is_told_apart():
    assert len(EVERY) >= 60
    assert all(len(every) >= 32 for every in HALVES.values())
    assert len({param.id for param in EVERY}) == len(EVERY)
    assert all(item.forbidden for every in HALVES.values() for item in every)


@pytest.mark.slow
@pytest.mark.parametrize("hostile", EVERY)
def test_nothing_is_written_where_nothing_may_be(hostile, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "top").mkdir()
    played = player.play(hostile, tmp_path / "top")
    assert not played.harm, played.why
    assert not list((tmp_path / "elsewhere").iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "top"}


@pytest.mark.slow
def test_the_player_takes_a_good_patch_all_the_way(tmp_path):
    """Otherwise the tests above would pass for a player that applies nothing."""
    edit = "<<<<<<< SEARCH\n    return sum(items) + 1\n=======\n    return sum(items)\n>>>>>>> REPLACE\n"
    good = player.Hostile("good", "none", f"shop/prices.py\n{edit}".encode(), ())
    played = player.play(good, tmp_path)
    assert (played.result, played.wrote, played.harm) == ("verified", ("ws/shop/prices.py",), ())
    assert b"+ 1" not in (tmp_path / "parent" / "ws" / "shop" / "prices.py").read_bytes()


@pytest.mark.parametrize(
    ("path", "word"),
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
def test_the_player_would_notice(path, word):
    assert word in player.never(path)


def test_the_player_sees_every_kind_of_change(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("one")
    (tmp_path / "l").symlink_to("a")
    seen = [player.everything_in(tmp_path)]
    for change in (
        lambda: (tmp_path / "a" / "f").write_text("two"),
        lambda: (tmp_path / "a" / "f").chmod(0o755),
        lambda: (tmp_path / "empty").mkdir(),
        lambda: ((tmp_path / "l").unlink(), (tmp_path / "l").symlink_to("b")),
        lambda: (tmp_path / "a" / "f").unlink(),
    ):
        change()
        seen.append(player.everything_in(tmp_path))
        assert seen[-1] != seen[-2]
