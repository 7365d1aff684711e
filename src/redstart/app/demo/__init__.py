"""The demo: a small buggy repo and recorded answers of a model; everything else about it is real."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from redstart.ports.model.replay import Cassette

_DATA = files("redstart.app.demo")


def copy_repo(name: str, to: Path) -> None:
    """Copies one of the demo's folders over `to`."""
    with as_file(_DATA / "repos" / name) as source:
        shutil.copytree(source, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def recording(name: str) -> Cassette:
    """Recorded answers, matched by attempt, step and ordinal: what pytest prints differs between machines."""
    with as_file(_DATA / "recordings" / f"{name}.json") as path:
        return Cassette.load(path)
