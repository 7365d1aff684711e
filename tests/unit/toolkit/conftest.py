from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.testing.store import MemoryBlobs
from redstart.toolkit.repo.trees import GitTrees


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[GitTrees]:
    made = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    yield made
    made.close()
