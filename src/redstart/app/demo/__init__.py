"""The demo: a small buggy repo and recorded model answers; everything else is real."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from redstart.ports.model.replay import Cassette

_DATA = files("redstart.app.demo")


def copy_repo(name: str, to: Path) -> None:
    """Copy one of the demo's folders over the target folder."""
    with as_file(_DATA / "repos" / name) as source:
        shutil.copytree(source, to, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def load_recording(name: str) -> Cassette:
    """Load recorded answers. They match by attempt, step and ordinal, because pytest's output differs by machine."""
    with as_file(_DATA / "recordings" / f"{name}.json") as path:
        return Cassette.load(path)
