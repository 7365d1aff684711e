from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.toolkit.repo.trees import GitTrees
from support.store import MemoryBlobs


@pytest.fixture
def trees(tmp_path: Path) -> Iterator[GitTrees]:
    git_trees = GitTrees(tmp_path / "snapshots", MemoryBlobs())
    yield git_trees
    git_trees.close()
